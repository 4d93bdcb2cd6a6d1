// SPDX-License-Identifier: Apache-2.0
/* Estimates of floating-point operations, as each sink writes them. */
#include "feature/flops/flops.h"
#include "base/fmt.h"
#include "mxbpf_config.h"
#include "view/priv.h"

#include <inttypes.h>
#include <stdio.h>

bool view_shows_flops(const struct view *s)
{
	return s->in->session->details & MXBPF_DETAIL_OUTPUTS;
}

/* Operations in a nanosecond are as many billions of them in a second. */
static double rate(const struct mdl_flops *f)
{
	return f->ns ? (double)f->ops / (double)f->ns : 0;
}

void view_flops_cell(const struct mdl_flops *f, char cell[VIEW_FLOPS_BYTES])
{
	static const char units[] = "\0KMGTPE";
	double v = (double)f->ops;
	size_t i = 0;

	for (; v >= 999.5; v /= 1000)
		i++;
	snprintf(cell, VIEW_FLOPS_BYTES, !f->calls ? "-" : i && v < 9.95 ? "%.1f%.1s" : "%.0f%.1s", v, &units[i]);
}

void view_flops_rate_cell(const struct mdl_flops *f, char cell[VIEW_FLOPS_BYTES])
{
	double v = rate(f);

	snprintf(cell, VIEW_FLOPS_BYTES, !f->calls ? "-" : v < 0.0995 ? "%.3f" : v < 9.95 ? "%.2f" : "%.1f", v);
}

void view_put_flops_json(const struct view *s, const struct mdl_flops *f)
{
	if (!view_shows_flops(s))
		return;
	if (f->calls)
		out_printf(s->out,
			   ", \"flops\": %" PRIu64 ", \"flops_calls\": %" PRIu64 ", \"flops_ns\": %" PRIu64
			   ", \"gflop_per_s\": %.6g",
			   f->ops, f->calls, f->ns, rate(f));
	if (f->unknown)
		out_printf(s->out, ", \"flops_unknown\": %" PRIu64, f->unknown);
}

void view_put_flops_csv(const struct view *s, const struct mdl_flops *f)
{
	if (!view_shows_flops(s))
		return;
	if (!f)
		out_puts(s->out, ",flops,flops_calls,flops_ns,flops_unknown,gflop_per_s");
	else if (f->calls)
		out_printf(s->out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.6g", f->ops, f->calls, f->ns,
			   f->unknown, rate(f));
	else
		out_printf(s->out, f->unknown ? ",,,,%" PRIu64 "," : ",,,,,", f->unknown);
}

void view_put_flops_footer(const struct view *s, const struct mdl_flops *sum)
{
	char n[32];

	if (!sum->calls && !sum->unknown)
		return;
	out_printf(s->out, "flop     estimated of %s convolutions and matrix products; a multiply-add is two\n",
		   fmt_count(sum->calls, n));
	if (sum->unknown)
		out_printf(s->out, "         of %s more there is no estimate: their shapes do not say\n",
			   fmt_count(sum->unknown, n));
}
