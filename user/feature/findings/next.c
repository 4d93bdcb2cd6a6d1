// SPDX-License-Identifier: Apache-2.0
/*
 * What to type after a finding. Each step looks closer than the session did: without a line, `now` tells where a thread
 * is; on a line that sleeps, the scheduler tells for whom; on a line that runs, samples tell in what. When nothing is
 * left to look at there is no next step, and people read the advice.
 */
#include "feature/findings/rules.h"

#include <string.h>

/* Options that look closer, and whose cost the user has accepted: the next session has them as well. */
static const struct {
	unsigned have;
	const char *option;
} kept[] = {
	{FACTS_HAVE_STACKS, "--py-stacks"}, {FACTS_HAVE_SCHED, "--sched"},   {FACTS_HAVE_SAMPLES, "--sample 99"},
	{FACTS_HAVE_MEMORY, "--memory"},    {FACTS_HAVE_SHAPES, "--shapes"},
};

static bool has(const struct facts *f, unsigned what)
{
	return (f->have & what) == what;
}

/* What is left of a step for stacks of Python in a program that has none: who holds memory, or samples. */
static const char *without_python(const struct facts *f, const char *step)
{
	if (strstr(step, "--memory"))
		return has(f, FACTS_HAVE_MEMORY) ? NULL : "--pid PID --memory";
	if (has(f, FACTS_HAVE_SAMPLES))
		return NULL;
	return strstr(step, "--gpu") ? "--pid PID --gpu --sample 99" : "--pid PID --sample 99";
}

void next_put(const struct facts *f, const char *step, struct buf *b)
{
	unsigned i;

	if (!f->python && step && strstr(step, "--py-stacks"))
		step = without_python(f, step);
	if (!step)
		return;
	buf_printf(b, "%s", step);
	if (!strncmp(step, "now", 3))
		return;
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (f->have & kept[i].have && !strstr(step, kept[i].option))
			buf_printf(b, " %s", kept[i].option);
}

static const char *closer(const struct facts *f, const struct fact_line *line)
{
	if (!line->looks)
		return "now --pid PID";
	if (line->asleep * 2 > line->looks)
		return has(f, FACTS_HAVE_SCHED) ? NULL : "--pid PID --sched";
	return has(f, FACTS_HAVE_SAMPLES) ? NULL : "--pid PID --sample 99";
}

const char *next_data(const struct facts *f)
{
	return closer(f, &f->data_line);
}

const char *next_own(const struct facts *f)
{
	return closer(f, &f->own_line);
}

const char *next_inside(const struct facts *f)
{
	return closer(f, &f->cause.inside.line);
}

const char *next_exceptions(const struct facts *f)
{
	return closer(f, &f->cause.exceptions.line);
}

const char *next_alone(const struct facts *f)
{
	return closer(f, &f->cause.alone.own.line);
}

const char *next_alone_data(const struct facts *f)
{
	return closer(f, &f->cause.alone.data.line);
}

const char *next_lock(const struct facts *f)
{
	return closer(f, &f->other_line);
}

const char *next_locked(const struct facts *f)
{
	return closer(f, &f->locked.holds);
}

const char *next_slow(const struct facts *f)
{
	if (f->slow.part == MXBPF_PART_KVSTORE)
		return next_exchange(f);
	if (!f->slow_line.looks)
		return has(f, FACTS_HAVE_STACKS) ? NULL : "record --pid PID --py-stacks";
	return closer(f, &f->slow_line);
}

/* A rank that is not profiled has findings of its own, which say why it is late. */
const char *next_late(const struct facts *f)
{
	const bool asleep = f->last_line.asleep * 2 > f->last_line.looks;

	return f->last_unprobed && f->last_line.looks && !asleep ? "--pid PID" : closer(f, &f->last_line);
}

const char *next_exchange(const struct facts *f)
{
	return f->in_job && !has(f, FACTS_HAVE_RANKS) ? "--pid PID --job" : "now --pid PID --job";
}

const char *next_watching(const struct facts *f)
{
	if (f->agent_helps)
		return "--pid PID --agent";
	return has(f, FACTS_HAVE_ITERATIONS) ? NULL : "--pid PID --iterations 5/100";
}
