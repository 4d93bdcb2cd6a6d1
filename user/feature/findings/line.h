/* SPDX-License-Identifier: Apache-2.0 */
/* What facts name: a line of the program, an operator. */
#ifndef FEATURE_FINDINGS_LINE_H
#define FEATURE_FINDINGS_LINE_H

#include <stddef.h>
#include <stdint.h>

#define FACTS_LINE_BYTES    200
#define FACTS_LOOKS_LEAST   3 /* at a line, so that it is named */
#define FACTS_OPERATORS_MAX 3

/* A line of Python and how many looks found a thread there; text "": none is known. */
struct fact_line {
	char text[FACTS_LINE_BYTES]; /* "train.py(12): step", hostile */
	uint64_t looks, of;	     /* of so many looks at these threads */
	uint64_t asleep;	     /* of the looks, those that found it asleep */
	/* How it slept in most of these, if there is such a way; calls: how much more often than in all others. */
	uint64_t calls;
	int32_t syscall;
	uint8_t sleep; /* enum mxbpf_sleep */
	uint8_t on;    /* enum mxbpf_on */
};

/* An operator and how much of something it has; much 0: none. */
struct fact_operator {
	const char *name; /* hostile, len bytes, borrowed from the model */
	size_t len;
	uint64_t much;
};

#endif
