/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room only. */
#ifndef TARGET_PRIV_H
#define TARGET_PRIV_H

#include "base/buf.h"
#include "target/target.h"

#define TGT_MAPS_MAX_BYTES (64u << 20)

/* One line of /proc/PID/maps. */
struct tgt_map {
	uint64_t start, end; /* addresses */
	uint64_t off;	     /* of the first byte in the file */
	uint64_t dev, ino;
	bool exec, deleted;
	char *path; /* borrowed from the line; "" for anonymous memory */
};

struct tgt_slot {
	struct tgt_lib lib;	  /* first: tgt_lib pointers are cast back */
	uint64_t start, end, off; /* the first executable mapping */
	int fd;			  /* the verified inode, -1 before tgt_lib_elf() */
};

struct tgt {
	pid_t pid;
	int pidfd;
	int procfd; /* directory /proc/PID: bound to this process, fails for ever once it is reaped */
	int mapsfd; /* /proc/PID/maps: bound to the address space seen at tgt_open() */
	int memfd;  /* /proc/PID/mem, likewise; -1 without the right to open it */
	char comm[64];
	char label[160]; /* "1234 (python)", safe to show */
	char *cmdline;
	struct tgt_slot *slots;
	size_t nslots;
};

/* Reads a file of /proc/PID whole, at most cap bytes; a NUL follows that is not counted. 0 or -errno. */
int tgt_slurp(int dirfd, const char *name, size_t cap, struct buf *out);

/* The same of the name of a thread, without its newline; "" with -errno. */
int tgt_slurp_comm(int dirfd, const char *name, char comm[32]);

/* What a failed access to `what` of the process means: it is gone, it may not be looked at, or I/O. Returns a code. */
int tgt_fail(const struct tgt *t, int code, const char *what, struct err *e);

/* Parses a line without its newline, in place: \012 becomes a newline, " (deleted)" is cut. 0 or -EBADMSG. */
int tgt_map_parse(char *line, struct tgt_map *m);

/* Fills slots with the files mapped executable, one per inode, in order of address. Text is overwritten. 0 or -ENOMEM.
 */
int tgt_maps_libs(struct tgt *t, char *text);

/* Whether the byte at `off` of the library's file is mapped at an address, as of now. */
bool tgt_maps_has(const struct tgt *t, const struct tgt_lib *lib, uint64_t addr, uint64_t off);

/* Bit i: a file whose basename matches globs[i] is mapped executable. Text is overwritten. */
unsigned tgt_maps_match(char *text, const char *const *globs);

/* The id in the text of /proc/PID/cgroup, 12 digits of it; false: none, id is as it was. */
bool tgt_cgroup_container(const char *text, char id[TGT_CONTAINER_BYTES]);

#endif
