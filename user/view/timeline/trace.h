/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What timelines in Chrome's JSON have in common, whatever the form: two passes with a plan between them, spans that
 * have to wait for the end, names that are escaped once, numbers without printf (which would be most of the time of an
 * export), who, when and what was lost. Times are relative to the window's start: a viewer's double loses ns of an
 * epoch.
 */
#ifndef VIEW_TRACE_H
#define VIEW_TRACE_H

#include <string.h>

#include "mxbpf_sched.h"
#include "view/timeline/chrome_plan.h"
#include "view/priv.h"
#include "view/sheet.h"

/* Longest text of an event without its names. */
#define VIEW_EVENT_BYTES 2048

struct view_trace;

/* How a form writes events. The first process is the first event: no comma before it. */
struct view_form {
	void (*process)(struct view_trace *t, uint32_t tgid, bool first);
	void (*thread)(struct view_trace *t, const struct view_plan_track *k, size_t place);
	void (*alloc)(struct view_trace *t, const struct view_plan_alloc *a, uint64_t live_bytes);
	void (*span)(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place);
	const char *process_json; /* whose the machine's counters are; NULL: the target's */
};

/*
 * MXBPF_SCHED records: under each thread a track of its states, for each CPU one of what ran there while a thread of
 * the target could have. Their ids are given by no kernel, as those of lanes.
 */
#define VIEW_SCHED_TID 2000000000u /* and the thread's */
#define VIEW_SCHED_PID 3000000000u /* of CPUs; as a thread id, with 1 and the CPU's number */

struct view_scheds {
	struct hash threads; /* (tgid, tid) -> 1: seen, 2: its track has a name */
	struct hash cpus;    /* number -> until when it is drawn */
	uint64_t first_ns, narrows;
};

/*
 * Activities of devices, on a track for each stream. Ids of tracks count on from this number. A survey takes 80 bytes
 * an activity and 40 bytes a launch, twice that while a buffer grows.
 */
#define VIEW_STREAM_TID 2600000000u

/* First member of a sink's own state. */
struct view_trace {
	struct view s;
	const struct view_form *form;
	struct view_plan plan;
	uint64_t base_ns; /* time 0 of the trace */
	int error;	  /* the first, 0 */

	/* private */
	struct view_scheds scheds;
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
struct view_trace_feature {
	/* Behind each span; tid: of the track that it is drawn on. */
	void (*span)(struct view_trace *t, const struct mxbpf_span *s, uint32_t tid);
};

/* Of struct view_ops. */
int view_trace_survey(struct view *s, const struct mxbpf_rec *r);
int view_trace_record(struct view *s, const struct mxbpf_rec *r);
void view_trace_fini(struct view *s);

/* Between the passes; sets base_ns. 0 or -errno. */
int view_trace_plan(struct view_trace *t);
/* After that: processes with their threads; allocations in order of time. 0 or -errno. */
void view_trace_tracks(struct view_trace *t);
int view_trace_allocs(struct view_trace *t);
int view_trace_peaks(struct view_trace *t); /* memory_trace.c; the same */
/* gauges.c: the machine's, as counters. 0 or -errno. */
int view_trace_gauges(struct view_trace *t);
/* Calls that had not ended: begun, without an end. Behind all other events. */
void view_trace_opens(struct view_trace *t);
/* step_trace.c: iterations, on a track of their own, as no mark of the program's says that they nest with its calls. */
#define VIEW_STEP_TID 2400000000u /* and the thread's */
void view_trace_iterations(struct view_trace *t);
/* marks_trace.c: an event for each. */
void view_trace_value(struct view_trace *t, const struct mxbpf_value *v);
void view_trace_instant(struct view_trace *t, const struct mxbpf_instant *i);
int view_text_domain(struct view_trace *t, uint64_t id, struct buf *b);
/* Behind the second pass: spans that had to wait. 0 or -errno. */
int view_trace_late(struct view_trace *t);

struct mxbpf_kv;
int view_kv_survey(struct view_trace *t, const struct mxbpf_kv *k); /* kv_trace.c, for trace.c: 0, -ENOMEM */
/* sched_trace.c, for trace.c: 0, -ENOMEM. The track of a thread that has one, the other tracks; places as those of
 * view_form.thread. */
int view_sched_survey(struct view_trace *t, const struct mxbpf_sched *r);
void view_sched_track(struct view_trace *t, uint32_t tgid, uint32_t tid, size_t place);
void view_sched_tracks(struct view_trace *t, size_t place);
int view_sched_write(struct view_trace *t, const struct mxbpf_sched *r);
void view_sched_fini(struct view_trace *t);

/* stream_trace.c: 0, -ENOMEM. Between the passes; tracks with their activities; each span of the second pass and the
 * track that it is drawn on; behind the last span, arrows from spans to activities. */
int view_stream_survey(struct view_trace *t, const struct mxbpf_rec *r);
int view_stream_plan(struct view_trace *t);
void view_stream_tracks(struct view_trace *t, size_t place);
void view_stream_span(struct view_trace *t, const struct mxbpf_span *s, uint32_t drawn_tid);
void view_stream_arrows(struct view_trace *t);
void view_stream_fini(struct view_trace *t);

/* life_trace.c: likewise. What is known of a span, as args of its own; how many operators wait for each thread. */
int view_life_survey(struct view_trace *t, const struct mxbpf_rec *r);
void view_life_args(struct view_trace *t, const struct mxbpf_span *s);
int view_life_queues(struct view_trace *t);
void view_life_fini(struct view_trace *t);

int view_trace_no_memory(struct view_trace *t); /* sets the error, returns it */

/* The inside of a JSON string, made once for each (id, what). make: appends it to b; 0, -ENOMEM. */
typedef int (*view_text_fn)(struct view_trace *t, uint64_t id, struct buf *b);
/* Borrowed until the next call. */
struct view_text view_trace_text(struct view_trace *t, uint64_t id, view_text_fn make);
int view_text_name(struct view_trace *t, uint64_t id, struct buf *b);
int view_text_device(struct view_trace *t, uint64_t device, struct buf *b);
int view_text_escape(struct buf *b, const char *text, size_t len);

/* "worker 0 (python of a)"; of no job: "python". Returns buf or a name that is borrowed. */
#define VIEW_PROCESS_BYTES 384
const char *view_trace_process_name(const struct view_trace *t, uint32_t tgid, char buf[VIEW_PROCESS_BYTES]);
/* A track that is neither thread nor lane. Places as those of view_form.thread. */
void view_trace_name_track(struct view_trace *t, uint32_t pid, uint32_t tid, const char *name, size_t place);
/* Of a thread or a lane. Returns buf or a name that is borrowed. */
const char *view_trace_track_name(const struct view_trace *t, const struct view_plan_track *k, char buf[32]);

/* "otherData":{...}: who was looked at, the window, what was lost, every probe. */
void view_trace_about(struct view_trace *t);
void view_trace_rank(struct view_trace *t); /* ,"distributedInfo":{...} of a process of a job; nothing of others */
uint64_t view_trace_base_unix_ns(const struct view_trace *t);
void view_trace_string(struct view_trace *t, const char *text); /* with its quotes */

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

char *view_put_u64(char *p, uint64_t v);
char *view_put_i64(char *p, int64_t v);
char *view_put_hex(char *p, uint64_t v);
/* Microseconds, exact to the ns. */
char *view_put_us(char *p, uint64_t ns);
/* "pid":,"tid":,"ts": */
char *view_put_where(const struct view_trace *t, char *p, uint32_t tgid, uint32_t tid, uint64_t ts_ns);
/* ,"thread":,"end_thread":,"unwound": of a span that is drawn on tid; what goes without saying is left out. */
char *view_put_threads(char *p, const struct mxbpf_span *s, uint32_t tid);
/* ,"cpu": and, of a span that was not on it all the time, where its time went; nothing of sessions without accounts. */
char *view_put_account(char *p, const struct mxbpf_span *s);
/* ,"team_threads": and what they did, of a span that opened parallel regions: nothing of others. */
char *view_put_team(struct view_trace *t, char *p, const struct mxbpf_span *s);
/* ,"keys":"0,a","sent_bytes": and so on, of a call of a store of parameters; straight into the output. */
void view_trace_kv(struct view_trace *t, const struct mxbpf_span *s);
/* The counter of a device's live memory: VIEW_EVENT_BYTES and its name. */
char *view_put_live(const struct view_trace *t, char *p, const struct view_plan_alloc *a, struct view_text device,
		    uint64_t live_bytes);

#endif
