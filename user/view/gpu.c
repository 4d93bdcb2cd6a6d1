// SPDX-License-Identifier: Apache-2.0
#include "view/gpu.h"

#include <stdio.h>
#include <string.h>

int gpu_order(const struct view_opts *opts, const struct gpu_keys *a, const struct gpu_keys *b,
	      const struct view_text *name_a, const struct view_text *name_b)
{
	static const uint16_t places[VIEW_SORT_NKEYS] = {
		[VIEW_SORT_SELF] = offsetof(struct gpu_keys, self_ns),
		[VIEW_SORT_COUNT] = offsetof(struct gpu_keys, count),
		[VIEW_SORT_AVG] = offsetof(struct gpu_keys, avg_ns),
		[VIEW_SORT_MIN] = offsetof(struct gpu_keys, min_ns),
		[VIEW_SORT_MAX] = offsetof(struct gpu_keys, max_ns),
		[VIEW_SORT_P99] = offsetof(struct gpu_keys, p99_ns),
	};
	const uint16_t at = places[opts->sort];
	const uint64_t ka = *(const uint64_t *)((const char *)a + at), kb = *(const uint64_t *)((const char *)b + at);

	if (opts->sort != VIEW_SORT_NAME && ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	return view_name_cmp(name_a->data, name_a->len, name_b->data, name_b->len);
}

bool gpu_when(const struct view *s)
{
	return mdl_asked(s->in->session, &feature_activity);
}

void gpu_show_empty(const struct view *s, struct view_list *list)
{
	size_t nrows, nwork, naccounts;

	activity_rows(s->in->model, &nrows);
	activity_work_rows(s->in->model, &nwork);
	activity_accounts(s->in->model, &naccounts);
	list->empty_too = !list->people && (nrows || nwork || naccounts);
}

void gpu_percent_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	snprintf(cell, TBL_CELL_BYTES, "%.0f%%", 100 * *(const double *)value);
}

const char *gpu_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void gpu_put_title(struct view *s, const struct view_list *list, const char *prefix, const char *text)
{
	out_printf(s->out, "%s%s ", prefix, text);
	view_put_rows(s, list);
	out_puts(s->out, "\n");
}

const struct mxbpf_gpu_device *gpu_device(const struct view *s, uint32_t tgid, uint32_t device)
{
	size_t n, i;
	const struct mxbpf_gpu_device *d = activity_devices(s->in->model, &n);

	for (i = 0; i < n; i++)
		if ((!tgid || d[i].h.tgid == tgid) && d[i].device == device)
			return &d[i];
	return NULL;
}

const char *gpu_owner(const struct view *s, uint32_t tgid, char buf[VIEW_LABEL_BYTES])
{
	if (!view_by_label(s->opts->by))
		return view_process_label(s, tgid, buf);
	view_label(mdl_labels_of(s->in->session, tgid), s->opts->by, buf);
	return buf;
}

static bool starts_with(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(text, with, strlen(with));
}

struct view_text gpu_short_kernel(struct view_text name, char *to, size_t size)
{
	static const char *const words[] = {"(anonymous namespace)::", "at::native::"};
	const char *p = name.data, *end = p + name.len;
	unsigned depth = 0, i;
	size_t n = 0;

	p += starts_with(p, name.len, "void ") ? strlen("void ") : 0;
	while (p < end && n + 1 < size) {
		for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (starts_with(p, (size_t)(end - p), words[i]))
				break;
		if (i < sizeof(words) / sizeof(words[0])) {
			p += strlen(words[i]);
			continue;
		}
		if (*p == '(' && !depth && n)
			break;
		depth += *p == '<';
		depth -= *p == '>' && depth;
		to[n++] = *p++;
	}
	return n ? (struct view_text){to, n} : name;
}
