/* SPDX-License-Identifier: Apache-2.0 */
/* The result of `mxbpf now`, for the functions that print it. */
#ifndef CMD_NOW_H
#define CMD_NOW_H

#include "cmd/run.h"
#include "now/now.h"

/* A process. */
struct now_view {
	const struct now_job *job; /* borrowed */
	struct session *ses;	   /* borrowed */
	struct tgt *tgt;	   /* borrowed from the session if it is the first process, else owned */
	const struct plan *plan;   /* borrowed from the session */
	struct regs *regs;
	struct now *now;
	uint32_t rank; /* MDL_NO_NUMBER: not known */
	bool waits;    /* in a collective */
	struct now_collective in;
};

/* All processes that the user chose, in the order of their ranks. */
struct now_job {
	const struct cmd_opts *o;
	struct session *ses;
	struct buf views; /* struct now_view */
	uint64_t at_ns;	  /* when the stacks were taken */
	struct buf opens; /* struct mxbpf_open that were open then; the innermost of a thread first */
};

static inline struct now_view *now_view_at(const struct now_job *j, size_t i)
{
	return i < buf_count(&j->views, struct now_view) ? buf_at(&j->views, struct now_view, i) : NULL;
}

/*
 * job.c: what the ranks wait for. now_behind: whether the first of two ranks waits in a collective for the second
 * one. now_differ: whether both are in collectives of the same number that are not the same. now_line: the line of the
 * program on which the main thread is; *len 0: not known.
 */
bool now_behind(const struct now_view *v, const struct now_view *other);
bool now_differ(const struct now_view *v, const struct now_view *other);
const char *now_line(const struct now_view *v, size_t *len);
/* Prints sentences about the ranks of a job. */
void now_print_job(const struct now_job *j);

/* The *n open calls of a thread, innermost first. Borrowed. */
const struct mxbpf_open *now_opens(const struct now_view *v, pid_t tid, size_t *n);
/* The last call of a thread that ended in the window; NULL: none did. Borrowed. */
const struct mxbpf_span *now_last(const struct now_view *v, pid_t tid);

/* Print on stdout. Return 0, or -errno with e set. */
int now_print_text(const struct now_view *v, struct err *e);
int now_print_json(const struct now_job *j, struct err *e);

#endif
