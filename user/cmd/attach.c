// SPDX-License-Identifier: Apache-2.0
/* `mxbpf --pid` and `mxbpf record`: the same session, with tables or a recording at its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/live.h"

static int write_trace(struct live *l)
{
	struct rec_reader *r = NULL;
	struct err e = {0};
	int code;

	if (rec_reader_open(rec_writer_fd(l->writer), &r, &e))
		return cmd_fail(&e);
	code = cmd_write_trace(l->o, l->o->trace, r, l->model);
	rec_reader_close(r);
	return code;
}

/* Why it may have been that no call was seen. */
static int nothing_seen(const struct live *l)
{
	double s = (double)l->session.duration_ns / 1e9;
	char stopped[LIVE_STOPPED_BYTES];

	if (live_stopped(l, stopped))
		cmd_warn("attached, but nothing was seen in %.1f s: %s", s, stopped);
	else if (l->o->iterations)
		cmd_warn("attached to process %u, but nothing was seen: %llu iterations ended in %.1f s, %llu of them "
			 "were "
			 "sampled; what ends one is %s",
			 l->session.pid, (unsigned long long)l->session.iterations,
			 s + (double)l->session.paused_ns / 1e9, (unsigned long long)l->session.sampled_iterations,
			 l->plan.adp->iteration_title);
	else if (l->session.hits)
		cmd_warn("attached to process %u, but nothing was seen: no call began and ended in %.1f s",
			 l->session.pid, s);
	else
		cmd_warn("attached to process %u, but nothing was seen: it called none of the probed functions in "
			 "%.1f s%s",
			 l->session.pid, s, tgt_alive(l->target) ? "" : ", and has ended");
	return CMD_NOTHING_SEEN;
}

static void say_recording(const struct live *l)
{
	const struct mxbpf_loss *loss = &l->session.loss;
	char n[6][32];

	if (l->o->quiet)
		return;
	fprintf(stderr, "wrote %s: %s of %s events\n", l->recording, fmt_count(loss->stored, n[0]),
		fmt_count(loss->attempted, n[1]));
	fprintf(stderr, "%s dropped, %s names truncated, %s unreadable, %s unmatched\n", fmt_count(loss->dropped, n[2]),
		fmt_count(loss->truncated, n[3]), fmt_count(loss->unreadable, n[4]), fmt_count(loss->unmatched, n[5]));
}

/* Of the same spans, as events told them and as the kernel added them up. */
static int print_both(const struct live *l, struct out *out)
{
	struct mdl_session added_up = l->session; /* shallow */
	int code = cmd_print_tables(l->o, &l->session, l->model, 1, out);

	added_up.stats = true;
	return code ? code : cmd_print_tables(l->o, &added_up, l->beside, 2, out);
}

static int print_tables(struct live *l)
{
	struct out *out;
	int code;

	if (l->o->interval_ns) {
		code = live_dump(l);
		out = l->tables;
		l->tables = NULL;
		return out ? cmd_close_tables(l->o, out, code) : code;
	}
	code = cmd_open_tables(l->o, false, &out);
	if (code)
		return code;
	code = l->beside ? print_both(l, out) : cmd_print_tables(l->o, &l->session, l->model, 0, out);
	return cmd_close_tables(l->o, out, code);
}

/* A failed output does not keep the others from being written; the first failure, or `stopped`, is the exit code. */
static int results(struct live *l, int stopped)
{
	int code = stopped, err;

	if (l->dump_code) {
		code = l->dump_code; /* the output takes no more, as was said */
	} else if (!l->recording) {
		err = print_tables(l);
		code = code ? code : err;
	} else if (!stopped) {
		say_recording(l);
	}
	if (l->o->trace) {
		if (!code)
			live_signals_results(l, LIVE_PRINTED);
		err = write_trace(l);
		code = code ? code : err;
	}
	return code;
}

/* What comes to stdout then stands behind all that the command wrote. Its status; -1: it does not run. */
static int end_of_command(struct live *l)
{
	if (!l->launch.pid || l->launch.go >= 0 || l->launch.failed >= 0)
		return -1;
	live_follow_free(l); /* lets it go on */
	live_signals_hold(l, true);
	return launch_wait(&l->launch, l->signals);
}

/* A target that ends while it is looked at fails in any of many ways, and all of them mean the same. */
static int not_started(const struct live *l, const struct err *e)
{
	const struct tgt *t = l->target;
	struct err ended = {0};

	if (l->o->command || !t || !tgt_gone(t) || e->cls == ERR_USAGE)
		return cmd_fail(e);
	err_set(&ended, ERR_TARGET, -ESRCH, "process %d %s before the window began: nothing was seen", tgt_pid(t),
		tgt_alive(t) ? "became another program" : "ended");
	cmd_fail(&ended);
	return CMD_NOTHING_SEEN;
}

static int run(const struct cmd_opts *o, const char *recording)
{
	char stopped[LIVE_STOPPED_BYTES];
	int code, ended = -1;
	struct err e = {0};
	struct live l;

	if (live_prepare(&l, o, recording, &e) || live_start(&l, &e)) {
		code = not_started(&l, &e);
		goto out;
	}
	if (!o->command && live_stopped(&l, stopped)) /* a command that waits for mxbpf goes on by itself */
		cmd_warn("%s", stopped);
	live_wait(&l);
	code = live_stop(&l, &e) ? cmd_fail(&e) : CMD_OK;
	ended = end_of_command(&l);
	live_signals_results(&l, code ? LIVE_STOPPING : LIVE_RECORDED);
	code = results(&l, code);
	if (!code && o->ops)
		code = live_ops_code(&l);
	if (!code && !l.session.loss.attempted)
		code = nothing_seen(&l);
	else if (!o->command && live_stopped(&l, stopped))
		cmd_warn("at the end of the window, %s", stopped);
out:
	ended = ended < 0 ? end_of_command(&l) : ended;
	live_free(&l);
	return ended > 0 ? ended : code;
}

int cmd_attach(const struct cmd_opts *o)
{
	return run(o, NULL);
}

int cmd_record(const struct cmd_opts *o)
{
	char stamp[32], name[128];
	time_t now = time(NULL);
	struct tm tm;

	if (o->output)
		return run(o, o->output);
	gmtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(name, sizeof(name), "mxbpf-%d-%s.mxd", o->pid ? o->pid : getpid(), stamp);
	return run(o, name);
}
