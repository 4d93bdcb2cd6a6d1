/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process to look into: identity that survives PID reuse (pidfd, an open /proc/PID), what it maps, and paths to
 * the very inodes it maps (/proc/PID/map_files), whatever happened to their names. Never changes it.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "elf/elf.h"

struct tgt;

/* A file that the process has mapped executable. Borrowed from the tgt. */
struct tgt_lib {
	char *path;	 /* as the process sees it, without " (deleted)" */
	char *open_path; /* opens the mapped inode from here: /proc/PID/map_files/..., then /proc/self/fd/N */
	bool deleted;
	uint64_t dev, ino;
	/* Known after tgt_lib_elf() has succeeded: */
	uint64_t load_bias;		    /* address in the process = va in the file + load_bias */
	uint8_t build_id[ELF_BUILD_ID_MAX]; /* from the process's memory */
	size_t build_id_bytes;
	struct elf *elf;
};

/*
 * Looks at a process. A thread id is resolved to its process. Errors, each with one clear line:
 * no such process, kernel thread, zombie, 32-bit (ERR_TARGET); no permission, naming the capability (ERR_PRIVILEGE).
 */
int tgt_open(pid_t pid, struct tgt **out, struct err *e);
void tgt_close(struct tgt *t); /* NULL is legal */

pid_t tgt_pid(const struct tgt *t); /* tgid */
const char *tgt_comm(const struct tgt *t);
const char *tgt_cmdline(const struct tgt *t); /* arguments joined by spaces, hostile bytes kept */
/* Of the environment that it was started with, cut at max; hostile. */
bool tgt_env_text(const struct tgt *t, const char *name, char *text, size_t max);
/* A number from 0 to INT32_MAX in the environment that it was started with; -1: none of that name. */
int32_t tgt_env_number(const struct tgt *t, const char *name);
int tgt_pidfd(const struct tgt *t); /* polls readable at exit; borrowed */
bool tgt_alive(const struct tgt *t);
/* It has ended, or it runs another program since tgt_open() (exec): its addresses mean nothing any more. */
bool tgt_gone(const struct tgt *t);

size_t tgt_nlibs(const struct tgt *t);
struct tgt_lib *tgt_lib(struct tgt *t, size_t i);
/* First mapped file whose basename matches the glob; NULL if none. */
struct tgt_lib *tgt_find_lib(struct tgt *t, const char *glob);

/* The file whose code is mapped at an address; NULL: none, or it was mapped after tgt_open(). */
struct tgt_lib *tgt_lib_at(struct tgt *t, uint64_t addr);

/* The program itself; NULL: its file is not mapped. */
struct tgt_lib *tgt_program(struct tgt *t);

/*
 * The file behind a mapping, opened (/proc/PID/map_files, else /proc/PID/root with the same inode, never the bare path)
 * and compared: build-id and dynamic section must equal those in the process's memory (a file overwritten in place is
 * refused: -ESTALE). While the process is still mapping the file, this waits, for about a second (then: -EAGAIN).
 * lib->open_path then leads to the inode that was compared. Borrowed until tgt_close().
 */
int tgt_lib_elf(struct tgt *t, struct tgt_lib *lib, struct elf **out, struct err *e);

/* Whether code at an address lies in memory that no file is behind, as of now. */
bool tgt_code_is_anonymous(const struct tgt *t, uint64_t addr);

/* Name of a thread of the process; returns 0, or -errno once it is gone. */
int tgt_thread_comm(const struct tgt *t, pid_t tid, char comm[32]);

/* The bytes of the process at an address. 0 or -errno. */
int tgt_read(const struct tgt *t, uint64_t addr, void *buf, size_t n);
/* The same up to where nothing is mapped: how many, or -errno. */
ssize_t tgt_read_some(const struct tgt *t, uint64_t addr, void *buf, size_t n);

/* ---- a quick look at a pid, for walks over all processes: it may mean another one by the next call */

/* Bit i of *mask: a file whose basename matches globs[i] (NULL-terminated, at most 32) is mapped executable. -errno. */
int tgt_peek(pid_t pid, const char *const *globs, unsigned *mask);
/* Whether it has mapped the very file. */
bool tgt_peek_maps(pid_t pid, const struct tgt_lib *lib);
pid_t tgt_peek_parent(pid_t pid); /* 0: none, or it has ended */
/* Name of a thread; 0, or -errno and "" once it is gone. */
int tgt_peek_comm(pid_t pid, pid_t tid, char comm[32]);

/* What a thread does, as of one moment. */
struct tgt_doing {
	char state;	   /* as in /proc/PID/stat; 0: it has ended */
	int32_t syscall;   /* in which it sleeps; -1: none */
	uint64_t args[6];  /* of that */
	uint64_t sp, pc;   /* where it will go on; 0: it runs, or may not be looked at */
	uint64_t switches; /* how often it was taken off a CPU: as long as it sleeps with these, it has not moved */
	char wchan[64];	   /* the function of the kernel in which it sleeps; "" */
};
/* 0, -ESRCH: it has ended, -EAGAIN: it moved each time that it was looked at, but for its state nothing is known. */
int tgt_peek_doing(pid_t pid, pid_t tid, struct tgt_doing *d);

/* Threads that do not run until somebody lets them. */
struct tgt_stop {
	unsigned threads, stopped;
	pid_t tracer; /* that stopped them; 0: a signal did (SIGSTOP, Ctrl-Z) */
	char tracer_comm[32];
};
/* Returns whether any thread is stopped. */
bool tgt_peek_stop(pid_t pid, struct tgt_stop *s);

#define TGT_CONTAINER_BYTES 13

struct tgt_container {
	char id[TGT_CONTAINER_BYTES];	   /* as `docker ps` shows it; "" if its cgroup has none */
	bool other_pid_ns, other_mount_ns; /* than ours */
};
void tgt_container(pid_t pid, struct tgt_container *c);

#endif
