// SPDX-License-Identifier: Apache-2.0
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fmt.h"
#include "base/namespace.h"
#include "target/priv.h"

#define CMDLINE_MAX_BYTES (64u << 10)
#define DEVS_MAX	  8
#define PF_KTHREAD	  0x00200000 /* include/linux/sched.h; stat shows it on every kernel, status only since 6.11 */

int tgt_slurp(int dirfd, const char *name, size_t cap, struct buf *out)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC), err = 0;
	char part[16384];
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	do {
		err = buf_put(out, part, (size_t)n);
		if (err)
			break;
		n = read(fd, part, cap - out->len < sizeof(part) ? cap - out->len : sizeof(part));
		if (n < 0)
			err = -errno;
	} while (n > 0);
	close(fd);
	if (!err)
		err = buf_put(out, "", 1);
	if (!err)
		out->len--;
	return err;
}

int tgt_slurp_comm(int dirfd, const char *name, char comm[32])
{
	struct buf text = {0};
	int err = tgt_slurp(dirfd, name, 31, &text);

	comm[0] = '\0';
	if (!err && !text.len)
		err = -ESRCH;
	if (!err) {
		text.data[text.len - 1] = '\0'; /* drop the newline */
		memcpy(comm, text.data, text.len);
	}
	buf_fini(&text);
	return err == -ENOENT ? -ESRCH : err;
}

bool tgt_gone(const struct tgt *t)
{
	char c;

	/*
	 * If the list of mappings of the address space at tgt_open() is empty, it is gone. A process loses its memory
	 * before its pidfd reports the exit.
	 */
	return !tgt_alive(t) || (t->mapsfd >= 0 && !pread(t->mapsfd, &c, 1, 0));
}

static bool has_capability(unsigned cap)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {0};

	return !syscall(SYS_capget, &hdr, caps) && caps[0].effective & 1u << cap;
}

/* Returns true if Yama forbids every process, whatever its capabilities, to inspect others. */
static bool yama_forbids_all(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	if (fd < 0)
		return false;
	if (read(fd, &scope, 1) != 1)
		scope = '0';
	close(fd);
	return scope == '3';
}

/* The first user namespace forbids nothing to who has these capabilities in it. */
static const char *forbidden_by(void)
{
	if (!has_capability(CAP_SYS_PTRACE))
		return "CAP_SYS_PTRACE is missing; run mxbpf with sudo";
	if (yama_forbids_all())
		return "Yama forbids it to every process (kernel.yama.ptrace_scope is 3); set another value and "
		       "restart the machine";
	if (!has_capability(CAP_DAC_READ_SEARCH))
		return "CAP_DAC_READ_SEARCH, which private folders of other users need, is missing; add it or run "
		       "mxbpf with "
		       "sudo";
	if (namespace_is_first("user"))
		return "a security module of this machine forbids it, also to root";
	return "the user namespace in which mxbpf runs, or a security module, forbids it; run mxbpf on the host itself";
}

int tgt_fail(const struct tgt *t, int code, const char *what, struct err *e)
{

	if (code == -ESRCH || code == -ENOENT || (t->pidfd >= 0 && tgt_gone(t)))
		return err_set(e, ERR_TARGET, -ESRCH, "process %s exited or called exec while mxbpf inspected it",
			       t->label);
	if (code == -EACCES || code == -EPERM)
		return err_set(e, ERR_PRIVILEGE, code, "no permission to read %s of process %s: %s", what, t->label,
			       forbidden_by());
	return err_set(e, ERR_RUNTIME, code, "cannot read %s of process %s: %s", what, t->label, strerror(-code));
}

/* Tells a missing process from one that hidepid hides. */
static int missing(pid_t pid, struct err *e)
{
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd < 0)
		return err_set(e, ERR_TARGET, -ESRCH,
			       "no process with pid %d; sudo mxbpf list shows those that can be profiled", pid);
	close(fd);
	return err_set(e, ERR_PRIVILEGE, -EACCES,
		       "process %d is hidden in /proc (hidepid): CAP_SYS_PTRACE is missing; run mxbpf with sudo", pid);
}

/* Opens /proc/PID and reads its status. */
static int open_proc(struct tgt *t, pid_t pid, struct buf *status, struct err *e)
{
	char name[32];
	int err;

	if (t->procfd >= 0)
		close(t->procfd);
	snprintf(t->label, sizeof(t->label), "%d", pid);
	snprintf(name, sizeof(name), "/proc/%d", pid);
	t->procfd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = t->procfd < 0 ? -errno : tgt_slurp(t->procfd, "status", 65536, status);
	if (err == -ENOENT || err == -ESRCH)
		return missing(pid, e);
	return err ? tgt_fail(t, err, "status", e) : 0;
}

/*
 * Finds the process of a thread id and opens /proc/PID and a pidfd. Both are bound to a process and not to a number. If
 * identify() can then read through /proc/PID, the number was not reused between the two opens.
 */
static int target_hold(struct tgt *t, pid_t id, struct err *e)
{
	struct buf status = {0};
	char task[32];
	const char *p;
	int err;

	err = id > 0 ? open_proc(t, id, &status, e) : missing(id, e);
	if (err)
		goto out;
	/* The name before it cannot fake this line, because newlines in it are escaped. */
	p = status.data ? strstr(status.data, "\nTgid:") : NULL;
	t->pid = p ? atoi(p + 6) : 0;
	if (t->pid <= 0) { /* an exiting thread belongs to no process */
		err = missing(id, e);
		goto out;
	}
	if (t->pid != id) {
		err = open_proc(t, t->pid, &status, e);
		if (err)
			goto out;
		snprintf(task, sizeof(task), "task/%d", id);
		if (faccessat(t->procfd, task, F_OK, 0)) {
			err = tgt_fail(t, -ESRCH, task, e);
			goto out;
		}
	}
	t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	if (t->pidfd < 0)
		err = tgt_fail(t, -errno, "the pidfd", e);
out:
	buf_fini(&status);
	return err;
}

/* Reads name and kind from /proc/PID/stat. Refuses processes without memory to read. */
static int identify(struct tgt *t, struct err *e)
{
	struct buf stat = {0};
	char *name, *end, state;
	unsigned long flags;
	char safe[sizeof(t->comm)];
	long threads;
	int err;

	err = tgt_slurp(t->procfd, "stat", 65536, &stat);
	if (err) {
		err = tgt_fail(t, err, "stat", e);
		goto out;
	}
	/* The name may contain parentheses, spaces and newlines. It ends at the last parenthesis. */
	name = strchr(stat.data, '(');
	end = strrchr(stat.data, ')');
	if (!name || !end ||
	    sscanf(end + 1, " %c %*d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state, &flags,
		   &threads) != 3) {
		err = tgt_fail(t, -EBADMSG, "stat", e);
		goto out;
	}
	*end = '\0';
	snprintf(t->comm, sizeof(t->comm), "%s", name + 1);
	fmt_safe(safe, sizeof(safe), t->comm, strlen(t->comm));
	snprintf(t->label, sizeof(t->label), "%d (%s)", t->pid, safe);
	if (flags & PF_KTHREAD)
		err = err_set(e, ERR_TARGET, -EINVAL, "%s is a kernel thread, which runs no program", t->label);
	else if ((state == 'Z' || state == 'X') && threads > 1)
		err = err_set(e, ERR_TARGET, -ESRCH,
			      "the main thread of process %s has exited, and the kernel hides the other threads",
			      t->label);
	else if (state == 'Z' || state == 'X')
		err = err_set(e, ERR_TARGET, -ESRCH, "process %s has exited and waits to be reaped", t->label);
out:
	buf_fini(&stat);
	return err;
}

static int refuse_32bit(struct tgt *t, struct err *e)
{
	const struct tgt_lib *program = tgt_program(t);
	unsigned char ident[5];
	struct far_file f;
	ssize_t n;
	int err = far_open(t->far, t->procfd, "exe", program ? program->dev : 0, &f);

	if (err == -ETIMEDOUT)
		return err_set(e, ERR_TARGET, err,
			       "the program of process %s cannot be read: its file system does not answer", t->label);
	if (err)
		return tgt_fail(t, err, "the program", e);
	n = far_pread(&f, ident, sizeof(ident), 0);
	far_close(&f);
	close(f.fd);
	if (n == sizeof(ident) && !memcmp(ident, "\177ELF\001", sizeof(ident)))
		return err_set(e, ERR_TARGET, -ENOTSUP, "process %s is 32-bit: 32-bit processes are not supported",
			       t->label);
	return 0;
}

/*
 * Returns the minor number of the kernel's own tmpfs, which is never unmounted: memory that processes share, and memory
 * files, such as those of the agent. Returns 0 if there is none.
 */
static unsigned shared_memory_minor(void)
{
	const int fd = memfd_create("mxbpf", MFD_CLOEXEC);
	struct stat st;
	const unsigned n = fd >= 0 && !fstat(fd, &st) && !major(st.st_dev) ? minor(st.st_dev) : 0;

	if (fd >= 0)
		close(fd);
	return n;
}

/*
 * Returns true if a file is mapped that need not answer: the kernel reads its pages for whoever reads memory of the
 * process. text is the list of mappings.
 */
static bool need_not_answer(struct tgt *t, const char *text)
{
	uint64_t devs[DEVS_MAX], start, end_addr, ino;
	unsigned ndevs = 0, i, dev_major, dev_minor;
	const unsigned memory = shared_memory_minor();
	struct far_file f;
	char name[64];
	int err;

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %*s %*s %x:%x %" SCNu64, &start, &end_addr, &dev_major,
			   &dev_minor, &ino) != 5 ||
		    dev_major || !ino || (memory && dev_minor == memory))
			continue;
		for (i = 0; i < ndevs && devs[i] != dev_minor; i++)
			;
		if (i < ndevs)
			continue;
		if (ndevs == DEVS_MAX)
			return true;
		devs[ndevs++] = dev_minor;
		snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end_addr);
		err = far_open(t->far, t->procfd, name, makedev(0, dev_minor), &f);
		if (!err) {
			far_close(&f);
			close(f.fd);
		}
		/*
		 * A file that is not regular has no pages. A file that has gone, or that mxbpf may not open, may lie on
		 * any file system.
		 */
		if (err ? err != -ESTALE : f.far != NULL)
			return true;
	}
	return false;
}

static int read_maps(struct tgt *t, struct err *e)
{
	struct buf maps = {0};
	int err = tgt_slurp(t->procfd, "maps", TGT_MAPS_MAX_BYTES, &maps);

	if (!err && maps.len == TGT_MAPS_MAX_BYTES) {
		buf_fini(&maps);
		return err_set(e, ERR_TARGET, -E2BIG,
			       "the list of mappings of process %s is longer than %u MiB, which mxbpf does not read",
			       t->label, TGT_MAPS_MAX_BYTES >> 20);
	}
	if (!err)
		t->wary = need_not_answer(t, maps.data);
	if (!err && tgt_gone(t))
		err = -ESRCH; /* it may have ended during the read, and then the list is incomplete */
	else if (!err)
		err = tgt_maps_libs(t, maps.data);
	buf_fini(&maps);
	return err ? tgt_fail(t, err, "the memory map", e) : 0;
}

static int read_cmdline(struct tgt *t, struct err *e)
{
	struct buf args = {0};
	int err = tgt_slurp(t->procfd, "cmdline", CMDLINE_MAX_BYTES, &args);
	size_t i;

	if (err) {
		buf_fini(&args);
		return tgt_fail(t, err, "the command line", e);
	}
	while (args.len && !args.data[args.len - 1])
		args.len--;
	for (i = 0; i < args.len; i++) {
		if (!args.data[i])
			args.data[i] = ' ';
	}
	t->cmdline = args.data;
	return 0;
}

int32_t tgt_number(const char *text)
{
	unsigned long v = strtoul(text, NULL, 10);

	return *text && !text[strspn(text, "0123456789")] && strlen(text) <= 10 && v <= INT32_MAX ? (int32_t)v : -1;
}

const char *tgt_env_find(const char *env, size_t bytes, const char *name)
{
	const size_t n = strlen(name);
	size_t at;

	for (at = 0; at < bytes; at += strlen(env + at) + 1)
		if (!strncmp(env + at, name, n) && env[at + n] == '=')
			return env + at + n + 1;
	return NULL;
}

bool tgt_env_text(const struct tgt *t, const char *name, char *text, size_t max)
{
	struct buf env = {0};
	const char *value = NULL;

	if (!tgt_environ(t->wary ? t->far : NULL, t->procfd, t->pid, &env))
		value = tgt_env_find(env.data, env.len, name);
	if (value)
		snprintf(text, max, "%s", value);
	buf_fini(&env);
	return value;
}

/* Writes the working directory of the process as it is in its root. Returns 0 or -errno. */
static int read_cwd(const struct tgt *t, char cwd[PATH_MAX])
{
	char root[PATH_MAX];
	const ssize_t n = readlinkat(t->procfd, "cwd", cwd, PATH_MAX - 1);
	const ssize_t nroot = readlinkat(t->procfd, "root", root, sizeof(root));

	if (n < 0 || nroot < 0)
		return -errno;
	cwd[n] = '\0';
	if (nroot > n || memcmp(cwd, root, (size_t)nroot) != 0)
		return -ENOENT;
	memmove(cwd, cwd + nroot, (size_t)(n - nroot) + 1);
	return 0;
}

ssize_t tgt_read_file(const struct tgt *t, const char *path, void *buf, size_t max)
{
	char cwd[PATH_MAX] = "", name[PATH_MAX];
	int err = *path == '/' ? 0 : read_cwd(t, cwd);
	struct far_file f;
	ssize_t n;

	/* Links of a name that begins with "root/" do not lead out of the root of the process. */
	if (!err && (size_t)snprintf(name, sizeof(name), "root/%s/%s", cwd, path) >= sizeof(name))
		err = -ENAMETOOLONG;
	err = err ? err : far_open(t->far, t->procfd, name, 0, &f);
	if (err)
		return err;
	n = far_pread(&f, buf, max, 0);
	far_close(&f);
	close(f.fd);
	return n;
}

int32_t tgt_env_number(const struct tgt *t, const char *name)
{
	char text[16];

	return tgt_env_text(t, name, text, sizeof(text)) ? tgt_number(text) : -1;
}

int tgt_open(pid_t pid, struct tgt **out, struct err *e)
{
	struct tgt *t = calloc(1, sizeof(*t));
	int err;

	*out = NULL;
	if (!t)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	t->pidfd = t->procfd = t->mapsfd = t->memfd = -1;
	t->far = far_new();
	err = t->far ? target_hold(t, pid, e) : err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!err)
		err = identify(t, e);
	if (!err) {
		/* "mem" belongs to the user of the process, so open() may fail despite capabilities. It is optional. */
		t->memfd = openat(t->procfd, "mem", O_RDONLY | O_CLOEXEC);
		t->mapsfd = openat(t->procfd, "maps", O_RDONLY | O_CLOEXEC);
		err = t->mapsfd < 0 ? tgt_fail(t, -errno, "the memory map", e) : 0;
	}
	if (!err)
		err = read_maps(t, e);
	if (!err)
		err = refuse_32bit(t, e);
	if (!err)
		err = read_cmdline(t, e);
	if (err) {
		tgt_close(t);
		return err;
	}
	*out = t;
	return 0;
}

void tgt_close(struct tgt *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->nslots; i++) {
		elf_close(t->slots[i].lib.elf);
		free(t->slots[i].lib.path);
		free(t->slots[i].lib.open_path);
		if (t->slots[i].fd >= 0)
			close(t->slots[i].fd);
	}
	far_free(t->far);
	free(t->slots);
	free(t->cmdline);
	if (t->mapsfd >= 0)
		close(t->mapsfd);
	if (t->memfd >= 0)
		close(t->memfd);
	if (t->procfd >= 0)
		close(t->procfd);
	if (t->pidfd >= 0)
		close(t->pidfd);
	free(t);
}

void tgt_end_reader(struct tgt *t)
{
	far_end(t->far);
}

pid_t tgt_pid(const struct tgt *t)
{
	return t->pid;
}

const char *tgt_comm(const struct tgt *t)
{
	return t->comm;
}

const char *tgt_cmdline(const struct tgt *t)
{
	return t->cmdline;
}

int tgt_pidfd(const struct tgt *t)
{
	return t->pidfd;
}

bool tgt_alive(const struct tgt *t)
{
	struct pollfd p = {.fd = t->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) <= 0; /* without memory poll() fails, and tells nothing */
}

size_t tgt_nlibs(const struct tgt *t)
{
	return t->nslots;
}

struct tgt_lib *tgt_lib(struct tgt *t, size_t i)
{
	return i < t->nslots ? &t->slots[i].lib : NULL;
}

struct tgt_lib *tgt_find_lib(struct tgt *t, const char *glob)
{
	size_t i;

	for (i = 0; i < t->nslots; i++) {
		struct tgt_lib *lib = &t->slots[i].lib;

		if (!fnmatch(glob, strrchr(lib->path, '/') + 1, 0))
			return lib;
	}
	return NULL;
}

struct tgt_lib *tgt_lib_at(struct tgt *t, uint64_t addr)
{
	size_t i;

	for (i = 0; i < t->nslots; i++)
		if (addr >= t->slots[i].start && addr < t->slots[i].end)
			return &t->slots[i].lib;
	return NULL;
}

struct tgt_lib *tgt_program(struct tgt *t)
{
	static const char deleted[] = " (deleted)";
	char path[PATH_MAX];
	ssize_t n = readlinkat(t->procfd, "exe", path, sizeof(path) - 1), m = sizeof(deleted) - 1;
	size_t i;

	path[n > 0 ? n : 0] = '\0';
	if (n > m && !strcmp(path + n - m, deleted))
		path[n - m] = '\0';
	for (i = 0; i < t->nslots; i++)
		if (!strcmp(t->slots[i].lib.path, path))
			return &t->slots[i].lib;
	return NULL;
}

int tgt_thread_comm(const struct tgt *t, pid_t tid, char comm[32])
{
	char name[48];

	snprintf(name, sizeof(name), "task/%d/comm", tid);
	return tgt_slurp_comm(t->procfd, name, comm);
}

void tgt_check_later(struct tgt *t, bool on)
{
	t->check_later = on;
}

ssize_t tgt_read_some(const struct tgt *t, uint64_t addr, void *buf, size_t n)
{
	bool forbidden;
	ssize_t got;

	if (!n)
		return 0;
	got = far_memory(t->wary ? t->far : NULL, t->pid, addr, buf, n);
	forbidden = got == -EPERM;
	if (got != (ssize_t)n && t->memfd >= 0 && !t->wary)
		got = pread(t->memfd, buf, n, (off_t)addr);
	/* The process is still there, so the pid meant this process and this program during the read. */
	if (!t->check_later && tgt_gone(t))
		return -ESRCH;
	if (got < 0)
		return forbidden ? -EPERM : -EFAULT;
	return got;
}

int tgt_read(const struct tgt *t, uint64_t addr, void *buf, size_t n)
{
	ssize_t got = tgt_read_some(t, addr, buf, n);

	return got == (ssize_t)n ? 0 : got < 0 ? (int)got : -EFAULT;
}
