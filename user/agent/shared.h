/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that an agent shares, as a file. It is read through the gate (records/gate.h), and written here: the few
 * fields that mxbpf sets. Nothing of it is mapped, except one page for waking the agent, which mxbpf never touches.
 */
#ifndef AGENT_SHARED_H
#define AGENT_SHARED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "records/gate.h"

struct shared {
	int fd;		  /* -1: not opened */
	const char *page; /* with the word that the agent's thread sleeps on; NULL: none */
};

/*
 * Opens the memory at an address of a process. It must be memory that no path leads to and that the process can write
 * itself: a process could also name a mapping of another user's file, or of a file system that answers never. Returns
 * 0, or -errno with e set.
 */
int shared_open(struct shared *s, pid_t pid, const struct mxbpf_agent_config *c, uint64_t bytes, struct err *e);
/* Opens the page that a forked child has inherited of its parent's memory, at the same address. 0 or -errno. */
int shared_open_family(struct shared *s, pid_t pid, const struct mxbpf_agent_config *c);
void shared_close(struct shared *s);

/* Sets a field of struct mxbpf_agent_shared. If the process has made the memory shorter, a read fails later. */
#define SHARED_SET(s, field, value)                                                                                    \
	shared_write((s), offsetof(struct mxbpf_agent_shared, field),                                                  \
		     &(__typeof__(((struct mxbpf_agent_shared *)0)->field)){value},                                    \
		     sizeof(((struct mxbpf_agent_shared *)0)->field))
void shared_write(const struct shared *s, uint64_t off, const void *from, size_t bytes);
/* Wakes the agent's thread after a change of gpu.want. */
void shared_wake(const struct shared *s);

#endif
