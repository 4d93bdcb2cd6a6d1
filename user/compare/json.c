// SPDX-License-Identifier: Apache-2.0
/* A comparison as JSON. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "compare/show.h"
#include "compare/tables.h"

static const char *const sides[CMP_SIDES] = {[CMP_A] = "a", [CMP_B] = "b"};

static void json_put_number(struct json *j, const char *key, const char *form, double v)
{
	if (isfinite(v))
		json_printf(j, key, form, v);
	else
		json_null(j, key);
}

static void put_pair(struct json *j, const char *key, const double v[CMP_SIDES], const char *form)
{
	unsigned side;

	json_object(j, key);
	for (side = 0; side < CMP_SIDES; side++)
		json_put_number(j, sides[side], form, v[side]);
	json_end(j);
}

static void json_put_row(struct json *j, const char *key, const struct cmp_row *row)
{
	const bool bytes = row->kind == CMP_MEMORY;

	json_object(j, key);
	json_string(j, "kind", cmp_kind_words[row->kind]);
	json_text(j, "name", row->name, row->name_len);
	if (row->detail)
		json_text(j, row->kind == CMP_KERNEL ? "grid" : "layer", row->detail, row->detail_len);
	put_pair(j, bytes ? "bytes" : "ns", row->value, "%.0f");
	put_pair(j, bytes ? "p90_bytes" : "p90_ns", row->p90, "%.0f");
	put_pair(j, "calls", row->calls, "%.3f");
	json_bool(j, "calls_changed", row->recalled);
	json_put_number(j, "change", "%.5f", row->change);
	json_put_number(j, "own_change", "%.5f", row->own);
	json_put_number(j, "noise", "%.5f", row->noise);
	json_put_number(j, "p", "%.3g", row->p);
	json_string(j, "verdict", cmp_verdict_words[row->verdict]);
	json_bool(j, "certain", cmp_certain(row));
	json_end(j);
}

static void put_differences(struct json *j, const struct cmp_result *r)
{
	const struct cmp_difference *d;
	unsigned side;
	size_t i;

	json_array(j, "differences");
	for (i = 0; i < buf_count(&r->differences, *d); i++) {
		d = buf_at(&r->differences, struct cmp_difference, i);
		json_object(j, NULL);
		json_string(j, "key", d->key);
		json_string(j, "what", d->what);
		for (side = 0; side < CMP_SIDES; side++)
			json_text(j, sides[side], d->text[side], strlen(d->text[side]));
		json_end(j);
	}
	json_end(j);
}

static void put_sentences(struct json *j, const struct cmp_result *r)
{
	struct buf b = {0};
	unsigned i;

	json_array(j, "summary");
	for (i = 0; i < CMP_SENTENCES; i++) {
		cmp_sentence(r, i, &b);
		if (b.len)
			json_text(j, NULL, b.data, b.len);
	}
	json_end(j);
	if (b.lacks)
		out_fail(j->out, -ENOMEM);
	buf_fini(&b);
}

static void put_runs(struct json *j, const struct cmp_result *r, const struct cmp_sides *of)
{
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++) {
		json_object(j, sides[side]);
		json_array(j, "recordings");
		for (i = 0; i < of->n[side]; i++)
			json_text(j, NULL, of->run[side][i].path, strlen(of->run[side][i].path));
		json_end(j);
		json_u64(j, "iterations", r->count[side]);
		json_put_number(j, "wall_ns", "%.0f", r->wall_ns[side]);
		json_end(j);
	}
}

static void put_findings(struct json *j, const struct cmp_result *r)
{
	const struct cmp_finding *f;
	size_t i;

	json_array(j, "findings");
	for (i = 0; i < buf_count(&r->findings, *f); i++) {
		f = buf_at(&r->findings, struct cmp_finding, i);
		json_object(j, NULL);
		json_string(j, "only_in", sides[f->of]);
		json_string(j, "key", f->finding->rule->key);
		json_text(j, "text", f->finding->text.data, f->finding->text.len);
		json_end(j);
	}
	json_end(j);
}

static void put_shapes(struct json *j, const struct cmp_result *r)
{
	const struct cmp_new_shape *s;
	size_t i;

	json_array(j, "shapes");
	for (i = 0; i < buf_count(&r->shapes, *s); i++) {
		s = buf_at(&r->shapes, struct cmp_new_shape, i);
		json_object(j, NULL);
		json_string(j, "only_in", sides[s->of]);
		json_text(j, "name", s->shape->name, s->shape->name_len);
		json_text(j, "shapes", s->shape->args, s->shape->args_len);
		json_u64(j, "calls", s->shape->calls);
		json_end(j);
	}
	json_end(j);
}

int cmp_put_json(struct out *out, const struct cmp_result *r, const struct cmp_sides *of, unsigned top, struct err *e)
{
	struct json j = {.out = out};
	const struct cmp_row *row;
	size_t i;

	json_object(&j, NULL);
	json_line(&j, 2);
	json_u64(&j, "diff_version", 1);
	json_line(&j, 2);
	put_runs(&j, r, of);
	json_line(&j, 2);
	put_differences(&j, r);
	json_line(&j, 2);
	put_sentences(&j, r);
	json_line(&j, 2);
	json_string(&j, "per", r->iterations ? "iteration" : "slice");
	json_bool(&j, "several", r->several);
	json_bool(&j, "sums", r->sums);
	json_put_number(&j, "common_change", "%.5f", r->drift);
	json_u64(&j, "common_of", r->controls);
	json_bool(&j, "common_delayed", r->delayed);
	json_line(&j, 2);
	json_array(&j, "explained_by");
	for (i = 0; i < r->nmost; i++)
		json_text(&j, NULL, r->most[i]->name, r->most[i]->name_len);
	json_end(&j);
	json_line(&j, 2);
	json_array(&j, "rows");
	for (i = 0; i < buf_count(&r->rows, *row) && (!top || i < top); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		json_line(&j, 4);
		json_put_row(&j, NULL, row);
	}
	json_line(&j, 2);
	json_end(&j);
	json_line(&j, 2);
	if (r->peak.value[CMP_A] > 0 || r->peak.value[CMP_B] > 0) {
		json_put_row(&j, "memory_peak", &r->peak);
		json_line(&j, 2);
	}
	put_findings(&j, r);
	json_line(&j, 2);
	put_shapes(&j, r);
	if (r->tables) {
		json_line(&j, 2);
		cmp_tables_json(&j, r->tables, top);
	}
	json_line(&j, 0);
	json_end(&j);
	out_puts(out, "\n");
	return 0;
}
