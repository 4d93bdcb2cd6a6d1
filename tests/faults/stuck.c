// SPDX-License-Identifier: Apache-2.0
/*
 * LD_PRELOAD: a file system that never answers a read is mounted at the file STUCK_AT, and its first page is mapped
 * into the process. STUCK says what is in that page: "texts", the arguments and the environment, as /proc shows them;
 * "sleep", what a thread reads, which therefore waits in state D. A process of its own is the file system. It ends with
 * the process, which ends every wait.
 *
 * STUCK=library: the file system has the content of the file STUCK_OF, from which the process loads it. From then on it
 * answers STUCK_ANSWERS more requests of any kind, and no later one. The kernel asks it at each read, open and close.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	   4096ul
#define FILE_BYTES (64 * PAGE)

static void answer(int fd, uint64_t unique, int error, const void *body, size_t bytes)
{
	struct {
		struct fuse_out_header head;
		char body[256];
	} out = {{(uint32_t)(sizeof(out.head) + bytes), error, unique}, {0}};

	memcpy(out.body, body, bytes);
	if (write(fd, &out, out.head.len) < 0)
		_exit(1);
}

/* Shared with the file system: how many requests it answers yet. */
static volatile long *left;
static int content = -1; /* of the file, or -1 */

static void answer_read(int fd, const void *request)
{
	const struct fuse_in_header *head = request;
	const struct fuse_read_in *r = (const struct fuse_read_in *)(head + 1);
	static struct {
		struct fuse_out_header head;
		char body[32 * PAGE];
	} out;
	const ssize_t n =
		pread(content, out.body, r->size < sizeof(out.body) ? r->size : sizeof(out.body), (off_t)r->offset);

	out.head = (struct fuse_out_header){(uint32_t)(sizeof(out.head) + (size_t)n), 0, head->unique};
	if (n < 0 || write(fd, &out, out.head.len) < 0)
		_exit(1);
}

static void serve(int fd)
{
	static union {
		struct fuse_in_header head;
		char bytes[FUSE_MIN_READ_BUFFER + PAGE];
	} in;
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = 31,
					   .max_write = PAGE,
					   .max_readahead = PAGE,
					   .max_background = 16};
	const struct fuse_attr_out attr = {
		.attr_valid = content < 0 ? 1000 : 0,
		.attr = {.ino = 1,
			 .size = content < 0 ? FILE_BYTES : (uint64_t)lseek(content, 0, SEEK_END),
			 .mode = S_IFREG | 0755,
			 .nlink = 1}};
	const struct fuse_open_out open = {.fh = 1, .open_flags = content < 0 ? FOPEN_KEEP_CACHE : FOPEN_DIRECT_IO};

	while (read(fd, &in, sizeof(in)) > 0) {
		if (content >= 0 && (*left)-- <= 0)
			continue;
		switch (in.head.opcode) {
		case FUSE_INIT:
			answer(fd, in.head.unique, 0, &init, sizeof(init));
			break;
		case FUSE_GETATTR:
			answer(fd, in.head.unique, 0, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
			answer(fd, in.head.unique, 0, &open, sizeof(open));
			break;
		case FUSE_READ: /* never answered without content */
			if (content >= 0)
				answer_read(fd, &in);
			break;
		case FUSE_INTERRUPT:
		case FUSE_FORGET:
			break;
		case FUSE_FLUSH:
		case FUSE_RELEASE:
			answer(fd, in.head.unique, 0, "", 0);
			break;
		default:
			answer(fd, in.head.unique, -38 /* ENOSYS */, "", 0);
		}
	}
	_exit(0);
}

static void mount_stuck(const char *path)
{
	const int fd = open("/dev/fuse", O_RDWR);
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=100755,user_id=0,group_id=0,allow_other", fd);
	/* The mount lasts as long as the process. */
	if (fd < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("stuck", path, "fuse", MS_NOSUID | MS_NODEV, options))
		abort();
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd);
	}
	close(fd);
}

static void *map_stuck(const char *path)
{
	struct stat size;
	void *map;
	int file;

	mount_stuck(path);
	file = open(path, O_RDONLY);
	fstat(file, &size); /* the kernel knows no size before */
	map = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	if (file < 0 || map == MAP_FAILED)
		abort();
	close(file);
	return map;
}

/* The process is named as ready here, because it may load the library later than it would be. */
static void load_stuck(const char *path, const char *of)
{
	left = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	content = open(of, O_RDONLY);
	if (left == MAP_FAILED || content < 0)
		abort();
	*left = 1 << 30;
	mount_stuck(path);
	if (!dlopen(path, RTLD_NOW)) {
		fprintf(stderr, "%s\n", dlerror());
		abort();
	}
	*left = strtol(getenv("STUCK_ANSWERS"), NULL, 10);
	printf("ready %d\n", getpid());
	fflush(stdout);
}

static void wake(int signal)
{
	(void)signal;
}

/* SIGUSR2 to the process makes this wait one that no other signal interrupts, which is state D. */
static void *wait_in_d(void *map)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return (void *)(uintptr_t) * (volatile char *)map;
}

/* The kernel reads the texts for /proc/PID/cmdline and environ. A process without rights may say where they are. */
static void move_texts(uintptr_t map)
{
	struct prctl_mm_map m = {.exe_fd = -1u, .brk = (uintptr_t)sbrk(0)};
	char text[2048] = "";
	FILE *f = fopen("/proc/self/stat", "r");

	if (!f || !fgets(text, sizeof(text), f) ||
	    sscanf(strrchr(text, ')'),
		   ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu "
		   "%llu "
		   "%llu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %llu",
		   &m.start_code, &m.end_code, &m.start_stack, &m.start_data, &m.end_data, &m.start_brk) != 6)
		abort();
	fclose(f);
	m.arg_start = map;
	m.arg_end = m.env_start = map + 64;
	m.env_end = map + 128;
	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &m, sizeof(m), 0))
		abort();
}

__attribute__((constructor)) static void begin(void)
{
	const char *what = getenv("STUCK"), *path = getenv("STUCK_AT");
	pthread_t thread;
	sigset_t set;
	void *map;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!what || !path)
		return;
	unsetenv("LD_PRELOAD"); /* not in its children */
	if (!strcmp(what, "library")) {
		load_stuck(path, getenv("STUCK_OF"));
		return;
	}
	map = map_stuck(path);
	if (!strcmp(what, "texts")) {
		move_texts((uintptr_t)map);
		printf("ready %d\n", getpid());
		fflush(stdout);
	} else if (signal(SIGUSR2, wake) || pthread_create(&thread, NULL, wait_in_d, map))
		abort();
}
