/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of what watching costs (--max-overhead). If all probes cost more, those of calls are attached in slices: to
 * one process at a time, for a few iterations. What costs little is recorded all the time, see adp_probe.always; if
 * even that costs more than the limit, it is in slices, too, and iterations are only counted between them.
 */
#ifndef FEATURE_COST_SLICES_H
#define FEATURE_COST_SLICES_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct ses_target;
struct session;
struct slices;

/* The process is known: notes its CPU time, so that cost_prepare() sees later whether it works. */
void cost_note_cpu(struct session *ses);
/* Before the first process is attached: chooses the probes that are attached to it. 0, or -errno with e set. */
int cost_prepare(struct session *ses, struct err *e);
/* A process with libraries of its own is about to be attached to: chooses its probes. 0, or -errno with e set. */
int cost_add(struct session *ses, const struct ses_target *of, struct err *e);
/*
 * Before the window begins: attaches the other probes if they fit into --max-overhead. A session that records every
 * call of a process that works says first what that will cost the process.
 */
void cost_begin(struct session *ses);

/* Those of --max-overhead, or to foretell the cost. NULL: not requested. Borrowed. */
struct slices *cost_slices(const struct session *ses);
struct slices *slices_new(void);    /* NULL: out of memory */
void slices_free(struct slices *s); /* NULL is legal */
/* Before the first process is attached: what is attached to it. 0 or -ENOMEM. */
int slices_prepare(struct session *ses, struct slices *s);
/* A process with libraries of its own is about to be attached to. 0 or -ENOMEM. */
int slices_add(struct session *ses, struct slices *s, const struct ses_target *of);
/* Before the window: finds out whether all probes fit into the limit, and attaches them. Ctrl-C sets ses->ended. */
void slices_begin(struct session *ses, struct slices *s);
struct slices_foretold {
	double probes, agent; /* what all probes and what the agent will cost, relative to the time without */
};
/* Before the window of a session that records every call: finds out what that costs, and attaches all probes. */
struct slices_foretold slices_foretell(struct session *ses, struct slices *s);
bool slices_any(const struct slices *s); /* calls were recorded in slices, or are */
/* Returns when to call it again, in ns of CLOCK_MONOTONIC. */
uint64_t slices_tick(struct session *ses, struct slices *s);
/* A slice is under way, or its last records are. An interval does not end now, because a slice is in one interval. */
bool slices_busy(const struct slices *s);
/* The session ends; records still come. */
void slices_end(struct session *ses, struct slices *s);
/* An interval has ended. */
void slices_interval(struct session *ses, struct slices *s);

#endif
