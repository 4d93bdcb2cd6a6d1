// SPDX-License-Identifier: Apache-2.0
/* Rules about the program beside its iterations: a lock that it holds, a compiler that it calls, memory that it keeps.
 */
#include "feature/findings/rules.h"

#include <inttypes.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"

static void findings_put_line(const struct fact_line *l, const char *before, struct buf *b)
{
	if (l->looks)
		buf_printf(b, "%s%s, %.0f%% of %" PRIu64 " samples", before, l->text,
			   100 * facts_share((double)l->looks, (double)l->of), l->of);
}

/* ---- a lock of the program */

double rules_locked_share(const struct facts *f)
{
	return f->locked.share;
}

void rules_locked_say(const struct facts *f, struct buf *b)
{
	buf_printf(b,
		   "Threads wait in %.0f%% of the time for a lock that your Python code holds, %.1f of them at a time: "
		   "they wait at %s",
		   100 * f->locked.share, f->locked.at_once, f->locked.waits.text);
}

void rules_locked_evidence(const struct facts *f, struct buf *b)
{
	findings_put_line(&f->locked.holds, "the thread that has it is at ", b);
}

/* ---- a compiler */

double rules_compiling_share(const struct facts *f)
{
	return f->compiling.share;
}

void rules_compiling_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "%s compiles in %.0f%% of the time", f->compiling.compiler, 100 * f->compiling.share);
	if (f->loop.tgid && f->compiling.tgid != f->loop.tgid)
		buf_printf(b, " in another rank, process %" PRIu32, f->compiling.tgid);
	if (f->compiling.line.looks)
		buf_printf(b, ", called by %s", f->compiling.line.text);
	if (f->compiling.what[0] && !f->compiling.anew)
		buf_printf(b, ": it compiles %s", f->compiling.what);
	else if (f->compiling.anew)
		buf_printf(b, ": %s is compiled anew, %s in this window, because a guard fails: %s", f->compiling.what,
			   f->compiling.anew > 1 ? "again and again" : "once", f->compiling.guard);
}

/* What helps depends on what the guard compares. */
static void findings_put_remedy(const char *guard, struct buf *b)
{
	static const struct {
		const char *part, *remedy;
	} remedies[] = {
		{"size mismatch",
		 "pad lengths to a few sizes, or mark the dimension with torch._dynamo.mark_dynamic()"},
		{"stride mismatch", "give it tensors of one layout, as contiguous() makes them"},
		{"dtype mismatch", "convert to one type before the call"},
		{"requires_grad mismatch", "call it with and without gradients from two places, not in turn"},
		{"device mismatch", "move to one device before the call"},
		{"GLOBAL_STATE", "a global mode changes, such as grad mode, autocast or the number of threads"},
		{"grad_mode", "call it with and without gradients from two places, not in turn"},
		{"___check_obj_id", "pass the same object each time, not one that is made anew"},
		{"___check_type_id", "pass arguments of one type"},
		{"len(", "keep the number of items the same"},
		{" == ", "a value of Python changes: keep it out of the function, or pass it as a tensor"},
	};
	size_t i;

	for (i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (strstr(guard, remedies[i].part)) {
			buf_printf(b, "; %s", remedies[i].remedy);
			return;
		}
}

void rules_compiling_evidence(const struct facts *f, struct buf *b)
{
	findings_put_line(&f->compiling.line, "while it compiles, your code is at ", b);
	if (f->compiling.anew > 1)
		buf_printf(b, "; %" PRIu64 " compilations or more", f->compiling.anew);
	findings_put_remedy(f->compiling.guard, b);
}

/* ---- memory of a process */

/* What the runtime holds is said of each iteration, if there are some. In slices it is not known how much that is. */
static bool is_of_runtime(const struct facts *f)
{
	return f->loop.n && f->grown_bytes && f->resident.tgid == f->loop.tgid &&
	       (f->sliced || f->resident.runtime_bytes >= f->resident.grown_bytes / 2);
}

/* Growth takes no time yet. A program that has just begun grows as well, so that it ranks behind what takes a third. */
double rules_resident_share(const struct facts *f)
{
	if (!f->resident.tgid || is_of_runtime(f))
		return 0;
	return f->loop.n ? 0.5 : 0.3;
}

void rules_resident_say(const struct facts *f, struct buf *b)
{
	const double seconds = (double)f->resident.over_ns / 1e9;
	char each[24], all[24], runtime[24];

	buf_printf(b, "Memory grows by %s a second, %s in this window: process %" PRIu32,
		   fmt_bytes(whole(facts_share((double)f->resident.grown_bytes, seconds)), each),
		   fmt_bytes((uint64_t)f->resident.grown_bytes, all), f->resident.tgid);
	if (f->resident.runtime_bytes < f->resident.grown_bytes / 2)
		buf_printf(b, " keeps it outside of the runtime, whose allocator holds %s of it",
			   f->resident.runtime_bytes ? fmt_bytes((uint64_t)f->resident.runtime_bytes, runtime)
						     : "nothing");
}

#define OWNER_PART 4 /* of the growth, an owner has one part of so many, or more */

void rules_resident_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_varied *v = &f->cause.varied;
	char bytes[24];

	rules_put_grown(f, b);
	buf_printf(b, "process %" PRIu32 " has %s resident", f->resident.tgid, fmt_bytes(f->resident.bytes, bytes));
	if (f->grown_owner.live_bytes > f->resident.grown_bytes / OWNER_PART)
		buf_printf(b, "; %s has %s alive", f->grown_owner.text,
			   fmt_bytes((uint64_t)f->grown_owner.live_bytes, bytes));
	if (v->tgid && v->tgid == f->resident.tgid)
		buf_printf(b,
			   "; %.*s met %" PRIu64 " different sizes of inputs in %" PRIu64
			   " looks, and oneDNN keeps what it prepares for each",
			   (int)v->op.len, v->op.name, v->sizes, v->looks);
}
