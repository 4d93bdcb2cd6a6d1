// SPDX-License-Identifier: Apache-2.0
/* Tests the target room on forked children. They report their progress by pipe, so no test waits for time. */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <grp.h>
#include <link.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "target/priv.h"
#include "target/target.h"
#include "unit.h"

#define SKIP(promise, why)                                                                                             \
	TEST(promise " # SKIP " why)                                                                                   \
	{                                                                                                              \
	}
#define NOBODY 65534

static char dir[256]; /* folder of all files that the test writes; beside the program, because /tmp may be noexec */

/* ---- children */

struct kid {
	pid_t pid;
	int say; /* from the child */
	int go;	 /* to the child; it exits when this is closed */
};

struct hello {
	uint64_t addr; /* address of the library's function */
	pid_t tid;
};

typedef void (*kid_fn)(const char *arg, int say, int go);

static struct kid kid_start(kid_fn fn, const char *arg, struct hello *h)
{
	int up[2], down[2];
	struct kid k;

	if (pipe2(up, O_CLOEXEC) || pipe2(down, O_CLOEXEC))
		abort();
	k.pid = fork();
	if (!k.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(down[1]);
		fn(arg, up[1], down[0]);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	k.say = up[0];
	k.go = down[1];
	if (h && read(k.say, h, sizeof(*h)) != sizeof(*h))
		memset(h, 0, sizeof(*h));
	return k;
}

static void kid_reap(const struct kid *k)
{
	waitpid(k->pid, NULL, 0);
	close(k->say);
}

static void kid_end(struct kid *k)
{
	close(k->go);
	kid_reap(k);
}

static void say_and_stay(int say, int go, struct hello h)
{
	char c;

	if (write(say, &h, sizeof(h)) == sizeof(h))
		(void)!read(go, &c, 1);
}

static void stay(const char *arg, int say, int go)
{
	say_and_stay(say, go, (struct hello){0});
}

static void load_and_stay(const char *path, int say, int go)
{
	void *so = dlopen(path, RTLD_NOW);

	say_and_stay(say, go, (struct hello){.addr = so ? (uint64_t)(uintptr_t)dlsym(so, "probe_me") : 0});
}

/* Changes the note in a private copy, as if the process had loaded another build than the file now has. */
static void load_patch_and_stay(const char *path, int say, int go)
{
	struct link_map *so = dlopen(path, RTLD_NOW);
	char *at, *page = so ? (char *)so->l_addr : NULL;

	if (!so || mprotect(page, 4096, PROT_READ | PROT_WRITE))
		return;
	at = memmem(page, 4096, "\x11\x11\x11\x11", 4);
	if (!at)
		return;
	*at = '\x12';
	say_and_stay(say, go, (struct hello){.addr = (uint64_t)(uintptr_t)at});
}

static void rename_and_stay(const char *name, int say, int go)
{
	prctl(PR_SET_NAME, name);
	say_and_stay(say, go, (struct hello){0});
}

/* At a byte from the test it becomes cat, which exits when its input ends. */
static void exec_and_stay(const char *arg, int say, int go)
{
	struct hello h = {0};

	if (write(say, &h, sizeof(h)) != sizeof(h) || read(go, &h, 1) != 1 || dup2(go, 0))
		return;
	execlp("cat", "cat", (char *)NULL);
}

static int thread_pipe[2];

static void *thread_main(void *go)
{
	prctl(PR_SET_NAME, "worker (2) \n");
	say_and_stay(thread_pipe[1], *(int *)go, (struct hello){.tid = (pid_t)syscall(SYS_gettid)});
	return NULL;
}

static void thread_and_stay(const char *arg, int say, int go)
{
	pthread_t t;

	thread_pipe[1] = say;
	if (!pthread_create(&t, NULL, thread_main, &go))
		pthread_join(t, NULL);
}

/* Runs fn in a child process that may change its credentials; returns its code and reason. */
static int elsewhere(int (*fn)(pid_t, struct err *), pid_t arg, struct err *e)
{
	int up[2], code = -EIO;
	pid_t pid;

	if (pipe2(up, O_CLOEXEC))
		abort();
	pid = fork();
	if (!pid) {
		code = fn(arg, e);
		(void)!write(up[1], &code, sizeof(code));
		(void)!write(up[1], e, sizeof(*e));
		_exit(0);
	}
	close(up[1]);
	if (read(up[0], &code, sizeof(code)) != sizeof(code) || read(up[0], e, sizeof(*e)) != sizeof(*e))
		code = -EIO;
	close(up[0]);
	waitpid(pid, NULL, 0);
	return code;
}

/* ---- files */

static const char *in_dir(const char *name)
{
	static char path[4][4352];
	static unsigned int turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(*path), "%s/%s", dir, name);
	return p;
}

static void put(const char *path, const void *data, size_t n, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0755);

	if (fd < 0 || write(fd, data, n) != (ssize_t)n || close(fd))
		abort();
}

static struct buf slurp(const char *path)
{
	struct buf b = {0};

	if (tgt_slurp(AT_FDCWD, path, 16 << 20, &b))
		abort();
	return b;
}

static void copy(const char *from, const char *to, int flags)
{
	FREED(buf_fini) struct buf b = slurp(from);

	put(to, b.data, b.len, flags);
}

static void run(const char *const argv[])
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		abort();
}

/* Builds a library with its own build-id; more: its source; extra: a compiler flag. */
static void build_so(const char *name, const char *id, const char *more, const char *extra)
{
	char flag[64];

	snprintf(flag, sizeof(flag), "-Wl,--build-id=0x%s", id);
	put(in_dir("so.c"), more, strlen(more), O_TRUNC);
	run((const char *const[]){"cc", "-shared", "-fPIC", "-nostdlib", flag, extra, "-o", in_dir(name),
				  in_dir("so.c"), NULL});
}

/* Like lld, places the start of the executable segment in the middle of a page that it shares with another one. */
static const char unaligned_ld[] =
	"PHDRS { head PT_LOAD FILEHDR PHDRS FLAGS(4); text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6);\n"
	"        dyn PT_DYNAMIC; note PT_NOTE; }\n"
	"SECTIONS { . = SIZEOF_HEADERS;\n"
	" .note.gnu.build-id : { *(.note.gnu.build-id) } :head :note\n"
	" .hash : { *(.hash) } :head .gnu.hash : { *(.gnu.hash) } .dynsym : { *(.dynsym) } .dynstr : { *(.dynstr) }\n"
	" . = . + 0x1000; .text : { *(.text*) } :text .rest : { *(.plt*) *(.eh_frame*) } :text\n"
	" . = . + 0x1000; .dynamic : { *(.dynamic) } :data :dyn .data : { *(.got*) *(.data*) } :data\n"
	" /DISCARD/ : { *(.note.gnu.property) *(.comment) } }\n";

static unsigned int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool says(const struct err *e, enum err_class cls, const char *words)
{
	bool ok = e->cls == cls && strstr(e->why, words);

	if (!ok)
		printf("# class %d: %s\n", (int)e->cls, e->why);
	return ok;
}

static struct tgt *opened(pid_t pid)
{
	struct err e = {0};
	struct tgt *t;

	if (tgt_open(pid, &t, &e))
		printf("# %s\n", e.why);
	return t;
}

/* Checks the library of a load_and_stay() child down to the address of its function. */
static void check_lib(struct tgt *t, const char *glob, uint8_t id, uint64_t addr)
{
	struct tgt_lib *lib = t ? tgt_find_lib(t, glob) : NULL;
	struct elf_sym sym = {0};
	struct err e = {0};
	struct elf *f;
	int fd;

	CHECK(lib && addr);
	if (!lib)
		return;
	CHECK(!tgt_lib_elf(t, lib, &f, &e) && says(&e, 0, ""));
	if (!f)
		return;
	CHECK(lib->build_id_bytes == 4 && lib->build_id[0] == id);
	CHECK(!elf_find_sym(f, "probe_me", &sym, &e));
	CHECK(sym.va + lib->load_bias == addr);
	fd = open(lib->open_path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	close(fd);
}

static int lib_error(pid_t pid, const char *glob, struct err *e)
{
	struct tgt *t;
	struct elf *f;
	int err = tgt_open(pid, &t, e);

	if (!err)
		err = tgt_lib_elf(t, tgt_find_lib(t, glob), &f, e);
	tgt_close(t);
	return err;
}

/* ---- the tests */

static void test_process(void)
{
	struct hello h;
	struct kid k;
	struct tgt *t;
	struct err e = {0};
	char comm[32];

	TEST("a process is described by its own name, command line and libraries")
	{
		char exe[4096] = "";
		struct tgt_lib *lib;
		struct elf *f;
		unsigned int i;

		t = opened(getpid());
		CHECK(t && tgt_pid(t) == getpid() && tgt_alive(t));
		CHECK(t && strstr(tgt_cmdline(t), "test_target") && !strcmp(tgt_comm(t), "test_target"));
		CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
		lib = t ? tgt_find_lib(t, "test_target") : NULL;
		CHECK(lib && !strcmp(lib->path, exe) && !lib->deleted && !tgt_lib_elf(t, lib, &f, &e));
		CHECK(t && tgt_find_lib(t, "libc.so.6") && !tgt_find_lib(t, "libmxnet.so"));
		CHECK(t && !tgt_lib(t, tgt_nlibs(t)));
		for (i = 0; t && i < tgt_nlibs(t); i++)
			CHECK(tgt_lib(t, i)->path[0] == '/');
		tgt_close(t);
	}
	TEST("a thread id resolves to its process, and threads have names")
	{
		k = kid_start(thread_and_stay, NULL, &h);
		t = opened(h.tid);
		CHECK(h.tid != k.pid && t && tgt_pid(t) == k.pid);
		CHECK(t && !tgt_thread_comm(t, h.tid, comm) && !strcmp(comm, "worker (2) \n"));
		CHECK(t && tgt_thread_comm(t, getpid(), comm) == -ESRCH);
		tgt_close(t);
		kid_end(&k);
	}
	TEST("a process name made to confuse the parser is read correctly and shown safely")
	{
		k = kid_start(rename_and_stay, ") Z 1 (\n\033x", &h);
		t = opened(k.pid);
		CHECK(t && !strcmp(tgt_comm(t), ") Z 1 (\n\033x"));
		CHECK(t && !strchr(t->label, '\n') && !strchr(t->label, '\033'));
		tgt_close(t);
		kid_end(&k);
	}
	TEST("memory is read completely or not at all")
	{
		static const char text[] = "in the parent and in the child";
		char got[sizeof(text)] = "";

		k = kid_start(stay, NULL, &h);
		t = opened(k.pid);
		CHECK(t && !tgt_read(t, (uintptr_t)text, got, sizeof(got)) && !strcmp(got, text));
		CHECK(t && tgt_read(t, 16, got, sizeof(got)) == -EFAULT);
		CHECK(t && tgt_read(t, UINT64_MAX - 3, got, sizeof(got)) == -EFAULT);
		kid_end(&k);
		CHECK(t && tgt_read(t, (uintptr_t)text, got, sizeof(got)) == -ESRCH);
		tgt_close(t);
	}
}

static void test_refused(void)
{
	struct hello h;
	struct kid k;
	struct tgt *t;
	struct err e;
	siginfo_t si;
	char expect[64];

	TEST("an impossible pid is no process")
	{
		static const pid_t bad[] = {0, -1, -2147483647 - 1, 2147483647};
		unsigned int i;

		for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			e = (struct err){0};
			snprintf(expect, sizeof(expect), "no process with pid %d", bad[i]);
			CHECK(tgt_open(bad[i], &t, &e) == -ESRCH && !t && says(&e, ERR_TARGET, expect));
		}
	}
	TEST("an exited process is no process")
	{
		k = kid_start(stay, NULL, &h);
		kid_end(&k);
		e = (struct err){0};
		snprintf(expect, sizeof(expect), "no process with pid %d", k.pid);
		CHECK(tgt_open(k.pid, &t, &e) == -ESRCH && says(&e, ERR_TARGET, expect));
	}
	TEST("a zombie is reported as a zombie, with its name")
	{
		k = kid_start(stay, NULL, &h);
		close(k.go);
		waitid(P_PID, (id_t)k.pid, &si, WEXITED | WNOWAIT);
		e = (struct err){0};
		snprintf(expect, sizeof(expect), "process %d (test_target) has exited and waits to be reaped", k.pid);
		CHECK(tgt_open(k.pid, &t, &e) && says(&e, ERR_TARGET, expect));
		kid_reap(&k);
	}
	if (access("/proc/2/stat", R_OK)) {
		SKIP("a kernel thread is recognized", "no kernel thread is visible in this pid namespace")
	} else {
		TEST("a kernel thread is recognized")
		{
			e = (struct err){0};
			CHECK(tgt_open(2, &t, &e) && says(&e, ERR_TARGET, "2 (kthreadd) is a kernel thread"));
		}
	}
	TEST("the exit of the process is noticed, and all later calls report it")
	{
		struct pollfd p = {.events = POLLIN};
		struct elf *f;
		char comm[32];

		k = kid_start(stay, NULL, &h);
		t = opened(k.pid);
		CHECK(t && tgt_alive(t));
		close(k.go);
		p.fd = t ? tgt_pidfd(t) : -1;
		CHECK(poll(&p, 1, 10000) == 1 && t && !tgt_alive(t));
		kid_reap(&k);
		e = (struct err){0};
		CHECK(t && tgt_lib_elf(t, tgt_lib(t, 0), &f, &e) && !f &&
		      says(&e, ERR_TARGET, "exited or called exec"));
		CHECK(t && tgt_thread_comm(t, k.pid, comm) == -ESRCH);
		tgt_close(t);
	}
	TEST("a process that has become another program is not read as the old one")
	{
		char c = 0;

		k = kid_start(exec_and_stay, NULL, &h);
		t = opened(k.pid);
		CHECK(write(k.go, &c, 1) == 1 && !read(k.say, &c, 1)); /* the exec closes the pipe */
		e = (struct err){0};
		CHECK(t && tgt_alive(t) && tgt_read(t, (uintptr_t)dir, &c, 1) == -ESRCH);
		CHECK(t && tgt_lib_elf(t, tgt_lib(t, 0), &(struct elf *){0}, &e) &&
		      says(&e, ERR_TARGET, "called exec"));
		tgt_close(t);
		kid_end(&k);
	}
	TEST("a process that exits while it is being opened is a missing target at any moment")
	{
		unsigned int i, bad = 0;

		for (i = 0; i < 500; i++) {
			struct elf *f;
			unsigned int head_start = i % 50;

			k = kid_start(stay, NULL, &h);
			close(k.go); /* now it races with this process */
			while (head_start--)
				close(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
			e = (struct err){0};
			if (!tgt_open(k.pid, &t, &e) && !tgt_find_lib(t, "libc.so.6"))
				bad++; /* an incomplete list */
			else if (t)
				tgt_lib_elf(t, tgt_lib(t, i % tgt_nlibs(t)), &f, &e);
			if (e.code && !says(&e, ERR_TARGET, "exited"))
				bad++;
			tgt_close(t);
			kid_reap(&k);
		}
		CHECK(!bad);
	}
}

/* A 32-bit program that only pauses, written as bytes because a compiler for it is rarely installed. */
static void test_32bit(void)
{
	static const struct {
		Elf32_Ehdr eh;
		Elf32_Phdr ph;
		unsigned char code[9];
	} prog = {
		/* clang-format off */
		.eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_EXEC,
		       .e_machine = EM_386, .e_version = EV_CURRENT, .e_phoff = sizeof(Elf32_Ehdr),
		       .e_entry = 0x10000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr), .e_ehsize = sizeof(Elf32_Ehdr),
		       .e_phentsize = sizeof(Elf32_Phdr), .e_phnum = 1},
		.ph = {.p_type = PT_LOAD, .p_vaddr = 0x10000, .p_filesz = sizeof(prog), .p_memsz = sizeof(prog),
		       .p_flags = PF_R | PF_X, .p_align = 0x1000},
		/* clang-format on */
		.code = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7}, /* 1: mov $SYS_pause, %eax; int $0x80; jmp 1b */
	};
	int up[2], code = 0;
	struct err e = {0};
	struct tgt *t;
	pid_t pid;

	put(in_dir("prog32"), &prog, sizeof(prog), O_TRUNC);
	if (pipe2(up, O_CLOEXEC))
		abort();
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(in_dir("prog32"), "prog32", (char *)NULL);
		code = errno;
		(void)!write(up[1], &code, sizeof(code));
		_exit(1);
	}
	close(up[1]);
	/* The pipe is closed by exec. */
	if (read(up[0], &code, sizeof(code)) > 0) {
		SKIP("a 32-bit process is refused", "this kernel runs no 32-bit programs")
	} else {
		TEST("a 32-bit process is refused")
		{
			CHECK(tgt_open(pid, &t, &e) == -ENOTSUP);
			CHECK(says(&e, ERR_TARGET, "(prog32) is 32-bit: 32-bit processes are not supported"));
		}
	}
	close(up[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_libs(void)
{
	static const char v1[] = "int probe_me(int x) { return x + 1; }\n";
	static const char v2[] = "int pad(int x) { return x * 3; } int probe_me(int x) { return pad(x) + 2; }\n"
				 "const char *names[] = { \"a\", \"b\" };\n";
	struct hello h;
	struct kid k;
	struct tgt *t;
	struct err e;

	build_so("v1.so", "11111111", v1, "-O1");
	build_so("v2.so", "22222222", v2, "-O1");
	TEST("a library is found by glob, and its file and its addresses are right")
	{
		k = kid_start(load_and_stay, in_dir("v1.so"), &h);
		t = opened(k.pid);
		check_lib(t, "v1.so", 0x11, h.addr);
		check_lib(t, "v?.s*", 0x11, h.addr);
		CHECK(t && !tgt_find_lib(t, "1.so") && !tgt_find_lib(t, "*/v1.so"));
		tgt_close(t);
		kid_end(&k);
	}
	TEST("addresses are right if the executable segment begins inside a page")
	{
		char script[4352];

		snprintf(script, sizeof(script), "-Wl,-T,%s", in_dir("lld.ld"));
		put(in_dir("lld.ld"), unaligned_ld, sizeof(unaligned_ld) - 1, O_TRUNC);
		build_so("lld.so", "33333333", v1, script);
		k = kid_start(load_and_stay, in_dir("lld.so"), &h);
		t = opened(k.pid);
		check_lib(t, "lld.so", 0x33, h.addr);
		tgt_close(t);
		kid_end(&k);
	}
	TEST("a file name with newlines, blanks and (deleted) leads to its file")
	{
		static const char name[] = "a b\n (deleted)\\\033.so (deleted) x";

		copy(in_dir("v1.so"), in_dir(name), O_TRUNC);
		k = kid_start(load_and_stay, in_dir(name), &h);
		t = opened(k.pid);
		CHECK(t && tgt_find_lib(t, "a b*") && !tgt_find_lib(t, "a b*")->deleted);
		check_lib(t, "a b*", 0x11, h.addr);
		tgt_close(t);
		kid_end(&k);
	}
	TEST("a library overwritten in place is refused")
	{
		copy(in_dir("v1.so"), in_dir("live.so"), O_TRUNC);
		k = kid_start(load_and_stay, in_dir("live.so"), &h);
		copy(in_dir("v2.so"), in_dir("live.so"), 0);
		e = (struct err){0};
		CHECK(lib_error(k.pid, "live.so", &e) == -ESTALE && says(&e, ERR_TARGET, "was overwritten in place"));
		kid_end(&k);
	}
	TEST("a file with another build-id than in memory is refused")
	{
		k = kid_start(load_patch_and_stay, in_dir("v1.so"), &h);
		e = (struct err){0};
		CHECK(h.addr && lib_error(k.pid, "v1.so", &e) == -ESTALE && says(&e, ERR_TARGET, "other build-id"));
		kid_end(&k);
	}
	TEST("a library truncated in place is refused")
	{
		copy(in_dir("v1.so"), in_dir("live.so"), O_TRUNC);
		k = kid_start(load_and_stay, in_dir("live.so"), &h);
		CHECK(!truncate(in_dir("live.so"), 0x1000));
		e = (struct err){0};
		CHECK(lib_error(k.pid, "live.so", &e) && says(&e, ERR_TARGET, "live.so"));
		kid_end(&k);
	}
}

/* ---- tests that need root: other identities, namespaces, chosen pids */

static int keep_caps(uint64_t caps)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	data[0].effective = data[0].permitted = (uint32_t)caps;
	data[1].effective = data[1].permitted = (uint32_t)(caps >> 32);
	return (int)syscall(SYS_capset, &hdr, data);
}

static int become_nobody(void)
{
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY);
}

static int open_as_nobody(pid_t pid, struct err *e)
{
	struct tgt *t;

	return become_nobody() ? -EIO : tgt_open(pid, &t, e);
}

/* The process has all capabilities, but only in its own user namespace. */
static int open_from_userns(pid_t pid, struct err *e)
{
	struct tgt *t;

	return become_nobody() || unshare(CLONE_NEWUSER) ? -EIO : tgt_open(pid, &t, e);
}

static int open_hidden(pid_t pid, struct err *e)
{
	struct tgt *t;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, "hidepid=2") || become_nobody())
		return -EIO;
	return tgt_open(pid, &t, e);
}

static int lib_with_ptrace_only(pid_t pid, struct err *e)
{
	return keep_caps(1u << CAP_SYS_PTRACE) ? -EIO : lib_error(pid, "live.so", e);
}

static void test_rights(void)
{
	struct hello h;
	struct kid k;
	struct err e;

	TEST("the missing capability is named if permission is refused")
	{
		e = (struct err){0};
		CHECK(elsewhere(open_as_nobody, getpid(), &e) && says(&e, ERR_PRIVILEGE, "CAP_SYS_PTRACE"));
	}
	e = (struct err){0};
	if (elsewhere(open_from_userns, getpid(), &e) == -EIO) {
		SKIP("a capability that is present is not called missing", "no user namespaces here")
	} else {
		TEST("a capability that is present is not called missing")
		{
			CHECK(says(&e, ERR_PRIVILEGE, "user namespace") && !strstr(e.why, "missing"));
		}
	}
	TEST("a process hidden in /proc is not reported as missing")
	{
		e = (struct err){0};
		CHECK(elsewhere(open_hidden, getpid(), &e) && says(&e, ERR_PRIVILEGE, "hidepid"));
	}
	TEST("a file is opened through the root of the process if map_files is forbidden")
	{
		copy(in_dir("v1.so"), in_dir("live.so"), O_TRUNC);
		k = kid_start(load_and_stay, in_dir("live.so"), &h);
		e = (struct err){0};
		CHECK(!elsewhere(lib_with_ptrace_only, k.pid, &e));
		CHECK(!rename(in_dir("v2.so"), in_dir("live.so")));
		CHECK(elsewhere(lib_with_ptrace_only, k.pid, &e) && says(&e, ERR_PRIVILEGE, "CAP_CHECKPOINT_RESTORE"));
		kid_end(&k);
	}
}

static void test_names_lost(void)
{
	struct tgt_lib *lib;
	struct hello h;
	struct kid k;
	struct tgt *t;

	TEST("a deleted library is found and is the one that was loaded")
	{
		copy(in_dir("v1.so"), in_dir("gone.so"), O_TRUNC);
		k = kid_start(load_and_stay, in_dir("gone.so"), &h);
		CHECK(!unlink(in_dir("gone.so")));
		t = opened(k.pid);
		lib = t ? tgt_find_lib(t, "gone.so") : NULL;
		CHECK(lib && lib->deleted && !strcmp(lib->path, in_dir("gone.so")));
		check_lib(t, "gone.so", 0x11, h.addr);
		tgt_close(t);
		kid_end(&k);
	}
	TEST("a library replaced by rename is the old inode and not the new file of that name")
	{
		struct stat st;

		copy(in_dir("v1.so"), in_dir("up.so"), O_TRUNC);
		CHECK(!stat(in_dir("up.so"), &st));
		k = kid_start(load_and_stay, in_dir("up.so"), &h);
		copy(in_dir("v2.so"), in_dir("new.so"), O_TRUNC);
		CHECK(!rename(in_dir("new.so"), in_dir("up.so")));
		t = opened(k.pid);
		lib = t ? tgt_find_lib(t, "up.so") : NULL;
		CHECK(lib && lib->deleted && lib->ino == st.st_ino && lib->dev == st.st_dev);
		check_lib(t, "up.so", 0x11, h.addr);
		CHECK(lib && !stat(lib->open_path, &st) && lib->ino == st.st_ino);
		tgt_close(t);
		kid_end(&k);
	}
}

static void test_pid_reuse(void)
{
	static const char text[] = "same address, other process";
	char got[sizeof(text)] = "", comm[32];
	struct err e = {0};
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid_size = 1};
	struct hello h;
	struct kid k = kid_start(stay, NULL, &h);
	struct tgt *t = opened(k.pid);
	struct elf *f;
	pid_t pid;

	kid_end(&k);
	args.set_tid = (uint64_t)(uintptr_t)&k.pid;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		for (;;)
			pause();
	}
	if (pid != k.pid) {
		SKIP("another process with the same pid is not taken for the target",
		     "clone3 refuses to choose the pid")
		tgt_close(t);
		return;
	}
	TEST("another process with the same pid is not taken for the target")
	{
		CHECK(t && !tgt_alive(t));
		CHECK(t && tgt_read(t, (uintptr_t)text, got, sizeof(got)) == -ESRCH);
		CHECK(t && tgt_thread_comm(t, pid, comm) == -ESRCH);
		CHECK(t && tgt_lib_elf(t, tgt_lib(t, 0), &f, &e) && says(&e, ERR_TARGET, "exited"));
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tgt_close(t);
}

int main(void)
{
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 16);
	unsigned int fds;

	if (n < 0)
		abort();
	strcat(dir, ".XXXXXX");
	if (!mkdtemp(dir))
		abort();
	fds = open_fds();
	test_process();
	test_refused();
	test_32bit();
	test_libs();
	if (geteuid()) {
		SKIP("libraries without names, rights and reused pids are handled", "not root")
	} else {
		test_names_lost();
		test_rights();
		test_pid_reuse();
	}
	TEST("no file descriptor stays open")
	{
		CHECK(open_fds() == fds);
	}
	run((const char *const[]){"rm", "-rf", dir, NULL});
	UNIT_MAIN_END;
}
