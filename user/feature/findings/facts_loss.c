// SPDX-License-Identifier: Apache-2.0
/* Records that are lost, and the rule about them. */
#include "feature/findings/rules.h"

#include <inttypes.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"

#define ATTEMPTED_LEAST 1000 /* a source with fewer records loses many of them by a few */

static double share_of(const struct mxbpf_loss *l)
{
	return l->attempted < ATTEMPTED_LEAST ? 0 : facts_share((double)l->dropped, (double)l->attempted);
}

double facts_lost(const struct mdl_session *s, const struct mdl_source **which)
{
	double share, most = s->nsources ? 0 : share_of(&s->loss);
	size_t i;

	*which = NULL;
	for (i = 0; i < s->nsources; i++) {
		share = share_of(&s->sources[i].loss);
		if (share <= most)
			continue;
		most = share;
		*which = &s->sources[i];
	}
	return most < 1 ? most : 1;
}

/* Iterations follow each other, so missing ones took the time between those that are known. */
static void estimate_iterations(struct facts *f)
{
	const uint64_t extent_ns = f->loop.last_ns > f->loop.first_ns ? f->loop.last_ns - f->loop.first_ns : 0;

	f->loop.about = f->loop.n;
	if (f->lost.share > 0 && f->loop.raw_ns && extent_ns > f->loop.raw_ns)
		f->loop.about = whole((double)f->loop.n * ((double)extent_ns / (double)f->loop.raw_ns));
}

void facts_loss(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	const struct mdl_source *which;
	size_t n;

	f->lost.share = facts_lost(s, &which);
	f->lost.of = which ? which->loss : s->loss;
	f->lost.source = which ? which->name : "";
	mdl_mem_rows(m, &n);
	f->lost.memory = n;
	estimate_iterations(f);
}

double rules_lost_share(const struct facts *f)
{
	return f->lost.share;
}

/* A row of what was lost: what the records of a source are, and how to have fewer of them. */
static const struct {
	const char *source, *what, *next, *next_memory;
} losses[] = {
	{"agent", "operators and memory", "--pid PID --agent --iterations 5/100", "--pid PID --agent --probes op"},
	{"scheduler", "threads that were off the CPU", "--pid PID --ring-size 64M", NULL},
	{"samples", "samples of the CPU", "--pid PID --ring-size 64M", NULL},
	{"gpu", "the GPU", "--pid PID --gpu --iterations 5/100", NULL},
	{"", "calls", "--pid PID --ring-size 64M", NULL},
};

static unsigned findings_row_of(const struct facts *f)
{
	unsigned i = 0;

	while (losses[i].source[0] && strcmp(losses[i].source, f->lost.source) != 0)
		i++;
	return i;
}

const char *next_lost(const struct facts *f)
{
	const unsigned i = findings_row_of(f);

	return f->lost.memory && losses[i].next_memory ? losses[i].next_memory : losses[i].next;
}

void rules_lost_say(const struct facts *f, struct buf *b)
{
	char lost[32], of[32];

	buf_printf(b, "mxbpf lost %.0f%% of the records of %s, %s of %s: counts and totals below are too low",
		   100 * f->lost.share, losses[findings_row_of(f)].what, fmt_count(f->lost.of.dropped, lost),
		   fmt_count(f->lost.of.attempted, of));
}

void rules_lost_evidence(const struct facts *f, struct buf *b)
{
	if (!f->loop.n)
		return;
	buf_printf(b, "%" PRIu64 " of %" PRIu64 " iterations are complete, and say how their time is spent",
		   f->loop.complete, f->loop.n);
}
