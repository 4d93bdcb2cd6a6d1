/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the sample*.c files. */
#ifndef SAMPLE_PRIV_H
#define SAMPLE_PRIV_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/hash.h"
#include "symbols/sample.h"

#define NAME_BYTES 480 /* limit of a line; a longer one is cut */

/* sample_kernel.c: functions of the running kernel, read once. */
struct kernel {
	bool read;
	struct buf funcs; /* struct kernel_func, ascending */
	struct buf names; /* NUL-terminated strings, one after another */
};
/* Returns the function at addr, or NULL if /proc/kallsyms does not show addresses. Borrowed until kernel_fini(). */
const char *kernel_name(struct kernel *k, uint64_t addr);
void kernel_fini(struct kernel *k);

/* sample_call.c: returns true if the bytes before a return address can end in a call. */
#define CALL_BYTES 7
bool ends_in_call(const uint8_t bytes[CALL_BYTES]);

#endif
