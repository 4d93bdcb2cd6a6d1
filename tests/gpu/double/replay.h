/* SPDX-License-Identifier: Apache-2.0 */
/* Replay of a tape in the mock of CUPTI. */
#ifndef DOUBLE_REPLAY_H
#define DOUBLE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the tape; returns its API version. Ends the process if it cannot. */
uint32_t replay_open(const char *path);
bool replay_on(void);
/* Returns the size of a record of this kind on the tape, or 0. */
size_t replay_bytes(uint32_t kind);
/* Returns CUPTI's time at the begin of the tape. */
uint64_t replay_clock(void);
/* Starts the replay when the last of these calls is some time ago. */
void replay_start(void);

#endif
