/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a profile of pprof. Strings are hostile, and are made safe. All functions return 0 or -ENOMEM. */
#ifndef VIEW_PROFILE_H
#define VIEW_PROFILE_H

#include "base/buf.h"
#include "base/hash.h"
#include "view/stacks.h"

#define PROFILE_FRAMES_MAX 640 /* 512 spans, 64 of machine code, Python's 32 with their modules */

/* Zero-initialise it, and call profile_fini() at the end. */
struct profile {
	struct buf profile;	  /* what is written: not compressed */
	struct buf message, part; /* part: a message within `message` */
	struct hash strings;	  /* two hashes of the text -> 1 + index */
	struct hash functions;	  /* (name, file) -> id */
	struct hash locations;	  /* (function, line) -> id */
	uint64_t nstrings;
	uint64_t at[PROFILE_FRAMES_MAX]; /* locations of the current stack, outermost first */
	size_t depth;
};

struct profile_type {
	const char *name, *unit;
};

struct profile_head {
	struct profile_type count, time; /* the two values of each sample; the period is one of `time` */
	const char *program;
	uint64_t start_unix_ns, duration_ns, period_ns;
};

int profile_head(struct profile *p, const struct profile_head *h); /* first */
/* For each sample: its frames, the outermost first, then the values of its stack, then its labels, then its end. */
int profile_frame(void *ctx, const struct view_stack_frame *f); /* ctx: struct profile */
int profile_stack(struct profile *p, const uint64_t *values, unsigned n);
int profile_label(struct profile *p, const char *key, const char *text, uint64_t n); /* text NULL: a number */
int profile_end_sample(struct profile *p);
int profile_comment(struct profile *p, const char *text);
void profile_fini(struct profile *p);

/*
 * looks.c: makes a profile of where Python threads stood ten times a second, on or off the CPU: the lines of Python,
 * and inside of them the call of the runtime. Only of the processes that `of` selects. *looks: number of looks in it.
 */
int profile_looks(struct profile *p, const struct view_input *in, bool (*of)(void *ctx, uint32_t tgid), void *ctx,
		  uint64_t *looks);

#endif
