/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROG_BLOCKED_H
#define PROG_BLOCKED_H

#include <stdint.h>

#define BLOCKED_ROWS 40

/* What the program blocked shares with the test: calls that have returned, those with a wrong result, and its threads.
 */
struct blocked {
	volatile uint64_t calls, damages;
	volatile uint32_t rows;
	struct {
		char name[48];
		volatile int32_t tid;
		uint32_t refused;
	} row[BLOCKED_ROWS];
};

#endif
