// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses between two kinds of links. With a link that the kernel filters by process, each child needs its own link,
 * and attaching it takes longer than many children live. A shared link covers a child from its first instruction, but
 * strangers (other processes that map the library) pay for each hit. So links are shared from the start if there are no
 * strangers, if there are children already, or if mxbpf launches the command; otherwise from the first fork on.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/watch.h"
#include "base/clock.h"
#include "session/priv.h"
#include "targets/follow.h"

#define HOPS_MAX      256  /* from a process to its ancestor */
#define STRANGERS_MAX 16   /* that can be warned of */
#define WORKS	      0.1  /* of a CPU: a process that takes more may call the library often */
#define LIBS_MAX      8	   /* libraries with probes */
#define MDL_GAPS_MAX  1000 /* processes whose gap is kept */

struct stranger {
	pid_t pid;
	uint64_t cpu_ns, seen_ns; /* its CPU time at that moment */
};

struct census {
	const struct session *ses;
	pid_t target;
	const struct tgt_lib *libs[LIBS_MAX];
	unsigned nlibs;
	bool children, strangers;
};

static void note_libs(struct census *c, const struct plan *p)
{
	const struct plan_site *site = (const struct plan_site *)p->sites.data;
	size_t i, n = buf_count(&p->sites, struct plan_site);
	unsigned k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < c->nlibs && c->libs[k] != site[i].lib; k++)
			;
		if (k == c->nlibs && k < LIBS_MAX)
			c->libs[c->nlibs++] = site[i].lib;
	}
}

static bool descends(pid_t pid, const struct session *ses)
{
	unsigned hops;

	for (hops = 0; pid > 1 && !ses_is_root(ses, pid) && hops < HOPS_MAX; hops++)
		pid = tgt_peek_parent(pid);
	return ses_is_root(ses, pid);
}

static void count_process(void *census, pid_t pid)
{
	struct census *c = census;
	struct buf *all = &c->ses->follow->strangers;
	struct stranger at;
	struct tgt_usage u;

	if (pid == getpid() || (c->children && c->ses->o->max_overhead)) /* with children nothing else matters */
		return;
	if (descends(pid, c->ses))
		c->children |= pid != c->target;
	else if ((!c->strangers || !c->ses->o->max_overhead) && buf_count(all, struct stranger) < STRANGERS_MAX &&
		 tgt_peek_maps(pid, c->libs, c->nlibs)) {
		c->strangers = true;
		at = (struct stranger){pid, tgt_peek_usage(pid, &u) ? UINT64_MAX : u.cpu_ns, clock_ns(CLOCK_MONOTONIC)};
		buf_put(all, &at, sizeof(at)); /* without memory there is no warning */
	}
}

static void take_census(const struct session *ses, struct census *c)
{
	*c = (struct census){.ses = ses, .target = tgt_pid(ses->targets[0].tgt)};
	note_libs(c, &ses->targets[0].plan);
	tgt_each_process(count_process, c);
}

/* If the kernel cannot filter by process, links must be shared. */
static bool must_share(const struct att_backend *b)
{
	return b->shares && !b->filters();
}

static bool may_share(const struct session *ses, const struct att_backend *b)
{
	return b->shares && ses_follow_watch(ses) && ses_follows(ses) && ses->o->follow != SES_FOLLOW_FILTERED;
}

static void expect(void *ctx, pid_t pid)
{
	struct session *ses = ctx;
	const struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	if (!att_has(b->att, pid, NULL))
		att_expect(b->att, pid);
	if (ses_follows(ses))
		tgt_each_child(pid, expect, ses);
}

static int share_all(struct session *ses, struct err *e)
{
	struct ses_build *b;
	unsigned i;
	int err = 0;

	ses_each_root(ses, expect, ses);
	for (i = 0; !err && i < ses->ntargets; i++)
		err = att_share(ses->targets[i].build->att, &ses->targets[i].plan, e);
	SES_EACH_BUILD(ses, b)
	err = err ? err : ses_late_share(b, e);
	if (!err && ses_follow_watch(ses))
		watch_cover(ses_follow_watch(ses));
	return err;
}

int ses_share_start(struct session *ses, struct err *e)
{
	const struct att_backend *b = att_pick(ses->o->backend, e);
	struct census c;

	if (!b)
		return e->code;
	if (ses->o->follow == SES_FOLLOW_FILTERED && must_share(b))
		return err_set(
			e, ERR_PRIVILEGE, -ENOTSUP,
			"--follow filtered needs probes that the kernel filters by process (Linux 6.10 and later); "
			"use --backend perf, or remove --follow filtered");
	if (must_share(b))
		return share_all(ses, e);
	if (!may_share(ses, b))
		return 0;
	if (!ses->launch.pid && !ses->o->choice.host && ses->o->follow == SES_FOLLOW_AUTO) {
		take_census(ses, &c);
		if (c.strangers && !c.children)
			return 0; /* they are shared at the first fork */
	}
	return share_all(ses, e);
}

/* A process that sleeps pays nothing. */
static bool has_worked(const struct stranger *at)
{
	const uint64_t since_ns = clock_ns(CLOCK_MONOTONIC) - at->seen_ns;
	struct tgt_usage u;

	return !tgt_peek_usage(at->pid, &u) && u.cpu_ns > at->cpu_ns &&
	       (double)(u.cpu_ns - at->cpu_ns) >= WORKS * (double)since_ns;
}

void ses_share_warn(const struct session *ses)
{
	const struct stranger *at, *end;

	if (ses->o->max_overhead || ses->o->agent || !att_shares(ses->first->att) || !ses->follow)
		return;
	at = (const void *)ses->follow->strangers.data;
	end = at + buf_count(&ses->follow->strangers, struct stranger);
	while (at < end && !has_worked(at))
		at++;
	if (at < end)
		ses_warn(ses,
			 "process %d is not watched, but maps the library: its calls run into the probes as well, and "
			 "take longer; --follow filtered avoids that",
			 at->pid);
}

int ses_share_at_fork(struct session *ses, struct err *e)
{
	const struct att_backend *b = att_pick(ses->o->backend, e);

	if (!b)
		return e->code;
	return may_share(ses, b) && !att_shares(ses->first->att) ? share_all(ses, e) : 0;
}

void ses_share_gap(struct session *ses, uint32_t tgid, uint64_t gap_ns)
{
	struct mdl_session *s = &ses->about;
	struct mdl_gap *all;

	if (gap_ns > s->follow_lag_ns)
		s->follow_lag_ns = gap_ns;
	if (!gap_ns || s->ngaps == MDL_GAPS_MAX)
		return;
	all = realloc(s->gaps, (s->ngaps + 1) * sizeof(*all));
	if (!all)
		return;
	s->gaps = all;
	all[s->ngaps++] = (struct mdl_gap){tgid, gap_ns};
}

void ses_share_account(const struct session *ses, struct mdl_session *s)
{
	const struct ses_build *b;
	struct att_strangers of;

	if (!att_shares(ses->first->att))
		return;
	s->stranger_hits = s->stranger_ns = 0;
	SES_EACH_BUILD(ses, b)
	{
		of = att_strangers(b->att);
		s->stranger_hits += of.hits;
		s->stranger_ns += of.hits * of.hit_ns;
	}
}
