/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What watching costs the job: estimates for the hits of each row, and beats. An estimate is the time of a trap, which
 * is measured in mxbpf itself, and the time of the row's program, which the kernel measures in the job. A beat is the
 * time between two hits of one place, which is compared with that while only this place is probed.
 */
#ifndef ATTACH_COSTS_H
#define ATTACH_COSTS_H

#include "attach/attach.h"
#include "mxbpf_cost.h"

/* Chooses the program of the place that is probed alone. Call it before loading. 0, or -errno with e set. */
int costs_choose(struct att *a, struct err *e);
/*
 * Measures the trap and sets first estimates, once. Takes some 10 to 30 ms. It is called before the first probes are
 * attached, so a session without probes, as one with the agent, does not wait for it.
 */
void att_costs_open(struct att *a);
/* Has the kernel measure the programs, and counts hits by place, or ends both. It costs each hit some 50 ns. */
void att_costs_measure(struct att *a, bool on);
/* Computes the estimates from what the kernel has measured. Returns false if there were too few hits so far. */
bool att_costs_update(struct att *a);

struct att_costs {
	uint64_t trap_ns;   /* time of a trap; 0: no costs are known */
	uint64_t added_ns;  /* cost of all hits of targets so far, by the estimates */
	uint64_t thread_ns; /* largest part of it on one thread */
	uint32_t tgid, tid; /* that thread */
};
struct att_costs att_costs(const struct att *a);
/* Returns the largest growth of a thread's cost since the last call. before: the costs at that call; zeros at first. */
uint64_t att_costs_grown(const struct att *a, uint64_t before[MXBPF_THREADS_MAX]);

/* Returns the square of the relative error of the mean interval, by the variance of its blocks. 1: not known. */
double att_beat_error2(const struct mxbpf_beat *b);
/*
 * Returns the square of the relative error of the mean of so many successive blocks if the machine's speed changes as
 * slowly and as much as in `b`: successive blocks are then alike, and tell less than as many single ones. 0: not known.
 */
double att_beat_drift2(const struct mxbpf_beat *b, uint64_t blocks);
/*
 * att_beats_start: watches the places of thread `tid` that are hit often enough, after att_costs_measure(). Returns
 * their number. att_beats_choose: keeps the one whose mean interval has the least error, relative to it. Returns false
 * if there is none with at most this error; more time may help.
 */
unsigned att_beats_start(struct att *a, uint32_t tgid, uint32_t tid, uint64_t window_ns);
bool att_beats_choose(struct att *a, double error);
/* Returns the sums of the chosen beat so far; n is 0 if there is none. */
struct mxbpf_beat att_beat(const struct att *a);
/*
 * After att_detach(): probes the place of the beat alone, and sets the sums to 0. p: the plan of its process. Returns 0
 * or -errno. att_detach() ends it. *hit_ns: estimate of what a hit costs then.
 */
int att_beat_alone(struct att *a, const struct plan *p, uint64_t *hit_ns);
/*
 * Probes a second place as well, which the thread passes *ratio times as often, and sets the sums to 0. So the cost of
 * a hit can be measured. Returns 0 or -errno.
 */
int att_beat_second(struct att *a, const struct plan *p, double *ratio);

#endif
