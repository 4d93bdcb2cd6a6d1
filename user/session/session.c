// SPDX-License-Identifier: Apache-2.0
/* The life of a session, from finding the target to the last record. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attach/watch.h"
#include "base/memory.h"
#include "base/out.h"
#include "feature/cost/slices.h"
#include "nvtx/nvtx.h"
#include "session/priv.h"
#include "targets/targets.h"

/* Sets e to the reason why a detail cannot be read: that of the first probe that would read it. */
static int refuse_detail(const struct session *ses, const struct ses_target *of, unsigned detail, const char *option,
			 struct err *e)
{
	const struct plan_probe *p = of->plan.probes, *end = p + of->plan.nprobes;

	while (p < end && (!(p->row->row.details & detail) || p->spare))
		p++;
	if (p == end)
		return err_set(e, ERR_USAGE, -ENOTSUP, "%s is not supported with %s", option, of->plan.adp->title);
	if (!p->wanted)
		return err_set(e, ERR_USAGE, -ENOTSUP, "%s needs --probes %s with %s", option,
			       plan_group_name(p->row->group), of->plan.adp->title);
	return err_set(e, ERR_TARGET, -ENOTSUP, "%s: the probe %s is refused: %s", option, p->row->name, p->reason);
}

/* Removes the details from the options if the process is the reason why they cannot be read. Otherwise returns e->code.
 */
static int go_without(struct session *ses, unsigned details, struct err *e)
{
	if (ses_refuse(ses, e))
		return e->code;
	ses->opts.details &= ~details;
	return 0;
}

/* Removes the details that cannot be read in this process. Returns -errno with e set if the session must end. */
static int refuse_details(struct session *ses, const struct ses_target *of, struct err *e)
{
	const unsigned lacking = ses->o->details & ~of->plan.details;

	if (lacking & MXBPF_DETAIL_SEQ && of->plan.no_seq.code) {
		err_set(e, ERR_TARGET, of->plan.no_seq.code,
			"--backward: cannot match backward nodes with forward operators: %s", of->plan.no_seq.why);
		go_without(ses, MXBPF_DETAIL_SEQ, e);
	}
	if (lacking & MXBPF_DETAIL_ARGS && of->plan.no_args.code)
		err_set(e, ERR_TARGET, of->plan.no_args.code, "--shapes: cannot read tensor shapes: %s",
			of->plan.no_args.why);
	else if (lacking & MXBPF_DETAIL_ARGS && ses->want.groups & PROBE_OP)
		refuse_detail(ses, of, MXBPF_DETAIL_ARGS, "--shapes", e);
	if (e->code && go_without(ses, MXBPF_DETAIL_ARGS, e))
		return e->code;
	if (lacking & MXBPF_DETAIL_LAYER && ses->want.groups & PROBE_OP &&
	    refuse_detail(ses, of, MXBPF_DETAIL_LAYER, "--layers", e))
		return go_without(ses, MXBPF_DETAIL_LAYER, e);
	return 0;
}

/*
 * Sequence numbers, which join backward nodes with the operators that made them, are read for arrows and stacks as
 * well; a warning says if they cannot be. With --ops they are not read, because they would join wrongly if either
 * operator is left out.
 */
static int choose_details(struct session *ses, const struct ses_target *of, struct err *e)
{
	bool kept = (ses->o->recording || ses->o->trace) && !ses->o->ops;
	bool joined = kept || (ses->o->details & MXBPF_DETAIL_STACK && !ses->o->ops);
	unsigned lacking;

	if (refuse_details(ses, of, e))
		return e->code;
	lacking = ses->o->details & ~of->plan.details;
	if (lacking & MXBPF_DETAIL_SEQ && !of->plan.adp->seq.next_symbol)
		return err_set(e, ERR_USAGE, -ENOTSUP, "--backward is not supported with %s", of->plan.adp->title);
	if (lacking & MXBPF_DETAIL_STACK)
		return err_set(
			e, ERR_USAGE, -ENOTSUP,
			"--py-stacks: Python calls none of the probed functions of %s; add op or api to --probes",
			of->plan.adp->title);
	/* The names of emit_nvtx() have sequence numbers as well. */
	if (lacking & ~(ses->want.groups & PROBE_MARK ? MXBPF_DETAIL_SEQ : 0u))
		return err_set(e, ERR_USAGE, -ENOTSUP,
			       "options that read details of operators need --probes op with %s", of->plan.adp->title);
	if (kept && of->plan.no_seq.code && (ses->want.groups & PROBE_OP))
		ses_warn(ses, "traces will have no arrows from forward to backward: %s", of->plan.no_seq.why);
	ses->details = ses->o->details | (joined ? of->plan.details & MXBPF_DETAIL_SEQ : 0);
	if (ses->o->by_thread)
		ses->details |= MXBPF_DETAIL_THREAD;
	if (ses->details & MXBPF_DETAIL_ARGS)
		ses->details |= of->plan.details & MXBPF_DETAIL_OUTPUTS;
	ses->first->details = ses->details;
	return 0;
}

struct mdl *ses_new_model(const struct session *ses)
{
	struct mdl *m = mdl_new();

	if (m && ses->details & MXBPF_DETAIL_THREAD)
		mdl_tell_threads(m);
	if (m && ses->o->by_range)
		mdl_tell_ranges(m);
	if (m && ses->o->by_process)
		mdl_tell_processes(m);
	if (m && !ses->o->gpu)
		mdl_without_devices(m);
	return m;
}

static int open_models(struct session *ses, struct err *e)
{
	ses->model = ses_new_model(ses);
	ses->fresh = ses->o->reset ? ses_new_model(ses) : NULL;
	if (!ses->model || (ses->o->reset && !ses->fresh))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (ses->fresh)
		mdl_lend_names(ses->fresh, ses->model);
	return 0;
}

/* Returns the groups of probes that the options need. */
static unsigned groups_of(const struct ses_opts *o, const struct att_backend *backend)
{
	unsigned groups = o->probes;

	if (o->api != SES_API_ALL && groups & PROBE_API)
		groups = (groups & ~PROBE_API) | PROBE_WORK;
	if ((o->probes & PROBE_API) && !o->iterations) /* --iterations has its own records of the ends of iterations */
		groups |= PROBE_STEP;
	groups |= ses_features_groups(o);
	if (o->gpu && groups & PROBE_CUDA) /* CUPTI tells the calls, if it can be had */
		groups |= PROBE_LAUNCH;
	if (backend && backend->probes_max) /* the functions of CUDA alone are more than that */
		groups &= ~(unsigned)(PROBE_CUDA | PROBE_LAUNCH);
	/* Hand-overs and starts are paired by counting, so both or neither are probed. */
	if ((o->recording || o->trace) && !o->ops)
		groups |= PROBE_LINK;
	return groups;
}

static const struct ses_window *window_of(const struct ses_opts *o)
{
	const struct ses_window *w = ses_features_window(o);

	return w ? w : ses_app_window.asked(o) ? &ses_app_window : &ses_one_window;
}

/* Starts the command, which waits. With --agent and --gpu, code of mxbpf may enter it, and that includes NVTX's tool.
 */
static int launch(struct session *ses, struct err *e)
{
	const struct ses_opts *o = ses->o;
	int nvtx = (o->agent || o->gpu) && o->probes & PROBE_MARK ? nvtx_offer() : -ENOTSUP, err;

	ses->nvtx.offered = nvtx >= 0;
	if (nvtx == -EBUSY)
		ses_note(ses, "NVTX has another tool: ranges are recorded only in libraries that export its functions");
	else if (nvtx < 0 && nvtx != -ENOTSUP)
		ses_warn(ses, "ranges of NVTX may be missing, because the command cannot be given a library for it: %s",
			 strerror(-nvtx));
	ses->launch.in_child = ses->nvtx.offered ? nvtx_in_child : NULL;
	err = launch_prepare(&ses->launch, o->command, o->command_to_stderr, e);
	nvtx_withdraw(nvtx);
	return err;
}

int ses_open(const struct ses_opts *o, const struct ses_ui *ui, struct session **ses, struct err *e)
{
	/* If there is no backend, att_load() says why. */
	const struct att_backend *backend = att_pick(o->backend, NULL);
	struct session *new = *ses = calloc(1, sizeof(*new));

	if (!new)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	new->opts = *o;
	new->o = &new->opts;
	new->ui = *ui;
	new->ntargets = new->nbuilds = 1;
	new->first = &new->builds[0];
	*new->first = (struct ses_build){.ses = new, .of = &new->targets[0], .late.counts = o->gpu};
	new->targets[0].build = new->first;
	new->window = window_of(o);
	new->want = (struct plan_opts){.groups = groups_of(o, backend),
				       .ops = o->ops,
				       .iterations = o->iterations,
				       .slices = o->slices,
				       .agent = o->agent,
				       .needs_api = o->api == SES_API_WORK,
				       .runtime = o->runtime,
				       .returns = backend && backend->attach_returns && !o->no_returns,
				       .probes_max = backend ? backend->probes_max : 0};
	if (o->probes == PROBE_CUDA && backend && backend->probes_max)
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--probes cuda needs more probes than the %u that the backend %s can attach",
			       backend->probes_max, backend->name);
	if (ses_features_open(new))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	pthread_mutex_init(&new->lock, NULL);
	new->prepared_mono_ns = clock_ns(CLOCK_MONOTONIC);
	return o->command ? launch(new, e) : 0;
}

void ses_wake_by(struct session *ses, int fd)
{
	ses->ui.wake_fd = fd;
}

int ses_prepare(struct session *ses, struct err *e)
{
	const struct ses_target *first = &ses->targets[0];

	if (ses->o->command ? ses_await(ses, e) : ses_await_pid(ses, e))
		return e->code;
	cost_note_cpu(ses);
	if (ses->o->command || ses->o->wait) /* waiting for the target does not count as startup time */
		ses->prepared_mono_ns = clock_ns(CLOCK_MONOTONIC);
	if (ses_build_title(ses->first))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (ses_agent(ses, first, e) || ses_app_check(ses, first, e) || choose_details(ses, first, e) ||
	    open_models(ses, e) || ses_build_symbols(ses->first, e) || ses_features_check(ses, first, e))
		return e->code;
	ses_ops_warn(ses);
	ses_nvtx_note(ses, first);
	return ses_describe(ses) ? err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory") : 0;
}

static int open_writer(struct session *ses, struct err *e)
{
	int fd;

	if (ses_traces_open(ses, e) || ses->writer || (!ses->o->recording && !ses->o->trace))
		return e->code;
	fd = ses->o->recording ? out_create(ses->o->recording, e) : out_scratch(ses->o->trace, e);
	if (fd < 0 || rec_writer_open(fd, ses->o->max_bytes, &ses->about, &ses->writer, e))
		return e->code;
	if (!ses->o->recording)
		rec_writer_scratch(ses->writer);
	return 0;
}

/* Readable when the process has ended with which the session ends, or one of several. */
static int end_fd(const struct session *ses)
{
	if (ses->launch.pid)
		return ses->launch.pidfd;
	if (ses->roots.several)
		return ses->roots.ended_fd;
	return tgt_pidfd(ses->named ? ses->named : ses->targets[0].tgt);
}

static bool target_gone(const struct session *ses)
{
	return !ses->launch.pid && !ses->roots.several && tgt_gone(ses->named ? ses->named : ses->targets[0].tgt);
}

bool ses_interrupted(struct session *ses, uint64_t until_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t left_ms = until_ns > now ? (until_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
	const bool sight = ses_sight_waits(ses);
	int ms = sight ? 0 : until_ns == UINT64_MAX ? -1 : left_ms > 1000000 ? 1000000 : (int)left_ms;
	struct pollfd fds[4 + SES_BUILDS_MAX] = {
		{.fd = ses->ui.wake_fd, .events = POLLIN},
		{.fd = end_fd(ses), .events = POLLIN},
		{.fd = ses_sight_fd(ses), .events = POLLIN},
		{.fd = ses->first->att ? att_windows_fd(ses->first->att) : -1, .events = POLLIN}};
	const unsigned nbuilds = ses->first->att ? ses->nbuilds : 0;
	unsigned i;

	for (i = 0; i < nbuilds; i++)
		fds[4 + i] = (struct pollfd){.fd = att_births_fd(ses->builds[i].att), .events = POLLIN};
	if (poll(fds, 4 + nbuilds, ms) <= 0 && !sight)
		return false;
	for (i = 0; i < nbuilds; i++)
		if (fds[4 + i].revents)
			att_births_take(ses->builds[i].att);
	if (fds[3].revents)
		ses->window->told(ses);
	if (fds[2].revents || sight)
		ses_sight(ses);
	return (fds[0].revents && ses->ui.woken(ses->ui.ctx)) ||
	       (fds[1].revents && (!ses->roots.several || ses_roots_ended(ses)));
}

static void mark_start(struct session *ses)
{
	ses->about.start_mono_ns = clock_ns(CLOCK_MONOTONIC);
	ses->about.start_unix_ns = clock_ns(CLOCK_REALTIME);
}

static int open_sources(struct session *ses, struct err *e)
{
	ses->hub = src_hub_new(ses_on_batch, ses);
	if (!ses->hub)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (ses_build_sources(ses->first, e))
		return e->code;
	if (ses_agent_open(ses, e))
		return e->code;
	return src_open(ses->hub, e);
}

/* Returns the number of probes that are attached now. */
static unsigned probes_attached(const struct session *ses)
{
	size_t n = buf_count(&ses->targets[0].plan.sites, struct plan_site), i;
	unsigned marks = 0;

	for (i = 0; i < n; i++)
		marks += !!buf_at(&ses->targets[0].plan.sites, struct plan_site, i)->row->iteration_end[0];
	return ses->o->iterations ? marks : (unsigned)n;
}

int ses_start(struct session *ses, struct err *e)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + ses->o->delay_ns;
	pid_t pid = tgt_pid(ses->targets[0].tgt);
	struct err unfollowed = {0};
	/* Without children to follow, the watch may begin later: it finds libraries that were mapped before. */
	const bool watch_later = !ses->follow && !ses_follows(ses);
	bool alone;

	if (ses->o->delay_ns)
		ses_go_on(ses);
	while (!ses->ended && clock_ns(CLOCK_MONOTONIC) < until)
		ses->ended = ses_interrupted(ses, until);
	if (tgt_gone(ses->targets[0].tgt))
		return err_set(e, ERR_TARGET, -ESRCH, "process %d exited before the probes were attached", pid);
	alone = !watch_later && ses_follow_open(ses, &unfollowed);
	if (ses_build_load(ses->first, e) || cost_prepare(ses, e) || ses_share_start(ses, e) || open_sources(ses, e) ||
	    ses_agent_await(ses, e))
		return e->code;
	if (alone) /* else what failed here fails there for the same reason */
		ses_warn(ses, "children are not followed: %s", unfollowed.why);
	if (ses->agents.gpu_source)
		ses->ended |= !ses_gpu_await(ses);
	if (att_attach(ses->first->att, &ses->targets[0].plan, &ses->targets[0].plan.target, pid, e) ||
	    (ses->o->sample_hz && att_clocks_start(ses->first->att, ses->o->sample_hz, e)))
		return e->code;
	ses->about.account = ses->agent.source ? !!ses->first->rings[ATT_SWITCHES] : att_accounts(ses->first->att);
	ses->about.no_faults = ses->agent.source;
	if (watch_later)
		ses_late_look(ses->first, ses->targets[0].tgt);
	else if (!ses->ended && ses_follow(ses, &unfollowed))
		ses_warn(ses, "children are not followed: %s", unfollowed.why);
	ses->ended |= !ses_agents_await(ses);
	if (!ses->ended)
		cost_begin(ses);
	if (!ses->ended)
		ses_share_warn(ses);
	if (ses->ui.begins)
		ses->ui.begins(ses->ui.ctx);
	mark_start(ses);
	if (open_writer(ses, e)) /* as late as possible, because it replaces an existing file */
		return e->code;
	if (ses_features_start(ses, e))
		return e->code;
	mem_trim();
	mem_measure(true);
	if (!ses->ended) /* it ended during --delay, so there is no window */
		ses->window->start(ses);
	ses_go_on(ses);
	ses_stage(ses, "attached: %u probes in %llu ms", probes_attached(ses),
		  (unsigned long long)((clock_ns(CLOCK_MONOTONIC) - ses->prepared_mono_ns) / NS_PER_MS));
	if (ses->pause_asked)
		ses_pause(ses, true);
	if (ses->o->renews) /* it says what happens to each process, for months */
		ses_detail(ses, "following process %d", pid);
	if (watch_later && !ses->o->closed && !ses->ended &&
	    (ses_follow_open(ses, &unfollowed) || ses_follow(ses, &unfollowed)))
		ses_warn(ses, "libraries that are loaded later are not probed: %s", unfollowed.why);
	return 0;
}

static void on_fallen_cut(void *ctx, const char *name, uint64_t spans)
{
	struct session *ses = ctx;
	struct mdl_session *s = &ses->about;
	struct mdl_fallback *all = realloc(s->fallbacks, (s->nfallbacks + 1) * sizeof(*all)), *new;

	ses_warn(ses,
		 "the probe at the end of %s missed calls; from now on its durations are upper bounds (until the next "
		 "event)",
		 name);
	if (!all)
		return;
	s->fallbacks = all;
	new = &all[s->nfallbacks];
	*new = (struct mdl_fallback){strdup(name), ses_window_ns(ses), spans};
	s->nfallbacks += !!new->name;
}

static void check_cuts(struct session *ses)
{
	struct ses_build *b;
	unsigned i;

	SES_EACH_BUILD(ses, b)
	{
		att_check_cuts(b->att, &b->of->plan, on_fallen_cut, ses);
		for (i = 0; i < b->late.nlibs; i++)
			att_check_cuts(b->att, &b->late.libs[i]->plan, on_fallen_cut, ses);
	}
}

static void on_cpu_back(void *ctx, unsigned cpu, int err)
{
	const struct session *ses = ctx;

	if (err)
		ses_warn(ses, "CPU %u came online, and from now on its samples are missing: %s", cpu, strerror(-err));
	else
		ses_warn(ses, "CPU %u came online; its samples of about two seconds are missing", cpu);
}

static void check_clocks(struct session *ses)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	att_clocks_check(b->att, on_cpu_back, ses);
}

void ses_wait(struct session *ses)
{
	uint64_t end = ses->o->duration_ns ? ses->o->duration_ns : UINT64_MAX, window, part;
	uint64_t next = clock_ns(CLOCK_MONOTONIC) + NS_PER_S, now, until, due;

	while (!ses->ended && (window = ses_window_ns(ses)) < end) {
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= next) {
			if (ses->ui.second)
				ses->ui.second(ses->ui.ctx);
			ses_sweep(ses);
			ses_forget(ses);
			if (!ses_rests(ses))
				ses_features_read(ses, false);
			if (ses->window->second)
				ses->window->second(ses);
			check_cuts(ses);
			check_clocks(ses);
			if (ses->agents.gpu_source)
				ses_gpu_tick(ses);
			ses_agent_check(ses);
			mem_measure(true);
			next = now + NS_PER_S;
		}
		due = ses_interval_due(ses, window);
		part = ses_traces_due(ses, window);
		due = part < due ? part : due;
		due = due < end ? due : end;
		until = !ses_rests(ses) && due - window < next - now ? now + due - window : next;
		due = ses_features_tick(ses);
		until = due < until ? due : until;
		/* An exec does not wake mxbpf, so target_gone() looks for one at least once a second. */
		if (ses_interrupted(ses, until) || target_gone(ses))
			ses->ended = true; /* ses_interrupted() may have set it */
	}
}

static void on_left_span(void *ctx, const struct mxbpf_span *s)
{
	struct ses_build *b = ctx;
	struct mxbpf_span copy = *s;

	ses_fold(b, ATT_CALLS, &copy, copy.h.size);
}

static unsigned left_spans(struct session *ses, struct ses_look *look, uint64_t until_ns)
{
	struct ses_build *b;
	unsigned n = 0;

	SES_EACH_BUILD(ses, b)
	n += att_left_spans(b->att, until_ns, ses_was_left, look, on_left_span, b);
	return n;
}

static void fold_opens(struct session *ses, const struct buf *opens)
{
	size_t i, n = buf_count(opens, struct mxbpf_open);
	struct mxbpf_open *r;

	for (i = 0; i < n; i++) {
		r = buf_at(opens, struct mxbpf_open, i);
		ses_fold(ses_build_of(ses, r->h.tgid), ATT_CALLS, r, sizeof(*r));
	}
}

static void say_detached(const struct session *ses, uint64_t began)
{
	const struct ses_build *b;
	uint64_t bytes = 0;

	if (!ses->o->verbose) /* att_map_bytes() needs a file descriptor of each map */
		return;
	SES_EACH_BUILD(ses, b)
	bytes += att_map_bytes(b->att);
	ses_detail(ses, "detached in %llu ms; BPF maps take %llu KiB",
		   (unsigned long long)((clock_ns(CLOCK_MONOTONIC) - began) / NS_PER_MS),
		   (unsigned long long)(bytes >> 10));
}

/* Whoever may write into the folder may have deleted the recording, or put something else in its place. */
static void check_name(const struct session *ses, struct err *e)
{
	struct stat st;

	if (ses->o->recording && !fstat(rec_writer_fd(ses->writer), &st) && !st.st_nlink)
		err_set(e, ERR_RUNTIME, -ENOENT, "%s was deleted or replaced while it was made; its events are lost",
			ses->o->recording);
}

int ses_stop(struct session *ses, struct err *e)
{
	struct mdl_session *s = &ses->about;
	bool on; /* events were recorded until now; otherwise open spans may have ended long ago */
	struct ses_look look;
	struct buf opens = {0};
	uint64_t began, detaching;
	unsigned left;

	ses_look(ses, &look);
	ses_features_ends(ses);
	on = ses->window->stop(ses);
	ses_share_account(ses, s);
	ses_activate(ses, false);
	ses_agent_take(ses, false);
	ses_features_end(ses);
	ses_close_pause(ses);
	s->duration_ns = ses_window_ns(ses);
	ses_agent_settle(ses);
	ses_features_rest(ses);
	ses_window_account(ses, s);
	began = clock_ns(CLOCK_MONOTONIC); /* the end of the window */
	ses_follow_free(ses);
	ses_features_alone(ses);
	detaching = clock_ns(CLOCK_MONOTONIC);
	ses_detach(ses);
	say_detached(ses, detaching);
	src_flush(ses->hub);
	ses_agent_end(ses);
	ses_features_detached(ses); /* the agent has removed its callbacks */
	s->hits = ses_hits(ses);
	if (ses_loss_end(ses))
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory: the loss of each source is not known");
	check_cuts(ses);
	left = on ? left_spans(ses, &look, began) : 0;
	s->open_spans = ses_open_count(ses) - left;
	ses_loss_close(ses, left);
	ses_open_spans(ses, &look, began, &opens);
	fold_opens(ses, &opens);
	buf_fini(&opens);
	mem_trim(); /* of batches of records that are folded now */
	mem_measure(false);
	ses_tell_memory(ses);
	if (ses->agent.first && agt_broken(ses->agent.first))
		err_set(e, ses->agent.failed.cls, ses->agent.failed.code, "%s", ses->agent.failed.why);
	if (ses->write_error)
		err_set(e, ERR_RUNTIME, ses->write_error, "some events were neither counted nor written: %s",
			strerror(-ses->write_error));
	ses_traces_end(ses);
	if (ses->writer) {
		s->cut_records = rec_writer_cut_records(ses->writer);
		if (!rec_writer_finish(ses->writer, ses->model, s, e))
			check_name(ses, e);
	}
	return e->code;
}

void ses_free(struct session *ses)
{
	unsigned i;

	if (!ses)
		return;
	ses_features_fini(ses); /* first: a feature may have a thread that uses what follows */
	ses_follow_free(ses);
	if (ses->hub) {
		ses_detach(ses);
		src_flush(ses->hub);
	}
	src_hub_free(ses->hub);
	ses_agent_free(ses);
	ses_nvtx_free(ses);
	rec_writer_free(ses->writer);
	ses_builds_free(ses);
	for (i = 0; i < ses->ntargets; i++) {
		plan_fini(&ses->targets[i].plan);
		tgt_close(ses->targets[i].tgt);
	}
	tgt_close(ses->named);
	ses_roots_close(ses);
	ses_processes_free(ses);
	mdl_free(ses->model);
	mdl_free(ses->fresh);
	hash_fini(&ses->lasts.of);
	buf_fini(&ses->lasts.spans);
	hash_fini(&ses->ops.asked);
	mdl_session_fini(&ses->about);
	launch_fini(&ses->launch);
	pthread_mutex_destroy(&ses->lock);
	free(ses);
}
