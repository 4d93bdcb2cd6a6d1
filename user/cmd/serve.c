// SPDX-License-Identifier: Apache-2.0
/* `mxbpf serve`: a session whose intervals are added up in metrics, for months. */
#include "cmd/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define INTERVAL_NS  10000000000ull
#define MAX_OVERHEAD 10 /* permille */
#define KEEP	     20
#define MAX_BYTES    (2ull << 30)
#define FLIGHT_BYTES (32u << 20)

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
	} else if (!out_open(s->run->o->textfile, false, &out, &e)) {
		out_share(out);
		out_write(out, s->text.data, s->text.len);
		out_commit(out, &e);
	}
	if (e.code && !s->failed)
		cmd_warn("%s; mxbpf tries again after each interval", e.why);
	s->failed = e.code;
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

/* The session hands them to on_trace() in a thread. */
static void write_last(struct serve *s, const char *word, const char *why, bool hangs)
{
	struct serve_dump *d = &s->dumps[s->ndumps++ % SERVE_DUMPS];

	*d = (struct serve_dump){.pids = ""};
	snprintf(d->word, sizeof(d->word), "%s", word);
	snprintf(d->why, sizeof(d->why), "%s", why);
	if (hangs)
		put_pids(s, d);
	ses_flight_cut(s->run->ses);
}

static int on_trace(void *ctx, int fd)
{
	struct serve *s = ctx;

	return serve_write(s, fd, &s->dumps[s->nwritten++ % SERVE_DUMPS]);
}

static bool on_asked(void *ctx, int sig)
{
	struct serve *s = ctx;

	if (sig != SIGUSR1 || !s->run->o->flight_ns)
		return false;
	write_last(s, "signal", "SIGUSR1 asked for it", false);
	return true;
}

/* Conditions that become true together are written once, under the first of them. */
static void judge(struct serve *s, const struct trg_input *in)
{
	char why[TRG_WHY_BYTES], first[TRG_WHY_BYTES];
	const struct trg *fires = NULL;
	unsigned i;

	for (i = 0; i < s->run->o->non; i++) {
		if (!trg_judge(s->on[i], in, why) || fires)
			continue;
		fires = s->on[i];
		memcpy(first, why, sizeof(first));
	}
	if (fires && !s->ended)
		write_last(s, trg_word(fires), first, trg_is_hang(fires));
}

/* ---- intervals */

/* An interval of --interval --reset: the model has what happened in it. */
static int on_interval(void *ctx, const struct mdl_session *about, struct mdl *m)
{
	struct serve *s = ctx;
	struct met_input in = {.session = about, .model = m, .now_ns = clock_ns(CLOCK_MONOTONIC)};
	struct err e = {0};

	s->pids.len = 0;
	if (!s->ended)
		ses_each_process(s->run->ses, add_process, s);
	in.pids = (const pid_t *)s->pids.data;
	in.npids = buf_count(&s->pids, pid_t);
	if (met_take(s->metrics, &in)) {
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
		return cmd_fail(&e);
	}
	judge(s, &(struct trg_input){about, m, in.pids, in.npids, in.now_ns});
	if (s->run->o->textfile)
		write_textfile(s);
	return CMD_OK;
}

static bool on_input(void *ctx)
{
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

/* What the user has not said. */
static void set_defaults(struct cmd_opts *o)
{
	struct ses_opts *so = &o->ses;

	so->interval_ns = so->interval_ns ? so->interval_ns : INTERVAL_NS;
	so->max_overhead = so->max_overhead ? so->max_overhead : MAX_OVERHEAD;
	so->max_bytes = so->max_bytes ? so->max_bytes : MAX_BYTES;
	so->flight_bytes = !o->flight_ns ? 0 : so->flight_bytes ? so->flight_bytes : FLIGHT_BYTES;
	so->reset = true;
	so->only_intervals = true;
	so->wait = true;
	so->choice.host |= chooses_none(&so->choice);
	o->by = VIEW_BY_PROCESS;
	o->keep = o->keep ? o->keep : KEEP;
	o->trace_dir = o->trace_dir ? o->trace_dir : ".";
}

static int prepare(struct serve *s, const struct cmd_opts *o, struct err *e)
{
	unsigned i;

	s->metrics = met_new();
	if (!s->metrics)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	for (i = 0; i < o->non && !e->code; i++)
		trg_parse(o->on[i], &s->on[i], e);
	if (o->textfile && !e->code)
		out_check(o->textfile, e);
	return e->code;
}

static void fini(struct serve *s)
{
	unsigned i;

	met_free(s->metrics);
	for (i = 0; i < CMD_ON_MAX; i++)
		trg_free(s->on[i]);
	buf_fini(&s->pids);
	buf_fini(&s->text);
}

int cmd_serve(const struct cmd_opts *o)
{
	struct cmd_opts own = *o;
	struct run r;
	struct serve s = {.run = &r};
	const struct run_live live = {.ctx = &s,
				      .second = on_interval,
				      .input = on_input,
				      .say = on_say,
				      .trace = on_trace,
				      .asked = on_asked};
	struct err e = {0}, ended = {0};
	int code;

	set_defaults(&own);
	if (prepare(&s, &own, &e)) {
		fini(&s);
		return cmd_fail(&e);
	}
	if (!run_prepare(&r, &own, NULL, &live, &e) && !run_start(&r, &e)) {
		run_wait(&r);
		s.ended = true;
		if (!ses_stop(r.ses, &ended))
			ses_interval(r.ses);
	}
	code = e.code ? cmd_fail(&e) : ended.code ? cmd_fail(&ended) : ses_failed(r.ses);
	run_free(&r);
	fini(&s);
	return code;
}
