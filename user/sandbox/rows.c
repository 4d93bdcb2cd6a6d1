// SPDX-License-Identifier: Apache-2.0
/* Which system calls mxbpf makes, and why. docs/privileges.md has this table in words. */
#include <linux/bpf.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "sandbox/sandbox.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41 /* newer C libraries name their memory */
#endif

#define NEW_SPACES                                                                                                     \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

static const uint32_t on_maps[] = {
	BPF_MAP_LOOKUP_ELEM,  BPF_MAP_UPDATE_ELEM,    BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY,
	BPF_MAP_LOOKUP_BATCH, BPF_OBJ_GET_INFO_BY_FD, BPF_ITER_CREATE,	   BPF_MAP_LOOKUP_AND_DELETE_ELEM,
};
static const uint32_t own[] = {
	PR_SET_NAME,	PR_GET_NAME,	  PR_SET_DUMPABLE, PR_GET_DUMPABLE, PR_SET_NO_NEW_PRIVS,
	PR_SET_SECCOMP, PR_SET_PDEATHSIG, PR_CAPBSET_READ, PR_SET_VMA,	    PR_SET_TIMERSLACK,
};
static const uint32_t local[] = {AF_UNIX};
static const uint32_t network[] = {AF_INET, AF_INET6, AF_NETLINK};

#define VALUES(list) .nvalues = sizeof(list) / sizeof((list)[0]), .values = list
#define ROW(call, ...)                                                                                                 \
	{                                                                                                              \
#call, SYS_##call, __VA_ARGS__                                                                         \
	}

/* clang-format off */
/* The calls that are made most come first. */
const struct sbx_row sbx_rows[] = {
	ROW(bpf, SBX_MAPS, 0, VALUES(on_maps), .why = "reads and sets maps of programs that are loaded"),
	ROW(bpf, SBX_LOAD, .why = "loads and attaches programs, makes maps"),
	ROW(prctl, 0, 0, VALUES(own), .why = "names of threads; only takes rights away"),
	ROW(seccomp, 0, .why = "limits mxbpf itself further"),
	ROW(clone, 0, 0, .without = NEW_SPACES, .why = "threads and helpers, without new namespaces"),
	ROW(socket, 0, 0, VALUES(local), .why = "sockets on this machine"),
	ROW(socket, SBX_NET, 0, VALUES(network), .why = "the HTTP server, OpenTelemetry, profiles"),
	ROW(brk, 0, .why = "memory"),
	ROW(mmap, 0, .why = "memory"),
	ROW(munmap, 0, .why = "memory"),
	ROW(mremap, 0, .why = "memory"),
	ROW(mprotect, 0, .why = "memory"),
	ROW(madvise, 0, .why = "memory"),
	ROW(membarrier, 0, .why = "memory"),
	ROW(mincore, 0, .why = "memory"),
	ROW(msync, 0, .why = "memory"),
	ROW(mlock, 0, .why = "memory"),
	ROW(munlock, 0, .why = "memory"),
	ROW(futex, 0, .why = "threads and their locks"),
	ROW(futex_waitv, 0, .why = "threads and their locks"),
	ROW(set_robust_list, 0, .why = "threads and their locks"),
	ROW(get_robust_list, 0, .why = "threads and their locks"),
	ROW(set_tid_address, 0, .why = "threads and their locks"),
	ROW(rseq, 0, .why = "threads and their locks"),
	ROW(gettid, 0, .why = "threads and their locks"),
	ROW(sched_yield, 0, .why = "threads and their locks"),
	ROW(sched_getaffinity, 0, .why = "threads and their locks"),
	ROW(sched_setaffinity, 0, .why = "threads and their locks"),
	ROW(sched_getparam, 0, .why = "threads and their locks"),
	ROW(sched_getscheduler, 0, .why = "threads and their locks"),
	ROW(getcpu, 0, .why = "threads and their locks"),
	ROW(arch_prctl, 0, .why = "threads and their locks"),
	ROW(rt_sigaction, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(rt_sigprocmask, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(rt_sigreturn, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(rt_sigpending, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(rt_sigtimedwait, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(rt_sigsuspend, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(sigaltstack, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(signalfd, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(signalfd4, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(restart_syscall, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(pause, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(tgkill, 0, .why = "signals of mxbpf and those that end or pause it"),
	ROW(kill, 0, .why = "ends a job or lets it go on: a launched command gets the signals of mxbpf"),
	ROW(pidfd_send_signal, 0, .why = "ends a job or lets it go on: a launched command gets the signals of mxbpf"),
	ROW(exit, 0, .why = "the end of a thread or of mxbpf"),
	ROW(exit_group, 0, .why = "the end of a thread or of mxbpf"),
	ROW(fork, 0, .why = "helpers (names of C++ are taken apart in a process of its own)"),
	ROW(vfork, 0, .why = "helpers (names of C++ are taken apart in a process of its own)"),
	ROW(wait4, 0, .why = "helpers (names of C++ are taken apart in a process of its own)"),
	ROW(waitid, 0, .why = "helpers (names of C++ are taken apart in a process of its own)"),
	ROW(setsid, 0, .why = "helpers (names of C++ are taken apart in a process of its own)"),
	ROW(open, 0, .why = "files: open, look, read"),
	ROW(openat, 0, .why = "files: open, look, read"),
	ROW(openat2, 0, .why = "files: open, look, read"),
	ROW(close, 0, .why = "files: open, look, read"),
	ROW(close_range, 0, .why = "files: open, look, read"),
	ROW(read, 0, .why = "files: open, look, read"),
	ROW(readv, 0, .why = "files: open, look, read"),
	ROW(pread64, 0, .why = "files: open, look, read"),
	ROW(preadv, 0, .why = "files: open, look, read"),
	ROW(preadv2, 0, .why = "files: open, look, read"),
	ROW(lseek, 0, .why = "files: open, look, read"),
	ROW(stat, 0, .why = "files: open, look, read"),
	ROW(lstat, 0, .why = "files: open, look, read"),
	ROW(fstat, 0, .why = "files: open, look, read"),
	ROW(newfstatat, 0, .why = "files: open, look, read"),
	ROW(statx, 0, .why = "files: open, look, read"),
	ROW(access, 0, .why = "files: open, look, read"),
	ROW(faccessat, 0, .why = "files: open, look, read"),
	ROW(faccessat2, 0, .why = "files: open, look, read"),
	ROW(readlink, 0, .why = "files: open, look, read"),
	ROW(readlinkat, 0, .why = "files: open, look, read"),
	ROW(getdents, 0, .why = "files: open, look, read"),
	ROW(getdents64, 0, .why = "files: open, look, read"),
	ROW(statfs, 0, .why = "files: open, look, read"),
	ROW(fstatfs, 0, .why = "files: open, look, read"),
	ROW(getcwd, 0, .why = "files: open, look, read"),
	ROW(chdir, 0, .why = "files: open, look, read"),
	ROW(fchdir, 0, .why = "files: open, look, read"),
	ROW(fcntl, 0, .why = "files: open, look, read"),
	ROW(flock, 0, .why = "files: open, look, read"),
	ROW(fadvise64, 0, .why = "files: open, look, read"),
	ROW(readahead, 0, .why = "files: open, look, read"),
	ROW(dup, 0, .why = "files: open, look, read"),
	ROW(dup2, 0, .why = "files: open, look, read"),
	ROW(dup3, 0, .why = "files: open, look, read"),
	ROW(creat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(write, 0, .why = "files: results, which get their name when they are complete"),
	ROW(writev, 0, .why = "files: results, which get their name when they are complete"),
	ROW(pwrite64, 0, .why = "files: results, which get their name when they are complete"),
	ROW(pwritev, 0, .why = "files: results, which get their name when they are complete"),
	ROW(pwritev2, 0, .why = "files: results, which get their name when they are complete"),
	ROW(ftruncate, 0, .why = "files: results, which get their name when they are complete"),
	ROW(truncate, 0, .why = "files: results, which get their name when they are complete"),
	ROW(fallocate, 0, .why = "files: results, which get their name when they are complete"),
	ROW(fsync, 0, .why = "files: results, which get their name when they are complete"),
	ROW(fdatasync, 0, .why = "files: results, which get their name when they are complete"),
	ROW(sync_file_range, 0, .why = "files: results, which get their name when they are complete"),
	ROW(rename, 0, .why = "files: results, which get their name when they are complete"),
	ROW(renameat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(renameat2, 0, .why = "files: results, which get their name when they are complete"),
	ROW(link, 0, .why = "files: results, which get their name when they are complete"),
	ROW(linkat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(symlink, 0, .why = "files: results, which get their name when they are complete"),
	ROW(symlinkat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(unlink, 0, .why = "files: results, which get their name when they are complete"),
	ROW(unlinkat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(mkdir, 0, .why = "files: results, which get their name when they are complete"),
	ROW(mkdirat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(rmdir, 0, .why = "files: results, which get their name when they are complete"),
	ROW(chmod, 0, .why = "files: results, which get their name when they are complete"),
	ROW(fchmod, 0, .why = "files: results, which get their name when they are complete"),
	ROW(fchmodat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(chown, 0, .why = "files: results, which get their name when they are complete"),
	ROW(fchown, 0, .why = "files: results, which get their name when they are complete"),
	ROW(fchownat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(lchown, 0, .why = "files: results, which get their name when they are complete"),
	ROW(utimensat, 0, .why = "files: results, which get their name when they are complete"),
	ROW(umask, 0, .why = "files: results, which get their name when they are complete"),
	ROW(sendfile, 0, .why = "files: results, which get their name when they are complete"),
	ROW(copy_file_range, 0, .why = "files: results, which get their name when they are complete"),
	ROW(splice, 0, .why = "files: results, which get their name when they are complete"),
	ROW(memfd_create, 0, .why = "files: results, which get their name when they are complete"),
	ROW(fgetxattr, 0, .why = "files: results, which get their name when they are complete"),
	ROW(getxattr, 0, .why = "files: results, which get their name when they are complete"),
	ROW(flistxattr, 0, .why = "files: results, which get their name when they are complete"),
	ROW(setfsuid, 0, .why = "results belong to the user who called sudo"),
	ROW(setfsgid, 0, .why = "results belong to the user who called sudo"),
	ROW(ioctl, 0, .why = "the terminal, perf events and descriptors"),
	ROW(poll, 0, .why = "waiting"),
	ROW(ppoll, 0, .why = "waiting"),
	ROW(select, 0, .why = "waiting"),
	ROW(pselect6, 0, .why = "waiting"),
	ROW(epoll_create, 0, .why = "waiting"),
	ROW(epoll_create1, 0, .why = "waiting"),
	ROW(epoll_ctl, 0, .why = "waiting"),
	ROW(epoll_wait, 0, .why = "waiting"),
	ROW(epoll_pwait, 0, .why = "waiting"),
	ROW(epoll_pwait2, 0, .why = "waiting"),
	ROW(eventfd, 0, .why = "waiting"),
	ROW(eventfd2, 0, .why = "waiting"),
	ROW(pipe, 0, .why = "waiting"),
	ROW(pipe2, 0, .why = "waiting"),
	ROW(timerfd_create, 0, .why = "waiting"),
	ROW(timerfd_settime, 0, .why = "waiting"),
	ROW(timerfd_gettime, 0, .why = "waiting"),
	ROW(timer_create, 0, .why = "waiting"),
	ROW(timer_settime, 0, .why = "waiting"),
	ROW(timer_gettime, 0, .why = "waiting"),
	ROW(timer_delete, 0, .why = "waiting"),
	ROW(setitimer, 0, .why = "waiting"),
	ROW(getitimer, 0, .why = "waiting"),
	ROW(alarm, 0, .why = "waiting"),
	ROW(nanosleep, 0, .why = "waiting"),
	ROW(clock_nanosleep, 0, .why = "waiting"),
	ROW(inotify_init, 0, .why = "waiting"),
	ROW(inotify_init1, 0, .why = "waiting"),
	ROW(inotify_add_watch, 0, .why = "waiting"),
	ROW(inotify_rm_watch, 0, .why = "waiting"),
	ROW(clock_gettime, 0, .why = "clocks, limits and names of the machine"),
	ROW(clock_getres, 0, .why = "clocks, limits and names of the machine"),
	ROW(gettimeofday, 0, .why = "clocks, limits and names of the machine"),
	ROW(time, 0, .why = "clocks, limits and names of the machine"),
	ROW(times, 0, .why = "clocks, limits and names of the machine"),
	ROW(getrusage, 0, .why = "clocks, limits and names of the machine"),
	ROW(getrlimit, 0, .why = "clocks, limits and names of the machine"),
	ROW(setrlimit, 0, .why = "clocks, limits and names of the machine"),
	ROW(prlimit64, 0, .why = "clocks, limits and names of the machine"),
	ROW(sysinfo, 0, .why = "clocks, limits and names of the machine"),
	ROW(uname, 0, .why = "clocks, limits and names of the machine"),
	ROW(getrandom, 0, .why = "clocks, limits and names of the machine"),
	ROW(adjtimex, 0, .why = "clocks, limits and names of the machine"),
	ROW(clock_adjtime, 0, .why = "clocks, limits and names of the machine"),
	ROW(getpid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getppid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getpgrp, 0, .why = "clocks, limits and names of the machine"),
	ROW(getpgid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getsid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getuid, 0, .why = "clocks, limits and names of the machine"),
	ROW(geteuid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getgid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getegid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getresuid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getresgid, 0, .why = "clocks, limits and names of the machine"),
	ROW(getgroups, 0, .why = "clocks, limits and names of the machine"),
	ROW(capget, 0, .why = "clocks, limits and names of the machine"),
	ROW(setpriority, 0, .why = "clocks, limits and names of the machine"),
	ROW(getpriority, 0, .why = "clocks, limits and names of the machine"),
	ROW(socketpair, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(connect, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(sendto, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(sendmsg, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(recvfrom, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(recvmsg, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(getsockname, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(getpeername, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(getsockopt, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(setsockopt, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(shutdown, 0, .why = "sockets within mxbpf and on this machine"),
	ROW(process_vm_readv, SBX_LOOK, .why = "reads memory of other processes"),
	ROW(pidfd_open, SBX_LOOK, .why = "notices the end of a process, whose number another one may get"),
	ROW(perf_event_open, SBX_LOAD, .why = "attaches probes, samples, counts"),
	ROW(mlock2, SBX_LOAD, .why = "locks maps into memory on old kernels"),
	ROW(ptrace, SBX_TRACE, .why = "loads the agent: stops a thread, which makes the calls, and writes their arguments"),
	ROW(process_vm_writev, SBX_TRACE, .why = "loads the agent: stops a thread, which makes the calls, and writes their arguments"),
	ROW(pidfd_getfd, SBX_TRACE, .why = "looks whether an idle thread can be interrupted"),
	ROW(setgroups, SBX_TRACE, .why = "the process that gives a script to Python has no rights of root's groups"),
	ROW(sched_setscheduler, SBX_TRACE, .why = "the stop is as short as possible"),
	ROW(bind, SBX_NET, .why = "the HTTP server"),
	ROW(listen, SBX_NET, .why = "the HTTP server"),
	ROW(accept, SBX_NET, .why = "the HTTP server"),
	ROW(accept4, SBX_NET, .why = "the HTTP server"),
	ROW(sendmmsg, SBX_NET, .why = "the HTTP server"),
	ROW(recvmmsg, SBX_NET, .why = "the HTTP server"),
	ROW(execve, SBX_SELF, .why = "serve runs `mxbpf now` when a job hangs"),
	ROW(setresuid, SBX_USER, .why = "--drop-privileges"),
	ROW(setresgid, SBX_USER, .why = "--drop-privileges"),
	ROW(setgroups, SBX_USER, .why = "--drop-privileges"),
	ROW(setns, SBX_ENTER, .why = "the folder and the network of a container"),
	ROW(chroot, SBX_ENTER, .why = "the folder and the network of a container"),
	ROW(bind, SBX_ENTER, .why = "the folder and the network of a container"),
	ROW(setresuid, SBX_ENTER, .why = "the folder and the network of a container"),
	ROW(setresgid, SBX_ENTER, .why = "the folder and the network of a container"),
	ROW(setgroups, SBX_ENTER, .why = "the folder and the network of a container"),
	{.name = NULL},
};

#define NEVER(call) {#call, SYS_##call}

const struct sbx_never sbx_never[] = {
	NEVER(kexec_load),
	NEVER(kexec_file_load),
	NEVER(init_module),
	NEVER(finit_module),
	NEVER(delete_module),
	NEVER(reboot),
	NEVER(swapon),
	NEVER(swapoff),
	NEVER(pivot_root),
	NEVER(iopl),
	NEVER(ioperm),
	NEVER(settimeofday),
	NEVER(clock_settime),
	NEVER(sethostname),
	NEVER(setdomainname),
	NEVER(acct),
	NEVER(add_key),
	NEVER(request_key),
	NEVER(keyctl),
	NEVER(userfaultfd),
	{.name = NULL},
};
/* clang-format on */

const char *sbx_need_words(unsigned bit)
{
	switch (bit) {
	case SBX_LOOK:
		return "reads other processes";
	case SBX_MAPS:
		return "reads BPF maps";
	case SBX_LOAD:
		return "loads and attaches BPF programs";
	case SBX_NET:
		return "answers and sends over the network";
	case SBX_SELF:
		return "executes mxbpf again";
	case SBX_USER:
		return "drops privileges";
	case SBX_ENTER:
		return "enters the namespaces of other processes";
	case SBX_TRACE:
		return "loads the agent into other processes";
	}
	return "every command";
}
