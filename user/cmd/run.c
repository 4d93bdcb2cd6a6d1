// SPDX-License-Identifier: Apache-2.0
#include "cmd/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/opts.h"

#define NS_PER_S 1000000000ull

/* A terminal that shows a line of progress, which the next one replaces. A dumb one would show the escapes. */
static bool on_terminal(const struct run *r)
{
	const char *term = getenv("TERM");

	return !r->o->quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

/* Erases the line of progress before something else is printed. */
static void clear_line(const struct run *r)
{
	if (on_terminal(r))
		fprintf(stderr, "\r\033[K");
}

static void on_tell(void *ctx, enum ses_level level, const char *text)
{
	const struct run *r = ctx;

	if (r->live && r->live->say(r->live->ctx, level, text))
		return;
	clear_line(r);
	if (level == SES_WARNING) {
		cmd_warn("%s", text);
		return;
	}
	if (r->o->quiet && level != SES_DETAIL)
		return;
	cmd_say(level == SES_DETAIL ? CMD_DEBUG : CMD_INFO, "%s%s", text,
		level == SES_STAGE && !cmd_logs_as_daemon() ? "; Ctrl-C ends" : "");
}

static void on_begin(void *ctx)
{
	signals_hold();
}

static void on_second(void *ctx)
{
	struct run *r = ctx;
	char events[32], lost[32];
	struct mxbpf_loss loss;

	if (!on_terminal(r))
		return;
	ses_loss(r->ses, &loss);
	fprintf(stderr, "\r\033[K%llu s  %s events/s  lost %s", (unsigned long long)(ses_window_ns(r->ses) / NS_PER_S),
		fmt_count(loss.attempted - r->events, events), fmt_count(loss.dropped, lost));
	fflush(stderr);
	r->events = loss.attempted;
}

static int on_tables(void *ctx, const struct mdl_session *about, struct mdl *m)
{
	struct run *r = ctx;
	int code;

	if (r->live)
		return r->live->second(r->live->ctx, about, m);
	code = r->tables ? CMD_OK : cmd_open_tables(r->o, true, &r->tables);
	return code ? code : cmd_print_tables(r->o, about, m, ++r->ntables, r->tables);
}

/* Reads the signal. One that stays pending would count as the second Ctrl-C. */
static bool on_signal(void *ctx)
{
	struct run *r = ctx;
	enum run_signal what = RUN_USUAL;
	struct signalfd_siginfo taken;

	if (r->live && r->live->input(r->live->ctx))
		return true;
	if (read(r->signals, &taken, sizeof(taken)) != sizeof(taken))
		return false;
	if (r->live && r->live->asked)
		what = r->live->asked(r->live->ctx, (int)taken.ssi_signo);
	if (what != RUN_USUAL)
		return what == RUN_ENDS;
	if (taken.ssi_signo == SIGUSR1 || taken.ssi_signo == SIGUSR2) {
		ses_pause(r->ses, taken.ssi_signo == SIGUSR1);
		return false;
	}
	signals_took((int)taken.ssi_signo);
	ses_forward(r->ses, &taken);
	return true;
}

static int on_trace(void *ctx, int fd)
{
	struct run *r = ctx;

	return r->live ? r->live->trace(r->live->ctx, fd) : run_trace_part(r, fd);
}

int run_prepare(struct run *r, const struct cmd_opts *o, const char *recording, const struct run_live *live,
		struct err *e)
{
	const struct ses_ui ui = {.ctx = r,
				  .tell = on_tell,
				  .begins = on_begin,
				  .second = on_second,
				  .tables = on_tables,
				  .trace = on_trace,
				  .woken = on_signal,
				  .wake_fd = -1};
	struct epoll_event ev = {.events = EPOLLIN};

	*r = (struct run){.o = o, .so = o->ses, .live = live, .signals = -1};
	r->so.recording = recording;
	if (!live)
		cmd_remedy(o, recording, &r->so.remedy);
	r->so.command_to_stderr = o->format != CMD_TABLE && !recording && !o->output;
	r->so.by_thread = o->by == VIEW_BY_THREAD;
	r->so.by_range = o->by == VIEW_BY_RANGE;
	r->so.by_process = view_by_processes(o->by);
	if (!o->ses.command)
		r->signals = signals_open(live && live->asked, e); /* held from the start */
	if (e->code || cmd_check_outputs(o, recording, e) || ses_open(&r->so, &ui, &r->ses, e))
		return e->code;
	cmd_limit(o);
	if (o->ses.command)
		r->signals = signals_open(true, e);
	if (e->code)
		return e->code;
	if (live && live->fd >= 0 && epoll_ctl(live->fd, EPOLL_CTL_ADD, r->signals, &ev))
		return err_set(e, ERR_RUNTIME, -errno, "cannot wait for signals (epoll): %s", strerror(errno));
	ses_wake_by(r->ses, live && live->fd >= 0 ? live->fd : r->signals);
	if (on_terminal(r) && !o->ses.command) { /* seconds, if there are thousands of probes */
		fprintf(stderr, "attaching ...");
		fflush(stderr);
	}
	ses_prepare(r->ses, e);
	if (e->code)
		clear_line(r);
	return e->code;
}

int run_start(struct run *r, struct err *e)
{
	int err = ses_start(r->ses, e);

	if (err)
		clear_line(r);
	return err;
}

void run_wait(struct run *r)
{
	ses_wait(r->ses);
	clear_line(r);
}

void run_free(struct run *r)
{
	ses_free(r->ses);
	free(r->so.remedy.command);
	free(r->so.remedy.lost);
	out_abort(r->tables);
	if (r->signals >= 0)
		close(r->signals);
}
