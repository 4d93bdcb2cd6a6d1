// SPDX-License-Identifier: Apache-2.0
/* What a range carries, as args of its span: category, color, and the numbers of its payload with their names. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/ranges/ranges.h"
#include "view/timeline/trace.h"

#define KEY_BYTES 96
#define EXACT_MAX (1ull << 53) /* larger numbers are not exact in JavaScript, such as the hash of a communicator */

struct state {
	struct hash at;	   /* (start, process and thread) -> 1 + index */
	struct buf ranges; /* struct mxbpf_range: those that carry something */
};

static int ranges_survey(struct view_trace *t, void *vstate, const struct mxbpf_rec *rec)
{
	const struct mxbpf_range *r = (const void *)rec;
	struct state *state = vstate;
	uint64_t *at;

	if (!r->data.category && !r->data.color && !r->data.nvalues)
		return 0;
	at = hash_put(&state->at, r->h.ts_ns, (uint64_t)r->h.tgid << 32 | r->tid);
	if (!at)
		return -ENOMEM;
	if (!*at) {
		*at = 1 + buf_count(&state->ranges, struct mxbpf_range);
		return buf_put(&state->ranges, r, sizeof(*r));
	}
	ranges_add(buf_at(&state->ranges, struct mxbpf_range, *at - 1), r);
	return 0;
}

static void put_double(struct view_trace *t, double v)
{
	if (isfinite(v))
		out_printf(t->s.out, "%.17g", v);
	else
		out_puts(t->s.out, isnan(v) ? "\"nan\"" : v < 0 ? "\"-inf\"" : "\"inf\"");
}

static void ranges_put_value(struct view_trace *t, uint64_t v, enum ranges_form form)
{
	double d;

	memcpy(&d, &v, sizeof(d));
	if (form == RANGES_DOUBLE)
		put_double(t, d);
	else if (form == RANGES_SIGNED)
		out_printf(t->s.out, "%" PRId64, (int64_t)v);
	else if (form == RANGES_ADDRESS || v > EXACT_MAX)
		out_printf(t->s.out, "\"0x%" PRIx64 "\"", v);
	else
		out_printf(t->s.out, "%" PRIu64, v);
}

static void put_payload(struct view_trace *t, const struct mxbpf_range *r)
{
	struct ranges_item item;
	char key[KEY_BYTES];
	unsigned i;

	for (i = 0; ranges_item(t->s.in->model, r, i, &item); i++) {
		snprintf(key, sizeof(key), item.len ? "payload.%.*s" : "payload", (int)item.len, item.name);
		out_puts(t->s.out, ",");
		view_put_json_exact(t->s.out, key, strlen(key));
		out_puts(t->s.out, ":");
		if (item.word)
			view_put_json_exact(t->s.out, item.word, item.word_len);
		else
			ranges_put_value(t, item.value, item.form);
	}
	if (r->data.left_out)
		out_printf(t->s.out, ",\"payload numbers left out\":%u", r->data.left_out);
}

static void ranges_args(struct view_trace *t, void *vstate, const struct mxbpf_span *s)
{
	const struct state *state = vstate;
	const struct mxbpf_range *r;
	const uint64_t *at;
	const char *text;
	size_t len;

	if (!(s->flags & MXBPF_SPAN_USER) || !state->ranges.len)
		return;
	at = hash_get(&state->at, s->h.ts_ns, (uint64_t)s->h.tgid << 32 | s->tid);
	if (!at || !*at)
		return;
	r = buf_at(&state->ranges, struct mxbpf_range, *at - 1);
	if (r->data.category)
		out_printf(t->s.out, ",\"category\":%u", r->data.category);
	text = r->category_id ? mdl_name(t->s.in->model, r->category_id, &len) : NULL;
	if (text) {
		out_puts(t->s.out, ",\"category_name\":");
		view_put_json_exact(t->s.out, text, len);
	}
	if (r->data.color)
		out_printf(t->s.out, ",\"color\":\"#%06x\"", r->data.color & 0xffffff);
	put_payload(t, r);
}

static void ranges_trace_fini(void *vstate)
{
	struct state *state = vstate;

	hash_fini(&state->at);
	buf_fini(&state->ranges);
}

const struct view_trace_feature ranges_trace = {
	.state_bytes = sizeof(struct state),
	.kinds = {MXBPF_RANGE},
	.survey = ranges_survey,
	.args = {[VIEW_ARGS_NUMBERS] = ranges_args, [VIEW_ARGS_INSTANT] = ranges_args},
	.fini = ranges_trace_fini,
};
