// SPDX-License-Identifier: Apache-2.0
/* The seccomp filter of mxbpf: what is refused, what ends it, and what still works. Each case has a process of its own.
 */
#include "sandbox/sandbox.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/demangle.h"
#include "base/thread.h"
#include "unit.h"

#define SESSION (SBX_LOOK | SBX_MAPS | SBX_LOAD)
#define BAD_FD	1000000

/* Returns what a call returned under the filter; -1000 - signal if it ended the process. */
static long under(unsigned needs, long (*call)(void))
{
	int ends[2], status = 0;
	struct err e = {0};
	long got = 1000000;
	pid_t pid;

	CHECK(!pipe(ends));
	pid = fork();
	if (!pid) {
		got = sbx_enter(needs, false, &e) ? -2000 : call();
		_exit(write(ends[1], &got, sizeof(got)) != sizeof(got));
	}
	close(ends[1]);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		got = -1000 - WTERMSIG(status);
	else
		CHECK(read(ends[0], &got, sizeof(got)) == sizeof(got));
	close(ends[0]);
	return got;
}

#define CALL(name, call)                                                                                               \
	static long name(void)                                                                                         \
	{                                                                                                              \
		errno = 0;                                                                                             \
		return (long)(call) < 0 ? -errno : 0;                                                                  \
	}

static union bpf_attr none = {.map_fd = BAD_FD};
static struct iovec nowhere;

CALL(try_mount, mount("none", "/nowhere", "tmpfs", 0, NULL))
CALL(try_ptrace, ptrace(PTRACE_SEIZE, getppid(), NULL, NULL))
CALL(try_write, process_vm_writev(getppid(), &nowhere, 1, &nowhere, 1, 0))
CALL(try_read, process_vm_readv(getpid(), &nowhere, 1, &nowhere, 1, 0))
CALL(try_exec, execl("/bin/true", "true", NULL))
CALL(try_exec_fd, syscall(SYS_execveat, BAD_FD, "", NULL, NULL, 0))
CALL(try_user, setresuid(65534, 65534, 65534))
CALL(try_unshare, unshare(CLONE_NEWNET))
CALL(try_namespace, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL))
CALL(try_clone3, syscall(SYS_clone3, NULL, 0))
CALL(try_newer, syscall(500, 0))
CALL(try_load, syscall(SYS_bpf, BPF_PROG_LOAD, &none, sizeof(none)))
CALL(try_map, syscall(SYS_bpf, BPF_MAP_GET_NEXT_KEY, &none, sizeof(none)))
CALL(try_network, socket(AF_INET, SOCK_STREAM, 0))
CALL(try_local, socket(AF_UNIX, SOCK_STREAM, 0))
CALL(try_keep, prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
CALL(try_name, prctl(PR_SET_NAME, "limited", 0, 0, 0))
CALL(try_module, syscall(SYS_init_module, NULL, 0, ""))
CALL(try_kexec, syscall(SYS_kexec_load, 0, 0, NULL, 0))
CALL(try_clock, syscall(SYS_clock_settime, CLOCK_REALTIME, NULL))

/* Code of a 32-bit process has other numbers: there, 21 is mount(). */
static long try_32_bit(void)
{
	long got = 21;

	__asm__ volatile("int $0x80" : "+a"(got) : "b"(0), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
	return got;
}

/* ---- all threads */

static pthread_barrier_t limited;
static long other_got;

static void *other(void *arg)
{
	pthread_barrier_wait(&limited);
	other_got = try_mount();
	return NULL;
}

/* Returns what a thread gets that ran before the filter came. */
static long in_other_thread(void)
{
	struct err e = {0};
	pthread_t thread;

	pthread_barrier_init(&limited, NULL, 2);
	if (thread_start(&thread, other, NULL) || sbx_enter(SESSION, false, &e))
		return -2000;
	pthread_barrier_wait(&limited);
	pthread_join(thread, NULL);
	return other_got;
}

static long try_nothing(void)
{
	return 0;
}

/* ---- helpers work */

static long try_demangle(void)
{
	FREED(memory_freed) char *name = demangle("_ZN2at3addERKNS_6TensorE");
	const bool same = name && !strcmp(name, "at::add(at::Tensor const&)");

	return same ? 0 : -1;
}

/* The second filter can only take away. */
static long try_narrower(void)
{
	struct err e = {0};

	if (try_load() == -EPERM || sbx_enter(SBX_LOOK | SBX_MAPS, false, &e))
		return -2000;
	return try_load();
}

/* Forbids seccomp(), as systemd's set @system-service does. */
static long under_another(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	struct err e = {0};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ||
	    sbx_enter(SESSION, false, &e))
		return -2000;
	return try_ptrace();
}

/* Calls that are refused are named in what the process says. */
static bool is_told(void)
{
	char said[200] = "";
	struct err e = {0};
	int ends[2], status;
	pid_t pid;

	CHECK(!pipe(ends));
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		_exit(sbx_enter(SESSION, true, &e) || try_mount() != -EPERM || in_other_thread() != -EPERM);
	}
	close(ends[1]);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(read(ends[0], said, sizeof(said) - 1) > 0);
	close(ends[0]);
	return !strncmp(said, "mxbpf: seccomp refused mount()\n", 31);
}

static void check_table(void)
{
	const struct sbx_never *n;
	const struct sbx_row *r, *s;

	for (r = sbx_rows; r->name; r++) {
		CHECK(r->why && *r->why);
		for (n = sbx_never; n->name; n++)
			CHECK(n->nr != r->nr);
		for (s = r + 1; s->name; s++) /* a second row of a call must add something */
			CHECK(s->nr != r->nr || s->need != r->need);
	}
}

int main(void)
{
	TEST("each row has a reason, and no call is allowed that would end mxbpf") check_table();

	if (sbx_disturbs())
		return 0;

	TEST("a session cannot mount, trace, write into a process, execute a program or become another user")
	{
		CHECK(under(SESSION, try_mount) == -EPERM);
		CHECK(under(SESSION, try_ptrace) == -EPERM);
		CHECK(under(SESSION, try_write) == -EPERM);
		CHECK(under(SESSION, try_exec) == -EPERM);
		CHECK(under(SESSION, try_exec_fd) == -EPERM);
		CHECK(under(SESSION, try_user) == -EPERM);
		CHECK(under(SESSION, try_unshare) == -EPERM);
		CHECK(under(SESSION, try_namespace) == -EPERM);
		CHECK(under(SESSION, try_network) == -EPERM);
		CHECK(under(SESSION, try_keep) == -EPERM);
	}

	TEST("a report cannot load BPF programs nor read the memory of processes")
	{
		CHECK(under(0, try_load) == -EPERM);
		CHECK(under(0, try_map) == -EPERM);
		CHECK(under(0, try_read) == -EPERM);
	}

	TEST("what a session needs works, and so does a helper that limits itself further")
	{
		CHECK(under(SESSION, try_map) != -EPERM && under(SBX_MAPS, try_map) == -EBADF);
		CHECK(under(SESSION, try_read) == 0);
		CHECK(under(SESSION, try_local) == 0);
		CHECK(under(SBX_NET, try_network) == 0);
		CHECK(under(SESSION, try_name) == 0);
		CHECK(under(SBX_SELF, try_exec_fd) == -EPERM);
		CHECK(under(0, try_demangle) == 0);
	}

	TEST("maps can be read where programs cannot be loaded")
	{
		CHECK(under(SBX_MAPS, try_load) == -EPERM);
	}

	TEST_IF(!geteuid(), "a second filter is narrower", "loading a program needs root")
	{
		CHECK(under(SESSION, try_narrower) == -EPERM);
	}

	TEST("a filter that refuses seccomp() does not keep mxbpf from limiting itself")
	{
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(under_another() != -EPERM);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}

	TEST("system calls that are newer than the table look as if the kernel did not have them")
	{
		CHECK(under(SESSION, try_clone3) == -ENOSYS);
		CHECK(under(SESSION, try_newer) == -ENOSYS);
	}

	TEST("loading a module or a kernel, setting the clock, and calls of 32-bit code end the process")
	{
		CHECK(under(SESSION, try_module) == -1000 - SIGSYS);
		CHECK(under(SESSION, try_kexec) == -1000 - SIGSYS);
		CHECK(under(SESSION, try_clock) == -1000 - SIGSYS);
		CHECK(under(SESSION, try_32_bit) < -1000);
	}

	TEST("threads that ran before are limited, too")
	{
		CHECK(under(SESSION, try_nothing) == 0);
		CHECK(under(SESSION, in_other_thread) == -EPERM);
	}

	TEST("a refused call is named, also one of a thread that blocks signals") CHECK(is_told());
	return unit_end();
}
