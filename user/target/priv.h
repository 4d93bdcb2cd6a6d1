/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of this room. */
#ifndef TARGET_PRIV_H
#define TARGET_PRIV_H

#include "base/buf.h"
#include "target/far.h"
#include "target/target.h"

#define TGT_MAPS_MAX_BYTES    (64u << 20)
#define TGT_ENVIRON_MAX_BYTES (1u << 20)

/* One line of /proc/PID/maps. */
struct tgt_map {
	uint64_t start, end; /* addresses */
	uint64_t off;	     /* file offset of the first byte */
	uint64_t dev, ino;
	bool write, exec, deleted;
	char *path; /* borrowed from the line; "" for anonymous memory */
};

struct tgt_slot {
	struct tgt_lib lib;	  /* first, because tgt_lib pointers are cast back to the slot */
	uint64_t start, end, off; /* the first executable mapping */
	int fd;			  /* the verified inode, or a name of it (O_PATH); -1 before tgt_lib_elf() */
};

struct tgt {
	pid_t pid;
	int pidfd;
	int procfd;	  /* directory /proc/PID; bound to this process: reads fail once it is reaped */
	int mapsfd;	  /* /proc/PID/maps; bound to the address space at tgt_open() */
	int memfd;	  /* /proc/PID/mem; bound to the address space at tgt_open(); -1 without permission */
	bool check_later; /* tgt_check_later() */
	bool wary;	  /* a file is mapped that need not answer, so memory is read by far_memory() */
	struct far *far;
	char comm[64];
	char label[160]; /* "1234 (python)", safe to print */
	char *cmdline;
	struct tgt_slot *slots;
	size_t nslots;
};

/* Reads a file of /proc/PID, at most cap bytes, and appends a NUL that is not counted. Returns 0 or -errno. */
int tgt_slurp(int dirfd, const char *name, size_t cap, struct buf *out);

/* Reads the name of a thread without its newline. On -errno the name is "". */
int tgt_slurp_comm(int dirfd, const char *name, char comm[32]);

/* Parses a number of digits only, up to INT32_MAX. Returns -1 for any other text. */
int32_t tgt_number(const char *text);

/* Reads the environment of the process with this directory of /proc, at most TGT_ENVIRON_MAX_BYTES. Returns 0 or
 * -errno. */
int tgt_environ(struct far *far, int procfd, pid_t pid, struct buf *text);

/* Returns the value of a variable in the text of /proc/PID/environ, which a NUL follows, or NULL. */
const char *tgt_env_find(const char *env, size_t bytes, const char *name);

/* Sets the name of the job from what the caller has read; the other labels are known. */
struct tgt_labels;
void tgt_job_name(const struct tgt *t, const char *env, size_t env_bytes, const char *cgroup, struct tgt_labels *l);

/*
 * Sets e to the meaning of a failed access to `what`: the process has ended, access is not permitted, or an I/O error.
 * Returns a code.
 */
int tgt_fail(const struct tgt *t, int code, const char *what, struct err *e);

/*
 * Parses a line without its newline in place: \012 becomes a newline, " (deleted)" is removed. Returns 0 or -EBADMSG.
 */
int tgt_map_parse(char *line, struct tgt_map *m);

/*
 * Fills slots with the files mapped executable, one per inode, in the order of addresses. Overwrites text. Returns 0 or
 * -ENOMEM.
 */
int tgt_maps_libs(struct tgt *t, char *text);

/* Returns true if the byte at `off` of the library's file is currently mapped at an address. */
bool tgt_maps_has(const struct tgt *t, const struct tgt_lib *lib, uint64_t addr, uint64_t off);

/* Sets bit i if a file whose basename matches globs[i] is mapped executable. Overwrites text. */
unsigned tgt_maps_match(char *text, const char *const *globs, struct tgt_file *files);

/*
 * Finds the container id in the text of /proc/PID/cgroup and copies 12 digits of it. Returns false if there is none; id
 * is then unchanged.
 */
bool tgt_cgroup_container(const char *text, char id[TGT_CONTAINER_BYTES]);

#endif
