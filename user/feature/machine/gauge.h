/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gauges: numbers of the machine and of the target's control group that are read during a session. One table describes
 * each gauge: its file, the format of the file, its unit, and when outputs mention it. read.c and the outputs use this
 * table.
 */
#ifndef MODEL_GAUGE_H
#define MODEL_GAUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_gauge.h"

enum machine_of {
	MACHINE_OF_MACHINE,
	MACHINE_OF_GROUP,  /* the control group of the target */
	MACHINE_OF_GROUPS, /* that group and all its ancestors, because the limits of all apply */
};

enum machine_form {
	MACHINE_FORM_NUMBER,  /* one number; "max" or a negative number means no limit */
	MACHINE_FORM_KEYED,   /* the number after `key` and a space, on a line of its own */
	MACHINE_FORM_TICKS,   /* on the line `key`, the sum of `fields` */
	MACHINE_FORM_STALL,   /* on the line `key`, the number after "total=" */
	MACHINE_FORM_QUOTA,   /* two numbers, quota and period: thousandths of a CPU */
	MACHINE_FORM_CPUS,    /* number of CPUs in a list such as "0-3,8" */
	MACHINE_FORM_KHZ,     /* mean frequency of the busy CPUs, from this file and others */
	MACHINE_FORM_KHZ_MAX, /* mean of the highest frequencies of the busy CPUs */
};

struct machine_source {
	const char *controller; /* controller of cgroup version 1 whose hierarchy has the file; NULL: version 2 */
	const char *file;	/* NULL: there is no such source */
	const char *file2;	/* read after `file`; NULL: none */
	enum machine_form form;
	const char *key;
	unsigned fields; /* mask of columns */
	uint64_t times;	 /* factor from the file's unit to the gauge's; 0: no conversion */
};

enum machine_unit { MACHINE_UNIT_NS, MACHINE_UNIT_BYTES, MACHINE_UNIT_COUNT, MACHINE_UNIT_MILLICPUS, MACHINE_UNIT_KHZ };
extern const char *const machine_units[];

/* The quantity that is compared with the threshold. */
enum machine_share {
	MACHINE_SHARE_NONE,
	MACHINE_SHARE_TIME,	/* difference as a share of the elapsed time */
	MACHINE_SHARE_CPU_TIME, /* difference as a share of the difference of all CPU_* gauges */
	MACHINE_SHARE_KHZ,	/* mean as a share of the mean of CPU_KHZ_MAX; mentioned if below the threshold */
	MACHINE_SHARE_HITS,	/* the difference itself */
};

enum machine_track {
	MACHINE_TRACK_NONE,
	MACHINE_TRACK_VALUE,
	MACHINE_TRACK_PERCENT, /* share of the time between two readings */
	MACHINE_TRACK_CPUS,    /* CPU time between two readings, in CPUs */
};

struct machine_gauge {
	const char *name;
	enum machine_unit unit;
	bool rises; /* a counter that only rises, so outputs use differences */
	enum machine_of of;
	struct machine_source from[2]; /* the first one that exists counts */
	enum machine_track track;
	const char *title; /* title of the track */
	enum machine_share share;
	unsigned threshold; /* percent or hits from which outputs mention it */
	const char
		*says;	 /* sentence; "%s" is the share or hits, then the limit with the name of its file; NULL: none */
	unsigned limit;	 /* id of the gauge of its limit; 0: none */
	unsigned unless; /* id of a gauge that replaces this one if it exists; 0: none */
};

extern const struct machine_gauge
	machine_gauges[MXBPF_GAUGE_IDS]; /* by enum mxbpf_gauge_id; name NULL: no such gauge */

/* Readings of a gauge over the window, in its unit, like struct mxbpf_gauge. */
struct machine_row {
	uint16_t id, scope;
	uint64_t first_ns, last_ns;
	uint64_t first, last; /* may be MXBPF_GAUGE_NO_LIMIT */
	uint64_t difference, elapsed_ns;
	uint64_t count, sum, min, max;
};

#endif
