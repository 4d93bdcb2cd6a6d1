// SPDX-License-Identifier: Apache-2.0
/* `mxbpf serve`: a session whose intervals are added up in metrics, for months. */
#include "cmd/serve/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/serve/config.h"
#include "cmd/serve/notify.h"
#include "feature/cost/cost.h"
#include "target/target.h"

#define INTERVAL_NS  10000000000ull
#define MAX_OVERHEAD 10 /* permille */
#define FEW_EVENTS   50 /* permille: below this limit a small ring is enough */
#define RING_BYTES   (2u << 20)
#define KEEP	     20
#define MAX_BYTES    (2ull << 30)
#define FLIGHT_BYTES (32u << 20)
#define TICK_NS	     5000000000ull

static void add_process(void *ctx, uint32_t tgid, const struct plan *plan)
{
	struct serve *s = ctx;
	const pid_t pid = (pid_t)tgid;

	buf_put(&s->pids, &pid, sizeof(pid)); /* without memory it has no CPU time in this interval */
}

/* A text file that cannot be written now may be written later: the disk is full, or the folder comes back. */
static void write_textfile(struct serve *s)
{
	struct err e = {0};
	struct out *out;

	s->text.len = 0;
	if (met_write(s->metrics, MET_PROMETHEUS, &s->text)) {
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	} else if (!out_open(s->run.o->textfile, false, &out, &e)) {
		out_share(out);
		out_write(out, s->text.data, s->text.len);
		out_commit(out, &e);
	}
	if (e.code && strcmp(e.why, s->failed.why) != 0)
		cmd_warn("%s; mxbpf tries again after each interval", e.why);
	s->failed = e;
}

/* ---- the last seconds */

static void put_pids(const struct serve *s, struct serve_dump *d)
{
	size_t i, len = 0;
	int n = 0;

	for (i = 0; i < buf_count(&s->pids, pid_t) && n >= 0 && len + (size_t)n < sizeof(d->pids) - 16; i++) {
		n = snprintf(d->pids + len, sizeof(d->pids) - len, "%s%d", len ? "," : "", *buf_at(&s->pids, pid_t, i));
		len += n > 0 ? (size_t)n : 0;
	}
}

/* A place in a ring, because the thread may still read the one before. */
static void push(struct serve *s, const struct serve_dump *d, uint64_t ns)
{
	struct serve_dump *to = &s->dumps[s->ndumps++ % SERVE_DUMPS];

	*to = *d;
	to->ns = ns;
}

void serve_write_last(struct serve *s, const struct serve_dump *d, uint64_t ns)
{
	push(s, d, ns);
	ses_flight_cut(s->run.ses);
}

bool serve_record(struct serve *s, const struct serve_dump *d, uint64_t ns)
{
	if (!ses_trace_next(s->run.ses, ns))
		return false;
	push(s, d, UINT64_MAX);
	return true;
}

static int on_trace(void *ctx, int fd)
{
	struct serve *s = ctx;

	return serve_write(s, fd, &s->dumps[s->nwritten++ % SERVE_DUMPS]);
}

static enum run_signal on_asked(void *ctx, int sig)
{
	static const struct serve_dump signal = {.word = "signal", .why = "SIGUSR1 asked for it"};
	struct serve *s = ctx;

	switch (sig) {
	case SIGUSR1:
		if (s->started && s->run.o->flight_ns)
			serve_write_last(s, &signal, s->run.o->flight_ns);
		return RUN_TAKEN;
	case SIGUSR2:
		return RUN_TAKEN;
	default:
		s->reload = sig == SIGHUP;
		s->ends = sig != SIGHUP;
		return RUN_ENDS;
	}
}

/* The recording of an iteration is written later, by another thread, when its process may have ended. */
static void put_slow(struct serve *s, const struct mdl_interval *in, const struct trg_slow *slow, struct serve_dump *d)
{
	if (!slow)
		return;
	d->slow = (struct met_recorded){
		.series = met_iterations(s->metrics, in, slow->tgid),
		.dur_ns = slow->dur_ns,
		.unix_ns = in->session->start_unix_ns + slow->end_ns - in->session->start_mono_ns,
	};
}

static void take_slow(struct serve *s)
{
	unsigned i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->nslow; i++)
		met_record(s->metrics, &s->slow[i]);
	s->nslow = 0;
	pthread_mutex_unlock(&s->lock);
}

/*
 * Conditions that become true together are written once, under the first of them. What becomes true when a session ends
 * could not be written any more; then conditions only take what the next session goes on with.
 */
static void serve_judge(struct serve *s, const struct mdl_interval *in)
{
	struct serve_dump d = {.word = ""};
	struct mdl_interval last = *in;
	char why[TRG_WHY_BYTES];
	unsigned i;

	for (i = 0; i < s->run.o->non; i++) {
		if (s->detached) {
			last.npids = buf_count(&s->pids, pid_t);
			trg_see(s->on[i], &last);
			continue;
		}
		if (!trg_judge(s->on[i], in, why) || *d.word)
			continue;
		snprintf(d.word, sizeof(d.word), "%s", trg_word(s->on[i]));
		snprintf(d.why, sizeof(d.why), "%s", why);
		if (trg_is_hang(s->on[i]))
			put_pids(s, &d);
		put_slow(s, in, trg_slow(s->on[i]), &d);
	}
	if (*d.word)
		serve_write_last(s, &d, s->run.o->flight_ns);
}

/* ---- intervals */

/* An interval of --interval --reset: the model has what happened in it. */
static int on_interval(void *ctx, const struct mdl_session *about, struct mdl *m)
{
	struct serve *s = ctx;
	struct mdl_interval in = {.session = about, .model = m, .now_ns = clock_ns(CLOCK_MONOTONIC)};
	struct err e = {0};

	if (!s->detached) {
		s->pids.len = 0;
		ses_each_process(s->run.ses, add_process, s);
	}
	in.pids = (const pid_t *)s->pids.data;
	in.npids = s->detached ? 0 : buf_count(&s->pids, pid_t);
	nvml_take(s->nvml, in.npids, &s->gpus);
	in.gpus = &s->gpus;
	if (cost_take(m, about) || met_take(s->metrics, &in)) {
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
		return cmd_fail(&e);
	}
	in.found = met_found(s->metrics, &in.nfound);
	take_slow(s);
	serve_judge(s, &in);
	if (s->run.o->textfile)
		write_textfile(s);
	serve_push(s, &in);
	s->nintervals++;
	s->about = about;
	s->model = m;
	serve_stream(s);
	serve_answer(s);
	s->model = NULL;
	return CMD_OK;
}

/* Signals are read by the caller. */
static bool on_input(void *ctx)
{
	struct serve *s = ctx;
	uint64_t expired;

	if (read(s->timer, &expired, sizeof(expired)) == sizeof(expired) && s->watchdog)
		notify_send("WATCHDOG=1");
	serve_answer(s);
	return false;
}

static bool on_say(void *ctx, enum ses_level level, const char *text)
{
	return false;
}

static bool chooses_none(const struct job_choice *c)
{
	return !c->npids && !c->comm && !c->cgroup;
}

/* Sets the options that the user has not given. */
static void set_defaults(struct cmd_opts *o)
{
	struct ses_opts *so = &o->ses;

	so->interval_ns = so->interval_ns ? so->interval_ns : INTERVAL_NS;
	so->max_overhead = so->exact ? SES_NO_LIMIT : so->max_overhead ? so->max_overhead : MAX_OVERHEAD;
	so->max_bytes = so->max_bytes ? so->max_bytes : MAX_BYTES;
	so->flight_bytes = !o->flight_ns ? 0 : so->flight_bytes ? so->flight_bytes : FLIGHT_BYTES;
	if (!so->ring_bytes && so->max_overhead <= FEW_EVENTS)
		so->ring_bytes = RING_BYTES;
	so->slices = true;
	so->reset = true;
	so->only_intervals = true;
	so->wait = true;
	so->renews = true;
	so->choice.host |= chooses_none(&so->choice);
	o->by = VIEW_BY_PROCESS;
	o->keep = o->keep ? o->keep : KEEP;
	o->trace_dir = o->trace_dir ? o->trace_dir : ".";
}

/* Ticks for the watchdog, and because the server must hear from this thread although no interval ends. */
static int open_timer(struct serve *s, struct err *e)
{
	const uint64_t watchdog = notify_watchdog_ns(), ns = watchdog && watchdog < TICK_NS ? watchdog : TICK_NS;
	const struct timespec every = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	struct epoll_event ev = {.events = EPOLLIN};

	s->watchdog = watchdog;
	s->wake = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->wake < 0 || s->timer < 0 || timerfd_settime(s->timer, 0, &(struct itimerspec){every, every}, NULL) ||
	    epoll_ctl(s->wake, EPOLL_CTL_ADD, s->timer, &ev))
		return err_set(e, ERR_RUNTIME, -errno, "cannot wait for events (epoll, timerfd): %s", strerror(errno));
	return 0;
}

/* What the conditions of the session before know goes on: a job may hang while the options are read again. */
static int open_conditions(struct serve *s, const struct cmd_opts *o, struct err *e)
{
	struct trg *new[CMD_ON_MAX] = {NULL};
	unsigned i, k;

	for (i = 0; i < o->non && !e->code; i++)
		trg_parse(o->on[i], &new[i], e);
	for (i = 0; i < CMD_ON_MAX; i++)
		for (k = 0; k < CMD_ON_MAX && new[i]; k++)
			if (s->on[k])
				trg_continue(new[i], s->on[k]);
	for (i = 0; i < CMD_ON_MAX; i++) {
		trg_free(s->on[i]);
		s->on[i] = new[i];
	}
	return e->code;
}

/*
 * Returns whether `serve` goes on without the process that could not be watched or has ended. It does not if the user
 * named processes by number, because then there may be no other.
 */
static bool is_unfit(struct serve *s, const struct err *e)
{
	struct tgt *t = s->run.ses ? ses_target(s->run.ses) : NULL;
	const bool its_fault = e->cls == ERR_TARGET || e->cls == ERR_USAGE;
	struct tgt_usage u;

	if (!t || !its_fault || s->run.o->ses.choice.npids)
		return false;
	if (!tgt_peek_usage(tgt_pid(t), &u) && !tgt_gone(t)) { /* else another process may have its number */
		s->unfit[s->nunfit++ % SERVE_UNFIT_MAX] = (struct ses_unfit){tgt_pid(t), u.started};
		cmd_warn("process %d (%s) cannot be watched: %s; mxbpf waits for others", tgt_pid(t), tgt_comm(t),
			 e->why);
	}
	return true;
}

/* From here until SIGHUP or the end. Returns an exit code. */
static int serve_once(struct serve *s, const struct cmd_opts *given)
{
	struct cmd_opts own = *given;
	const struct run_live live = {.ctx = s,
				      .fd = s->wake,
				      .second = on_interval,
				      .input = on_input,
				      .say = on_say,
				      .trace = on_trace,
				      .asked = on_asked};
	struct err e = {0}, ended = {0};
	int code;

	set_defaults(&own);
	met_name_jobs(s->metrics, own.job_names, own.njob_names);
	own.ses.unfit = s->unfit;
	own.ses.nunfit = s->nunfit < SERVE_UNFIT_MAX ? s->nunfit : SERVE_UNFIT_MAX;
	s->reload = s->ends = s->anew = s->detached = false;
	s->ndumps = s->nwritten = 0;
	s->asked = SERVE_IDLE;
	if (open_conditions(s, &own, &e) || (own.textfile && out_check(own.textfile, &e)) ||
	    (own.stream && stream_open(own.stream, &s->stream, &e)) || serve_push_open(s, &own, &e)) {
		stream_close(s->stream);
		s->stream = NULL;
		return cmd_fail(&e);
	}
	notify_send("READY=1");
	if (!run_prepare(&s->run, &own, NULL, &live, &e) && !run_start(&s->run, &e)) {
		s->started = true;
		nvml_take(s->nvml, true, &s->gpus); /* so that GPUs have their names when the first interval ends */
		run_wait(&s->run);
		s->anew = ses_worn(s->run.ses);
		s->started = false;
		s->detached = true;
		if (!ses_stop(s->run.ses, &ended))
			ses_interval(s->run.ses);
	} else {
		s->anew = is_unfit(s, &e);
	}
	if (s->anew || s->ends || s->reload) /* also while it waited for the first process, which is no error */
		e = (struct err){0};
	code = e.code ? cmd_fail(&e) : ended.code ? cmd_fail(&ended) : ses_failed(s->run.ses);
	run_free(&s->run);
	met_name_jobs(s->metrics, NULL, 0);
	stream_close(s->stream);
	s->stream = NULL;
	return code;
}

/* A library enters only processes that the user has chosen, or whose jobs are named. */
static int check_agent(const struct cmd_opts *o, struct err *e)
{
	const struct ses_opts *so = &o->ses;

	if (!chooses_none(&so->choice) || (!so->agent && (!so->gpu || so->gpu_jobs)))
		return 0;
	return err_set(e, ERR_USAGE, -EINVAL, "serve: %s loads a library into processes, so say into which ones: %s",
		       so->agent ? "--agent" : "--gpu",
		       so->agent ? "choose them by --comm, --cgroup or --pid"
				 : "--gpu-jobs 'train*' names jobs ('*': all)");
}

/* Reads the file of options. If it is wrong after SIGHUP, the options that were read before stay. */
static int serve_load(const struct cmd_opts *given, struct config *f, struct cmd_opts *o, bool again)
{
	struct config new = {.text = {0}};
	struct cmd_opts read = *given;
	struct err e = {0};

	if ((given->config && config_read(&new, given, given->config, &read, &e)) || check_agent(&read, &e) ||
	    cmd_limit_check(&read, &e)) {
		config_fini(&new);
		if (!again)
			return cmd_fail(&e);
		cmd_warn("%s; the options stay as they were", e.why);
		return CMD_OK;
	}
	if (!given->config) {
		*o = *given;
		return CMD_OK;
	}
	config_fini(f);
	*f = new;
	*o = read;
	return CMD_OK;
}

/* Returns false if a thread stays that the driver of GPUs holds. */
static bool serve_fini(struct serve *s)
{
	const bool ended = nvml_close(s->nvml);
	unsigned i;

	serve_close(s);
	serve_push_close(s);
	met_free(s->metrics);
	for (i = 0; i < CMD_ON_MAX; i++)
		trg_free(s->on[i]);
	buf_fini(&s->pids);
	buf_fini(&s->text);
	if (s->timer >= 0)
		close(s->timer);
	if (s->wake >= 0)
		close(s->wake);
	return ended;
}

int cmd_serve(const struct cmd_opts *given)
{
	struct serve s = {.metrics = met_new(),
			  .nvml = nvml_open(),
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .wake = -1,
			  .timer = -1,
			  .due = -1,
			  .written = -1};
	struct config f = {.text = {0}};
	struct cmd_opts o;
	struct err e = {0};
	int code;

	cmd_log_as_daemon();
	if (!s.metrics)
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else
		open_timer(&s, &e);
	code = e.code ? cmd_fail(&e) : serve_load(given, &f, &o, false);
	while (!code) {
		code = s.http || !serve_listen(&s, &o, &e) ? serve_once(&s, &o) : cmd_fail(&e);
		if (code || s.ends || (!s.reload && !s.anew))
			break;
		if (!s.reload)
			continue;
		notify_send("RELOADING=1");
		code = serve_load(given, &f, &o, true);
	}
	notify_send("STOPPING=1");
	config_fini(&f);
	if (!serve_fini(&s))
		_exit(code); /* all is written, and exit() may never return */
	return code;
}
