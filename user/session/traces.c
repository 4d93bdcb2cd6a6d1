// SPDX-License-Identifier: Apache-2.0
/*
 * Traces of parts of the window: --trace-every, the next seconds in `mxbpf top`, and the last seconds in `mxbpf serve`.
 * Each part has a scratch recording of its own. It is whole: its names, its loss and its times are those of the part. A
 * thread hands it to ui.trace, so that writing a trace delays neither the session nor the events. A call is in the part
 * in which it ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/out.h"
#include "base/thread.h"
#include "session/priv.h"

static void *hand_over(void *arg)
{
	struct ses_traces *t = &((struct session *)arg)->traces;
	const struct ses_ui *ui = &((struct session *)arg)->ui;
	int code = ui->trace(ui->ctx, t->fd);

	close(t->fd);
	t->failed = t->failed ? t->failed : code;
	return NULL;
}

/* Waits until the last part is written. */
static void await(struct session *ses)
{
	if (!ses->traces.writing)
		return;
	pthread_join(ses->traces.thread, NULL);
	ses->traces.writing = false;
}

/* Ends the recording of a part and hands it over. Takes the recording. */
static void traces_finish(struct session *ses, struct rec_writer *w, const struct mdl_session *s)
{
	struct ses_traces *t = &ses->traces;
	struct mdl *none = mdl_new(); /* a trace is made of events, so the part needs no rows */
	struct err e = {0};

	if (!none)
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else if (!rec_writer_finish(w, none, s, &e))
		t->fd = dup(rec_writer_fd(w));
	rec_writer_free(w);
	mdl_free(none);
	if (!e.code && t->fd < 0)
		err_set(&e, ERR_RUNTIME, -errno, "no file descriptor is left: %s", strerror(errno));
	if (!e.code && thread_start(&t->thread, hand_over, ses)) {
		err_set(&e, ERR_RUNTIME, -EAGAIN, "no thread can be started");
		close(t->fd);
	}
	t->writing = !e.code;
	if (!e.code)
		return;
	ses_warn(ses, "a trace was not written: %s", e.why);
	t->failed = t->failed ? t->failed : (int)e.cls;
}

static int open_part(const struct session *ses, struct rec_writer **w, struct err *e)
{
	const uint64_t flight = ses->o->flight_bytes;
	int fd = flight ? memfd_create("mxbpf-flight", MFD_CLOEXEC) : out_scratch(ses->o->trace, e);

	if (fd < 0 && flight)
		err_set(e, ERR_RUNTIME, -errno, "no memory for the last seconds: %s", strerror(errno));
	if (fd < 0 || rec_writer_open(fd, flight ? flight : ses->o->max_bytes, &ses->about, w, e))
		return e->code;
	rec_writer_scratch(*w);
	return 0;
}

/* Replaces the recording of the current part by `next`, which may be NULL. The part that ends is handed over. */
static void cut(struct session *ses, struct rec_writer *next)
{
	struct ses_traces *t = &ses->traces;
	struct mdl_session s = {0};
	struct rec_writer *old;
	struct ses_totals now;
	int err;

	await(ses);
	pthread_mutex_lock(&ses->lock);
	err = ses_about_now(ses, &s);
	old = ses->writer;
	ses->writer = next;
	pthread_mutex_unlock(&ses->lock);
	ses_totals_of(&s, &now);
	if (old) {
		ses_about_since(&s, &t->mark);
		traces_finish(ses, old, &s);
	}
	t->mark = now;
	mdl_sources_fini(&s);
	if (err)
		ses_warn(ses, "a trace does not know its loss: out of memory");
}

/* Begins the part of the next ns. 0: none; UINT64_MAX: it has no end. */
static void next_part(struct session *ses, uint64_t ns)
{
	struct rec_writer *next = NULL;
	struct err e = {0};

	if (ns && open_part(ses, &next, &e))
		ses_warn(ses, "a trace cannot be written: %s", e.why);
	cut(ses, next);
	ses->traces.until_ns = ns && ns != UINT64_MAX ? ses->traces.mark.window_ns + ns : UINT64_MAX;
}

int ses_traces_open(struct session *ses, struct err *e)
{
	ses->traces.until_ns = ses->o->trace_part_ns ? ses->o->trace_part_ns : UINT64_MAX;
	return ses->o->trace_part_ns || ses->o->flight_bytes ? open_part(ses, &ses->writer, e) : 0;
}

void ses_flight_cut(struct session *ses)
{
	next_part(ses, UINT64_MAX);
}

bool ses_trace_next(struct session *ses, uint64_t ns)
{
	if (ses->writer)
		return false;
	next_part(ses, ns);
	return true;
}

uint64_t ses_traces_due(struct session *ses, uint64_t window_ns)
{
	if (window_ns >= ses->traces.until_ns && !ses->paused_at_ns)
		next_part(ses, ses->o->trace_part_ns);
	return ses->traces.until_ns;
}

void ses_traces_end(struct session *ses)
{
	if (ses->traces.until_ns != UINT64_MAX)
		cut(ses, NULL);
	await(ses);
	if (ses->o->flight_bytes) { /* nobody asked for them */
		rec_writer_free(ses->writer);
		ses->writer = NULL;
	}
}

int ses_traces_failed(const struct session *ses)
{
	return ses->traces.failed;
}
