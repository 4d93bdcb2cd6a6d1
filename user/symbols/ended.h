/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgets processes that have ended. Each keeps file descriptors open, and a job can start processes for ever. Some are
 * kept, because records of a process come after its end.
 */
#ifndef SYMBOLS_ENDED_H
#define SYMBOLS_ENDED_H

#include "base/hash.h"

#define SYM_PROCESSES_KEPT 16

struct tgt;

/* What the values of the hash are: their process (NULL: none), and how to free them. */
struct sym_owner {
	const struct tgt *(*target)(const void *value);
	void (*drop)(void *value);
};

/* Call it before a process is added to (tgid, 0) -> pointer. */
void sym_forget_ended(struct hash *processes, const struct sym_owner *o);

#endif
