/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Gauges: readings of the machine and of control groups, taken by user space about once a second. */
#ifndef MXBPF_GAUGE_H
#define MXBPF_GAUGE_H

#include "mxbpf_event.h"

/* Gauges by id. mdl_gauges[] in user/feature/machine/fold.c has their sources, units and uses. */
enum mxbpf_gauge_id {
	MXBPF_GAUGE_CPU_BUSY = 1,
	MXBPF_GAUGE_CPU_IDLE = 2,
	MXBPF_GAUGE_CPU_IOWAIT = 3,
	MXBPF_GAUGE_CPU_STEAL = 4,
	MXBPF_GAUGE_CPU_KHZ = 5,
	MXBPF_GAUGE_CPU_KHZ_MAX = 6,
	MXBPF_GAUGE_STALL_CPU = 7,
	MXBPF_GAUGE_STALL_IO = 8,
	MXBPF_GAUGE_STALL_IO_ALL = 9,
	MXBPF_GAUGE_STALL_MEMORY = 10,
	MXBPF_GAUGE_STALL_MEMORY_ALL = 11,
	/* The next ones are of the target's own control group. */
	MXBPF_GAUGE_GROUP_WEIGHT = 12,
	MXBPF_GAUGE_GROUP_CPUS = 13,
	MXBPF_GAUGE_GROUP_STALL_CPU = 14,
	MXBPF_GAUGE_GROUP_STALL_IO = 15,
	MXBPF_GAUGE_GROUP_STALL_IO_ALL = 16,
	MXBPF_GAUGE_GROUP_STALL_MEMORY = 17,
	MXBPF_GAUGE_GROUP_STALL_MEMORY_ALL = 18,
	MXBPF_GAUGE_GROUP_MEMORY = 19,
	MXBPF_GAUGE_GROUP_CPU = 20,
	/* The next ones are of that group and of each group that contains it. */
	MXBPF_GAUGE_PERIODS = 21,
	MXBPF_GAUGE_PERIODS_THROTTLED = 22,
	MXBPF_GAUGE_THROTTLED = 23,
	MXBPF_GAUGE_CPU_MAX = 24,
	MXBPF_GAUGE_MEMORY_MAX = 25,
	MXBPF_GAUGE_MEMORY_HIGH = 26,
	MXBPF_GAUGE_MEMORY_MAX_HITS = 27,
	MXBPF_GAUGE_MEMORY_HIGH_HITS = 28,
	MXBPF_GAUGE_OOM_KILLS = 29,
	MXBPF_GAUGE_IDS = 30,
};

#define MXBPF_GAUGE_NO_LIMIT (~0ull)

enum mxbpf_gauge_flag {
	MXBPF_GAUGE_RESUMED = 1 << 0, /* the time since the previous reading is not in the window */
};

struct mxbpf_gauge {
	struct mxbpf_rec h; /* ts_ns: time of the last reading; tgid: 0 */
	__u64 value;	    /* last reading */
	__u16 id;	    /* enum mxbpf_gauge_id */
	__u16 scope;	    /* 0: the machine; else a control group, MXBPF_NAME_SCOPE */
	__u32 flags;	    /* enum mxbpf_gauge_flag */
	/* Only in a record of several readings (size MXBPF_GAUGE_BYTES_MIN without). */
	__u64 first_ns, first;
	__u64 difference; /* sums of differences and of times between readings, without gaps before resumed ones */
	__u64 elapsed_ns;
	__u64 count; /* number of valid readings, which the next members summarize */
	__u64 sum, min, max;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gauge) == 96);
#define MXBPF_GAUGE_BYTES_MIN 32

#endif
