/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what an owner holds grow? Within an iteration memory goes up and down, so the least of each part of the window
 * counts. How long a window is nobody knows before its end: when the parts are used up, each two become one.
 */
#ifndef FEATURE_MEMORY_GROWTH_H
#define FEATURE_MEMORY_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#define GROWTH_PARTS 8

struct memory_growth {
	int64_t least[GROWTH_PARTS]; /* bytes; of parts up to `part` */
	uint64_t start_ns;	     /* 0: nothing was noted */
	uint8_t part;		     /* the one that is not over yet */
	uint8_t shift;		     /* a part has 2^(20 + shift) ns */
};

/* Notes that the owner has held so many bytes until now. start_ns: when the device was seen first. */
void growth_note(struct memory_growth *g, uint64_t start_ns, uint64_t now_ns, int64_t bytes);
/* Returns by how much it has grown all the way, and in *ns in which time; 0: it has not, or the window is too short. */
int64_t growth_of(const struct memory_growth *g, uint64_t *ns);

#endif
