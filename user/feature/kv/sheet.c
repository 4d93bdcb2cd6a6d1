// SPDX-License-Identifier: Apache-2.0
/* Bytes sent to and received from a parameter store, by operation and key. */
#include "feature/kv/kv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "mxbpf_kv.h"
#include "view/priv.h"
#include "view/sheet.h"

/* Calls of a parameter store with one operation and key. */
struct kv {
	struct kv_row k;
	struct view_text name; /* owned */
	struct view_key key;   /* owned */
	uint64_t avg_ns, p50_ns, p99_ns, rate;
};

static uint64_t bytes_of(const struct kv_row *k)
{
	uint64_t sum;

	return __builtin_add_overflow(k->sent_bytes, k->received_bytes, &sum) ? UINT64_MAX : sum;
}

/* Sorts numeric keys by value, before names. */
static int by_key(const struct kv *a, const struct kv *b)
{
	if (a->key.number != b->key.number)
		return a->key.number ? -1 : 1;
	if (a->key.number)
		return a->k.key == b->k.key ? 0 : a->k.key < b->k.key ? -1 : 1;
	return view_name_cmp(a->key.text.data, a->key.text.len, b->key.text.data, b->key.text.len);
}

static int kv_by_opts(const void *va, const void *vb, void *vopts)
{
	const struct kv *a = va, *b = vb;
	const struct view_opts *opts = vopts;
	bool count = opts->sort == VIEW_SORT_COUNT;
	uint64_t ka = count ? a->k.count : a->k.total_ns, kb = count ? b->k.count : b->k.total_ns;
	int order;

	if (opts->sort != VIEW_SORT_NAME && ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	order = order ? order : by_key(a, b);
	if (order)
		return order;
	return a->k.tgid < b->k.tgid ? -1 : a->k.tgid > b->k.tgid;
}

/* Joins both parts. Without memory there is no text. The caller frees it. */
static struct view_text joined(const char *a, size_t alen, const char *b)
{
	struct view_text text = {NULL, alen + strlen(b)};
	char *to = malloc(text.len + 1);

	if (!to)
		return (struct view_text){0};
	memcpy(to, a, alen);
	strcpy(to + alen, b);
	text.data = to;
	return text;
}

/* Returns "serve pull" for a server that was asked to pull. */
static struct view_text operation(const struct mdl *m, const struct kv_row *k)
{
	const char *asked = !(k->flags & MXBPF_KV_SERVED) ? "" : k->flags & MXBPF_KV_PULLED ? " pull" : " push";
	size_t len;
	const char *name = mdl_name(m, k->name_id, &len);

	return joined(name, len, asked);
}

static struct view_key kv_key_of(const struct mdl *m, const struct kv_row *k)
{
	char digits[24];
	size_t len;
	const char *name;

	if (k->flags & MXBPF_KV_NAMED) {
		name = mdl_name(m, k->key, &len);
		return (struct view_key){joined(name, len, ""), false};
	}
	snprintf(digits, sizeof(digits), "%" PRId64, (int64_t)k->key);
	return (struct view_key){joined(digits, strlen(digits), ""), true};
}

static void kv_fill(const struct view *s, void *row)
{
	const uint64_t window_ns = s->in->session->duration_ns;
	struct kv *r = row;
	const struct kv_row *k = &r->k;
	const struct mdl_extent of = {k->count, k->min_ns, k->max_ns};

	r->name = operation(s->in->model, k);
	r->key = kv_key_of(s->in->model, k);
	r->avg_ns = k->count ? k->total_ns / k->count : 0;
	r->p50_ns = mdl_hist_percentile(k->hist, &of, 0.50);
	r->p99_ns = mdl_hist_percentile(k->hist, &of, 0.99);
	r->rate = window_ns ? whole((double)bytes_of(k) * 1e9 / (double)window_ns) : 0;
}

static void kv_sheet_fini(void *table)
{
	struct view_list *t = table;
	struct kv *r = t->rows;
	size_t i;

	for (i = 0; r && i < t->all; i++) {
		free((void *)r[i].name.data);
		free((void *)r[i].key.text.data);
	}
}

static void kv_above(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%sKVStore by key: ", prefix);
	view_put_rows(s, table);
	out_puts(s->out, "\n");
}

/* Writes which bytes are not included. */
static void kv_below(struct view *s, const void *table, const char *prefix)
{
	const uint64_t unkeyed = view_tally(s->in->model, MXBPF_TALLY_UNKEYED);
	const struct view_list *t = table;
	const struct kv *r = t->rows;
	uint64_t unknown = 0;
	char n[32];
	size_t i;

	for (i = 0; i < t->n; i++)
		unknown += r[i].k.unknown;
	out_printf(s->out,
		   "%s         bytes follow from shape and type in the program; a call with several keys is in the row "
		   "of each key\n",
		   prefix);
	if (unknown)
		out_printf(s->out,
			   "%s         the bytes of %s values are not known: sparse values, and answers of servers\n",
			   prefix, fmt_count(unknown, n));
	if (unkeyed)
		out_printf(s->out,
			   "%s         %s more values are in no row, because mxbpf reads the first %d of a call\n",
			   prefix, fmt_count(unkeyed, n), MXBPF_KV_VALUES_MAX);
}

static bool kv_when(const struct view *s)
{
	return s->in->session->class_title[MXBPF_CLASS_KVSTORE];
}

#define ROW struct kv
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(k.name_id)},
	{.stored = "key_id", .type = TBL_COUNT, KEY_AT(k.key)},
	{.stored = "flags", .type = TBL_COUNT, KEY_AT(k.flags)},
	{.stored = "hist", .type = TBL_COUNT, HIST_AT(k.hist)},
	{"key", NULL, "key", TBL_KEY, AT(key)},
	{"operation", "name", "operation", TBL_TEXT, AT(name), .label = "operation",
	 .help = "push, pull, pushpull, broadcast, init, row_sparse_pull; a server has serve push, serve pull"},
	PID_COLUMN(k.tgid, .merge = TBL_IS_KEY),
	{"calls", "count", "calls", TBL_COUNT, SUM_AT(k.count)},
	{"values", NULL, NULL, TBL_COUNT, SUM_AT(k.values), .help = "number of arrays; a key has one for each device"},
	{"values_unknown", NULL, NULL, TBL_COUNT, SUM_AT(k.unknown),
	 .help = "number of values whose bytes are not known; the sums of bytes leave them out"},
	{"sent_bytes", NULL, "sent", TBL_BYTES, SUM_AT(k.sent_bytes), TBL_DASH,
	 .metric = METRIC_OF_CALLS("mxbpf_kvstore_sent_bytes", "Bytes sent to the store of parameters, by operation"),
	 .help = "bytes sent to the store; for a server, bytes that workers sent to it"},
	{"received_bytes", NULL, "received", TBL_BYTES, SUM_AT(k.received_bytes), TBL_DASH,
	 .metric = METRIC_OF_CALLS("mxbpf_kvstore_received_bytes",
				   "Bytes received from the store of parameters, by operation")},
	{"total_ns", NULL, "total", TBL_NS, SUM_AT(k.total_ns), TBL_TIGHT},
	{"min_ns", NULL, NULL, TBL_NS, MIN_AT(k.min_ns)},
	{"max_ns", NULL, NULL, TBL_NS, MAX_AT(k.max_ns)},
	{NULL, "avg_ns", NULL, TBL_NS, AT(avg_ns)},
	{"p50_ns", NULL, "p50", TBL_NS, AT(p50_ns), TBL_TIGHT, .name_min = 12},
	{"p99_ns", NULL, "p99", TBL_NS, AT(p99_ns), TBL_TIGHT, .name_min = 16},
	{"bytes_per_second", "", "rate", TBL_RATE, AT(rate), TBL_DASH, .name_min = 20,
	 .help = "bytes in both directions for each second of the window"},
	{0},
};

const struct tbl_def kv_table = {.name = "kvstore", .row_bytes = sizeof(struct kv_row), .columns = columns};

const struct view_sheet sheet_kv = {
	.title = "KVStore by key",
	.help = "Data that calls of a KVStore transferred, by operation and key. A call with several keys is in the "
		"row of each key.",
	.member = "kvstore",
	.csv = "KVStore by key",
	.columns = columns,
	.row_bytes = sizeof(struct kv),
	.table_bytes = sizeof(struct view_list),
	.if_any = true,
	.when = kv_when,
	.stored = &kv_table,
	.feature = &feature_kv,
	.fill = kv_fill,
	.order = kv_by_opts,
	.fini = kv_sheet_fini,
	.above = kv_above,
	.below = kv_below,
};
