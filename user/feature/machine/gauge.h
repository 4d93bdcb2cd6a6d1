/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gauges: what is read of the machine and of the target's control group while a session goes on. One table says of
 * each where it stands, how it is read, what it is and when it is worth a sentence; read.c reads by it, outputs
 * show by it.
 */
#ifndef MODEL_GAUGE_H
#define MODEL_GAUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_gauge.h"

enum machine_of {
	MACHINE_OF_MACHINE,
	MACHINE_OF_GROUP,  /* the target's own */
	MACHINE_OF_GROUPS, /* that and each around it: limits of all of them hold */
};

enum machine_form {
	MACHINE_FORM_NUMBER,  /* one number; "max", or what is below 0: no limit */
	MACHINE_FORM_KEYED,   /* behind `key` and a blank, in a line of its own */
	MACHINE_FORM_TICKS,   /* of the line `key`, the sum of `fields` */
	MACHINE_FORM_STALL,   /* of the line `key`, behind "total=" */
	MACHINE_FORM_QUOTA,   /* two numbers, the quota of each period: thousandths of a CPU */
	MACHINE_FORM_CPUS,    /* how many in a list as "0-3,8" */
	MACHINE_FORM_KHZ,     /* the mean frequency of CPUs that are busy, by that file and others */
	MACHINE_FORM_KHZ_MAX, /* the mean of what these could have */
};

struct machine_source {
	const char *controller; /* of version 1, in whose hierarchy the file stands; NULL: of version 2 */
	const char *file;	/* NULL: there is no such source */
	const char *file2;	/* read behind it; NULL: none */
	enum machine_form form;
	const char *key;
	unsigned fields; /* bits */
	uint64_t times;	 /* from its unit to the gauge's; 0: the same */
};

enum machine_unit { MACHINE_UNIT_NS, MACHINE_UNIT_BYTES, MACHINE_UNIT_COUNT, MACHINE_UNIT_MILLICPUS, MACHINE_UNIT_KHZ };
extern const char *const machine_units[];

/* Of what its share is that is compared with its threshold. */
enum machine_share {
	MACHINE_SHARE_NONE,
	MACHINE_SHARE_TIME,	/* difference of elapsed time */
	MACHINE_SHARE_CPU_TIME, /* difference of that of all CPU_* */
	MACHINE_SHARE_KHZ,	/* mean of that of CPU_KHZ_MAX; from the threshold downwards */
	MACHINE_SHARE_HITS,	/* no share: the difference itself */
};

enum machine_track {
	MACHINE_TRACK_NONE,
	MACHINE_TRACK_VALUE,
	MACHINE_TRACK_PERCENT, /* of the time from reading to reading */
	MACHINE_TRACK_CPUS,    /* CPU time in that time */
};

struct machine_gauge {
	const char *name;
	enum machine_unit unit;
	bool rises; /* counted from some time on: differences say something */
	enum machine_of of;
	struct machine_source from[2]; /* the first that is there */
	enum machine_track track;
	const char *title; /* of the track */
	enum machine_share share;
	unsigned threshold; /* percent, or hits, from which on it is said */
	const char *says;   /* "%s": its share or hits, then its limit with the name of its file; NULL: nothing */
	unsigned limit;	    /* id of it; 0 none */
	unsigned unless;    /* id of one that says it better where it is there; 0 none */
};

extern const struct machine_gauge machine_gauges[MXBPF_GAUGE_IDS]; /* by enum mxbpf_gauge_id; name NULL: none */

/* What a gauge read over the window, in its unit; as struct mxbpf_gauge. */
struct machine_row {
	uint16_t id, scope;
	uint64_t first_ns, last_ns;
	uint64_t first, last; /* may be MXBPF_GAUGE_NO_LIMIT */
	uint64_t difference, elapsed_ns;
	uint64_t count, sum, min, max;
};

#endif
