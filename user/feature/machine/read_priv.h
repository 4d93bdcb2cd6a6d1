/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef MACHINE_PRIV_H
#define MACHINE_PRIV_H

#include "feature/machine/read.h"
#include "feature/machine/gauge.h"

#define MACH_TEXT_BYTES                                                                                                \
	(128u << 10) /* of a file, the rest is not looked at: /proc/stat of 1000 CPUs has its lines in it */
#define MACH_PATH_BYTES	 4352
#define MACH_LEVELS_MAX	 24
#define MACH_CPUINFO_MAX 64 /* CPUs of a machine whose /proc/cpuinfo is read: it is the kernel's slowest file */
#define MACH_SAMPLED_MAX 16 /* CPUs whose frequency is read */

/* ---- parse.c: texts of files, which end in NUL. -ENODATA: it is not in there. */

int mach_parse(const struct mdl_gauge_source *from, const char *text, uint64_t *value);

/*
 * The path of a process in a hierarchy, of the text of its /proc/PID/cgroup. controller NULL: version 2. -ENOENT: it is
 * in none, -ESTALE: its group was removed, -E2BIG.
 */
int mach_group_path(const char *text, const char *controller, char path[MACH_PATH_BYTES]);

/*
 * Where a group can be seen: of the mounts of its hierarchy in a /proc/PID/mountinfo that show it, the one that shows
 * most of what is around it. dir: from the mount point on; *mount_len: its bytes up to there. -ENOENT: nowhere.
 */
int mach_group_dir(const char *mountinfo, const char *controller, const char *path, char dir[MACH_PATH_BYTES],
		   size_t *mount_len);

/* The time a CPU has worked, in ticks, of its line in /proc/stat; *pos from 0 on to the next such line. False: no more.
 */
bool mach_next_cpu(const char *text, size_t *pos, unsigned *cpu, uint64_t *busy, uint64_t *all);

/* "cpu MHz" of a CPU in /proc/cpuinfo, in kHz. -ENODATA. */
int mach_cpuinfo_khz(const char *text, unsigned cpu, uint64_t *khz);

/* ---- files.c */

/* At most cap - 1 bytes from the beginning, NUL-terminated. Their number or -errno. */
ssize_t mach_pread(int fd, char *text, size_t cap);
ssize_t mach_slurp(const char *path, char *text, size_t cap);

/* ---- freq.c: frequencies of CPUs that were busy since the last call. */

struct mach_freq {
	const char *sys;  /* "/sys"; tests have their own */
	struct buf ticks; /* struct { busy, all } of each CPU, at the last call */
	char *cpuinfo;	  /* its text, MACH_TEXT_BYTES; NULL: not needed yet */
	uint64_t khz_max; /* 0: not known */
};

/* stat: the text of /proc/stat. -ENODATA: no CPU was busy, or no frequency can be read. */
int mach_freq(struct mach_freq *f, const char *stat, uint64_t *khz);
void mach_freq_fini(struct mach_freq *f);

/* ---- groups.c */

/* A control group that counts for the process. */
struct mach_group {
	const char *controller; /* of version 1, as in the table; NULL: version 2 */
	int dirfd;		/* owned */
	char *name;		/* owned: as MXBPF_NAME_SCOPE */
	unsigned level;		/* 0: its own */
	uint16_t scope;
	bool named; /* its NAME was sent */
};

/* Appends all of a hierarchy (struct mach_group), its own first. 0 or -errno, which the other puts in words. */
int mach_groups_open(pid_t pid, const char *cgroup, const char *controller, struct buf *groups);
const char *mach_groups_reason(int err);
void mach_groups_close(struct buf *groups);

#endif
