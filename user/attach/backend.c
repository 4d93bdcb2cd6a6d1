// SPDX-License-Identifier: Apache-2.0
#include "attach/backend.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

const struct att_backend *const att_backends[] = {&att_backend_multi, &att_backend_perf, NULL};

const struct att_backend *att_pick(const char *name, struct err *e)
{
	struct err first = {0}, why = {0};
	int i;

	for (i = 0; att_backends[i]; i++) {
		if (name && strcmp(att_backends[i]->name, name))
			continue;
		why = (struct err){0};
		if (!att_backends[i]->supported(&why))
			return att_backends[i];
		if (!first.code)
			first = why;
		if (first.code != -ENOTSUP) /* nor will another be permitted */
			break;
	}
	if (!strcmp(first.why, why.why))
		err_set(e, why.cls, why.code, "%s", why.why);
	else
		err_set(e, why.cls, why.code, "%s, and %s", first.why, why.why);
	return NULL;
}

int backend_trial_prog(int attach_type, struct err *e)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = (enum bpf_attach_type)attach_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "mxbpf_try", "GPL", insns, 2, &o);

	if (fd == -EPERM || fd == -EACCES)
		return err_set(e, ERR_PRIVILEGE, fd,
			       "loading BPF programs is not permitted: run with sudo, or with CAP_BPF, CAP_PERFMON and "
			       "CAP_SYS_PTRACE");
	if (fd < 0)
		return err_set(e, ERR_PRIVILEGE, fd, "the kernel does not load a BPF program: %s", strerror(-fd));
	return fd;
}
