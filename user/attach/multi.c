// SPDX-License-Identifier: Apache-2.0
/* Backend uprobe_multi. It calls BPF_LINK_CREATE directly, because libbpf 1.1 of Debian 12 has no API for it. */
#include "attach/apart.h"
#include "attach/backend.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 6.1's <linux/bpf.h> lacks these: a value of enum bpf_attach_type, and bpf_attr.link_create for it. */
#define TRACE_UPROBE_MULTI 48

struct link_create_uprobe_multi {
	__u32 prog_fd, target_fd, attach_type, flags;
	__u64 path, offsets, ref_ctr_offsets, cookies;
	__u32 cnt, uprobe_flags, pid, pad;
};

#define AT_RETURN 1u /* BPF_F_UPROBE_MULTI_RETURN */

struct creation {
	struct link_create_uprobe_multi a;
	int fd; /* or -errno */
};

static void create(void *ctx)
{
	struct creation *c = ctx;

	c->fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &c->a, sizeof(c->a));
	if (c->fd < 0)
		c->fd = -errno;
}

static int link_create(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
		       pid_t pid, uint32_t flags)
{
	struct creation c = {.fd = -EINTR};

	memset(&c.a, 0, sizeof(c.a));
	c.a.prog_fd = (__u32)prog_fd;
	c.a.attach_type = TRACE_UPROBE_MULTI;
	c.a.path = (uintptr_t)path;
	c.a.offsets = (uintptr_t)offs;
	c.a.cookies = (uintptr_t)cookies;
	c.a.cnt = n;
	c.a.pid = (__u32)pid;
	c.a.uprobe_flags = flags;
	apart_run(create, &c);
	return c.fd;
}

/* Path "/" is no regular file. A kernel that knows the link type returns EBADF for it, others return EINVAL. */
static int supported(struct err *e)
{
	uint64_t off = 0;
	int prog, err;

	prog = backend_trial_prog(TRACE_UPROBE_MULTI, e);
	if (prog < 0)
		return prog;
	err = link_create(prog, "/", &off, NULL, 1, 0, 0);
	close(prog);
	if (err >= 0)
		close(err);
	if (err != -EBADF)
		return err_set(e, ERR_PRIVILEGE, -ENOTSUP,
			       "the kernel has no uprobe_multi links (Linux 6.6 and later have them)");
	return 0;
}

/*
 * Linux 6.6 to 6.9 compare `pid` with the thread id and would miss all other threads. Fixed kernels refuse pid -1 with
 * EINVAL.
 */
static bool pid_is_process(void)
{
	uint64_t off = 0;
	int prog = backend_trial_prog(TRACE_UPROBE_MULTI, NULL), err;

	if (prog < 0)
		return false;
	err = link_create(prog, "/", &off, NULL, 1, -1, 0);
	close(prog);
	return err == -EINVAL;
}

/*
 * BPF checks the process anyway. If the kernel's filter is broken, attach without it; hits then cost other processes
 * time.
 */
static int attach_at(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
		     pid_t pid, uint32_t flags, int *fds)
{
	static atomic_int filter =
		-1; /* result of pid_is_process(), or -1; two threads may both compute it, which is harmless */

	if (filter < 0)
		filter = pid_is_process();
	fds[0] = link_create(prog_fd, path, offs, cookies, n, filter ? pid : 0, flags);
	return fds[0] < 0 ? fds[0] : 1;
}

static int multi_attach(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
			pid_t pid, int *fds)
{
	return attach_at(prog_fd, path, offs, cookies, n, pid, 0, fds);
}

static int attach_returns(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
			  pid_t pid, int *fds)
{
	return attach_at(prog_fd, path, offs, cookies, n, pid, AT_RETURN, fds);
}

const struct att_backend att_backend_multi = {
	.name = "uprobe_multi",
	.use = "attaches any number of probes at once",
	.attach_type = TRACE_UPROBE_MULTI,
	.supported = supported,
	.filters = pid_is_process,
	.shares = true,
	.attach = multi_attach,
	.attach_returns = attach_returns,
};
