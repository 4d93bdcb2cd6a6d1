// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the files in /proc of a hostile process, whole functions and not only their parsers: mappings, states, threads
 * of another pid namespace, groups, mounts, environment, sockets. The first byte of the input selects what is read, and
 * the rest is files, which 0xFE ends. Each file in /proc or /sys that is opened is the next of them, and after the last
 * one the first again. A file that begins with 0xFD cannot be opened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/mapped.h"
#include "agent/threads.h"
#include "feature/machine/read_priv.h"
#include "kineto/priv.h"
#include "target/labels.h"
#include "target/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);
int __wrap_fstatfs(int fd, struct statfs *to);
int __wrap_faccessat(int dir, const char *path, int mode, int flags);
ssize_t __wrap_readlinkat(int dir, const char *path, char *to, size_t max);
int __wrap_far_open(struct far *far, int dirfd, const char *name, uint64_t dev, struct far_file *f);
ssize_t __wrap_far_memory(struct far *far, pid_t pid, uint64_t addr, void *to, size_t n);

#define ENDS	   0xfe
#define REFUSED	   0xfd
#define LONG_BYTES 40000
#define SOCKET	   "socket:[7]" /* what each descriptor is */

static const uint8_t *files, *files_end, *next;
static bool on; /* files are those of the input */

/* ---- the files */

static int open_next(void)
{
	const uint8_t *at = next, *end = memchr(at, ENDS, (size_t)(files_end - at));
	int fd;

	end = end ? end : files_end;
	next = end < files_end ? end + 1 : files;
	if (at < end && *at == REFUSED) {
		errno = EACCES;
		return -1;
	}
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, at, (size_t)(end - at), 0) != end - at)
		abort();
	return fd;
}

static bool is_ours(const char *path, int flags)
{
	return on && !(flags & (O_PATH | O_DIRECTORY)) &&
	       (*path != '/' || !strncmp(path, "/proc", 5) || !strncmp(path, "/sys", 4) || !strncmp(path, "/etc", 4));
}

/* Folders of groups are all there. */
static const char *place_of(const char *path, int flags)
{
	return on && flags & O_PATH && strncmp(path, "/proc", 5) ? "/" : path;
}

int __wrap_open(const char *path, int flags, ...)
{
	return is_ours(path, flags) ? open_next() : __real_open(place_of(path, flags), flags, 0600);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	return is_ours(path, flags) ? open_next() : __real_openat(dir, path, flags, 0600);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	int fd;

	if (!is_ours(path, 0))
		return __real_fopen(path, mode);
	fd = open_next();
	return fd < 0 ? NULL : fdopen(fd, "r");
}

/* The folder of kubelet has two files. Their names come from the input. */
static unsigned names_left;

DIR *__wrap_opendir(const char *path)
{
	names_left = on && !strcmp(path, TGT_KUBELET_LINKS) ? 3 : 0;
	return __real_opendir(names_left ? "/" : path);
}

struct dirent *__wrap_readdir(DIR *d)
{
	static struct dirent name;
	ssize_t n;
	int fd;

	if (!names_left)
		return __real_readdir(d);
	if (!--names_left)
		return NULL;
	fd = open_next();
	n = fd < 0 ? 0 : read(fd, name.d_name, sizeof(name.d_name) - 1);
	if (fd >= 0)
		close(fd);
	name.d_name[n] = '\0';
	return &name;
}

int __wrap_fstatfs(int fd, struct statfs *to)
{
	(void)fd;
	*to = (struct statfs){.f_type = next == files ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC};
	return 0;
}

int __wrap_faccessat(int dir, const char *path, int mode, int flags)
{
	(void)dir;
	(void)mode;
	(void)flags;
	errno = ENOENT;
	return !strcmp(path, "release_agent") ? -1 : 0;
}

ssize_t __wrap_readlinkat(int dir, const char *path, char *to, size_t max)
{
	(void)dir;
	(void)path;
	memcpy(to, SOCKET, sizeof(SOCKET) - 1 < max ? sizeof(SOCKET) - 1 : max);
	return sizeof(SOCKET) - 1;
}

/* Without the process that reads files which need not answer, because each input would start one. */
int __wrap_far_open(struct far *far, int dirfd, const char *name, uint64_t dev, struct far_file *f)
{
	(void)far;
	(void)dirfd;
	(void)name;
	*f = (struct far_file){.fd = dev & 1 ? -1 : open_next()};
	return f->fd < 0 ? -ESTALE : 0;
}

ssize_t __wrap_far_memory(struct far *far, pid_t pid, uint64_t addr, void *to, size_t n)
{
	(void)far;
	(void)pid;
	memset(to, 'A', n);
	return addr & 1 ? -EFAULT : (ssize_t)n;
}

/* The kernel answers about a mapping with the next numbers of the input, if it knows the question at all. */
int __wrap_ioctl(int fd, unsigned long what, ...)
{
	va_list args;
	void *to;

	va_start(args, what);
	to = va_arg(args, void *);
	va_end(args);
	if (!on)
		return __real_ioctl(fd, what, to);
	if (files_end - next < 48 || (what >> 16 & 0x3fff) < 72) {
		errno = ENOTTY;
		return -1;
	}
	memcpy((char *)to + 24, next, 48); /* from start on */
	next += 48;
	return 0;
}

/* ---- what is read of them */

static struct tgt target(void)
{
	return (struct tgt){.pid = getpid(), .pidfd = -1, .mapsfd = -1, .memfd = -1, .procfd = AT_FDCWD};
}

static void read_maps(void)
{
	static const char *const globs[] = {"libmxnet.so", "libtorch_cpu*", NULL};
	struct tgt_lib lib = {.dev = 0x801, .ino = 7};
	const struct tgt_lib *const libs[] = {&lib};
	const struct tgt t = target();
	struct tgt_file of[2];
	unsigned mask;

	tgt_is_writable(&t, 0x1000);
	tgt_code_is_of(&t, 0x1000, "/a/libmxnet.so");
	tgt_code_is_anonymous(&t, 0x1000);
	tgt_maps_has(&t, &lib, 0x1800, 0x800);
	tgt_peek(t.pid, globs, of, &mask);
	tgt_peek_maps(t.pid, libs, 1);
}

static void open_process(void)
{
	struct tgt_labels l;
	struct err e = {0};
	struct tgt *t;
	char comm[32];

	if (tgt_open(getpid(), &t, &e)) {
		if (!e.why[0] || t)
			abort();
		return;
	}
	tgt_labels(t, &l);
	tgt_env_number(t, "RANK");
	tgt_find_lib(t, "lib*");
	tgt_lib_at(t, 0x1000);
	tgt_program(t);
	if (!tgt_thread_comm(t, 1, comm) && strnlen(comm, sizeof(comm)) == sizeof(comm))
		abort();
	tgt_close(t);
}

static void look_at_process(void)
{
	const pid_t pid = getpid();
	struct tgt_container c;
	struct tgt_usage u;
	struct tgt_labels labels;
	char comm[32];

	tgt_peek_parent(pid);
	tgt_peek_group(pid);
	tgt_peek_usage(pid, &u);
	tgt_container(pid, &c);
	if (strnlen(c.id, sizeof(c.id)) == sizeof(c.id) || strnlen(u.comm, sizeof(u.comm)) == sizeof(u.comm))
		abort();
	if (!tgt_peek_comm(pid, pid, comm) && strnlen(comm, sizeof(comm)) == sizeof(comm))
		abort();
	tgt_peek_labels(pid, &labels);
	if (strnlen(labels.job, sizeof(labels.job)) == sizeof(labels.job))
		abort();
	tgt_peek_frozen(pid);
	tgt_peek_read(pid);
	tgt_peek_private(pid);
	tgt_peek_resident(pid);
	tgt_peek_forked(pid);
}

static void look_at_threads(void)
{
	struct tgt_doing d;
	struct tgt_stop stop;
	uint64_t cpu_ns, runq_ns;

	tgt_peek_doing(1, 1, &d);
	if (strnlen(d.wchan, sizeof(d.wchan)) == sizeof(d.wchan))
		abort();
	tgt_peek_call(1, 1);
	tgt_peek_cpu(1, 1, &cpu_ns, &runq_ns);
	tgt_peek_stop(getpid(), &stop);
	if (strnlen(stop.tracer_comm, sizeof(stop.tracer_comm)) == sizeof(stop.tracer_comm))
		abort();
}

/* The threads are those of this program, and their ids in another namespace are those of the input. */
static void number_threads(void)
{
	struct threads t;
	unsigned i;

	threads_init(&t, getpid());
	for (i = 1; i < 4; i++) {
		threads_learn_ours(&t, i, i + 7);
		threads_learn_ours(&t, i, 0);
		threads_ours(&t, i);
	}
	threads_read(&t);
	if (!t.other && threads_ours(&t, 5) != 5)
		abort();
	threads_fini(&t);
}

/* Repeats a file until it is longer than what is read at once. */
static void lengthen(int fd)
{
	char text[4096];
	const ssize_t n = pread(fd, text, sizeof(text), 0);
	off_t at;

	for (at = n; n > 0 && at < LONG_BYTES; at += n)
		if (pwrite(fd, text, (size_t)n, at) != n)
			abort();
}

static void find_mapped(void)
{
	struct mapped_file f = {.name = "mxbpf-agent", .dev = 0x801, .ino = files_end > files ? *files % 2 * 7 : 0};
	const struct mapped_range *r;
	struct buf ranges = {0};
	int fd = open_next();
	size_t i;

	if (fd < 0)
		return;
	if (files_end - files > 2 && files_end[-1] & 1)
		lengthen(fd);
	mapped_find(fd, &f);
	mapped_stacks(fd, &ranges);
	for (i = 0; i < buf_count(&ranges, *r); i++) {
		r = buf_at(&ranges, const struct mapped_range, i);
		if (r->main != 0 && r->main != 1)
			abort();
	}
	buf_fini(&ranges);
	close(fd);
}

static void find_groups(void)
{
	static const char *const controllers[] = {NULL, "cpu", "memory"};
	struct buf text = {0}, groups = {0};
	size_t i;

	if (!tgt_peek_cgroup(getpid(), &text))
		for (i = 0; i < 3; i++) {
			mach_groups_open(getpid(), text.data, controllers[i], &groups);
			if (buf_count(&groups, struct mach_group) > MACH_LEVELS_MAX)
				abort();
			mach_groups_close(&groups);
		}
	buf_fini(&text);
	buf_fini(&groups);
}

static void find_sockets(void)
{
	struct kin_client c;
	struct sockaddr_un a;

	if (!kin_client_find(getpid(), &c))
		return;
	if (strnlen(c.dir, sizeof(c.dir)) == sizeof(c.dir))
		abort();
	kin_address(c.dir, &a);
	kin_path_fits(c.dir);
	kin_owner(&c);
}

static void read_labels(void)
{
	const struct tgt t = target();
	struct tgt_labels l;
	char text[16];

	tgt_labels(&t, &l);
	if (strnlen(l.user, sizeof(l.user)) == sizeof(l.user) || strnlen(l.job, sizeof(l.job)) == sizeof(l.job))
		abort();
	if (tgt_env_text(&t, "RANK", text, sizeof(text)) && strnlen(text, sizeof(text)) == sizeof(text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const reads[])(void) = {read_maps,       open_process,   look_at_process,
					      look_at_threads, number_threads, find_mapped,
					      find_groups,     find_sockets,   read_labels};

	if (!size)
		return 0;
	files = next = data + 1;
	files_end = data + size;
	on = true;
	reads[*data % (sizeof(reads) / sizeof(*reads))]();
	on = false;
	return 0;
}
