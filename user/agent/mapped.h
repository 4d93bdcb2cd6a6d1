/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has mapped, read without allocating memory: it is asked while a thread of the process is stopped. */
#ifndef AGENT_MAPPED_H
#define AGENT_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* A file in memory that a process has mapped. */
struct mapped_file {
	char name[64]; /* of the memfd, without "memfd:" */
	uint64_t dev;  /* as stat() gives it */
	uint64_t ino;  /* 0: any file of that name */
	uint64_t base; /* where its first byte is mapped; 0: nowhere */
	bool exec;     /* part of it is mapped executable */
};
/* fd: /proc/PID/maps. Fills base and exec; 0, also if the file is not mapped, or -errno. */
int mapped_find(int fd, struct mapped_file *f);

/* A mapping on which a stack may lie. */
struct mapped_range {
	uint64_t start, end;
	bool main; /* the stack of the first thread, which grows */
};
/* Appends every writable mapping as a struct mapped_range, in order of address. 0 or -errno. */
int mapped_stacks(int fd, struct buf *ranges);

#endif
