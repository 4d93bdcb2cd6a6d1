// SPDX-License-Identifier: Apache-2.0
/*
 * Uprobes by perf_event_open, for kernels without uprobe_multi: an event and a link for each probe. Removing one waits
 * for about 0.1 s of grace periods, hence the limit.
 */
#include "attach/backend.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PMU_TYPE "/sys/bus/event_source/devices/uprobe/type"

static int pmu_type(void)
{
	FILE *f = fopen(PMU_TYPE, "re");
	int type, n;

	if (!f)
		return -ENOENT;
	n = fscanf(f, "%d", &type);
	fclose(f);
	return n == 1 ? type : -ENOENT;
}

static int event_open(const char *path, uint64_t off, pid_t pid)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	int type = pmu_type(), fd;

	if (type < 0)
		return type;
	attr.type = (uint32_t)type;
	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = off;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* With path "/" a kernel that may and can answers EINVAL ("not a regular file"). */
static int supported(struct err *e)
{
	int prog = backend_trial_prog(0, e), err;

	if (prog < 0)
		return prog;
	close(prog);
	err = event_open("/", 0, getpid());
	if (err >= 0)
		close(err);
	if (err == -EACCES || err == -EPERM)
		return err_set(e, ERR_PRIVILEGE, err, "perf uprobes need CAP_SYS_ADMIN: run with sudo");
	if (err != -EINVAL)
		return err_set(e, ERR_PRIVILEGE, -ENOTSUP,
			       "the kernel has no perf uprobes (CONFIG_UPROBE_EVENTS; /sys has to be mounted)");
	return 0;
}

/* The breakpoints are put into the memory of that process alone. */
static bool filters(void)
{
	return true;
}

/* The cookie needs a link: with PERF_EVENT_IOC_SET_BPF there is none. The link keeps the event. */
static int attach_one(int prog_fd, const char *path, uint64_t off, uint64_t cookie, pid_t pid)
{
	LIBBPF_OPTS(bpf_link_create_opts, o, .perf_event.bpf_cookie = cookie);
	int event = event_open(path, off, pid), link;

	if (event < 0)
		return event;
	link = bpf_link_create(prog_fd, event, BPF_PERF_EVENT, &o);
	close(event);
	return link;
}

static int attach(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n, pid_t pid,
		  int *fds)
{
	uint32_t i;
	int err;

	for (i = 0; i < n; i++) {
		fds[i] = attach_one(prog_fd, path, offs[i], cookies[i], pid);
		if (fds[i] < 0) {
			err = fds[i];
			while (i--)
				close(fds[i]);
			return err;
		}
	}
	return (int)n;
}

const struct att_backend att_backend_perf = {
	.name = "perf",
	.use = "attaches up to 32 probes one by one",
	.probes_max = 32,
	.supported = supported,
	.filters = filters,
	.attach = attach,
};
