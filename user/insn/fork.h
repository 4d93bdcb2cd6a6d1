/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds how LLVM's OpenMP library forks and joins teams. One function gives the team its work, one takes it back, and
 * each thread, including the master, calls its work through a third. The first and the third are exported. The second
 * is found by the calls.
 */
#ifndef INSN_FORK_H
#define INSN_FORK_H

#include <stdint.h>

#include "elf/elf.h"

#define FORK_POINTS_MAX 24

struct fork_names {
	const char *forks, *invokes; /* exported functions that open a region, and that call a thread's work */
	const char *opens;	     /* calls `forks`, then the function that ends the region */
	const char *ends;	     /* also calls the function that ends the region */
};

/* Addresses of functions after their endbr64, and of emulated instructions on every path after a call. */
struct fork {
	uint64_t fork_va, invoke_va, join_va;
	/*
	 * forked: the master has its team and starts its part. invoked: a thread has done its part. joined: the region
	 * is over. The stack pointer is as before the call.
	 */
	struct fork_points {
		uint64_t va[FORK_POINTS_MAX];
		unsigned n;
	} forked, invoked, joined;
};

/* Returns 0, -ENOENT if there is no such function or it has another shape, or -errno. e is set on failure. */
int fork_find(struct elf *elf, const struct fork_names *names, struct fork *out, struct err *e);

#endif
