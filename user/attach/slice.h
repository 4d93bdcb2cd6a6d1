/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices: probes that cost too much to be attached always are attached to one process at a time, for a few iterations.
 * Each object has one slice at a time.
 */
#ifndef ATTACH_SLICE_H
#define ATTACH_SLICE_H

#include "attach/attach.h"

/* Chooses the program of att_seen_open(). Call it before loading. 0, or -errno with e set. */
int slice_choose(struct att *a, struct err *e);

/*
 * Attaches the sites of the process that are not left out, by links of its own. They record from the next end of an
 * iteration, or att_slice_begin(), until so many iterations more have ended, or att_slice_close(). left_out: by the
 * number of the site. Returns 0, or -errno with e set and nothing attached.
 */
int att_slice_open(struct att *a, const struct plan *p, uint32_t tgid, const bool *left_out, unsigned iterations,
		   struct err *e);
/* Before that: attaches all sites of another plan of the process for the same slice. 0, or -errno with e set. */
int att_slice_add(struct att *a, const struct plan *p, uint32_t tgid, struct err *e);
bool att_slice_begin(struct att *a); /* without waiting for an iteration; false: it has begun */

enum att_slice_state { ATT_SLICE_ARMED, ATT_SLICE_OPEN, ATT_SLICE_OVER };
enum att_slice_state att_slice_state(const struct att *a);
/* Returns when the slice began, in ns of CLOCK_MONOTONIC; the current time if it has not begun yet. */
uint64_t att_slice_from(const struct att *a);
/* Sets whether calls are recorded in slices alone. Then nobody knows which calls are open between slices. */
void att_only_slices(struct att *a, bool on);

struct att_slice {
	uint64_t from_ns, to_ns; /* 0: it did not begin */
	uint64_t iterations;	 /* iterations that both began and ended in it */
};
/* Removes the probes of the slice, and returns what it covered. Its records may still be in the ring. */
struct att_slice att_slice_close(struct att *a);
/* Returns true when they are removed. Until then they would record in the next slice, too. */
bool att_slice_closed(const struct att *a);

/*
 * Finds places that a process passes: probes some of a plan's sites, all of one library, by a program that only counts.
 * sites: their numbers. fds: the links, for att_seen_close(). Returns 0, or -errno with e set. att_seen: hits of a site
 * since att_seen_clear(). Two sites with the same number modulo MXBPF_SITES_MAX count together.
 */
int att_seen_open(struct att *a, const struct plan *p, uint32_t tgid, const uint32_t *sites, uint32_t n,
		  struct buf *fds, struct err *e);
/* Removes the probes of att_seen_open(). Without `wait` it does so in the background: see att_slice_closed(). */
void att_seen_close(struct att *a, struct buf *fds, bool wait);
uint32_t att_seen(const struct att *a, uint32_t site);
void att_seen_clear(struct att *a);

/* Frees entries in the maps of calls that were open when a slice ended. Call it now and then, while none is open. */
void att_slice_forget(struct att *a);

/* Return the number of iterations that a process has ended, and the cost of its hits. Ended threads do not count. */
uint64_t att_iterations(const struct att *a, uint32_t tgid);
uint64_t att_iterations_of_thread(const struct att *a, uint32_t tgid, uint32_t tid);
uint64_t att_costs_of(const struct att *a, uint32_t tgid);

#endif
