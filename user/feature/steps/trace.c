// SPDX-License-Identifier: Apache-2.0
/*
 * Iterations in a timeline. They have a track of their own, because they need not nest with the calls of the thread.
 * Tools that read traces search for the name "ProfilerStep#N".
 */
#include "feature/steps/steps.h"
#include "feature/steps/sheet.h"
#include "view/timeline/trace.h"

#include <stdio.h>

static void write_track(struct view_trace *t, const struct mxbpf_iteration *it)
{
	out_printf(
		t->s.out,
		",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"iterations\"}},\n"
		"{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":-1}}",
		it->h.tgid, VIEW_STEP_TID + it->tid, it->h.tgid, VIEW_STEP_TID + it->tid);
}

static void write_iteration(struct view_trace *t, const struct mxbpf_iteration *it)
{
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p;
	unsigned i;

	p = put(start, ",\n{\"ph\":\"X\",");
	p = view_put_where(t, p, it->h.tgid, VIEW_STEP_TID + it->tid, it->h.ts_ns);
	p = put(p, ",\"dur\":");
	p = view_put_us(p, it->dur_ns);
	p = put(p, ",\"cat\":\"");
	p = put(p, mdl_category(MXBPF_CLASS_STEP));
	p = put(p, "\",\"name\":\"ProfilerStep#");
	p = view_put_u64(p, it->nr);
	p = put(p, "\",\"args\":{\"told_by\":\"");
	p = put(p, steps_tolds[it->told]);
	p = put(p, "\"");
	for (i = 0; i < MXBPF_STEP_PARTS && it->flags & MXBPF_ITERATION_PARTS; i++) {
		p = put(p, ",\"");
		p = put(p, steps_parts[i]);
		p = put(p, "_us\":");
		p = view_put_us(p, it->part_ns[i]);
	}
	p = put(p, "}}");
	out_filled(t->s.out, (size_t)(p - start));
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
			write_track(t, it);
		write_iteration(t, it);
		last = it;
	}
}

const struct view_trace_feature steps_trace = {.after = after};
