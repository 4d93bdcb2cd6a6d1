/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits mxbpf itself by a seccomp filter: a system call that the command does not need fails with EPERM, and one that
 * no profiler needs ends mxbpf. A launched command must not inherit the filter, so it is forked before.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* What a command does beside reading and writing files, using memory and threads, and waiting. */
enum sbx_need {
	SBX_LOOK = 1 << 0,  /* reads other processes */
	SBX_MAPS = 1 << 1,  /* uses BPF programs and maps that are loaded */
	SBX_LOAD = 1 << 2,  /* loads and attaches BPF programs */
	SBX_NET = 1 << 3,   /* answers and sends over the network */
	SBX_SELF = 1 << 4,  /* executes mxbpf again */
	SBX_USER = 1 << 5,  /* becomes another user */
	SBX_ENTER = 1 << 6, /* enters the namespaces of other processes */
	SBX_TRACE = 1 << 7, /* loads the agent into other processes */
	SBX_NEEDS = 8,
};

/* A system call that is allowed. Rows of the same call add up. */
struct sbx_row {
	const char *name;
	uint16_t nr;
	uint16_t need; /* one of enum sbx_need; 0: every command */
	uint8_t arg;   /* the argument with a condition */
	uint8_t nvalues;
	const uint32_t *values; /* the argument must be one of them; NULL: any */
	uint32_t without;	/* the argument must have none of these bits */
	const char *why;
};
extern const struct sbx_row sbx_rows[]; /* ends with name == NULL */

/* A system call that ends mxbpf. */
struct sbx_never {
	const char *name;
	uint16_t nr;
};
extern const struct sbx_never sbx_never[]; /* ends with name == NULL */

const char *sbx_need_words(unsigned bit); /* "loads and attaches BPF programs"; 0: of every command */

/*
 * Installs the filter in all threads of mxbpf; what was forked before stays without. Filters add up, so a later call
 * can only take away. tell: each call that is refused is named on stderr. 0, or -errno with e set.
 */
int sbx_enter(unsigned needs, bool tell, struct err *e);

/* Returns true if the filter would disturb what runs mxbpf: sanitizers and valgrind make system calls of their own. */
bool sbx_disturbs(void);

#endif
