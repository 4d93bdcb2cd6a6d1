// SPDX-License-Identifier: Apache-2.0
/* `mxbpf --pid` and `mxbpf record`: the same session, with tables or a recording at its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/run.h"

static int write_trace(struct run *r)
{
	struct rec_reader *events = NULL;
	struct err e = {0};
	int code;

	if (run_open_events(ses_events_fd(r->ses), &events, &e))
		return cmd_fail(&e);
	code = cmd_write_trace(r->o, r->so.trace, events, ses_model(r->ses));
	rec_reader_close(events);
	return code;
}

/* Tells the likely reason why no call was recorded. */
static int nothing_seen(const struct run *r)
{
	const struct mdl_session *about = ses_about(r->ses);
	double s = (double)about->duration_ns / 1e9;
	char stopped[SES_STOPPED_BYTES];

	if (ses_stopped(r->ses, stopped))
		cmd_warn("attached, but no event was recorded in %.1f s: %s", s, stopped);
	else if (r->so.iterations)
		cmd_warn("attached to process %u, but no event was recorded: %llu iterations ended in %.1f s, %llu of "
			 "them "
			 "were recorded; an iteration ends with %s",
			 about->pid, (unsigned long long)about->iterations, s + (double)about->paused_ns / 1e9,
			 (unsigned long long)about->sampled_iterations, ses_plan(r->ses)->adp->iteration_title);
	else if (about->hits)
		cmd_warn("attached to process %u, but no event was recorded: no call started and ended within %.1f s",
			 about->pid, s);
	else
		cmd_warn("attached to process %u, but no event was recorded: it called none of the probed functions in "
			 "%.1f s%s%s",
			 about->pid, s, tgt_alive(ses_target(r->ses)) ? "" : ", and has ended",
			 about->api_left ? "; --api all probes every function of the C API" : "");
	return CMD_NOTHING_SEEN;
}

/* Warns if --ops matched nothing. */
static int no_ops(const struct run *r)
{
	char nearest[SES_NEAREST_BYTES];

	if (!r->so.ops || ses_ops_matched(r->ses, nearest))
		return CMD_OK;
	cmd_warn("no operator matched --ops '%s'; nearest: %s", r->so.ops, nearest);
	return CMD_NO_TARGET;
}

static void say_recording(const struct run *r)
{
	const struct mxbpf_loss *loss = &ses_about(r->ses)->loss;
	char n[6][32];

	if (r->o->quiet)
		return;
	fprintf(stderr, "wrote %s: %s of %s events\n", r->so.recording, fmt_count(loss->stored, n[0]),
		fmt_count(loss->attempted, n[1]));
	fprintf(stderr, "%s dropped, %s names truncated, %s unreadable, %s unmatched\n", fmt_count(loss->dropped, n[2]),
		fmt_count(loss->truncated, n[3]), fmt_count(loss->unreadable, n[4]), fmt_count(loss->unmatched, n[5]));
}

static int print_tables(struct run *r)
{
	struct out *out;
	int code;

	if (r->so.interval_ns) {
		code = ses_interval(r->ses);
		out = r->tables;
		r->tables = NULL;
		return out ? cmd_close_tables(r->o, out, code) : code;
	}
	code = cmd_open_tables(r->o, false, &out);
	if (code)
		return code;
	return cmd_close_tables(r->o, out, cmd_print_tables(r->o, ses_about(r->ses), ses_model(r->ses), 0, out));
}

/* Writes all outputs, even if one fails. The exit code is that of the first failure, or `stopped`. */
static int results(struct run *r, int stopped)
{
	int code = stopped, err;

	if (ses_failed(r->ses)) {
		code = ses_failed(r->ses); /* writing the tables of an interval failed, which has been reported */
	} else if (!r->so.recording) {
		err = print_tables(r);
		code = code ? code : err;
	} else if (!stopped) {
		say_recording(r);
	}
	if (r->so.trace_part_ns) {
		run_say_traces(r);
		code = code ? code : ses_traces_failed(r->ses);
	} else if (r->so.trace) {
		if (!code)
			signals_results(r, SIGNALS_PRINTED);
		err = write_trace(r);
		code = code ? code : err;
	}
	return code;
}

/* Waits until the command has ended, so that results on stdout come after its own output. Its status; -1: there is
 * none. */
static int end_of_command(struct run *r)
{
	if (!r->ses || !ses_launched(r->ses))
		return -1;
	signals_hold();
	return ses_wait_command(r->ses, r->signals);
}

/* If the target ends while mxbpf attaches, any step can fail; this reports the reason that they share. */
static int not_started(const struct run *r, const struct err *e)
{
	const struct tgt *t = r->ses ? ses_target(r->ses) : NULL;
	struct err ended = {0};

	if (r->so.command || !t || !tgt_gone(t) || e->cls == ERR_USAGE)
		return cmd_fail(e);
	err_set(&ended, ERR_TARGET, -ESRCH, "process %d %s before recording began; no event was recorded", tgt_pid(t),
		tgt_alive(t) ? "executed another program" : "ended");
	cmd_fail(&ended);
	return CMD_NOTHING_SEEN;
}

static int run(const struct cmd_opts *o, const char *recording)
{
	char stopped[SES_STOPPED_BYTES];
	int code, ended = -1;
	struct err e = {0};
	struct run r;

	if (run_prepare(&r, o, recording, NULL, &e) || run_start(&r, &e) || run_drop(&r, &e)) {
		code = not_started(&r, &e);
		goto out;
	}
	if (!r.so.command && ses_stopped(r.ses, stopped)) /* mxbpf itself holds up a command that it launches */
		cmd_warn("%s", stopped);
	run_wait(&r);
	signals_results(&r, SIGNALS_STOPPING);
	code = ses_stop(r.ses, &e) ? cmd_fail(&e) : CMD_OK;
	ended = end_of_command(&r);
	signals_results(&r, code ? SIGNALS_STOPPING : SIGNALS_RECORDED);
	code = results(&r, code);
	code = code ? code : no_ops(&r);
	if (!code && !ses_about(r.ses)->loss.attempted)
		code = nothing_seen(&r);
	else if (!r.so.command && ses_stopped(r.ses, stopped))
		cmd_warn("at the end of the window, %s", stopped);
	else if (!o->quiet && !r.so.command && !tgt_alive(ses_target(r.ses)))
		fprintf(stderr, "process %d has ended\n", tgt_pid(ses_target(r.ses)));
out:
	ended = ended < 0 ? end_of_command(&r) : ended;
	run_free(&r);
	return ended > 0 ? ended : code;
}

int cmd_attach(const struct cmd_opts *o)
{
	return run(o, NULL);
}

int cmd_record(const struct cmd_opts *o)
{
	char name[CMD_NAME_BYTES];

	if (!o->output)
		cmd_own_name(o, "mxd", name);
	return (o->ses.no_bpf ? cmd_record_without_bpf : run)(o, o->output ? o->output : name);
}
