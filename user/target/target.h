/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process to inspect. Its identity survives pid reuse (pidfd, an open /proc/PID). It has the list of mappings, and
 * paths to the mapped inodes (/proc/PID/map_files) that work whatever happened to the names. Nothing here changes the
 * process.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "elf/elf.h"

struct tgt;

/* A file that the process has mapped executable. Borrowed from the tgt. */
struct tgt_lib {
	char *path;	 /* as the process sees it, without " (deleted)" */
	char *open_path; /* opens the mapped inode from mxbpf: /proc/PID/map_files/..., later /proc/self/fd/N */
	bool deleted;
	uint64_t dev, ino;
	/* The members below are set by tgt_lib_elf(): */
	uint64_t load_bias;		    /* address in the process = va in the file + load_bias */
	uint8_t build_id[ELF_BUILD_ID_MAX]; /* from the memory of the process */
	size_t build_id_bytes;
	struct elf *elf;
	uint64_t size_bytes, written_ns; /* when the file was opened, for tgt_lib_same() */
};

/*
 * Opens a process. A thread id means its process. Errors: no such process, kernel thread, zombie, 32-bit process
 * (ERR_TARGET), or a missing permission, with the name of the capability (ERR_PRIVILEGE).
 */
int tgt_open(pid_t pid, struct tgt **out, struct err *e);
void tgt_close(struct tgt *t); /* NULL is legal */

/* Ends the process that reads files for this target, if there is one. Such files cannot be read from then on. */
void tgt_end_reader(struct tgt *t);

pid_t tgt_pid(const struct tgt *t); /* thread group id */
const char *tgt_comm(const struct tgt *t);
const char *tgt_cmdline(const struct tgt *t); /* arguments joined by spaces; bytes are not escaped */
/* Reads a variable of the environment at the start of the program, cut at max. Bytes are not escaped. */
bool tgt_env_text(const struct tgt *t, const char *name, char *text, size_t max);
/* Returns a number (0 to INT32_MAX) from that environment, or -1 if there is none of that name. */
int32_t tgt_env_number(const struct tgt *t, const char *name);
int tgt_pidfd(const struct tgt *t); /* readable when the process exits; borrowed */
bool tgt_alive(const struct tgt *t);
/* Returns true if the process has ended or has called exec since tgt_open(). Its addresses are then meaningless. */
bool tgt_gone(const struct tgt *t);

size_t tgt_nlibs(const struct tgt *t);
struct tgt_lib *tgt_lib(struct tgt *t, size_t i);
/* Returns the first mapped file whose basename matches the glob, or NULL. */
struct tgt_lib *tgt_find_lib(struct tgt *t, const char *glob);

/* Returns the file whose code is mapped at an address. NULL: none, or mapped after tgt_open(). */
struct tgt_lib *tgt_lib_at(struct tgt *t, uint64_t addr);

/* Returns the program's file, or NULL if it is not mapped. */
struct tgt_lib *tgt_program(struct tgt *t);

/*
 * Opens the file behind a mapping: through /proc/PID/map_files, or /proc/PID/root with the same inode, but never by the
 * bare path. Its build-id and dynamic section must equal those in the process's memory, so a file overwritten in place
 * is refused (-ESTALE). If the process is still mapping the file, this waits about one second and then returns -EAGAIN.
 * lib->open_path then leads to the verified inode. Borrowed until tgt_close().
 */
int tgt_lib_elf(struct tgt *t, struct tgt_lib *lib, struct elf **out, struct err *e);

/* Returns false if the file was written to since tgt_lib_elf() opened it. What was read from it may not fit then. */
bool tgt_lib_same(const struct tgt_lib *lib);
/*
 * Opens that file without the checks of tgt_lib_elf(), if it has at most max_bytes. The caller closes *out before the
 * target. Returns 0, -EFBIG or -errno.
 */
int tgt_lib_look(struct tgt *t, const struct tgt_lib *lib, uint64_t max_bytes, struct elf **out);

/* Returns true if the code at an address is currently in anonymous memory. */
bool tgt_code_is_anonymous(const struct tgt *t, uint64_t addr);
/* Returns true if the code at an address is currently of the file with this path, deleted or not. */
bool tgt_code_is_of(const struct tgt *t, uint64_t addr, const char *path);
/* Returns true if the process can write at an address. */
bool tgt_is_writable(const struct tgt *t, uint64_t addr);

/* Reads the name of a thread of the process. Returns 0, or -errno if it has ended. */
int tgt_thread_comm(const struct tgt *t, pid_t tid, char comm[32]);

/*
 * While on, tgt_read() and tgt_read_some() do not check each time that the process is still there, which takes most of
 * their time. The caller asks tgt_gone() after the last read, and then drops what was read.
 */
void tgt_check_later(struct tgt *t, bool on);
/* Reads n bytes at an address of the process. Returns 0 or -errno. */
int tgt_read(const struct tgt *t, uint64_t addr, void *buf, size_t n);
/* Reads up to n bytes, as far as memory is mapped. Returns their number or -errno. */
ssize_t tgt_read_some(const struct tgt *t, uint64_t addr, void *buf, size_t n);

/*
 * Reads a regular file by its path as the process sees it, from its root or its working directory, at most max bytes.
 * Returns their number or -errno. The file may be another one than the process has read.
 */
ssize_t tgt_read_file(const struct tgt *t, const char *path, void *buf, size_t max);

/* ---- quick looks at a pid, for walks over all processes. The pid may mean another process in the next call. */

/* A file as /proc/PID/maps names it; ino 0: none. */
struct tgt_file {
	uint64_t dev, ino;
};

/*
 * Sets bit i of *mask if a file whose basename matches globs[i] (NULL-terminated, at most 32) is mapped executable, and
 * files[i] to the first such file; files may be NULL. Returns 0 or -errno.
 */
int tgt_peek(pid_t pid, const char *const *globs, struct tgt_file *files, unsigned *mask);
/* Returns true if the process has mapped the same file as one of n libraries. */
bool tgt_peek_maps(pid_t pid, const struct tgt_lib *const *libs, unsigned n);
pid_t tgt_peek_parent(pid_t pid); /* 0: no parent, or the process has ended */
pid_t tgt_peek_group(pid_t pid);  /* its process group, 0 for some of the system; -1: the process has ended */
/* Read a file of /proc/PID into text, with a NUL that is not counted. The caller frees text in any case. 0 or -errno.
 */
int tgt_peek_cgroup(pid_t pid, struct buf *text);
int tgt_peek_environ(pid_t pid, struct buf *text);
/* Calls fn for each process of the machine, as far as /proc shows them. Returns 0 or -errno. */
int tgt_each_process(void (*fn)(void *ctx, pid_t pid), void *ctx);
/* Calls fn for each child process of any thread. Nothing if the kernel does not tell (CONFIG_PROC_CHILDREN). */
void tgt_each_child(pid_t pid, void (*fn)(void *ctx, pid_t child), void *ctx);
/* Returns true if two processes run the same program, as the same user. */
bool tgt_peek_same_program(pid_t a, pid_t b);
/* Reads the name of a thread. Returns 0, or -errno with "" if it has ended. */
int tgt_peek_comm(pid_t pid, pid_t tid, char comm[32]);

/* Reads what a process has used so far. started tells it from another process with its number. Returns 0 or -errno. */
struct tgt_usage {
	pid_t parent;
	uint64_t started, cpu_ns, resident_bytes; /* cpu_ns: of all its threads, in steps of 10 ms */
	uint64_t faults, major;			  /* page faults; those of them with I/O */
	char comm[32];
};
int tgt_peek_usage(pid_t pid, struct tgt_usage *u);

/*
 * Reads /proc/PID/task/TID/status into text, with a NUL that is not counted. The caller frees text in any case. Returns
 * 0 or -errno.
 */
int tgt_peek_status(pid_t pid, pid_t tid, struct buf *text);
/* Returns the value of a field such as "TracerPid" in that text, without leading blanks, or NULL. */
const char *tgt_status_field(const char *text, const char *name);
/* Returns a thread's id in its own namespace, or 0 if it has ended. *levels: namespaces from ours to that one. */
uint32_t tgt_peek_number(pid_t pid, pid_t tid, unsigned *levels);

/* A thread's activity at one moment. */
struct tgt_doing {
	char state;	   /* as in /proc/PID/stat; 0: it has ended */
	int32_t syscall;   /* number of the system call in which it sleeps; -1: none */
	uint64_t args[6];  /* arguments of the system call */
	uint64_t sp, pc;   /* where it will continue; 0: it runs, or mxbpf may not look */
	uint64_t switches; /* context switches; while the number stays the same, the thread has not run */
	char wchan[64];	   /* kernel function in which it sleeps; "": unknown */
};
/* Returns 0, -ESRCH if the thread has ended, or -EAGAIN if it moved during each try. Then only its state is known. */
int tgt_peek_doing(pid_t pid, pid_t tid, struct tgt_doing *d);

/*
 * The state and the system call alone, from one or two files instead of five. state is 'R', 'S', 'D' for a sleep that
 * no signal ends, 'T' or 't' if it is stopped, or 0: it cannot be read.
 */
struct tgt_call {
	char state;
	int32_t syscall; /* as above */
	bool untimed;	 /* it sleeps in a futex without a time limit */
	uint64_t futex;	 /* its address, if untimed */
	int fd;		 /* of the file that the system call reads or writes; -1: it is another call */
};
struct tgt_call tgt_peek_call(pid_t pid, pid_t tid);

/*
 * The CPU time of a thread since it began, and how long it was ready to run without a CPU. The kernel adds a wait when
 * it has ended. Returns 0, or below 0 if that is not known.
 */
int tgt_peek_cpu(pid_t pid, pid_t tid, uint64_t *cpu_ns, uint64_t *runq_ns);

/* The bytes of a process that are resident, without files and memory that it shares; 0: not known. */
uint64_t tgt_peek_resident(pid_t pid);

/* The bytes that it has read from disks so far, and those in its pages that no other process has; 0: not known. */
uint64_t tgt_peek_read(pid_t pid);
uint64_t tgt_peek_private(pid_t pid); /* takes about 20 ms for each GB */
bool tgt_peek_forked(pid_t pid);      /* it runs its parent's program, so it may have got its pages from it */

/* Threads that are stopped until somebody continues them. */
struct tgt_stop {
	unsigned threads, stopped;
	pid_t tracer; /* process that stopped them by ptrace; 0: a signal did (SIGSTOP, Ctrl-Z) */
	bool frozen;  /* by its control group */
	char tracer_comm[32];
};
/* Returns true if any thread is stopped, or the process is frozen. */
bool tgt_peek_stop(pid_t pid, struct tgt_stop *s);

bool tgt_peek_frozen(pid_t pid);

#define TGT_CONTAINER_BYTES 13

struct tgt_container {
	char id[TGT_CONTAINER_BYTES];	   /* as `docker ps` shows it; "": its cgroup has none */
	bool other_pid_ns, other_mount_ns; /* true if they differ from those of mxbpf */
};
void tgt_container(pid_t pid, struct tgt_container *c);

#endif
