// SPDX-License-Identifier: Apache-2.0
/* What went to a store of parameters and came from it, by operation and key. */
#include "sink/priv.h"

#include "base/fmt.h"
#include "mxbpf_kv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 64

static uint64_t bytes_of(const struct mdl_kv *k)
{
	uint64_t sum;

	return __builtin_add_overflow(k->sent_bytes, k->received_bytes, &sum) ? UINT64_MAX : sum;
}

/* Numbers by size, then names. */
static int by_key(const struct snk_kv *a, const struct snk_kv *b)
{
	bool na = a->kv->flags & MXBPF_KV_NAMED, nb = b->kv->flags & MXBPF_KV_NAMED;

	if (na != nb)
		return na ? 1 : -1;
	if (!na)
		return a->kv->key == b->kv->key ? 0 : a->kv->key < b->kv->key ? -1 : 1;
	return snk_name_cmp(a->key, a->key_len, b->key, b->key_len);
}

static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct snk_kv *a = va, *b = vb;
	const struct snk_opts *opts = vopts;
	bool count = opts->sort == SNK_SORT_COUNT;
	uint64_t ka = count ? a->kv->calls.count : a->kv->calls.total_ns;
	uint64_t kb = count ? b->kv->calls.count : b->kv->calls.total_ns;
	int order;

	if (opts->sort != SNK_SORT_NAME && ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	order = snk_name_cmp(a->name, a->len, b->name, b->len);
	order = order ? order : by_key(a, b);
	if (order)
		return order;
	return a->kv->calls.tgid < b->kv->calls.tgid ? -1 : a->kv->calls.tgid > b->kv->calls.tgid;
}

/* "serve pull": what a server does says what it was asked for. */
static char *operation(const struct mdl_kv *k, const char *name, size_t *len)
{
	const char *asked = !(k->flags & MXBPF_KV_SERVED) ? "" : k->flags & MXBPF_KV_PULLED ? " pull" : " push";
	size_t n = strlen(asked);
	char *text = malloc(*len + n + 1);

	if (!text)
		return NULL;
	memcpy(text, name, *len);
	memcpy(text + *len, asked, n + 1);
	*len += n;
	return text;
}

static int fill(const struct snk *s, const struct mdl_kv *k, struct snk_kv *r)
{
	const char *text;
	char digits[24];

	r->kv = k;
	text = mdl_name(s->in->model, k->calls.name_id, &r->len);
	r->name = operation(k, text, &r->len);
	if (k->flags & MXBPF_KV_NAMED) {
		text = mdl_name(s->in->model, k->key, &r->key_len);
	} else {
		r->key_len = (size_t)snprintf(digits, sizeof(digits), "%" PRId64, (int64_t)k->key);
		text = digits;
	}
	r->key = malloc(r->key_len + 1);
	if (!r->name || !r->key)
		return -ENOMEM;
	memcpy(r->key, text, r->key_len);
	r->key[r->key_len] = '\0';
	return 0;
}

int snk_kvs(const struct snk *s, struct snk_kv **rows, size_t *n)
{
	const struct mdl_kv *const *all = mdl_kvs(s->in->model, n);
	struct snk_kv *r = calloc(*n + 1, sizeof(*r));
	size_t i;
	int err = r ? 0 : -ENOMEM;

	*rows = r;
	for (i = 0; !err && i < *n; i++)
		err = fill(s, all[i], &r[i]);
	if (!err)
		qsort_r(r, *n, sizeof(*r), by_opts, (void *)s->opts);
	return err;
}

void snk_kvs_free(struct snk_kv *rows, size_t n)
{
	size_t i;

	for (i = 0; rows && i < n; i++) {
		free(rows[i].name);
		free(rows[i].key);
	}
	free(rows);
}

uint64_t snk_kv_rate(const struct snk *s, const struct mdl_kv *k)
{
	uint64_t ns = s->in->session->duration_ns;

	return ns ? (uint64_t)((double)bytes_of(k) * 1e9 / (double)ns) : 0;
}

static int add_bytes(struct snk_grid *g, uint64_t bytes, const char *unit)
{
	char cell[CELL_BYTES] = "-", text[48];

	if (bytes)
		snprintf(cell, sizeof(cell), "%s%s", fmt_bytes(bytes, text), unit);
	return snk_grid_add(g, cell, strlen(cell));
}

static int add_row(const struct snk *s, struct snk_grid *g, const struct snk_kv *r)
{
	const uint64_t ns[] = {r->kv->calls.total_ns, mdl_percentile(&r->kv->calls, 0.50),
			       mdl_percentile(&r->kv->calls, 0.99)};
	char cell[CELL_BYTES];
	size_t i;
	int err = snk_grid_add(g, r->key, r->key_len);

	err = err ? err : snk_grid_add(g, r->name, r->len);
	snprintf(cell, sizeof(cell), "%" PRIu64, r->kv->calls.count);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	err = err ? err : add_bytes(g, r->kv->sent_bytes, "");
	err = err ? err : add_bytes(g, r->kv->received_bytes, "");
	for (i = 0; !err && i < sizeof(ns) / sizeof(ns[0]); i++) {
		fmt_tight_ns(ns[i], cell);
		err = snk_grid_add(g, cell, strlen(cell));
	}
	return err ? err : add_bytes(g, snk_kv_rate(s, r->kv), "/s");
}

/* What the bytes are not. */
static void put_caveats(struct snk *s, const struct snk_kvs *t)
{
	const uint64_t unkeyed = snk_counter(s->in->model, MXBPF_COUNTER_UNKEYED);
	uint64_t unknown = 0;
	char n[32];
	size_t i;

	for (i = 0; i < t->nrows; i++)
		unknown += t->rows[i].kv->unknown;
	out_puts(s->out,
		 "         bytes by shape and type, as the program has them; a call with several keys is in the row "
		 "of each\n");
	if (unknown)
		out_printf(s->out,
			   "         of %s values the bytes are not known: sparse ones, and what servers answer with\n",
			   fmt_count(unknown, n));
	if (unkeyed)
		out_printf(s->out, "         %s values more are in no row: of a call the first %d are looked at\n",
			   fmt_count(unkeyed, n), MXBPF_KV_VALUES_MAX);
}

int snk_put_kvs(struct snk *s, const struct snk_kvs *t)
{
	struct snk_grid g = {
		.cols = {{"key", .left = true},
			 {"operation", .left = true},
			 {"calls"},
			 {"sent"},
			 {"received"},
			 {"total"},
			 {"p50", .name_min = 12},
			 {"p99", .name_min = 16},
			 {"rate", .name_min = 20}},
		.ncols = 9,
	};
	size_t i;
	int err = 0;

	out_printf(s->out, "KVStore by key: %zu row%s%s\n", t->nrows_all, t->nrows_all == 1 ? "" : "s",
		   t->nrows < t->nrows_all ? ", not all of them shown" : "");
	for (i = 0; !err && i < t->nrows; i++)
		err = add_row(s, &g, &t->rows[i]);
	if (!err)
		snk_grid_print(&g, s->opts->width ? s->opts->width : SNK_WIDTH, s->out);
	put_caveats(s, t);
	snk_grid_fini(&g);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
