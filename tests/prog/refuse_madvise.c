// SPDX-License-Identifier: Apache-2.0
/*
 * usage: refuse_madvise ADVICE COMMAND [ARGUMENT...]
 * Runs the command under a seccomp filter that refuses madvise() with this advice by EINVAL. gVisor, and Linux before
 * 4.14, do so with 18, MADV_WIPEONFORK.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
/* Goes on if the loaded word has the value, else to the permission, `skip` instructions on. */
#define ONLY(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)

int main(int argc, char **argv)
{
	const unsigned advice = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct sock_filter filter[] = {
		LOAD(arch),
		ONLY(AUDIT_ARCH_X86_64, 5),
		LOAD(nr),
		ONLY(SYS_madvise, 3),
		LOAD(args[2]), /* the lower half */
		ONLY(advice, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	if (argc < 3) {
		fprintf(stderr, "usage: %s ADVICE COMMAND [ARGUMENT...]\n", argv[0]);
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror(argv[0]);
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
