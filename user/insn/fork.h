/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Teams as LLVM's library of OpenMP forks and joins them: one function gives the team its work, one takes it back, and
 * each thread, the master too, calls its work through a third. The first and the last are exported; what is between is
 * found by who calls whom.
 */
#ifndef INSN_FORK_H
#define INSN_FORK_H

#include <stdint.h>

#include "elf/elf.h"

#define FORK_POINTS_MAX 24

struct fork_names {
	const char *forks, *invokes; /* functions that open a region and that call a thread's work */
	const char *opens;	     /* calls forks, then what ends the region */
	const char *ends;	     /* calls what ends it as well */
};

/* Addresses of functions behind their endbr64, and of emulated instructions that every way from a call comes to. */
struct fork {
	uint64_t fork_va, invoke_va, join_va;
	/* The master has its team, and its part still before it; a thread has done its part; the region is over. The
	 * stack pointer is as before the call. */
	struct fork_points {
		uint64_t va[FORK_POINTS_MAX];
		unsigned n;
	} forked, invoked, joined;
};

/* 0; -ENOENT: there is no such function, or not of this shape; -errno. e is set whenever it is not 0. */
int fork_find(struct elf *elf, const struct fork_names *names, struct fork *out, struct err *e);

#endif
