/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines in Chrome's JSON. A form (struct view_form) decides how events look. This header has what all forms share:
 * two passes over the records with a plan between them, spans that must be written last, names that are escaped once,
 * and numbers without printf(), which would take most of an export's time. What a feature adds to a timeline is in its
 * own trace.c, a struct view_trace_feature. Times are relative to the start of the window, because a viewer keeps them
 * as doubles and would lose the nanoseconds of an epoch.
 */
#ifndef VIEW_TRACE_H
#define VIEW_TRACE_H

#include <string.h>

#include "base/json.h"
#include "model/feature.h"
#include "view/priv.h"
#include "view/sheet.h"
#include "view/timeline/chrome_plan.h"
#include "view/timeline/event.h"

/* Longest text of an event without its names, in bytes. */
#define VIEW_EVENT_BYTES 2048

/*
 * Ids of tracks that are not threads. The kernel gives no thread such an id: its largest is 2^22. A feature adds the
 * thread id to a base when each thread has one such track.
 */
#define VIEW_SCHED_TID	 2000000000u /* states of a thread */
#define VIEW_STEP_TID	 2400000000u /* iterations of a thread */
#define VIEW_IDLE_TID	 2500000000u /* why a device ran nothing, in the process of that device */
#define VIEW_STREAM_TID	 2600000000u /* tracks of devices that have no number of their own, counted from here */
#define VIEW_MEMORY_TID	 2800000000u /* events of memory, one track for each process, counted from here */
#define VIEW_SCHED_PID	 3000000000u /* process of the CPUs; its threads are 1 + the number of the CPU more */
#define VIEW_MACHINE_PID 3100000000u /* process of the machine's gauges */
#define VIEW_DEVICE_PID	 3200000000u /* processes of devices whose ordinal is taken, counted from here */

struct view_trace;

/* How a form writes events. A NULL function means that the form does not have such events. */
struct view_form {
	void (*head)(struct view_trace *t); /* what stands before the events */
	void (*process)(struct view_trace *t, uint32_t tgid);
	void (*thread)(struct view_trace *t, const struct view_plan_track *k, size_t place);
	void (*alloc)(struct view_trace *t, const struct view_plan_alloc *a, uint64_t live_bytes);
	void (*span)(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place);
	uint32_t (*external_id)(const struct view_trace *t,
				uint64_t ordinal); /* number of a span in this form; 0: none */
	const struct view_event_ops *events;	   /* NULL: as JSON */
	const char *process_json; /* process that shows counters of the machine; NULL: VIEW_MACHINE_PID */
	bool own_iterations;	  /* the form marks iterations itself */
	bool memory_in_process;	  /* instants of memory are on the process's own track, not on one with a name */
};

extern const struct view_form view_chrome_form; /* of -f chrome */

/* Where a feature's args stand among those of a span. */
enum view_trace_args {
	VIEW_ARGS_FIRST,   /* before all others, so each is followed by a comma; form chrome only */
	VIEW_ARGS_NUMBERS, /* behind the numbers of the span; a comma before each, in these and those below */
	VIEW_ARGS_CALL,	   /* behind the arguments of the call; form chrome only */
	VIEW_ARGS_LAST,	   /* behind all others; form chrome only */
	VIEW_ARGS_INSTANT, /* of a mark: s has its time, process and thread */
	VIEW_ARGS_PLACES,
};

#define VIEW_TRACE_KINDS 3

/*
 * What a feature adds to timelines. A function that is NULL does nothing. Each gets the feature's own state, which is
 * zeros at first. int: 0 or -ENOMEM. The functions stand in the order in which they are called, and features are called
 * in the order of mdl_features[].
 */
struct view_trace_feature {
	size_t state_bytes;
	bool (*when)(const struct view *s);	 /* NULL: always; if false, nothing below is called */
	enum mxbpf_kind kinds[VIEW_TRACE_KINDS]; /* records for `survey` and `record`, of no other feature */
	int (*survey)(struct view_trace *t, void *state, const struct mxbpf_rec *r); /* in the first pass */
	int (*plan)(struct view_trace *t, void *state);	  /* between the passes; may lower base_ns */
	void (*about)(struct json *j, const void *state); /* writes members of "otherData" */
	/* Writes items of "deviceProperties". `plan` counts them in `ndevices`. */
	void (*devices)(struct view_trace *t, struct json *j, const void *state);
	/* After each thread's own track: a track below it. Only if `plan` has raised places_per_thread. */
	void (*thread)(struct view_trace *t, void *state, uint32_t tgid, uint32_t tid, size_t place);
	void (*tracks)(struct view_trace *t, void *state, size_t place); /* tracks below those of all threads */
	int (*before)(struct view_trace *t, void *state);		 /* events from the survey; all forms */
	/* In the second pass; not in forms without threads. */
	void (*record)(struct view_trace *t, void *state, const struct mxbpf_rec *r);
	void (*span)(struct view_trace *t, void *state, const struct mxbpf_span *s, const struct view_place *place);
	void (*args[VIEW_ARGS_PLACES])(struct view_trace *t, void *state, const struct mxbpf_span *s);
	void (*arrows)(struct view_trace *t, void *state); /* behind the last span */
	void (*after)(struct view_trace *t, void *state);  /* behind the arrows */
	void (*fini)(void *state);
};

/* The features that have a function, as places in view_trace.on. Spans are many, so nothing else is looked at. */
struct view_trace_calls {
	unsigned n;
	uint8_t on[MDL_FEATURES_MAX];
};

#define VIEW_TRACE_KIND_MAX 64 /* no smaller than the largest number of a kind that has a feature */

/* First member of a form's own state. */
struct view_trace {
	struct view s;
	const struct view_form *form;
	struct view_plan plan;
	uint64_t base_ns;	    /* time 0 of the trace */
	unsigned places_per_thread; /* sort indexes that the tracks of a thread take */
	unsigned ndevices;	    /* items that features write into "deviceProperties" */
	bool begun;		    /* there is an event, so a comma stands before the next one */
	int error;		    /* the first one, or 0 */

	/* private */
	struct {
		const struct view_trace_feature *f;
		void *state; /* owned */
	} on[MDL_FEATURES_MAX];
	unsigned non;
	uint8_t of_kind[VIEW_TRACE_KIND_MAX]; /* 1 + place in `on`; 0: no feature */
	struct view_trace_calls spans, args[VIEW_ARGS_PLACES];
	struct hash refs; /* (id, function) -> 1 + place in ref */
	struct buf ref;	  /* where a text lies in texts */
	struct buf texts; /* escaped texts, one behind the other */
	struct buf late;  /* spans that begin together with one that encloses them and comes later in the recording */
};

/* ---- For forms: functions of struct view_ops, and what these call. int: 0 or -errno with the error set. */

int view_trace_begin(struct view *s, const struct view_form *form);
int view_trace_survey(struct view *s, const struct mxbpf_rec *r);
int view_trace_record(struct view *s, const struct mxbpf_rec *r);
void view_trace_fini(struct view *s);

/* Between the passes; sets base_ns. */
int view_trace_plan(struct view_trace *t);
/* After the plan: processes with their threads, and tracks of features. */
void view_trace_tracks(struct view_trace *t);
/* After the tracks: events that need the survey only. */
int view_trace_before(struct view_trace *t);
/* Within the args of a span. */
void view_trace_args(struct view_trace *t, enum view_trace_args place, const struct mxbpf_span *s);
/* After the second pass: spans that have not ended, spans that had to wait, and arrows. */
int view_trace_late(struct view_trace *t);
/* After the form's own last events: iterations. */
void view_trace_after(struct view_trace *t);

/* "otherData":{...}: the target, the window, the loss, every probe. */
void view_trace_about(struct view_trace *t);
/* "deviceProperties":[...] */
void view_trace_devices(struct view_trace *t);
/* ,"distributedInfo":{...} if the process is one of a job. */
void view_trace_rank(struct view_trace *t);
uint64_t view_trace_base_unix_ns(const struct view_trace *t);

/* ---- For forms and features */

int view_trace_no_memory(struct view_trace *t); /* sets the error and returns it */

/* The inside of a JSON string, made once for each (id, make). make appends it to b and returns 0 or -ENOMEM. */
typedef int (*view_text_fn)(struct view_trace *t, uint64_t id, struct buf *b);
/* Borrowed until the next call. */
struct view_text view_trace_text(struct view_trace *t, uint64_t id, view_text_fn make);
int view_text_name(struct view_trace *t, uint64_t id, struct buf *b);
int view_text_device(struct view_trace *t, uint64_t device, struct buf *b);
int view_text_escape(struct buf *b, const char *text, size_t len);

/*
 * "rank 3 of 8: python train.py" for a process of a distributed job, with its host if there are several. "worker 0
 * (python of a)" if the job has roles, else "python". Returns buf or a borrowed name.
 */
#define VIEW_PROCESS_BYTES 384
const char *view_trace_process_name(const struct view_trace *t, uint32_t tgid, char buf[VIEW_PROCESS_BYTES]);
/* Name of a thread or a lane. Returns buf or a borrowed name. */
const char *view_trace_track_name(const struct view_trace *t, const struct view_plan_track *k, char buf[32]);
/* The category of a span. torch's tools distinguish calls of CUDA's runtime and of its driver. */
const char *view_trace_category(const struct view_trace *t, const struct mxbpf_span *s);
void view_trace_string(struct view_trace *t, const char *text); /* with its quotes */
/* The counter of a device's memory: "memory cpu(0) bytes". */
void view_trace_memory(struct view_trace *t, const struct view_plan_alloc *a, const char *unit, uint64_t bytes);

/* ---- Text into a reserved buffer (out_reserve()): each function returns the end */

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
/* Microseconds with three digits behind the point, so they are exact. */
char *view_put_us(char *p, uint64_t ns);
/* "pid":,"tid":,"ts": */
char *view_put_where(const struct view_trace *t, char *p, uint32_t tgid, uint32_t tid, uint64_t ts_ns);
/* ,"thread":,"end_thread":,"unwound": of a span on track tid, without members that have their usual value. */
char *view_put_threads(char *p, const struct mxbpf_span *s, uint32_t tid);
/* ,"cpu": and, if the span was not on CPU all the time, where its time went. Nothing without an account. */
char *view_put_account(char *p, const struct mxbpf_span *s);

#endif
