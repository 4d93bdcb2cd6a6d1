/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that need not end. A server of NFS that is down, or a FUSE file system of the target's own, need not answer,
 * and no signal, not even SIGKILL, ends the wait of a thread that has asked it. So a child process asks and reads, and
 * mxbpf waits for it with a limit. mxbpf itself has no descriptor of such a file: close() asks the server, too.
 */
#ifndef TARGET_FAR_H
#define TARGET_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct far;

/* An open file. */
struct far_file {
	struct far *far;     /* the child reads it; NULL: mxbpf can */
	int fd;		     /* if far, it only names the file (O_PATH). Owned by the caller */
	uint32_t slot, life; /* of the child; each new child has the next life */
	uint64_t dev, ino, size_bytes;
};

/*
 * Opens a regular file of a directory that is open. dev is the device of the file, if the caller knows it, or 0.
 * Returns 0, -ETIMEDOUT if its file system does not answer within two seconds, -ESTALE if the file is not regular, or
 * -errno.
 */
int far_open(struct far *far, int dirfd, const char *name, uint64_t dev, struct far_file *f);
/* Closes the file but not f->fd. */
void far_close(const struct far_file *f);
/* Returns the number of bytes, which may be less than n, or -errno. */
ssize_t far_pread(const struct far_file *f, void *buf, size_t n, uint64_t off);

/*
 * Reads memory of a process, as process_vm_readv() does: the kernel reads a page of a mapped file for whoever reads it.
 * (It does not do that for /proc/PID/cmdline and environ.) far NULL: mxbpf itself reads. Returns a number of
 * bytes or -errno.
 */
ssize_t far_memory(struct far *far, pid_t pid, uint64_t addr, void *buf, size_t n);

/* The child is started when it is needed first. NULL: out of memory. */
struct far *far_new(void);
/* Ends the child for good. Reads of its files fail from then on. */
void far_end(struct far *far);
void far_free(struct far *far); /* NULL is legal */

#endif
