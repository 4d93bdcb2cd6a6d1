/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings of a process, read without allocating memory, because a thread of the process is stopped meanwhile. */
#ifndef AGENT_MAPPED_H
#define AGENT_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* A memfd file that a process has mapped. */
struct mapped_file {
	char name[64]; /* name of the memfd, without "memfd:" */
	uint64_t dev;  /* device number as in struct stat */
	uint64_t ino;  /* 0: any file of that name */
	uint64_t base; /* address of its first byte; 0: not mapped */
	bool exec;     /* a part of it is mapped executable */
};
/* Fills base and exec. fd is /proc/PID/maps. Returns 0, also if the file is not mapped, or -errno. */
int mapped_find(int fd, struct mapped_file *f);

/* A mapping that may hold a stack. */
struct mapped_range {
	uint64_t start, end;
	bool main; /* stack of the first thread, which grows on demand */
};
/* Appends each writable mapping as a struct mapped_range, in order of address. Returns 0 or -errno. */
int mapped_stacks(int fd, struct buf *ranges);

#endif
