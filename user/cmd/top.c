// SPDX-License-Identifier: Apache-2.0
/* `mxbpf top`: a session whose intervals are seconds, on a screen, or with --batch as text. */
#include "top/top.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cmd/run.h"

#define SECOND_NS   1000000000ull
#define END_MS	    1000
#define BATCH_WIDTH 200
#define BATCH_ROWS  40 /* with the lines about the job */

struct live {
	struct top top;
	struct top_screen *screen; /* NULL: --batch */
	int wake;		   /* epoll: a signal or a key; -1: only signals are awaited */
};

static int print_frame(struct live *l)
{
	const struct top_choice c = {.width = BATCH_WIDTH, .height = BATCH_ROWS};
	struct buf text = {0};
	unsigned head, rows;
	int err = top_frame(&l->top, &c, &text, &head, &rows);

	if (!err && (fwrite(text.data, 1, text.len, stdout) != text.len || puts("") == EOF || fflush(stdout)))
		err = -EIO;
	buf_fini(&text);
	return err;
}

/* An interval of --interval --reset: the model has what happened in it. */
static int on_second(void *ctx, const struct mdl_session *about, struct mdl *m)
{
	struct live *l = ctx;
	struct err e = {0};
	int err = top_take(&l->top, about, m);

	if (!err && l->screen)
		top_screen_draw(l->screen, &l->top);
	else if (!err)
		err = print_frame(l);
	if (!err)
		return CMD_OK;
	err_set(&e, ERR_RUNTIME, err, err == -EIO ? "cannot write to standard output" : "out of memory");
	return cmd_fail(&e);
}

static bool on_input(void *ctx)
{
	struct live *l = ctx;

	return l->screen && top_screen_keys(l->screen, &l->top);
}

/* Returns whether the message was shown; else it goes to stderr. */
static bool on_say(void *ctx, enum ses_level level, const char *text)
{
	struct live *l = ctx;

	if (l->screen && level <= SES_STAGE)
		top_screen_say(l->screen, &l->top, level == SES_WARNING, text);
	return l->screen;
}

static int await_keys(struct live *l, const struct run *r, struct err *e)
{
	struct epoll_event ev = {.events = EPOLLIN};

	l->wake = epoll_create1(EPOLL_CLOEXEC);
	if (l->wake < 0 || epoll_ctl(l->wake, EPOLL_CTL_ADD, r->signals, &ev) ||
	    epoll_ctl(l->wake, EPOLL_CTL_ADD, STDIN_FILENO, &ev))
		return err_set(e, ERR_RUNTIME, -errno, "cannot wait for keys: %s; add --batch for plain text",
			       strerror(errno));
	ses_wake_by(r->ses, l->wake);
	return 0;
}

static int begin_screen(struct live *l, const struct run *r, struct err *e)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(e, ERR_USAGE, -EINVAL, "top needs a terminal; add --batch for plain text");
	return await_keys(l, r, e) || top_screen_open(&l->screen, e) ? e->code : 0;
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
	struct live l = {.wake = -1};
	const struct run_live live = {.ctx = &l, .second = on_second, .input = on_input, .say = on_say};
	struct err e = {0}, ended = {0};
	struct run r;
	int code;

	own.ses.interval_ns = SECOND_NS;
	own.ses.reset = true;
	own.quiet = true;
	if (run_prepare(&r, &own, NULL, &e) || (!o->batch && begin_screen(&l, &r, &e)))
		goto out;
	r.live = &live;
	if (l.screen)
		top_screen_draw(l.screen, &l.top);
	if (!run_start(&r, &e)) {
		run_wait(&r);
		ses_stop(r.ses, &ended);
	}
out:
	top_screen_close(l.screen);
	code = e.code ? cmd_fail(&e) : ended.code ? cmd_fail(&ended) : ses_failed(r.ses);
	if (!code)
		say_end(ses_target(r.ses));
	run_free(&r);
	top_fini(&l.top);
	if (l.wake >= 0)
		close(l.wake);
	return code;
}
