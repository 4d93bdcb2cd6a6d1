// SPDX-License-Identifier: Apache-2.0
/* Floating-point operations of each call and its rate, as args of its span. */
#include "feature/flops/flops.h"

#include <inttypes.h>

#include "view/timeline/trace.h"

static void flops_args(struct view_trace *t, void *state, const struct mxbpf_span *s)
{
	struct mdl_flops f = {0};

	if (s->args_id)
		f = flops_of(t->s.in->model, s);
	if (f.calls)
		out_printf(t->s.out, ",\"flops\":%" PRIu64 ",\"GFLOP/s\":%.6g", f.ops,
			   f.ns ? (double)f.ops / (double)f.ns : 0.0);
}

const struct view_trace_feature flops_trace = {.when = view_shows_flops, .args = {[VIEW_ARGS_CALL] = flops_args}};
