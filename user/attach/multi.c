// SPDX-License-Identifier: Apache-2.0
/* uprobe_multi by raw BPF_LINK_CREATE: Debian's libbpf 1.1 lacks its API, and the kernel's interface is this small. */
#include "attach/backend.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* bpf_attr.link_create of uprobe_multi; <linux/bpf.h> of 6.1 does not have it. */
struct link_create_uprobe_multi {
	__u32 prog_fd, target_fd, attach_type, flags;
	__u64 path, offsets, ref_ctr_offsets, cookies;
	__u32 cnt, uprobe_flags, pid, pad;
};

static int link_create(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
		       pid_t pid)
{
	struct link_create_uprobe_multi a;
	int fd;

	memset(&a, 0, sizeof(a));
	a.prog_fd = (__u32)prog_fd;
	a.attach_type = BACKEND_TRACE_UPROBE_MULTI;
	a.path = (uintptr_t)path;
	a.offsets = (uintptr_t)offs;
	a.cookies = (uintptr_t)cookies;
	a.cnt = n;
	a.pid = (__u32)pid;
	fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &a, sizeof(a));
	return fd < 0 ? -errno : fd;
}

static int trivial_prog(void)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BACKEND_TRACE_UPROBE_MULTI);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "mxbpf_try", "GPL", insns, 2, &o);
}

/* With path "/" a kernel that knows the link type answers EBADF ("not a regular file"), another EINVAL. */
static int supported(struct err *e)
{
	uint64_t off = 0;
	int prog, err;

	prog = trivial_prog();
	if (prog == -EPERM || prog == -EACCES)
		return err_set(e, ERR_PRIVILEGE, prog,
			       "loading BPF programs is not permitted: run with sudo, or with CAP_BPF, CAP_PERFMON and "
			       "CAP_SYS_PTRACE");
	if (prog < 0)
		return err_set(e, ERR_PRIVILEGE, prog, "the kernel does not load a BPF program: %s", strerror(-prog));
	err = link_create(prog, "/", &off, NULL, 1, 0);
	close(prog);
	if (err >= 0)
		close(err);
	if (err != -EBADF)
		return err_set(e, ERR_PRIVILEGE, -ENOTSUP,
			       "the kernel has no uprobe_multi links (Linux 6.6 and later have them)");
	return 0;
}

/* Kernels 6.6 to 6.9 take `pid` for a thread and would miss all others; fixed ones refuse pid -1 with EINVAL. */
static bool pid_is_process(void)
{
	uint64_t off = 0;
	int prog = trivial_prog(), err;

	if (prog < 0)
		return false;
	err = link_create(prog, "/", &off, NULL, 1, -1);
	close(prog);
	return err == -EINVAL;
}

/* BPF checks the process in any case, so without a trustworthy filter there is none, which costs other processes time.
 */
static int attach(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n, pid_t pid)
{
	static int filter = -1;

	if (filter < 0)
		filter = pid_is_process();
	return link_create(prog_fd, path, offs, cookies, n, filter ? pid : 0);
}

const struct att_backend att_backend_multi = {
	.name = "uprobe_multi",
	.attach_type = BACKEND_TRACE_UPROBE_MULTI,
	.supported = supported,
	.filters = pid_is_process,
	.attach = attach,
};
