/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * Cost of watching. User space gives estimates to BPF. BPF measures how long the job takes from one hit of a place to
 * the next. A record has the sums of a row.
 */
#ifndef MXBPF_COST_H
#define MXBPF_COST_H

#include "mxbpf_event.h"

/* Estimates for a hit of one row of the plan, in ns. User space changes them while programs run. */
struct mxbpf_hit_cost {
	__u32 all;
	/*
	 * The parts of it after the moment at which a span starts, and after the moment at which a span ends. A span
	 * contains behind_start of the hit that starts it. It does not contain behind_end of the hit that ends it.
	 */
	__u32 behind_start, behind_end;
};

/*
 * A hit that follows the thread's last one within MXBPF_WARM_NS finds what it needs in the CPU's caches and branch
 * predictors, and takes MXBPF_WARM_COST of MXBPF_COLD_COST of the estimate. Chosen by measurement: self times of
 * operators were compared with those of torch.profiler, with 150 to 800 ns and 9 to 16 parts (docs/overhead.md).
 */
#define MXBPF_WARM_NS	300
#define MXBPF_WARM_COST 11
#define MXBPF_COLD_COST 16

/*
 * A beat: the hits of one place on one thread. Its sums are over the intervals between two hits that follow each other.
 * The thread adds to them; user space sets ip to 0 before it changes the rest.
 */
struct mxbpf_beat {
	__u64 ip; /* address of the probe in the process; 0: the entry is not in use */
	__u32 tgid, tid;
	__u64 last_ns, last_cost_ns; /* of the last hit; 0: there was none */
	__s64 last_ran_ns;	     /* mxbpf_account_start.ran_ns and run_delay_ns then */
	__u64 last_runq_ns;
	__u64 n; /* intervals */
	__u64 ns, cost_ns;
	__u64 cpu_ns;  /* on CPU; ns if the kernel does not keep it */
	__u64 runq_ns; /* ready to run, but waiting for a CPU */
	/*
	 * Blocks of at least MXBPF_BEAT_BLOCK_NS on CPU, so that intervals which repeat in a loop are together: sums of
	 * the mean interval of a block, in units of MXBPF_BEAT_UNIT_NS, of its square, and of its product with the mean
	 * of the block before, which tells slow changes of the machine's speed.
	 */
	__u64 blocks, means, squares, products;
	__u64 last_mean;	 /* of the last block */
	__u64 block_n, block_ns; /* of the block that is not complete */
};
#define MXBPF_BEATS_MAX	    8
#define MXBPF_BEAT_BLOCK_NS 10000000ull
#define MXBPF_BEAT_UNIT_NS  16

/* Adds an interval, and closes a block of intervals that is long enough. */
static inline __attribute__((always_inline)) void mxbpf_beat_add(struct mxbpf_beat *b, __u64 ns, __u64 cpu_ns)
{
	__u64 mean;

	b->n++;
	b->ns += ns;
	b->cpu_ns += cpu_ns;
	b->block_n++;
	b->block_ns += cpu_ns;
	if (b->block_ns < MXBPF_BEAT_BLOCK_NS)
		return;
	mean = b->block_ns / b->block_n / MXBPF_BEAT_UNIT_NS;
	b->blocks++;
	b->means += mean;
	b->squares += mean * mean;
	b->products += mean * b->last_mean;
	b->last_mean = mean;
	b->block_n = b->block_ns = 0;
}

/* Key of map `places`. The value is the number of hits on the thread that were counted: one in `places_asked`. */
struct mxbpf_place {
	__u64 ip;
	__u32 tgid, tid;
};
#define MXBPF_PLACES_MAX 1024
#define MXBPF_PLACE_HITS 32 /* one in so many is counted */

#define MXBPF_SITES_MAX 16384 /* sites whose hits can be told apart; a power of two */

/* Estimates for a call that the agent records. Its leaves that do nothing take 10 to 31 ns, so all of it is around the
 * call. */
/* Those of calls and memory lie between two loops of tiny operators, those of tests/cost.bats and of `make bench`. */
#define MXBPF_AGENT_CALL_NS   320 /* measured: 300 and 400. PyTorch's slow path takes at least 240 of it */
#define MXBPF_AGENT_MEMORY_NS 100 /* measured: 85 and 130; 14 to 22 in a loop that does nothing else */
/* What comes before the start of a call that has arguments, which the runtime boxes, or a Python stack. */
#define MXBPF_AGENT_ARGS_NS  160
#define MXBPF_AGENT_STACK_NS 50

/* User: estimated cost of a row's spans; it comes after the row. Rows without cost have none. */
#define MXBPF_AGG_COST ((enum mxbpf_kind)47)
struct mxbpf_agg_cost {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 cost_ns, self_cost_ns; /* of total_ns and of self_ns */
	/* The row's times before the cost was taken out; 0: it is not taken out. Recordings have 0. */
	__u64 raw_total_ns, raw_self_ns;
	__u32 device; /* h.tgid, name_id, cls and device identify the row */
	__u8 cls;
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_cost) == 64);

/* User: rows lack calls, because --max-overhead left out their probes for a time. */
#define MXBPF_PARTIAL ((enum mxbpf_kind)48)
struct mxbpf_partial {
	struct mxbpf_rec h; /* all 0: a session leaves out the probes of all its processes */
	__u64 name_id;	    /* 0: all rows of the class */
	__u8 cls;	    /* enum mxbpf_class; STEP: what ends iterations */
	__u8 flags;	    /* enum mxbpf_partial_flag */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_partial) == 32);
enum mxbpf_partial_flag {
	MXBPF_PARTIAL_SLICED = 1 << 0, /* the calls that there are come from slices */
	MXBPF_PARTIAL_LITTLE = 1 << 1, /* it costs little: it lacks calls only if what ends iterations does */
	MXBPF_PARTIAL_OVER = 1 << 2,   /* from now on it lacks none */
};

/*
 * User: calls of a process were recorded in slices, for a part of the time; rows are sums over all slices. What costs
 * little was recorded all the time, or in slices, too. One record stands for any number of slices.
 */
#define MXBPF_SLICE ((enum mxbpf_kind)49)
struct mxbpf_slice_part {
	struct mxbpf_rec h; /* ts_ns: start of the last one */
	__u64 slices;
	__u64 slice_ns; /* their length */
	__u64 seen_ns;	/* and without the cost of watching */
	__u64 all_ns;	/* the time for which they stand */
	/* Iterations in both; the latter can be an estimate. 0: the process ended none. */
	__u64 seen_iterations, all_iterations;
	/* The time in which what costs little was recorded, in slices of its own as well, and the iterations in it. */
	__u64 marks_ns, marks_iterations;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_slice_part) == 80);

/* User: what was added to a row for the calls between slices; it comes after the row. Recordings have none. */
#define MXBPF_AGG_ESTIMATE ((enum mxbpf_kind)77)
struct mxbpf_agg_estimate {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 count, total_ns, self_ns;	  /* that were added to what was recorded */
	__u64 count_error, self_error_ns; /* half the 95 % confidence intervals of the row's count and self_ns */
	__u32 device;			  /* h.tgid, name_id, cls and device identify the row */
	__u8 cls;
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_estimate) == 72);

#endif
