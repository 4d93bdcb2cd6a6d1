/* SPDX-License-Identifier: Apache-2.0 */
/* Private to pftrace*.c: the state of the output, and what its forms write alike. */
#ifndef VIEW_PFTRACE_H
#define VIEW_PFTRACE_H

#include <stddef.h>

#include "view/timeline/from_json.h"
#include "view/timeline/trace.h"

/* Args of a span, in the words of -f chrome, and below in those of Kineto. */
enum pftrace_key {
	SELF_NS,
	DEVICE,
	LINK,
	IN_SEGMENT,
	THREAD,
	END_THREAD,
	UNWOUND,
	CPU,
	END_CPU,
	ON_CPU_US,
	RUNQ_US,
	BLOCKED_US,
	NVCSW,
	NIVCSW,
	MINFLT,
	MAJFLT,
	MIGRATED,
	EXTERNAL_ID,
	SEQUENCE_NUMBER,
	FWD_THREAD_ID,
	RECORD_FUNCTION_ID,
	EV_IDX,
	KEYS,
};

#define PFTRACE_CLASSES 64 /* more than the largest class */

struct pftrace {
	struct view s;
	const struct view_ops *of; /* the form of JSON */
	struct view_trace *inner;  /* owned; the first member of its state */
	struct view_form form;	   /* of the inner timeline, with functions for packets */
	struct out *json;	   /* owned; the inner timeline writes to it */
	uint64_t settled;	   /* bytes of JSON that are packets already */
	struct buf written;	   /* what was written to it, until it is packets */
	struct buf text;	   /* scratch */
	struct from_json from;
	struct packets packets;
	struct packets_event event; /* the event that has begun */
	uint64_t track;		    /* track of that event */
	struct hash starts;	    /* (track, start) of slices that are not spans, not of all */
	struct {
		bool used;
		uint64_t track, ts_ns;
	} end; /* end of such a slice; written behind its arrows, which have the time of its start */

	unsigned generation; /* of the numbers below */
	uint32_t of_key[KEYS], of_class[PFTRACE_CLASSES];
	struct hash names;     /* id -> number */
	struct hash counters;  /* (unit, pid and id) -> track */
	struct hash constants; /* (address of a text, its kind) -> number */
};

/* Returns the output to which an inner timeline belongs. */
static inline struct pftrace *pftrace_of(const struct view_trace *inner)
{
	return (struct pftrace *)((char *)inner->form - offsetof(struct pftrace, form));
}

/* Call it before each span: ends the slice before it, and forgets old numbers. */
void pftrace_settle(struct pftrace *f);

/* Args of the next event. */
void pftrace_put(struct pftrace *f, enum pftrace_key key, enum packets_value how, uint64_t v);
static inline void pftrace_put_u64(struct pftrace *f, enum pftrace_key key, uint64_t v)
{
	pftrace_put(f, key, PACKETS_UINT, v);
}
void pftrace_put_text(struct pftrace *f, struct view_text text); /* members of JSON */
void pftrace_put_features(struct pftrace *f, enum view_trace_args place, const struct mxbpf_span *s);
void pftrace_put_threads(struct pftrace *f, const struct mxbpf_span *s, uint32_t tid);
void pftrace_put_account(struct pftrace *f, const struct mxbpf_span *s);

/* The number of a category. fixed: it depends on the class of the span alone. */
uint32_t pftrace_category(struct pftrace *f, const struct mxbpf_span *s, const char *category, bool fixed);
uint32_t pftrace_name(struct pftrace *f, const struct mxbpf_span *s);

/* pftrace_kineto.c: a function of struct view_form. */
void pftrace_kineto_span(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place);

#endif
