/* SPDX-License-Identifier: Apache-2.0 */
/* What seccomp filters of a stopped thread would do to the system calls of an injection: some filters kill for one. */
#ifndef AGENT_SECCOMP_H
#define AGENT_SECCOMP_H

#include <sys/types.h>

/*
 * The name of a system call that loading needs and that a filter of the thread, which this thread traces, refuses;
 * NULL: none does, or the filters cannot be read (that takes CAP_SYS_ADMIN, and a tracer without a filter of its own).
 */
const char *agt_seccomp_refuses(pid_t tid);

#endif
