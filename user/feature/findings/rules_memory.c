// SPDX-License-Identifier: Apache-2.0
/* Rules about memory: that a device does not have, which stand before all others, and that grows. */
#include "feature/findings/rules.h"

#include <inttypes.h>

#include "base/fmt.h"

/* As much as was asked for was reserved and not allocated, but in pieces. */
static bool is_in_pieces(const struct facts *f)
{
	return !f->failed.uncounted && f->failed.pool_bytes > f->failed.total_bytes &&
	       f->failed.pool_bytes - f->failed.total_bytes >= f->failed.wanted_bytes;
}

double rules_failed_share(const struct facts *f)
{
	return f->failed.n && !is_in_pieces(f);
}

double rules_pieces_share(const struct facts *f)
{
	return f->failed.n && is_in_pieces(f);
}

void rules_failed_say(const struct facts *f, struct buf *b)
{
	char bytes[3][24];

	buf_printf(b, "Out of memory: there was no %s on %s for %s; ", fmt_bytes(f->failed.wanted_bytes, bytes[0]),
		   f->failed.device, f->failed.text);
	if (!f->failed.uncounted || f->failed.pool_bytes)
		buf_printf(b, "of %s reserved, ", fmt_bytes(f->failed.pool_bytes, bytes[1]));
	buf_printf(b, "%s %s", fmt_bytes(f->failed.total_bytes, bytes[2]),
		   f->failed.uncounted ? "that this window allocated were in use" : "were allocated");
	if (f->failed.others_bytes)
		buf_printf(b, ", and %" PRIu64 " other process%s held %s of this GPU", f->failed.others,
			   f->failed.others == 1 ? "" : "es", fmt_bytes(f->failed.others_bytes, bytes[0]));
	if (f->failed.n > 1)
		buf_printf(b, " (the last of %" PRIu64 " failures)", f->failed.n);
}

void rules_failed_evidence(const struct facts *f, struct buf *b)
{
	const struct fact_owner *h = f->failed.held;
	char bytes[24];
	unsigned i;

	for (i = 0; i < FACTS_OPERATORS_MAX && h[i].live_bytes > 0; i++)
		buf_printf(b, "%s%s had %s (%.0f%%)", i ? "; " : "", h[i].text,
			   fmt_bytes((uint64_t)h[i].live_bytes, bytes),
			   100 * facts_share((double)h[i].live_bytes, (double)f->failed.total_bytes));
}

/* ---- memory that grows */

#define GROWTH_LEAST (1 << 20) /* bytes over the window */

/* Growth takes no time yet; it ranks behind what takes half of it. Of one process it is said once. */
double rules_growth_share(const struct facts *f)
{
	if (f->resident.tgid == f->loop.tgid && rules_resident_share(f) > 0)
		return 0;
	return f->grown_bytes >= GROWTH_LEAST ? 0.5 : 0;
}

void rules_growth_say(const struct facts *f, struct buf *b)
{
	char each[24], all[24];

	buf_printf(b, "Memory grows by %s in each iteration, %s in this window",
		   fmt_bytes((uint64_t)f->grown_bytes / f->grown_over, each), fmt_bytes((uint64_t)f->grown_bytes, all));
}

/* Operators touch so many pages that memory which they have freed can be most of what grows. */
static bool operators_touch(const struct facts *f)
{
	const int64_t grown = f->resident.tgid ? f->resident.grown_bytes : f->grown_bytes;

	return (double)f->faults * FACTS_PAGE_BYTES * 2 > (double)grown;
}

void rules_put_grown(const struct facts *f, struct buf *b)
{
	const struct fact_line *l = &f->grown_line;

	if (l->looks)
		buf_printf(b, "%.0f%% of the new memory is first used at %s%s; ",
			   100 * facts_share((double)l->looks, (double)l->of), l->text,
			   operators_touch(f) ? " (operators use memory and free it, so another line may keep it)"
					      : "");
}

void rules_growth_evidence(const struct facts *f, struct buf *b)
{
	char live[24];

	rules_put_grown(f, b);

	if (f->grown_owner.text[0])
		buf_printf(b, "%s has %s alive", f->grown_owner.text,
			   fmt_bytes((uint64_t)f->grown_owner.live_bytes, live));
}
