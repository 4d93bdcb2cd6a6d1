// SPDX-License-Identifier: Apache-2.0
#include "cmd/live.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "attach/watch.h"
#include "base/fmt.h"
#include "base/out.h"
#include "machine/machine.h"

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull

/* By which probes it would be read, and what is wrong with the first of them. */
static int refuse_detail(const struct live *l, unsigned detail, const char *option, struct err *e)
{
	const struct plan_probe *p = l->plan.probes, *end = p + l->plan.nprobes;

	while (p < end && (!(p->row->row.details & detail) || p->spare))
		p++;
	if (p == end)
		return err_set(e, ERR_USAGE, -ENOTSUP, "%s: of %s, it cannot be read", option, l->plan.adp->title);
	if (!p->wanted)
		return err_set(e, ERR_USAGE, -ENOTSUP, "%s needs --probes %s, in %s", option,
			       plan_group_name(p->row->group), l->plan.adp->title);
	return err_set(e, ERR_TARGET, -ENOTSUP, "%s: %s is refused: %s", option, p->row->name, p->reason);
}

/*
 * What was asked for has to be there; what records have for the asking is said if it is not. Numbers join what runs in
 * the backward pass with what made it: arrows, and stacks. Where --ops leaves out either, they would join wrongly.
 */
static int choose_details(struct live *l, struct err *e)
{
	bool kept = (l->recording || l->o->trace) && !l->o->stats && !l->o->ops;
	bool joined = kept || (l->o->details & MXBPF_DETAIL_STACK && !l->o->stats && !l->o->ops);
	unsigned lacking = l->o->details & ~l->plan.details;

	if (lacking & MXBPF_DETAIL_SEQ && l->plan.no_seq.code)
		return err_set(e, ERR_TARGET, l->plan.no_seq.code, "forward and backward cannot be joined: %s",
			       l->plan.no_seq.why);
	if (lacking & MXBPF_DETAIL_SEQ && !l->plan.adp->seq.next_symbol)
		return err_set(e, ERR_USAGE, -ENOTSUP, "--backward: of %s, forward and backward cannot be joined",
			       l->plan.adp->title);
	if (lacking & MXBPF_DETAIL_STACK)
		return err_set(e, ERR_USAGE, -ENOTSUP, "--py-stacks: of what is probed of %s, Python calls nothing",
			       l->plan.adp->title);
	if (lacking & MXBPF_DETAIL_ARGS && l->plan.no_args.code)
		return err_set(e, ERR_TARGET, l->plan.no_args.code, "shapes of tensors cannot be read: %s",
			       l->plan.no_args.why);
	if (lacking & MXBPF_DETAIL_ARGS && (l->want.groups & PROBE_OP))
		return refuse_detail(l, MXBPF_DETAIL_ARGS, "--shapes", e);
	if (lacking & MXBPF_DETAIL_LAYER && (l->want.groups & PROBE_OP))
		return refuse_detail(l, MXBPF_DETAIL_LAYER, "--layers", e);
	if (lacking)
		return err_set(e, ERR_USAGE, -ENOTSUP, "what was asked for of operators needs --probes op, in %s",
			       l->plan.adp->title);
	if (kept && l->plan.no_seq.code && (l->want.groups & PROBE_OP))
		cmd_warn("no arrows from forward to backward: %s", l->plan.no_seq.why);
	l->details = l->o->details | (joined ? l->plan.details & MXBPF_DETAIL_SEQ : 0);
	if (l->o->by == SNK_BY_THREAD)
		l->details |= MXBPF_DETAIL_THREAD;
	if (l->details & MXBPF_DETAIL_ARGS)
		l->details |= l->plan.details & MXBPF_DETAIL_OUTPUTS;
	return 0;
}

struct mdl *live_model(const struct live *l)
{
	struct mdl *m = mdl_new();

	if (m && l->details & MXBPF_DETAIL_THREAD)
		mdl_tell_threads(m);
	if (m && l->o->by == SNK_BY_PROCESS)
		mdl_tell_processes(m);
	return m;
}

static int open_models(struct live *l, struct err *e)
{
	l->model = live_model(l);
	l->fresh = l->o->reset ? live_model(l) : NULL;
	l->beside = l->o->stats_check ? mdl_new() : NULL;
	if (!l->model || (l->o->reset && !l->fresh) || (l->o->stats_check && !l->beside))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return 0;
}

/* Samples have Python frames where that is possible. --py-stacks is asked for, so it must be. */
static int open_symbols(struct live *l, struct err *e)
{
	const bool stacks = l->o->details & MXBPF_DETAIL_STACK;
	const struct sym_opts so = {l->target, &l->plan, l->model, stacks ? cmd_warn : NULL};
	struct err why = {0};

	l->symbols = sym_new(&so);
	if (!l->symbols || (l->o->sample_hz && sym_samples_open(l->symbols)))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if ((!stacks && !l->o->sample_hz) || !sym_python_open(l->symbols, &why))
		return 0;
	if (stacks)
		return err_set(e, why.cls, why.code, "--py-stacks: process %d (%s): %s", tgt_pid(l->target),
			       tgt_comm(l->target), why.why);
	if (l->o->verbose)
		cmd_warn("samples have no Python frames: %s", why.why);
	return 0;
}

int live_prepare(struct live *l, const struct cmd_opts *o, const char *recording, struct err *e)
{
	/* Why there is none is said when it is needed. */
	const struct att_backend *backend = att_pick(o->backend, NULL);

	*l = (struct live){.o = o,
			   .recording = recording,
			   .signals = -1,
			   .want = {.groups = o->probes,
				    .ops = o->ops,
				    .iterations = o->iterations,
				    .runtime = o->runtime,
				    .probes_max = backend ? backend->probes_max : 0},
			   .lock = PTHREAD_MUTEX_INITIALIZER};
	l->prepared_mono_ns = clock_ns(CLOCK_MONOTONIC);
	if (!o->command && live_signals_open(l, e))
		return e->code;
	if (o->api && !strcmp(o->api, "work"))
		l->want.groups = (l->want.groups & ~PROBE_API) | PROBE_WORK;
	if ((o->probes & PROBE_API) && !o->iterations) /* those come with moments of their own */
		l->want.groups |= PROBE_STEP;
	if (o->omp)
		l->want.groups |= PROBE_TEAM;
	if (o->life)
		l->want.groups |= PROBE_LIFE;
	if (o->memory)
		l->want.groups |= PROBE_HELD;
	if ((recording || o->trace) && !o->stats &&
	    !o->ops) /* hand-overs and starts are paired by counting: all or none */
		l->want.groups |= PROBE_LINK;
	if (cmd_check_outputs(o, recording, e))
		return e->code;
	if (o->command) {
		if (launch_prepare(&l->launch, o->command, o->format != CMD_TABLE && !recording && !o->output, e) ||
		    live_signals_open(l, e) || live_await(l, e))
			return e->code;
		l->prepared_mono_ns = clock_ns(CLOCK_MONOTONIC);
	} else {
		if (live_await_pid(l, e))
			return e->code;
		l->prepared_mono_ns = o->wait ? clock_ns(CLOCK_MONOTONIC) : l->prepared_mono_ns;
	}
	if (live_app_check(l, e) || choose_details(l, e) || live_counters_choose(l, e) || open_models(l, e) ||
	    open_symbols(l, e) || live_omp(l, e) || live_held(l, e) || live_life(l, e))
		return e->code;
	live_ops_warn(l);
	return live_describe(l) ? err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory") : 0;
}

/* The functions below run with the lock held. */

static void note_error(struct live *l, int err)
{
	if (err && !l->write_error)
		l->write_error = err;
}

static void begin_keep(struct live *l, const void *recs)
{
	struct mxbpf_loss loss;

	if (!l->writer)
		return;
	att_counts(l->att, &loss, NULL);
	loss.stored = ring_received(l->ring);
	rec_writer_begin(l->writer, recs, &loss);
}

static int keep_one(struct live *l, const struct mxbpf_rec *r)
{
	int err = mdl_fold(l->model, r);

	if (l->fresh && !err)
		err = mdl_fold(l->fresh, r);
	return l->writer && !err ? rec_writer_add(l->writer, r, l->model) : err;
}

static void end_keep(struct live *l, int err)
{
	int err2 = mdl_fold_end(l->model);

	err = err ? err : err2;
	err2 = l->fresh ? mdl_fold_end(l->fresh) : 0;
	err = err ? err : err2;
	if (l->writer && !err)
		err = rec_writer_end(l->writer);
	note_error(l, err);
}

void live_keep(struct live *l, const void *recs, size_t bytes, int err)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;

	pthread_mutex_lock(&l->lock);
	begin_keep(l, recs);
	while (!err && (r = kind_next(recs, bytes, &pos)))
		err = keep_one(l, r);
	end_keep(l, err);
	pthread_mutex_unlock(&l->lock);
}

void live_learn(struct live *l, void *recs, size_t bytes)
{
	note_error(l, sym_learn_all(l->symbols, recs, bytes));
}

void live_add_name(struct live *l, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text)
{
	note_error(l, sym_add(l->symbols, kind, tgid, id, text, strlen(text)));
}

/* Completes a record with names and text ids. Returns false if no output needs the record. */
static bool prepare(struct live *l, struct mxbpf_rec *r, bool few)
{
	note_error(l, sym_learn(l->symbols, r));
	if (few && !kind_of(r)->few)
		return false;
	l->folded++;
	live_note_last(l, r);
	return !l->o->ops || live_ops_keeps(l, r);
}

/*
 * Walks once over a batch. Kept records move together, because the writer takes them from where they stand. few: keep
 * only records of kinds that arrive with --stats, too.
 */
static void fold(struct live *l, void *recs, size_t bytes, bool few)
{
	const struct mxbpf_rec *next;
	struct mxbpf_rec *r, *to = recs;
	size_t pos = 0;
	int err = 0;

	pthread_mutex_lock(&l->lock);
	sym_retry(l->symbols);
	begin_keep(l, recs);
	while (!err && (next = kind_next(recs, bytes, &pos))) {
		r = (struct mxbpf_rec *)next;
		if (!prepare(l, r, few))
			continue;
		if (to != r)
			memmove(to, r, r->size);
		err = keep_one(l, to);
		to = (struct mxbpf_rec *)((char *)to + to->size);
	}
	end_keep(l, err);
	pthread_mutex_unlock(&l->lock);
}

void live_fold(struct live *l, void *recs, size_t bytes)
{
	fold(l, recs, bytes, false);
}

/* Runs on the ring's second thread. With --stats the ring also announces rows, whose sums stay in the kernel. */
static void on_chunk(void *ctx, void *recs, size_t bytes)
{
	struct live *l = ctx;

	fold(l, recs, bytes, l->o->stats);
}

static int open_writer(struct live *l, struct err *e)
{
	int fd;

	if (!l->recording && !l->o->trace)
		return 0;
	fd = l->recording ? out_create(l->recording, e) : out_scratch(l->o->trace, e);
	return fd < 0 ? fd : rec_writer_open(fd, l->o->max_bytes, &l->session, &l->writer, e);
}

bool live_interrupted(struct live *l, uint64_t until_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t left_ms = until_ns > now ? (until_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
	int ms = until_ns == UINT64_MAX ? -1 : left_ms > 1000000 ? 1000000 : (int)left_ms;
	struct pollfd fds[] = {{.fd = l->signals, .events = POLLIN},
			       {.fd = l->launch.pid ? l->launch.pidfd
						    : tgt_pidfd(l->launcher ? l->launcher
								: l->target ? l->target
									    : l->waiting),
				.events = POLLIN},
			       {.fd = live_sight_fd(l), .events = POLLIN},
			       {.fd = live_marks_fd(l), .events = POLLIN},
			       {.fd = l->att ? att_births_fd(l->att) : -1, .events = POLLIN}};
	struct signalfd_siginfo taken; /* else it stays pending, and would count as the second Ctrl-C */

	if (poll(fds, 5, ms) <= 0)
		return false;
	if (fds[4].revents)
		att_births_take(l->att);
	if (fds[3].revents && l->o->follow_app)
		live_app(l);
	else if (fds[3].revents)
		live_iterations(l);
	if (fds[2].revents)
		live_sight(l);
	if (fds[0].revents && read(l->signals, &taken, sizeof(taken)) == sizeof(taken) &&
	    !live_pause_signal(l, (int)taken.ssi_signo)) {
		live_signals_took((int)taken.ssi_signo);
		if (l->launch.pid)
			launch_forward(&l->launch, &taken);
		return true;
	}
	return fds[1].revents;
}

static void mark_start(struct live *l)
{
	l->session.start_mono_ns = clock_ns(CLOCK_MONOTONIC);
	l->session.start_unix_ns = clock_ns(CLOCK_REALTIME);
}

/* Its threads never handle a signal: in the window the signals are read. */
static int start_ring(struct live *l, struct err *e)
{
	int err;

	sym_attached(l->symbols, l->att);
	live_signals_hold(l, true);
	err = ring_start(att_ring_fd(l->att), att_sched_fd(l->att), on_chunk, l, &l->ring, e);
	live_signals_hold(l, false);
	return err;
}

/* Probes that are in a process now. */
static unsigned probes_attached(const struct live *l)
{
	size_t n = buf_count(&l->plan.sites, struct plan_site), i;
	unsigned marks = 0;

	for (i = 0; i < n; i++)
		marks += !!buf_at(&l->plan.sites, struct plan_site, i)->row->mark[0];
	return l->o->iterations ? marks : (unsigned)n;
}

int live_start(struct live *l, struct err *e)
{
	struct att_opts ao = {.backend = l->o->backend,
			      .ring_bytes = (uint32_t)l->o->ring_bytes,
			      .details = l->details,
			      .account = !l->o->no_account,
			      .teams = l->o->omp,
			      .life = l->o->life,
			      .held = l->o->memory,
			      .stats = l->o->stats	   ? MXBPF_STATS_ON
				       : l->o->stats_check ? MXBPF_STATS_CHECK
							   : MXBPF_STATS_OFF,
			      .python = sym_python(l->symbols),
			      .counters = l->counters,
			      .samples = l->o->sample_hz,
			      .iterations = l->o->iterations,
			      .follow_app = l->o->follow_app,
			      .sched = l->o->sched,
			      .verbose = l->o->verbose};
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + l->o->delay_ns;
	pid_t pid = tgt_pid(l->target);
	struct err unfollowed = {0};

	if (l->o->delay_ns)
		live_go_on(l);
	while (!l->ended && clock_ns(CLOCK_MONOTONIC) < until)
		l->ended = live_interrupted(l, until);
	if (tgt_gone(l->target))
		return err_set(e, ERR_TARGET, -ESRCH, "process %d exited before probes were attached", pid);
	if (live_follow_open(l, &unfollowed))
		cmd_warn("children are not followed: %s", unfollowed.why);
	if (live_follow_watch(l))
		ao.targets_fd = watch_targets_fd(live_follow_watch(l));
	if (att_load(&l->plan, pid, &ao, &l->att, e) || live_share_start(l, e) || start_ring(l, e) ||
	    att_attach(l->att, &l->plan, &l->plan.target, pid, e) ||
	    (l->o->sample_hz && att_clocks_start(l->att, l->o->sample_hz, e)))
		return e->code;
	l->session.account = att_accounts(l->att);
	if (!l->ended && live_follow(l, &unfollowed))
		cmd_warn("children are not followed: %s", unfollowed.why);
	live_signals_hold(l, true);
	mark_start(l);
	if (open_writer(l, e)) /* as late as possible: it replaces what bears the name */
		return e->code;
	if (live_machine_start(l, e))
		return e->code;
	if (!l->ended && l->o->iterations)
		live_iterations_start(l);
	else if (!l->ended && l->o->follow_app)
		live_app_start(l);
	else if (!l->ended) /* else nothing shall come of it */
		att_activate(l->att, true);
	live_go_on(l);
	if (!l->o->quiet)
		fprintf(stderr, "attached: %u probes in %llu ms; Ctrl-C ends\n", probes_attached(l),
			(unsigned long long)((clock_ns(CLOCK_MONOTONIC) - l->prepared_mono_ns) / NS_PER_MS));
	return 0;
}

static void on_fallen_cut(void *ctx, const char *name, uint64_t spans)
{
	struct live *l = ctx;
	struct mdl_session *s = &l->session;
	struct mdl_fallback *all = realloc(s->fallbacks, (s->nfallbacks + 1) * sizeof(*all)), *new;

	cmd_warn("the end of %s does not hold: its calls last until the next event from now on", name);
	if (!all)
		return;
	s->fallbacks = all;
	new = &all[s->nfallbacks];
	*new = (struct mdl_fallback){strdup(name), live_window_ns(l), spans};
	s->nfallbacks += !!new->name;
}

static void check_cuts(struct live *l)
{
	unsigned i;

	att_check_cuts(l->att, &l->plan, on_fallen_cut, l);
	for (i = 0; i < l->late.nlibs; i++)
		att_check_cuts(l->att, &l->late.libs[i]->plan, on_fallen_cut, l);
}

static void progress(struct live *l, uint64_t elapsed_ns, uint64_t *last_events)
{
	char events[32], lost[32];
	struct mxbpf_loss loss;

	att_counts(l->att, &loss, NULL);
	fprintf(stderr, "\r\033[K%llu s  %s events/s  lost %s", (unsigned long long)(elapsed_ns / NS_PER_S),
		fmt_count(loss.attempted - *last_events, events), fmt_count(loss.dropped, lost));
	fflush(stderr);
	*last_events = loss.attempted;
}

/* Nothing is taken at the moment, and the window does not grow. */
static bool rests(const struct live *l)
{
	return l->paused_at_ns || (l->o->follow_app && !att_active_since_ns(l->att));
}

void live_wait(struct live *l)
{
	bool show = !l->o->quiet && isatty(STDERR_FILENO);
	uint64_t end = l->o->duration_ns ? l->o->duration_ns : UINT64_MAX, window;
	uint64_t next = clock_ns(CLOCK_MONOTONIC) + NS_PER_S, now, until, due, events = 0;

	while (!l->ended && (window = live_window_ns(l)) < end) {
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= next) {
			if (show)
				progress(l, window, &events);
			live_sweep(l);
			att_forget(l->att, 0);
			if (!rests(l))
				live_machine_read(l, false);
			live_iterations_warn(l);
			check_cuts(l);
			next = now + NS_PER_S;
		}
		due = live_dump_due(l, window);
		due = due < end ? due : end;
		until = !rests(l) && due - window < next - now ? now + due - window : next;
		/* An exec wakes nobody, so it is looked for once a second. */
		if (live_interrupted(l, until) || (!l->launch.pid && tgt_gone(l->launcher ? l->launcher : l->target)))
			l->ended = true; /* which what it did may have said as well */
	}
	if (show)
		fprintf(stderr, "\r\033[K");
}

static void on_left_span(void *ctx, const struct mxbpf_span *s)
{
	struct live *l = ctx;
	struct mxbpf_span copy = *s;
	int err;

	live_fold(l, &copy, copy.h.size);
	err = l->beside ? mdl_feed(l->beside, &copy, copy.h.size) : 0;
	if (err && !l->write_error)
		l->write_error = err;
}

int live_stop(struct live *l, struct err *e)
{
	struct mdl_session *s = &l->session;
	bool on = !l->paused_at_ns; /* else what is open was left open before */
	struct live_look look;
	struct buf opens = {0};
	uint64_t began;
	unsigned left;

	live_signals_results(l, LIVE_STOPPING);
	live_look(l, &look);
	if (l->o->iterations) {
		on = l->sampling && att_sampling(l->att).opened > att_sampling(l->att).closed;
		att_sample(l->att, false, false, 0);
	}
	if (l->o->follow_app) {
		on = att_active_since_ns(l->att);
		att_app(l->att, false);
	}
	live_share_account(l, s);
	att_activate(l->att, false);
	live_machine_end(l);
	live_close_pause(l);
	s->duration_ns = live_window_ns(l);
	live_sched_end(l);
	live_iterations_account(l, s);
	live_app_account(l, s);
	began = clock_ns(CLOCK_MONOTONIC); /* the window has ended */
	live_follow_free(l);
	att_detach(l->att);
	if (l->o->verbose)
		fprintf(stderr, "mxbpf: detached in %llu ms; BPF maps take %llu KiB\n",
			(unsigned long long)((clock_ns(CLOCK_MONOTONIC) - began) / NS_PER_MS),
			(unsigned long long)(att_map_bytes(l->att) >> 10));
	ring_stop(l->ring);
	att_counts(l->att, &s->loss, &s->hits);
	if (l->o->stats || l->beside)
		live_take_stats(l, true);
	s->loss.stored = l->o->stats ? l->folded : ring_received(l->ring);
	s->loss.unreadable += sym_lost(l->symbols);
	check_cuts(l);
	left = on ? att_left_spans(l->att, began, live_was_left, &look, on_left_span, l) : 0;
	s->loss.attempted += left + l->sched_ended;
	s->loss.stored += left + l->sched_ended;
	s->open_spans = att_open_spans(l->att, NULL, NULL) - left;
	s->loss.unmatched += s->open_spans;
	live_open_spans(l, &look, began, &opens);
	live_fold(l, opens.data, opens.len);
	buf_fini(&opens);
	if (s->loss.stored + s->loss.dropped != s->loss.attempted)
		cmd_warn("the accounts do not agree: %llu attempted, %llu stored, %llu dropped, %llu malformed",
			 (unsigned long long)s->loss.attempted, (unsigned long long)s->loss.stored,
			 (unsigned long long)s->loss.dropped, (unsigned long long)ring_malformed(l->ring));
	if (s->loss.stored + s->loss.dropped < s->loss.attempted) /* for want of memory here: lost all the same */
		s->loss.dropped = s->loss.attempted - s->loss.stored;
	if (l->write_error)
		err_set(e, ERR_RUNTIME, l->write_error, "events were not all folded or written: %s",
			strerror(-l->write_error));
	if (l->writer) {
		s->cut_records = rec_writer_cut_records(l->writer);
		rec_writer_finish(l->writer, l->model, s, e);
	}
	return e->code;
}

void live_free(struct live *l)
{
	live_follow_free(l);
	if (l->ring && l->att) {
		att_detach(l->att);
		ring_stop(l->ring);
	}
	ring_free(l->ring);
	rec_writer_free(l->writer);
	att_free(l->att);
	sym_free(l->symbols);
	plan_fini(&l->plan);
	live_late_free(l);
	tgt_close(l->target);
	tgt_close(l->waiting);
	out_abort(l->tables);
	mdl_free(l->model);
	mdl_free(l->fresh);
	mdl_free(l->beside);
	buf_fini(&l->going);
	hash_fini(&l->last_of);
	buf_fini(&l->lasts);
	hash_fini(&l->asked);
	mach_close(l->machine);
	buf_fini(&l->readings);
	mdl_session_fini(&l->session);
	launch_fini(&l->launch);
	if (l->signals >= 0)
		close(l->signals);
}
