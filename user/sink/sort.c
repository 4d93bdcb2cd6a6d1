// SPDX-License-Identifier: Apache-2.0
#include "sink/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const snk_sort_names[SNK_SORT_NKEYS] = {
	[SNK_SORT_TOTAL] = "total", [SNK_SORT_SELF] = "self", [SNK_SORT_COUNT] = "count", [SNK_SORT_AVG] = "avg",
	[SNK_SORT_MIN] = "min",	    [SNK_SORT_MAX] = "max",   [SNK_SORT_P99] = "p99",	  [SNK_SORT_NAME] = "name",
};

int snk_sort_find(const char *name)
{
	int i;

	for (i = 0; i < SNK_SORT_NKEYS; i++)
		if (!strcmp(snk_sort_names[i], name))
			return i;
	return -1;
}

struct ranked {
	long double key; /* 64 bits of mantissa: every u64 is itself */
	const struct mdl_row *row;
	const char *name;
	size_t len;
};

static long double key_of(const struct mdl_row *r, enum snk_sort by)
{
	const long double keys[SNK_SORT_NKEYS] = {
		[SNK_SORT_TOTAL] = (long double)r->total_ns,
		[SNK_SORT_SELF] = (long double)r->self_ns,
		[SNK_SORT_COUNT] = (long double)r->count,
		[SNK_SORT_AVG] = (long double)r->total_ns / (long double)r->count,
		[SNK_SORT_MIN] = (long double)r->min_ns,
		[SNK_SORT_MAX] = (long double)r->max_ns,
		[SNK_SORT_P99] = by == SNK_SORT_P99 ? (long double)mdl_percentile(r, 0.99) : 0,
	};

	return keys[by];
}

static int by_rank(const void *va, const void *vb, void *vopts)
{
	const struct ranked *a = va, *b = vb;
	const struct snk_opts *opts = vopts;
	int up = opts->ascending ? 1 : -1, names = snk_name_cmp(a->name, a->len, b->name, b->len);

	if (a->key != b->key)
		return a->key < b->key ? -up : up;
	if (names)
		return opts->sort == SNK_SORT_NAME ? names : -names;
	if (a->row->device != b->row->device)
		return a->row->device < b->row->device ? -1 : 1;
	return a->row->tgid < b->row->tgid ? -1 : a->row->tgid > b->row->tgid;
}

int snk_sorted_rows(struct mdl *m, enum mxbpf_class cls, const struct snk_opts *opts, const struct mdl_row ***rows,
		    size_t *n)
{
	const struct mdl_row *const *all = mdl_rows(m, cls, n);
	struct ranked *ranks = calloc(*n + 1, sizeof(*ranks));
	size_t i;

	*rows = calloc(*n + 1, sizeof(**rows));
	if (!ranks || !*rows) {
		free(ranks);
		free(*rows);
		*rows = NULL;
		return -ENOMEM;
	}
	for (i = 0; i < *n; i++) {
		ranks[i].row = all[i];
		ranks[i].key = key_of(all[i], opts->sort);
		ranks[i].name = mdl_name(m, all[i]->name_id, &ranks[i].len);
	}
	qsort_r(ranks, *n, sizeof(*ranks), by_rank, (void *)opts);
	for (i = 0; i < *n; i++)
		(*rows)[i] = ranks[i].row;
	free(ranks);
	return 0;
}
