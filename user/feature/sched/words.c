// SPDX-License-Identifier: Apache-2.0
#include "feature/sched/words.h"

#include <stdio.h>
#include <string.h>

#include "base/syscall.h"

/*
 * System calls whose sleep has a cause of its own. For most file operations, only sleeps that no signal can end count
 * as disk: network file systems do not mark themselves as waiting for I/O. A call that makes data durable waits for
 * nothing else.
 */
static const struct {
	const char *name;
	enum mxbpf_sched_what what;
	bool in_disk_state;
} causes[] = {
	{"futex", MXBPF_SCHED_FUTEX, false},
	{"futex_wait", MXBPF_SCHED_FUTEX, false},
	{"futex_waitv", MXBPF_SCHED_FUTEX, false},
	{"nanosleep", MXBPF_SCHED_NAP, false},
	{"clock_nanosleep", MXBPF_SCHED_NAP, false},
	{"read", MXBPF_SCHED_IO, true},
	{"pread64", MXBPF_SCHED_IO, true},
	{"readv", MXBPF_SCHED_IO, true},
	{"preadv", MXBPF_SCHED_IO, true},
	{"preadv2", MXBPF_SCHED_IO, true},
	{"write", MXBPF_SCHED_IO, true},
	{"pwrite64", MXBPF_SCHED_IO, true},
	{"writev", MXBPF_SCHED_IO, true},
	{"pwritev", MXBPF_SCHED_IO, true},
	{"pwritev2", MXBPF_SCHED_IO, true},
	{"fsync", MXBPF_SCHED_IO, false},
	{"fdatasync", MXBPF_SCHED_IO, false},
	{"sync", MXBPF_SCHED_IO, false},
	{"syncfs", MXBPF_SCHED_IO, false},
	{"sync_file_range", MXBPF_SCHED_IO, false},
	{"msync", MXBPF_SCHED_IO, false},
	{"open", MXBPF_SCHED_IO, true},
	{"openat", MXBPF_SCHED_IO, true},
	{"stat", MXBPF_SCHED_IO, true},
	{"newfstatat", MXBPF_SCHED_IO, true},
	{"getdents64", MXBPF_SCHED_IO, true},
};

const char *const sched_what_names[MXBPF_SCHED_WHATS] = {
	[MXBPF_SCHED_WAITED] = "waited",   [MXBPF_SCHED_FUTEX] = "futex",	[MXBPF_SCHED_IO] = "io",
	[MXBPF_SCHED_FAULT] = "fault",	   [MXBPF_SCHED_NAP] = "sleep",		[MXBPF_SCHED_OTHER] = "other",
	[MXBPF_SCHED_KEPT_BY] = "kept_by", [MXBPF_SCHED_WOKEN_BY] = "woken_by",
};

enum mxbpf_sched_what sched_cause(const struct mxbpf_sched *r)
{
	const char *name = syscall_name(r->syscall);
	size_t i;

	if (r->state == MXBPF_SCHED_RUNNABLE)
		return MXBPF_SCHED_WAITED;
	if (r->state == MXBPF_SCHED_STOPPED)
		return MXBPF_SCHED_OTHER;
	if (r->syscall < 0)
		return MXBPF_SCHED_FAULT;
	for (i = 0; name && i < sizeof(causes) / sizeof(causes[0]); i++)
		if (!strcmp(name, causes[i].name) && (!causes[i].in_disk_state || r->state == MXBPF_SCHED_DISK))
			return causes[i].what;
	return r->flags & MXBPF_SCHED_IOWAIT ? MXBPF_SCHED_IO : MXBPF_SCHED_OTHER;
}

const char *sched_words(const struct mxbpf_sched *r, char buf[SCHED_WORDS_BYTES])
{
	const char *name = syscall_name(r->syscall);
	enum mxbpf_sched_what what = sched_cause(r);
	char number[32];

	snprintf(number, sizeof(number), "system call %d", r->syscall);
	name = name ? name : number;
	if (what == MXBPF_SCHED_WAITED)
		snprintf(buf, SCHED_WORDS_BYTES, "runnable");
	else if (r->state == MXBPF_SCHED_STOPPED)
		snprintf(buf, SCHED_WORDS_BYTES, "stopped");
	else if (what == MXBPF_SCHED_FAULT) /* a page fault that waits for a disk is a major one */
		snprintf(buf, SCHED_WORDS_BYTES, r->flags & MXBPF_SCHED_IOWAIT ? "disk: page fault" : "page fault");
	else if (what == MXBPF_SCHED_IO)
		snprintf(buf, SCHED_WORDS_BYTES, "disk: %.40s", name);
	else
		snprintf(buf, SCHED_WORDS_BYTES, "sleeping in %.40s", name);
	return buf;
}

/* A disk or a timer wakes a thread by an interrupt, which may arrive in any thread's system call. */
bool sched_has_by(const struct mxbpf_sched *r)
{
	if (r->state != MXBPF_SCHED_RUNNABLE && (r->flags & MXBPF_SCHED_IOWAIT || sched_cause(r) == MXBPF_SCHED_NAP))
		return false;
	return r->by_tid && !(r->flags & (MXBPF_SCHED_BY_IRQ | MXBPF_SCHED_NO_WAKER | MXBPF_SCHED_LAST));
}
