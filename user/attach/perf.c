// SPDX-License-Identifier: Apache-2.0
/*
 * Backend for kernels without uprobe_multi: perf_event_open() makes one event and one link per probe. Removing a probe
 * waits about 0.1 s for grace periods, hence the limit on their number.
 */
#include "attach/apart.h"
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
		return -errno;
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

/* Path "/" is no regular file. A kernel that supports perf uprobes returns EINVAL for it to a privileged caller. */
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
		return err_set(e, ERR_PRIVILEGE, err, "perf uprobes require CAP_SYS_ADMIN: run with sudo");
	if (err != -EINVAL)
		return err_set(e, ERR_PRIVILEGE, -ENOTSUP,
			       "the kernel has no perf uprobes (they require CONFIG_UPROBE_EVENTS and a mounted /sys)");
	return 0;
}

/* The kernel writes the breakpoints into the memory of that process only. */
static bool filters(void)
{
	return true;
}

struct creation {
	int prog_fd;
	const char *path;
	uint64_t off, cookie;
	pid_t pid;
	int fd; /* of the link, or -errno */
};

/* Only a link carries a cookie; PERF_EVENT_IOC_SET_BPF does not. The link keeps the event open. */
static void create(void *ctx)
{
	struct creation *c = ctx;
	LIBBPF_OPTS(bpf_link_create_opts, o, .perf_event.bpf_cookie = c->cookie);
	const int event = event_open(c->path, c->off, c->pid);

	c->fd = event < 0 ? event : bpf_link_create(c->prog_fd, event, BPF_PERF_EVENT, &o);
	if (event >= 0)
		close(event);
}

static int attach_one(int prog_fd, const char *path, uint64_t off, uint64_t cookie, pid_t pid)
{
	struct creation c = {prog_fd, path, off, cookie, pid, -EINTR};

	apart_run(create, &c);
	return c.fd;
}

static int perf_attach(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
		       pid_t pid, int *fds)
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
	.attach = perf_attach,
};
