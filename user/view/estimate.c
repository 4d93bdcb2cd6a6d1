// SPDX-License-Identifier: Apache-2.0
/* Calls that were recorded in slices: columns with what they are estimated to be. */
#include "base/whole.h"
#include "feature/cost/cost.h"
#include "view/calls.h"

#define ROW	    struct view_estimate
#define HAS(member) .has = offsetof(ROW, member)
const struct tbl_column view_estimate_columns[] = {
	{"count", "estimated_count", NULL, TBL_COUNT, AT(count), HAS(known)},
	{"total_ns", "estimated_total_ns", NULL, TBL_NS, AT(total_ns), HAS(known)},
	{"self_ns", "estimated_self_ns", NULL, TBL_NS, AT(self_ns), HAS(known)},
	{"calls_per_iteration", NULL, NULL, TBL_RATIO, AT(each), HAS(by_iteration), .data_digits = 4},
	{"self_per_iteration_ns", NULL, NULL, TBL_NS, AT(self_each_ns), HAS(by_iteration)},
	{"calls_per_second", NULL, NULL, TBL_RATIO, AT(each), HAS(by_second), .data_digits = 4,
	 .help = "if no end of an iteration was seen, like the next one"},
	{"self_per_second_ns", NULL, NULL, TBL_NS, AT(self_each_ns), HAS(by_second)},
	{"count_error", NULL, NULL, TBL_RATIO, AT(count_error), HAS(known), .data_digits = 4,
	 .help = "half the 95 % confidence interval of count and of calls for each iteration or second, relative to "
		 "them; 1: it is larger, or not known because there was one slice. In rows of several shapes, threads "
		 "or "
		 "processes it is an upper bound"},
	{"self_error", NULL, NULL, TBL_RATIO, AT(self_error), HAS(known), .data_digits = 4,
	 .help = "the same of self times"},
	{0},
};
#undef ROW

/* What slices stand for: those of the row's process, or of all processes together. */
static struct mxbpf_slice_part slices_of(const struct view *s, const struct mdl_row *r)
{
	struct mxbpf_slice_part sum = {.slices = 0};

	if (!r->tgid || view_by_label(s->opts->by))
		return cost_slices_all(s->in->model);
	cost_slices_of(s->in->model, r->tgid, &sum);
	return sum;
}

void view_estimate_columns_of(const struct view *s, struct view_calls *c)
{
	bool iterate = true;
	size_t i;

	for (i = 0; i < c->of->nrows; i++) {
		c->estimates |= c->of->rows[i]->estimate.count;
		iterate &= slices_of(s, c->of->rows[i]).all_iterations > 0;
	}
	c->whole = !c->estimates;
	c->by_iteration = c->estimates && iterate;
	c->by_second = c->estimates && !iterate;
}

static double relative(uint64_t error, uint64_t of)
{
	return error && of ? (double)error / (double)of : 0;
}

struct view_estimate view_estimate_of(const struct view *s, const struct view_calls *c, const struct mdl_row *r)
{
	const struct mxbpf_slice_part sum = slices_of(s, r);
	const double window_ns = (double)s->in->session->duration_ns;
	const bool known = r->estimate.count;
	/* A row that was recorded all the time has calls after the last slice, too. */
	const double longer = !known && sum.all_ns && r->tgid ? window_ns / (double)sum.all_ns : 1;
	const double bases = c->by_iteration ? (double)sum.all_iterations * longer
					     : (known && r->tgid ? (double)sum.all_ns : window_ns) / 1e9;

	if (c->whole || bases <= 0)
		return (struct view_estimate){.known = false};
	return (struct view_estimate){
		.count = r->count,
		.total_ns = r->total_ns,
		.self_ns = r->self_ns,
		.each = (double)r->count / bases,
		.self_each_ns = whole((double)r->self_ns / bases),
		.count_error = relative(r->estimate.count_error, r->count),
		.self_error = relative(r->estimate.self_error_ns, r->self_ns),
		.known = known,
		.by_iteration = known && c->by_iteration,
		.by_second = known && c->by_second,
	};
}
