/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts what the seccomp filters of a thread do to the system calls of an injection, because some filters kill the
 * process. A BPF program reads them, so mxbpf may have a filter of its own.
 */
#ifndef AGENT_SECCOMP_H
#define AGENT_SECCOMP_H

#include <sys/types.h>

#include "base/err.h"

struct agt_filters;

/* *out is to be closed after an error, too. */
int agt_filters_open(struct agt_filters **out, struct err *e);
void agt_filters_close(struct agt_filters *f); /* NULL is legal */

/*
 * Sets *call to the name of a system call that loading needs and that a filter of the thread refuses, or to NULL
 * (static text). Returns 0, or -errno if not all its filters can be read: *call is then what those refuse that can.
 */
int agt_seccomp_refuses(const struct agt_filters *f, pid_t tid, const char **call);

#endif
