/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts what the seccomp filters of a stopped thread do to the system calls of an injection, because some
 * filters kill the process.
 */
#ifndef AGENT_SECCOMP_H
#define AGENT_SECCOMP_H

#include <sys/types.h>

/*
 * Returns the name of a system call that loading needs and that a filter of the thread refuses, or NULL. This
 * thread must trace the other one. NULL also means that the filters cannot be read, for which the tracer needs
 * CAP_SYS_ADMIN and must have no filter of its own.
 */
const char *agt_seccomp_refuses(pid_t tid);

#endif
