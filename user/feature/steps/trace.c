// SPDX-License-Identifier: Apache-2.0
/*
 * Iterations in a timeline. They have a track of their own, because they need not nest with the calls of the thread.
 * Tools that read traces search for the name "ProfilerStep#N".
 */
#include "feature/steps/steps.h"
#include "feature/steps/sheet.h"
#include "view/timeline/trace.h"

#include <stdio.h>

static void write_iteration(struct view_trace *t, const struct mxbpf_iteration *it)
{
	struct view_event e = {.letter = 'X',
			       .pid = it->h.tgid,
			       .tid = VIEW_STEP_TID + it->tid,
			       .ts_ns = it->h.ts_ns,
			       .dur_ns = it->dur_ns,
			       .category = mdl_category(MXBPF_CLASS_STEP)};
	char name[48], *start, *p;
	unsigned i;

	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)it->nr);
	e.name = view_text_of(name);
	view_event_begin(t, &e);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = put(put(put(start, "\"told_by\":\""), steps_tolds[it->told]), "\"");
	for (i = 0; i < MXBPF_STEP_PARTS && it->flags & MXBPF_ITERATION_PARTS; i++) {
		p = put(put(put(p, ",\""), steps_parts[i]), "_us\":");
		p = view_put_us(p, it->part_ns[i]);
	}
	out_filled(t->s.out, (size_t)(p - start));
	view_event_end(t, &e);
}

static void after(struct view_trace *t, void *state)
{
	const struct mxbpf_iteration *it, *last = NULL;
	size_t n, i;

	if (!t->form->thread || t->form->own_iterations)
		return;
	it = steps_iterations(t->s.in->model, &n);
	for (i = 0; i < n; i++, it++) {
		if (it->h.ts_ns < t->base_ns) /* newer records have overwritten its calls */
			continue;
		if (!last || last->h.tgid != it->h.tgid || last->tid != it->tid)
			view_trace_name_track(t, it->h.tgid, VIEW_STEP_TID + it->tid, "iterations", -1);
		write_iteration(t, it);
		last = it;
	}
}

const struct view_trace_feature steps_trace = {.after = after};
