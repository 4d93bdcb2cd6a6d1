// SPDX-License-Identifier: Apache-2.0
/* `mxbpf top`: a session whose intervals are seconds, on a screen, or with --batch as text. */
#include "top/top.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cmd/run.h"
#include "now/now.h"

#define SECOND_NS   1000000000ull
#define END_MS	    1000
#define TRACE_NS    (5 * SECOND_NS)
#define BATCH_WIDTH 200
#define BATCH_ROWS  100 /* of a view, with the lines about the job */
#define POPUP_BYTES (1u << 20)

struct live {
	struct top top;
	struct run *run;	    /* borrowed */
	struct top_screen *screen;  /* NULL: --batch */
	int wake;		    /* epoll: a signal or the screen; -1: only signals are awaited */
	struct buf pids;	    /* pid_t of the processes that are watched */
	char trace[CMD_NAME_BYTES]; /* the file of the last trace */
	bool wrote;
};

/* ---- seconds */

static void add_process(void *ctx, uint32_t tgid, const struct plan *plan)
{
	struct live *l = ctx;
	const pid_t pid = (pid_t)tgid;

	buf_put(&l->pids, &pid, sizeof(pid)); /* without memory it has no CPU time in this second */
}

/* The table of --table, else operators, then processes and jobs if there are several. */
static int print_frame(struct live *l)
{
	struct top_choice c = {.width = BATCH_WIDTH, .height = BATCH_ROWS};
	struct top_page page = {.rows = 0};
	const bool table = l->top.table.shown;
	int err = 0;

	top_choice_init(&c);
	for (c.view = 0; c.view < TOP_VIEWS && !err; c.view++) {
		if (table != (c.view == TOP_TABLE) ||
		    (!table && c.view && (c.view == TOP_THREADS || top_rows(&l->top, c.view) < 2)))
			continue;
		c.bare = c.view && !table;
		err = top_frame(&l->top, &c, &page);
		if (!err && fwrite(page.text.data, 1, page.text.len, stdout) != page.text.len)
			err = -EIO;
	}
	buf_fini(&page.text);
	return !err && (puts("") == EOF || fflush(stdout)) ? -EIO : err;
}

static int cmd_top_take(struct live *l, const struct mdl_session *about, struct mdl *m)
{
	struct mdl_interval in = {.session = about, .model = m};

	l->pids.len = 0;
	ses_each_process(l->run->ses, add_process, l);
	in.pids = (const pid_t *)l->pids.data;
	in.npids = buf_count(&l->pids, pid_t);
	return top_take(&l->top, &in);
}

/* An interval of --interval --reset: the model has what happened in it. */
static int on_second(void *ctx, const struct mdl_session *about, struct mdl *m)
{
	struct live *l = ctx;
	struct err e = {0};
	int err;

	if (l->screen)
		top_screen_lock(l->screen);
	err = cmd_top_take(l, about, m);
	if (l->screen)
		top_screen_unlock(l->screen);
	else if (!err)
		err = print_frame(l);
	if (!err)
		return CMD_OK;
	err_set(&e, ERR_RUNTIME, err, err == -EIO ? "cannot write to standard output" : "out of memory");
	return cmd_fail(&e);
}

/* ---- p: Python stacks */

struct stacks {
	struct session *ses;
	struct buf *text;
	uint32_t pid; /* 0: all processes */
};

static void put_process(void *ctx, uint32_t tgid, const struct plan *plan)
{
	const struct stacks *to = ctx;
	const struct mdl_labels *l = mdl_labels_of(ses_about(to->ses), tgid);
	struct tgt *t = NULL;
	struct err e = {0};

	if ((to->pid && to->pid != tgid) || to->text->len > POPUP_BYTES || tgt_open((pid_t)tgid, &t, &e))
		return;
	buf_printf(to->text, "process %" PRIu32 " (%s)", tgid, tgt_comm(t));
	if (l && l->numbers[MDL_RANK] != MDL_NO_NUMBER)
		buf_printf(to->text, ", rank %" PRIu32, l->numbers[MDL_RANK]);
	buf_printf(to->text, "\n");
	if (now_python_text(t, plan->adp->module_file, to->text, &e))
		buf_printf(to->text, "  %s\n", e.why);
	tgt_close(t);
}

static void show_stacks(void *ctx, uint32_t pid, struct buf *text)
{
	const struct live *l = ctx;
	struct stacks to = {l->run->ses, text, pid};

	buf_printf(text, "Python stacks at the moment of the key, innermost call first; Escape closes\n");
	ses_each_process(l->run->ses, put_process, &to);
}

/* ---- t: a trace */

/* It stays until there is something else to say. */
static void say(const struct live *l, const char *what, const char *about)
{
	char text[sizeof(((struct err *)NULL)->why) + 64];

	snprintf(text, sizeof(text), "%s%s", what, about);
	top_screen_say(l->screen, true, text);
}

static void begin_trace(void *ctx, uint32_t pid, struct buf *text)
{
	struct live *l = ctx;

	if (!ses_trace_next(l->run->ses, TRACE_NS))
		return;
	cmd_own_name(l->run->o, "pftrace", l->trace);
	say(l, "the next five seconds go to ", l->trace);
}

/* In a thread of the session. */
static int on_trace(void *ctx, int fd)
{
	struct live *l = ctx;
	struct err e = {0};

	run_trace_to(l->run, fd, l->trace, &e);
	l->wrote = !e.code;
	say(l, l->wrote ? "wrote " : "", l->wrote ? l->trace : e.why);
	return e.code ? (int)e.cls : CMD_OK;
}

/* Keys that need the session. */
static const struct top_action actions[] = {
	{'p', "p", "Python stacks now, of the chosen row's process or of all", show_stacks},
	{'t', "t", "write a trace of the next five seconds into this directory", begin_trace},
	{0},
};

/* ---- the session */

static bool on_input(void *ctx)
{
	struct live *l = ctx;

	return l->screen && top_screen_serve(l->screen, l);
}

/* Returns whether the message was shown; else it goes to stderr. */
static bool on_say(void *ctx, enum ses_level level, const char *text)
{
	struct live *l = ctx;

	if (l->screen && level <= SES_STAGE)
		top_screen_say(l->screen, level == SES_WARNING, text);
	return l->screen;
}

static int begin_screen(struct live *l, struct err *e)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(e, ERR_USAGE, -EINVAL, "top needs a terminal; add --batch for plain text");
	if (top_screen_open(&l->screen, &l->top, actions, e))
		return e->code;
	l->wake = epoll_create1(EPOLL_CLOEXEC);
	if (l->wake < 0 || epoll_ctl(l->wake, EPOLL_CTL_ADD, l->run->signals, &ev) ||
	    epoll_ctl(l->wake, EPOLL_CTL_ADD, top_screen_fd(l->screen), &ev))
		return err_set(e, ERR_RUNTIME, -errno, "cannot wait for keys: %s; add --batch for plain text",
			       strerror(errno));
	ses_wake_by(l->run->ses, l->wake);
	return 0;
}

/* A process that is killed loses its memory, which ends the session, a moment before it has ended. */
static void say_end(const struct tgt *t)
{
	struct pollfd end = {.fd = tgt_pidfd(t), .events = POLLIN};

	if (!tgt_gone(t))
		return;
	poll(&end, 1, END_MS);
	fprintf(stderr, "process %d %s\n", tgt_pid(t), tgt_alive(t) ? "has executed another program" : "has ended");
}

int cmd_top(const struct cmd_opts *o)
{
	struct cmd_opts own = *o;
	struct run r;
	struct live l = {.wake = -1, .run = &r};
	const struct run_live live = {
		.ctx = &l, .fd = -1, .second = on_second, .input = on_input, .say = on_say, .trace = on_trace};
	struct err e = {0}, ended = {0};
	int code;

	own.ses.interval_ns = SECOND_NS;
	own.ses.reset = true;
	own.ses.only_intervals = true;
	own.quiet = true;
	own.by = VIEW_BY_THREAD;
	l.top.one_job = o->ses.choice.npids == 1;
	l.top.table.of = o->table;
	l.top.table.shown = o->table;
	if (run_prepare(&r, &own, NULL, &live, &e) || (!o->batch && begin_screen(&l, &e)))
		goto out;
	if (!run_start(&r, &e)) {
		run_wait(&r);
		ses_stop(r.ses, &ended);
	}
out:
	top_screen_close(l.screen);
	code = e.code ? cmd_fail(&e) : ended.code ? cmd_fail(&ended) : ses_failed(r.ses);
	if (l.wrote)
		fprintf(stderr, "wrote %s\n", l.trace);
	if (!code)
		say_end(ses_target(r.ses));
	run_free(&r);
	top_fini(&l.top);
	buf_fini(&l.pids);
	if (l.wake >= 0)
		close(l.wake);
	return code;
}
