// SPDX-License-Identifier: Apache-2.0
/* What the rules of collectives say. */
#include "feature/findings/rules.h"

#include <inttypes.h>

#include "base/fmt.h"

/* The rule of ranks that lag says more, where it knows the loop. */
double rules_late_share(const struct facts *f)
{
	return f->last_rank ? 0 : f->collective.late.share;
}

void rules_late_say(const struct facts *f, struct buf *b)
{
	char ns[24];

	buf_printf(b,
		   "The others wait for %s in %.0f%% of the time: it is last in %" PRIu64 " of %" PRIu64
		   " collectives, late by %s",
		   f->collective.late.who, 100 * f->collective.late.share, f->collective.late.n, f->collective.late.of,
		   fmt_ns(f->collective.late.by_ns, ns));
}

void rules_late_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->last_line, b);
	buf_printf(b, "%s%s wait in %s the most", f->last_line.looks ? "; " : "", f->collective.late.group,
		   f->collective.late.op);
	rules_put_regular(f, b);
}

double rules_slow_link_share(const struct facts *f)
{
	return f->collective.slow.share;
}

void rules_slow_link_say(const struct facts *f, struct buf *b)
{
	char bytes[24], bus[24], usual[24];

	fmt_bytes(f->collective.slow.bytes, bytes);
	fmt_bytes((uint64_t)f->collective.slow.bus, bus);
	fmt_bytes((uint64_t)f->collective.slow.usual, usual);
	buf_printf(b, "%s of %s has a bus bandwidth of %s/s among %s, and %s/s in other groups of that size",
		   f->collective.slow.op, bytes, bus, f->collective.slow.group, usual);
}

/* Of the time of the GPUs that communicate. */
double rules_exposed_share(const struct facts *f)
{
	const double share = facts_share((double)f->collective.gpu.exposed_ns, (double)f->collective.gpu.seen_ns);

	return share < 1 ? share : 1;
}

void rules_exposed_say(const struct facts *f, struct buf *b)
{
	char ns[24];

	buf_printf(b, "GPUs only communicate in %.0f%% of the time, and compute nothing meanwhile",
		   100 * rules_exposed_share(f));
	if (f->loop.n)
		buf_printf(b, ": %s in each iteration",
			   fmt_ns(f->collective.gpu.exposed_ns / f->collective.gpu.gpus / f->loop.n, ns));
}

void rules_exposed_evidence(const struct facts *f, struct buf *b)
{
	buf_printf(b, "other kernels overlap %.0f%% of the time of NCCL's kernels",
		   100 * (1 - facts_share((double)f->collective.gpu.exposed_ns, (double)f->collective.gpu.ns)));
	if (f->collective.gpu.wait > 0)
		buf_printf(b, "; %.0f%% of it is the wait for the last rank", 100 * f->collective.gpu.wait);
}
