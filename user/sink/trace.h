/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What timelines in Chrome's JSON have in common, whatever the form: two passes with a plan between them, spans that
 * have to wait for the end, names that are escaped once, numbers without printf (which would be most of the time of an
 * export), who, when and what was lost. Times are relative to the window's start: a viewer's double loses ns of an
 * epoch.
 */
#ifndef SINK_TRACE_H
#define SINK_TRACE_H

#include <string.h>

#include "mxbpf_sched.h"
#include "sink/chrome_plan.h"
#include "sink/priv.h"
#include "sink/sheet.h"

/* Longest text of an event without its names. */
#define SNK_EVENT_BYTES 2048

struct snk_trace;

/* How a form writes events. The first process is the first event: no comma before it. */
struct snk_form {
	void (*process)(struct snk_trace *t, uint32_t tgid, bool first);
	void (*thread)(struct snk_trace *t, const struct snk_plan_track *k, size_t place);
	void (*alloc)(struct snk_trace *t, const struct snk_plan_alloc *a, uint64_t live_bytes);
	void (*span)(struct snk_trace *t, const struct mxbpf_span *s, const struct snk_place *place);
	const char *process_json; /* whose the machine's counters are; NULL: the target's */
};

/*
 * MXBPF_SCHED records: under each thread a track of its states, for each CPU one of what ran there while a thread of
 * the target could have. Their ids are given by no kernel, as those of lanes.
 */
#define SNK_SCHED_TID 2000000000u /* and the thread's */
#define SNK_SCHED_PID 3000000000u /* of CPUs; as a thread id, with 1 and the CPU's number */

struct snk_scheds {
	struct hash threads; /* (tgid, tid) -> 1: seen, 2: its track has a name */
	struct hash cpus;    /* number -> until when it is drawn */
	uint64_t first_ns, narrows;
};

/*
 * Activities of devices, on a track for each stream. Ids of tracks count on from this number. A survey takes 80 bytes
 * an activity and 40 bytes a launch, twice that while a buffer grows.
 */
#define SNK_STREAM_TID 2600000000u

/* First member of a sink's own state. */
struct snk_trace {
	struct snk s;
	const struct snk_form *form;
	struct snk_plan plan;
	uint64_t base_ns; /* time 0 of the trace */
	int error;	  /* the first, 0 */

	/* private */
	struct snk_scheds scheds;
	struct hash refs;      /* (id, what) -> index + 1 in ref */
	struct buf ref, texts; /* where in texts; escaped, one behind the other */
	struct buf gauges;     /* struct mxbpf_gauge of the survey, MXBPF_GAUGE_BYTES_MIN each */
	struct buf late;       /* spans that begin with one around them that comes later */
	struct hash life_at;   /* (start of a span, thread) -> index + 1 in lives, likewise in waits */
	struct buf lives;      /* struct mxbpf_life */
	struct hash wait_at;
	struct buf waits;      /* struct mxbpf_wait */
	struct hash team_at;   /* (start of a span, thread) -> index + 1 in teams */
	struct buf teams;      /* struct mxbpf_team, of each span one */
	struct hash kv_at;     /* (start of a span, thread) -> 1 + place in kvs */
	struct buf kvs;	       /* struct mxbpf_kv with their values */
	struct buf activities; /* struct activity of stream_trace.c, by track and time after the survey */
	struct buf launches;   /* struct launch of stream_trace.c, by thread and time after the survey */
	uint64_t nunlaunched;  /* activities with an edge that nothing began */
};

/* What a feature that was asked for adds to timelines that have threads. */
struct snk_trace_feature {
	/* Behind each span; tid: of the track that it is drawn on. */
	void (*span)(struct snk_trace *t, const struct mxbpf_span *s, uint32_t tid);
};

/* Of struct snk_ops. */
int snk_trace_survey(struct snk *s, const struct mxbpf_rec *r);
int snk_trace_record(struct snk *s, const struct mxbpf_rec *r);
void snk_trace_fini(struct snk *s);

/* Between the passes; sets base_ns. 0 or -errno. */
int snk_trace_plan(struct snk_trace *t);
/* After that: processes with their threads; allocations in order of time. 0 or -errno. */
void snk_trace_tracks(struct snk_trace *t);
int snk_trace_allocs(struct snk_trace *t);
int snk_trace_peaks(struct snk_trace *t); /* held_trace.c; the same */
/* gauges.c: the machine's, as counters. 0 or -errno. */
int snk_trace_gauges(struct snk_trace *t);
/* Calls that had not ended: begun, without an end. Behind all other events. */
void snk_trace_opens(struct snk_trace *t);
/* step_trace.c: iterations, on a track of their own, as no mark of the program's says that they nest with its calls. */
#define SNK_STEP_TID 2400000000u /* and the thread's */
void snk_trace_iterations(struct snk_trace *t);
/* marks_trace.c: an event for each. */
void snk_trace_value(struct snk_trace *t, const struct mxbpf_value *v);
void snk_trace_instant(struct snk_trace *t, const struct mxbpf_instant *i);
int snk_text_domain(struct snk_trace *t, uint64_t id, struct buf *b);
/* Behind the second pass: spans that had to wait. 0 or -errno. */
int snk_trace_late(struct snk_trace *t);

struct mxbpf_kv;
int snk_kv_survey(struct snk_trace *t, const struct mxbpf_kv *k); /* kv_trace.c, for trace.c: 0, -ENOMEM */
/* sched_trace.c, for trace.c: 0, -ENOMEM. The track of a thread that has one, the other tracks; places as those of
 * snk_form.thread. */
int snk_sched_survey(struct snk_trace *t, const struct mxbpf_sched *r);
void snk_sched_track(struct snk_trace *t, uint32_t tgid, uint32_t tid, size_t place);
void snk_sched_tracks(struct snk_trace *t, size_t place);
int snk_sched_write(struct snk_trace *t, const struct mxbpf_sched *r);
void snk_sched_fini(struct snk_trace *t);

/* stream_trace.c: 0, -ENOMEM. Between the passes; tracks with their activities; each span of the second pass and the
 * track that it is drawn on; behind the last span, arrows from spans to activities. */
int snk_stream_survey(struct snk_trace *t, const struct mxbpf_rec *r);
int snk_stream_plan(struct snk_trace *t);
void snk_stream_tracks(struct snk_trace *t, size_t place);
void snk_stream_span(struct snk_trace *t, const struct mxbpf_span *s, uint32_t drawn_tid);
void snk_stream_arrows(struct snk_trace *t);
void snk_stream_fini(struct snk_trace *t);

/* life_trace.c: likewise. What is known of a span, as args of its own; how many operators wait for each thread. */
int snk_life_survey(struct snk_trace *t, const struct mxbpf_rec *r);
void snk_life_args(struct snk_trace *t, const struct mxbpf_span *s);
int snk_life_queues(struct snk_trace *t);
void snk_life_fini(struct snk_trace *t);

int snk_trace_no_memory(struct snk_trace *t); /* sets the error, returns it */

/* The inside of a JSON string, made once for each (id, what). make: appends it to b; 0, -ENOMEM. */
typedef int (*snk_text_fn)(struct snk_trace *t, uint64_t id, struct buf *b);
/* Borrowed until the next call. */
struct snk_text snk_trace_text(struct snk_trace *t, uint64_t id, snk_text_fn make);
int snk_text_name(struct snk_trace *t, uint64_t id, struct buf *b);
int snk_text_device(struct snk_trace *t, uint64_t device, struct buf *b);
int snk_text_escape(struct buf *b, const char *text, size_t len);

/* "worker 0 (python of a)"; of no job: "python". Returns buf or a name that is borrowed. */
#define SNK_PROCESS_BYTES 384
const char *snk_trace_process_name(const struct snk_trace *t, uint32_t tgid, char buf[SNK_PROCESS_BYTES]);
/* A track that is neither thread nor lane. Places as those of snk_form.thread. */
void snk_trace_name_track(struct snk_trace *t, uint32_t pid, uint32_t tid, const char *name, size_t place);
/* Of a thread or a lane. Returns buf or a name that is borrowed. */
const char *snk_trace_track_name(const struct snk_trace *t, const struct snk_plan_track *k, char buf[32]);

/* "otherData":{...}: who was looked at, the window, what was lost, every probe. */
void snk_trace_about(struct snk_trace *t);
void snk_trace_rank(struct snk_trace *t); /* ,"distributedInfo":{...} of a process of a job; nothing of others */
uint64_t snk_trace_base_unix_ns(const struct snk_trace *t);
void snk_trace_string(struct snk_trace *t, const char *text); /* with its quotes */

/* ---- text into a reserved buffer (out_reserve()): each returns the end */

static inline char *put_bytes(char *p, const char *text, size_t n)
{
	memcpy(p, text, n);
	return p + n;
}

static inline char *put(char *p, const char *text)
{
	return put_bytes(p, text, strlen(text));
}

char *snk_put_u64(char *p, uint64_t v);
char *snk_put_i64(char *p, int64_t v);
char *snk_put_hex(char *p, uint64_t v);
/* Microseconds, exact to the ns. */
char *snk_put_us(char *p, uint64_t ns);
/* "pid":,"tid":,"ts": */
char *snk_put_where(const struct snk_trace *t, char *p, uint32_t tgid, uint32_t tid, uint64_t ts_ns);
/* ,"thread":,"end_thread":,"unwound": of a span that is drawn on tid; what goes without saying is left out. */
char *snk_put_threads(char *p, const struct mxbpf_span *s, uint32_t tid);
/* ,"cpu": and, of a span that was not on it all the time, where its time went; nothing of sessions without accounts. */
char *snk_put_account(char *p, const struct mxbpf_span *s);
/* ,"team_threads": and what they did, of a span that opened parallel regions: nothing of others. */
char *snk_put_team(struct snk_trace *t, char *p, const struct mxbpf_span *s);
/* ,"keys":"0,a","sent_bytes": and so on, of a call of a store of parameters; straight into the output. */
void snk_trace_kv(struct snk_trace *t, const struct mxbpf_span *s);
/* The counter of a device's live memory: SNK_EVENT_BYTES and its name. */
char *snk_put_live(const struct snk_trace *t, char *p, const struct snk_plan_alloc *a, struct snk_text device,
		   uint64_t live_bytes);

#endif
