// SPDX-License-Identifier: Apache-2.0
/* Estimates of floating-point operations, as columns of calls. */
#include "feature/flops/flops.h"

#include <math.h>
#include <stdio.h>

#include "base/fmt.h"
#include "mxbpf_config.h"
#include "view/calls.h"

bool view_shows_flops(const struct view *s)
{
	return s->in->session->details & MXBPF_DETAIL_OUTPUTS;
}

struct view_flops view_flops_of(const struct mdl_flops *f)
{
	return (struct view_flops){
		.ops = f->calls ? f->ops : TBL_UNKNOWN,
		.calls = f->calls,
		.ns = f->ns,
		.unknown = f->unknown,
		.rate = !f->calls ? NAN
			: f->ns	  ? (double)f->ops / (double)f->ns
				  : 0,
		.known = f->calls,
		.counted = f->calls || f->unknown,
	};
}

static void ops_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	static const char units[] = "\0KMGTPE";
	double v = (double)*(const uint64_t *)value;
	size_t i = 0;

	for (; v >= 999.5; v /= 1000)
		i++;
	snprintf(cell, TBL_CELL_BYTES, i && v < 9.95 ? "%.1f%.1s" : "%.0f%.1s", v, &units[i]);
}

static void rate_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const double v = *(const double *)value;

	snprintf(cell, TBL_CELL_BYTES, v < 0.0995 ? "%.3f" : v < 9.95 ? "%.2f" : "%.1f", v);
}

/* One operation per nanosecond is 1 GFLOP/s. */
#define ROW	    struct view_flops
#define SEEN	    .shown = offsetof(struct view_calls, flops)
#define HAS(member) .has = offsetof(ROW, member)
const struct tbl_column view_flops_columns[] = {
	{"flops", NULL, "flop", TBL_COUNT, AT(ops), TBL_NULL | TBL_OMIT, SEEN, .place = 10, .name_min = 22,
	 .cell = ops_cell,
	 .help = "estimated floating-point operations of convolutions and matrix products by their shapes; a "
		 "multiplication "
		 "with its addition counts as two; absent if there is no estimate"},
	{"flops_calls", NULL, NULL, TBL_COUNT, AT(calls), HAS(known), .help = "calls with an estimate"},
	{"flops_ns", NULL, NULL, TBL_NS, AT(ns), HAS(known), .help = "time of these calls"},
	{"gflop_per_s", NULL, "GFLOP/s", TBL_RATIO, AT(rate), TBL_SIGNIFICANT, HAS(known), SEEN, .place = 11,
	 .digits = 1, .data_digits = 6, .cell = rate_cell, .help = "flops / flops_ns"},
	{"flops_unknown", NULL, NULL, TBL_COUNT, AT(unknown), TBL_OMIT, HAS(counted),
	 .help = "calls that should have an estimate, but whose shapes are insufficient"},
	{0},
};

void view_put_flops_footer(const struct view *s, const struct mdl_flops *sum)
{
	char n[32];

	if (!sum->calls && !sum->unknown)
		return;
	out_printf(s->out, "flop     estimated for %s convolutions and matrix products; a multiply-add is two\n",
		   fmt_count(sum->calls, n));
	if (sum->unknown)
		out_printf(s->out, "         %s more have no estimate, because their shapes are insufficient\n",
			   fmt_count(sum->unknown, n));
}
