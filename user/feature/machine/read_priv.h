/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the read*.c files. */
#ifndef MACHINE_PRIV_H
#define MACHINE_PRIV_H

#include "feature/machine/read.h"
#include "feature/machine/gauge.h"

#define MACH_TEXT_BYTES	 (128u << 10) /* limit of a file; enough for the lines of 1000 CPUs in /proc/stat */
#define MACH_PATH_BYTES	 4352
#define MACH_LEVELS_MAX	 24
#define MACH_CPUINFO_MAX 64 /* with more CPUs /proc/cpuinfo is not read, because it is the kernel's slowest file */
#define MACH_SAMPLED_MAX 16 /* limit of CPUs whose frequency is read */

/* ---- read_parse.c: parses NUL-terminated texts of files. -ENODATA means that the value is not there. */

int mach_parse(const struct machine_source *from, const char *text, uint64_t *value);

/*
 * Finds the path of a process in a hierarchy, in the text of its /proc/PID/cgroup. controller NULL means version 2.
 * Returns 0, -ENOENT if it is in none, -ESTALE if its group was removed, or -E2BIG.
 */
int mach_group_path(const char *text, const char *controller, char path[MACH_PATH_BYTES]);

/*
 * Finds a directory that shows a group, in the text of a /proc/PID/mountinfo. Of the mounts of the hierarchy that show
 * the group, it takes the one that shows most of its parents. *mount_len is the length of the mount point in dir.
 * Returns 0, or -ENOENT if no mount shows it.
 */
int mach_group_dir(const char *mountinfo, const char *controller, const char *path, char dir[MACH_PATH_BYTES],
		   size_t *mount_len);

/*
 * Reads the line of a CPU in /proc/stat: the ticks it was busy, and all ticks. Start with *pos = 0. Returns false at
 * the end.
 */
bool mach_next_cpu(const char *text, size_t *pos, unsigned *cpu, uint64_t *busy, uint64_t *all);

/* Reads the "cpu MHz" of a CPU in /proc/cpuinfo, in kHz. Returns 0 or -ENODATA. */
int mach_cpuinfo_khz(const char *text, unsigned cpu, uint64_t *khz);

/* ---- read.c */

/* Read at most cap - 1 bytes from the start of a file, and append a NUL. They return the number of bytes or -errno. */
ssize_t mach_pread(int fd, char *text, size_t cap);
ssize_t mach_slurp(const char *path, char *text, size_t cap);

/* ---- read_freq.c: frequencies of CPUs that were busy since the last call */

struct mach_freq {
	const char *sys;  /* "/sys"; tests use another one */
	struct buf ticks; /* struct { busy, all } of each CPU at the last call */
	char *cpuinfo;	  /* its text, MACH_TEXT_BYTES; NULL: not read yet */
	uint64_t khz_max; /* 0: unknown */
};

/*
 * Computes a frequency; `stat` is the text of /proc/stat. Returns 0, or -ENODATA if no CPU was busy or no frequency is
 * readable.
 */
int mach_freq(struct mach_freq *f, const char *stat, uint64_t *khz);
void mach_freq_fini(struct mach_freq *f);

/* ---- read_groups.c */

/* A cgroup that counts for the process. */
struct mach_group {
	const char *controller; /* for version 1 the name in the table; NULL: version 2 */
	int dirfd;		/* owned */
	char *name;		/* owned: the text of MXBPF_NAME_SCOPE */
	unsigned level;		/* 0: the process's own group; 1: its parent */
	uint16_t scope;
	bool named; /* its NAME was sent */
};

/*
 * Appends every struct mach_group of a hierarchy, beginning with the process's own. Returns 0 or -errno, which
 * mach_groups_reason() describes.
 */
int mach_groups_open(pid_t pid, const char *cgroup, const char *controller, struct buf *groups);
const char *mach_groups_reason(int err);
void mach_groups_close(struct buf *groups);

#endif
