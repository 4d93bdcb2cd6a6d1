/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the feature. Spans come out of order, so they are kept until activities are known in order, and then
 * both are swept in the order of time.
 */
#ifndef FEATURE_IDLE_STATE_H
#define FEATURE_IDLE_STATE_H

#include "feature/idle/idle.h"
#include "window/window.h"

/* A stream was told to wait for an event. */
struct idle_wait {
	uint64_t stream, ns;
	uint32_t tgid;
};

struct idle_span {
	uint64_t start_ns, end_ns;
	uint64_t name_id, stack_id;
	uint32_t tgid, tid;
	uint16_t runq, blocked; /* parts of its self time, in 1/IDLE_WHOLE */
	uint8_t cls;
	bool user, async;
};
#define IDLE_WHOLE 32768u

/* A time of a thread off the CPU: it slept until woken_ns, and then waited for a CPU. */
struct idle_off {
	uint64_t start_ns, back_ns, woken_ns;
	uint32_t tgid, tid;
};

struct idle_device {
	uint32_t tgid, device;
	uint64_t first_ns, now_ns;		  /* start of its first work; all time before now_ns has its row */
	uint64_t compute_until_ns, copy_until_ns; /* ends of the latest kernel or set, and copy */
	uint64_t copy_name;
	uint64_t steps_until_ns; /* iterations that ended until then have their times */
};

struct idle_state {
	bool on;		  /* a sign of a GPU was seen: many spans are kept, not only the last ones */
	struct buf waits;	  /* struct idle_wait */
	struct buf spans;	  /* struct idle_span: the latest, as they came; feature/path needs them, too */
	size_t nswept;		  /* their number at the last sweep */
	size_t kept_spans;	  /* of these, those whose time had no causes then */
	uint64_t lost_ns;	  /* latest end of a span that was forgotten */
	bool switched;		  /* it is known when threads had no CPU */
	struct buf off;		  /* struct idle_off */
	uint64_t off_lost_ns;	  /* latest end of one that was forgotten */
	struct hash device_index; /* (process and device, 0) -> 1 + index in devices */
	struct buf devices;	  /* struct idle_device */
	struct hash streams;	  /* (stream, process and device) -> start of its last launch */
	struct hash row_index;	  /* (name and stack, process, device and cause) -> 1 + index in rows */
	struct buf rows;	  /* struct mxbpf_agg_gpu_idle */
	struct buf pieces;	  /* struct mxbpf_gpu_idle: the latest, of each device by time */
	uint64_t forgotten_ns;	  /* latest end of a piece that was forgotten */
	struct buf steps;	  /* struct mxbpf_gpu_step: the latest */
};

/* fold.c: returns the time before which all devices have their causes. */
uint64_t idle_known_ns(const struct idle_state *t);
/* fold.c: returns the row of a cause, or NULL if out of memory. */
struct mxbpf_agg_gpu_idle *idle_row(struct idle_state *t, const struct mxbpf_agg_gpu_idle *like);

/*
 * sweep.c: gives the time until the last start of work to its causes. The work is all that starts before until_ns.
 * UINT64_MAX: the time until the last end. Returns 0 or -ENOMEM.
 */
int idle_sweep(const struct mdl *m, struct idle_state *t, const struct win_work *work, size_t n, uint64_t until_ns);

/* steps.c: keeps a piece, or lengthens the last one. Returns 0 or -ENOMEM. */
int idle_piece_put(struct idle_state *t, const struct mxbpf_gpu_idle *piece);
int idle_step_put(struct idle_state *t, const struct mxbpf_gpu_step *step);
/*
 * steps.c: gives pieces to the iterations that have ended. all: also to those that have not, or that the device has not
 * reached. Returns 0 or -ENOMEM.
 */
int idle_steps_make(const struct mdl *m, struct idle_state *t, bool all);

/* ---- off.c: when threads had no CPU */

/* Returns 0 or -ENOMEM. */
int idle_off_put(struct idle_state *t, const struct idle_off *off);
void idle_off_forget(struct idle_state *t, uint64_t since_ns); /* those that ended until then */
int idle_off_order(const void *va, const void *vb);	       /* of struct idle_off */

enum idle_cpu { IDLE_CPU_UNKNOWN, IDLE_CPU_ON, IDLE_CPU_BLOCKED, IDLE_CPU_RUNQ, IDLE_CPUS };
/* Returns what a thread was at a moment, when state.off is in order. *end_ns receives until when that holds. */
enum idle_cpu idle_cpu_at(const struct idle_state *t, uint32_t tgid, uint32_t tid, uint64_t ns, uint64_t *end_ns);

/* ---- threads.c: what threads did */

/* A piece of time of a thread in which it did one thing. */
struct idle_piece {
	uint64_t start_ns, end_ns;
	uint64_t since_ns; /* start of the call that says so */
	uint64_t name_id, stack_id;
	uint32_t tgid, tid;
	uint16_t runq, blocked; /* as in struct idle_span */
	uint8_t cause;		/* enum mxbpf_idle_cause: DATA, OPERATOR, COLLECTIVE or HOST */
};

struct idle_threads {
	struct buf pieces;    /* struct idle_piece, by process, thread and time; they do not overlap */
	struct buf exchanges; /* struct idle_span by process and end: exchanges with other processes, on any thread */
};

/*
 * Divides by the spans of a process (0: of all) that begin before to_ns, and end after from_ns or are new. Returns 0 or
 * -ENOMEM.
 */
int idle_threads_make(const struct mdl *m, const struct idle_state *t, uint32_t tgid, uint64_t from_ns, uint64_t to_ns,
		      struct idle_threads *to);
void idle_threads_fini(struct idle_threads *t);
/* Returns the piece of a thread at a moment, or NULL if it was in no call. *end_ns receives until when that holds. */
const struct idle_piece *idle_piece_at(const struct idle_threads *t, uint32_t tgid, uint32_t tid, uint64_t ns,
				       uint64_t *end_ns);
/*
 * Finds the time in [from_ns, *to_ns) in which a thread that was in no call waited for an exchange: it went on soon
 * after the exchange had ended. Returns false if there is none.
 */
bool idle_exchange_in(const struct idle_threads *t, uint32_t tgid, uint64_t from_ns, uint64_t to_ns,
		      struct idle_span *found);

#endif
