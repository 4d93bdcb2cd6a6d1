/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a process's C library that an injection calls. */
#ifndef AGENT_LIBC_H
#define AGENT_LIBC_H

#include <stdint.h>

#include "base/err.h"
#include "target/target.h"

/* Addresses in the process. */
struct agt_libc {
	uint64_t dlopen, dlopen_flags;
	uint64_t syscall;
	uint64_t restorer; /* __restore_rt: mov $15, %rax; syscall */
};

/* Returns 0, or -ENOTSUP: a static program, another C library than glibc, or a glibc that lacks a function. */
int agt_libc_find(struct tgt *t, struct agt_libc *out, struct err *e);

#endif
