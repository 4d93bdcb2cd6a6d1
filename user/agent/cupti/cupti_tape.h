/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tape of what CUPTI has delivered, for tests without a GPU: the mock of a GPU replays it. tests/gpu/double/tape.h
 * has the format.
 */
#ifndef AGENT_LIB_CUPTI_TAPE_H
#define AGENT_LIB_CUPTI_TAPE_H

#include <stddef.h>
#include <stdint.h>

#define TAPE_BYTES_MAX (8u << 20) /* later buffers are left out */

/* Creates the file. The other functions do nothing before that. */
void cupti_tape_open(const char *path);
/* Begins the tape. The version is that of CUPTI. */
void cupti_tape_begin(uint32_t version);
/* A reading of CUPTI's clock between two of CLOCK_MONOTONIC. */
void cupti_tape_clock(uint64_t before_ns, uint64_t cupti_ns, uint64_t after_ns);
void cupti_tape_buffer(uint8_t *records, size_t valid);

#endif
