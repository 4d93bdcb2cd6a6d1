// SPDX-License-Identifier: Apache-2.0
#include "feature/counters/events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} events[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
};
#define NEVENTS (sizeof(events) / sizeof(events[0]))

const char *ctr_name(unsigned i)
{
	return i < NEVENTS ? events[i].name : NULL;
}

const char *ctr_names(unsigned mask, char buf[CTR_NAMES_BYTES])
{
	size_t len = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; i < NEVENTS; i++)
		if (mask >> i & 1)
			len += (size_t)snprintf(buf + len, CTR_NAMES_BYTES - len, "%s%s", len ? ", " : "",
						events[i].name);
	return buf;
}

/* Returns an fd or -errno. The event is not inherited by other threads, because BPF cannot read inherited events. */
static int event_open(unsigned i, pid_t tid)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = events[i].type, .config = events[i].config};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int ctr_keep_countable(unsigned *mask, struct err *e)
{
	unsigned i, asked = *mask;
	char names[CTR_NAMES_BYTES];
	int fd, err = 0;

	for (i = 0; i < NEVENTS; i++) {
		if (!(asked >> i & 1))
			continue;
		fd = event_open(i, 0);
		if (fd >= 0) {
			close(fd);
			continue;
		}
		err = fd;
		*mask &= ~(1u << i);
	}
	if (*mask)
		return 0;
	ctr_names(asked, names);
	if (err == -EACCES || err == -EPERM)
		return err_set(e, ERR_PRIVILEGE, err,
			       "--counters: %s: counting is not permitted: run with sudo, or with CAP_PERFMON", names);
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return err_set(e, ERR_RUNTIME, err, "--counters: %s: %s", names, strerror(-err));
	return err_set(e, ERR_PRIVILEGE, err,
		       "--counters: %s: this machine has no such counters, like most virtual machines; every machine "
		       "has task-clock, page-faults and context-switches",
		       names);
}

int ctr_open(pid_t tid, unsigned mask, int fds[MXBPF_COUNTERS_MAX])
{
	unsigned i;
	int n = 0, fd;

	for (i = 0; i < NEVENTS && n < MXBPF_COUNTERS_MAX; i++) {
		if (!(mask >> i & 1))
			continue;
		fd = event_open(i, tid);
		if (fd < 0)
			goto fail;
		fds[n++] = fd;
	}
	return n;
fail:
	while (n--)
		close(fds[n]);
	return fd;
}
