/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tape has the buffers that CUPTI completed on a machine with a GPU, as they were. facts.c records it, and the mock
 * of CUPTI replays it. It is a head and chunks in the order of time. The payload of a chunk is padded to 8 bytes.
 */
#ifndef TAPE_H
#define TAPE_H

#include <stdint.h>

#define TAPE_MAGIC "mxbpftap"

struct tape_head {
	char magic[8];
	uint32_t version; /* cuptiGetVersion() */
	uint32_t pid;
};

enum tape_type {
	TAPE_BUFFER = 1, /* records */
	TAPE_NAME = 2,	 /* u64 address, then a text with its NUL: holds for the buffers behind it */
	TAPE_CLOCK = 3,	 /* u64 CLOCK_MONOTONIC before, CUPTI's time, CLOCK_MONOTONIC after */
	TAPE_SIZE = 4,	 /* u32 kind, u32 bytes of its records */
};

struct tape_chunk {
	uint32_t type, bytes; /* bytes: without padding */
};

#endif
