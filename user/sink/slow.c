// SPDX-License-Identifier: Apache-2.0
/* Calls that took much longer than their like, and what kept them. */
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CELL_BYTES 64
#define SHOWN_MAX  8 /* for people, unless --top says so */

const char *const snk_causes[MDL_NCAUSES] = {
	[MDL_COMPUTED] = "computed", [MDL_FAULTED] = "faulted", [MDL_RUNNABLE] = "runnable",
	[MDL_BLOCKED] = "blocked",   [MDL_READ] = "read",	[MDL_ELSEWHERE] = "elsewhere",
};

/* "once", "12 times". Returns buf. */
static const char *times(uint32_t n, char buf[40])
{
	char count[32];

	snprintf(buf, 40, n == 1 ? "once" : "%s times", fmt_count(n, count));
	return buf;
}

/* A limit takes a CPU away as another thread does: where it did over the window, nobody can tell of a single call. */
static void why_runnable(const struct mdl *m, const struct mdl_slow *s, const char *ns, char buf[SNK_WHY_BYTES])
{
	const struct mxbpf_account *a = &s->span.account;
	const struct mxbpf_slow_by *by = &s->span.kept;
	const char *limited =
		snk_throttled(m) && by->ns < s->cause_ns / 2 ? "throttled by the cgroup's limit, or " : "";
	char kept[24], n[40];
	int at;

	if (a->nivcsw)
		at = snprintf(buf, SNK_WHY_BYTES, "%spreempted %s (%s)", limited, ns, times(a->nivcsw, n));
	else
		at = snprintf(buf, SNK_WHY_BYTES, "%swaited %s for a CPU after waking", limited, ns);
	if (by->ns)
		snprintf(buf + at, SNK_WHY_BYTES - (size_t)at, ", %s by %.16s (%u) on CPU %u", fmt_ns(by->ns, kept),
			 by->comm, by->tid, by->cpu);
}

/* What --sched knows of a sleep; elsewhere it may be any. */
static const char *const sleeps[MXBPF_SCHED_WHATS] = {
	[MXBPF_SCHED_FUTEX] = "a lock (futex)",
	[MXBPF_SCHED_IO] = "a disk",
	[MXBPF_SCHED_FAULT] = "page faults",
	[MXBPF_SCHED_NAP] = "the time it asked for (sleep)",
};

static void why_blocked(const struct mdl_slow *s, const char *ns, char buf[SNK_WHY_BYTES])
{
	const struct mxbpf_slow_by *by = &s->span.slept;
	const char *what = by->ns && by->what < MXBPF_SCHED_WHATS ? sleeps[by->what] : NULL;
	char n[40];
	int at;

	if (what)
		at = snprintf(buf, SNK_WHY_BYTES, "blocked %s, for %s", ns, what);
	else
		at = snprintf(buf, SNK_WHY_BYTES, "slept or waited for a lock %s: %s", times(s->span.account.nvcsw, n),
			      ns);
	if (by->ns && by->tid)
		snprintf(buf + at, SNK_WHY_BYTES - (size_t)at, ", until %.16s (%u) woke it", by->comm, by->tid);
}

const char *snk_why(const struct mdl *m, const struct mdl_slow *s, char buf[SNK_WHY_BYTES])
{
	const struct mxbpf_account *a = &s->span.account;
	char ns[24], n[32];

	fmt_ns(s->cause_ns, ns);
	switch (s->cause) {
	case MDL_RUNNABLE:
		why_runnable(m, s, ns, buf);
		break;
	case MDL_READ:
		snprintf(buf, SNK_WHY_BYTES, "waited %s; %s page%s read from disk", ns, fmt_count(a->majflt, n),
			 a->majflt == 1 ? "" : "s");
		break;
	case MDL_BLOCKED:
		why_blocked(s, ns, buf);
		break;
	case MDL_FAULTED:
		snprintf(buf, SNK_WHY_BYTES, "computed %s longer, with %s page faults", ns, fmt_count(a->minflt, n));
		break;
	case MDL_ELSEWHERE:
		snprintf(buf, SNK_WHY_BYTES, "ended %s after its own thread was through", ns);
		break;
	default:
		snprintf(buf, SNK_WHY_BYTES, "computed %s longer: more work, %s", ns,
			 snk_stolen(m) ? "a slower CPU, or one that the hypervisor took" : "or a slower CPU");
	}
	return buf;
}

static int add_row(struct snk *s, struct snk_grid *g, const struct mdl_slow *r)
{
	const uint64_t since_ns = r->span.h.ts_ns - s->in->session->start_mono_ns;
	char cell[CELL_BYTES], why[SNK_WHY_BYTES];
	size_t len;
	const char *name = mdl_name(s->in->model, r->row->name_id, &len);
	int err = snk_grid_add(g, name, len);

	snprintf(cell, sizeof(cell), "%.3f s", (double)(int64_t)since_ns / 1e9);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	fmt_ns(r->span.dur_ns, cell);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	fmt_ns(r->median_ns, cell);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	snk_why(s->in->model, r, why);
	return err ? err : snk_grid_note(g, why, strlen(why));
}

int snk_put_slow(struct snk *s, const struct snk_slow *t)
{
	struct snk_grid g = {
		.cols = {{"name", .left = true}, {"at"}, {"took"}, {"median"}},
		.ncols = 4,
	};
	size_t i, n = s->opts->top || t->nrows < SHOWN_MAX ? t->nrows : SHOWN_MAX;
	int err = 0;

	out_printf(s->out, "why slow: %zu call%s took %d times the median of their row, or more", t->nrows_all,
		   t->nrows_all == 1 ? "" : "s", MDL_SLOW_TIMES);
	out_puts(s->out, n < t->nrows_all ? "; the worst\n" : "\n");
	for (i = 0; !err && i < n; i++)
		err = add_row(s, &g, &t->rows[i]);
	if (!err)
		snk_grid_print(&g, s->opts->width ? s->opts->width : SNK_WIDTH, s->out);
	snk_grid_fini(&g);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
