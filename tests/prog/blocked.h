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
		volatile uint32_t done;
		uint32_t refused;
		int32_t signal; /* to send to the thread while it is stopped; 0: none */
	} row[BLOCKED_ROWS];
};

#endif
