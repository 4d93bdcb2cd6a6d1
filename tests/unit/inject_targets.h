/* SPDX-License-Identifier: Apache-2.0 */
/* Processes into which a test injects tests/toy/inject_agent.c. */
#ifndef UNIT_INJECT_TARGETS_H
#define UNIT_INJECT_TARGETS_H

#include <sys/prctl.h>
#include <sys/uio.h>

#include "agent/inject.h"
#include "elf/elf.h"
#include "../prog/blocked.h"
#include "unit.h"

#define ARG	    0x1122334455667788u
#define CALLS_AFTER 200 /* calls that the target must make unharmed afterwards */

static char image[256 << 10];
static size_t image_bytes;
static uint64_t start_va, calls_va, arg_va;
static char dir[200]; /* the build folder */

struct target {
	pid_t pid;
	char path[256];
	uint64_t off;		      /* of work() in the file */
	const struct blocked *shared; /* inject_target has the first two members only */
};

static uint64_t offset_in(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_sym sym;
	uint64_t off = 0;
	struct elf *f;

	if (fd >= 0 && !elf_open(fd, &f, NULL)) {
		if (!elf_find_sym(f, name, &sym, NULL))
			elf_exec_off(f, sym.va, &off);
		elf_close(f);
	}
	if (fd >= 0)
		close(fd);
	return off;
}

/* Waits until the target has made CALLS_AFTER more calls. Returns false if it has ended or found damage. */
static bool goes_on(const struct target *t)
{
	uint64_t until = t->shared->calls + CALLS_AFTER;

	while (t->shared->calls < until)
		if (waitpid(t->pid, NULL, WNOHANG) == t->pid)
			return false;
	return !t->shared->damages;
}

/* Path of the allocator that targets preload; NULL means the C library's allocator. */
static const char *preload;

static bool start_program(struct target *t, const char *name, const char *threads, const char *mode)
{
	int fd = memfd_create("shared", 0), ends[2];
	char number[16], c;
	bool ready;

	snprintf(t->path, sizeof(t->path), "%s/prog/%s", dir, name);
	t->off = offset_in(t->path, "work");
	if (fd < 0 || ftruncate(fd, 4096) || pipe2(ends, O_CLOEXEC))
		return false;
	t->shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	snprintf(number, sizeof(number), "%d", fd);
	t->pid = fork();
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], 1);
		if (preload) {
			setenv("LD_PRELOAD", preload, 1);
			setenv("MALLOC_CONF", "narenas:1", 1); /* for jemalloc: one lock for all threads */
		}
		execl(t->path, name, number, threads, mode, NULL);
		_exit(127);
	}
	close(fd);
	close(ends[1]);
	ready = read(ends[0], &c, 1) == 1;
	close(ends[0]);
	return ready;
}

static bool start_target(struct target *t, const char *threads, const char *mode)
{
	return start_program(t, "inject_target", threads, mode);
}

static void end_target(struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	munmap((void *)(uintptr_t)t->shared, 4096);
}

static struct agt_inject_opts opts(const struct target *t)
{
	return (struct agt_inject_opts){.pid = t->pid,
					.path = t->path,
					.off = t->off,
					.image = image,
					.image_bytes = image_bytes,
					.start_va = start_va,
					.arg = ARG};
}

static uint64_t read_word(const struct target *t, uint64_t at)
{
	uint64_t word = 0;
	struct iovec local = {&word, sizeof(word)}, remote = {(void *)(uintptr_t)at, sizeof(word)};

	return process_vm_readv(t->pid, &local, 1, &remote, 1, 0) == sizeof(word) ? word : UINT64_MAX;
}

static bool ran_once(const struct target *t, const struct agt_injected *i)
{
	return read_word(t, i->base + calls_va) == 1 && read_word(t, i->base + arg_va) == ARG;
}

/* Reads the agent. Returns false if it cannot be injected. */
static bool prepare(void)
{
	char path[300], *slash;
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	struct err e = {0};
	int fd, i;

	dir[n > 0 ? n : 0] = '\0';
	for (i = 0; i < 2; i++) { /* strips unit/test_inject_kernel from the path */
		slash = strrchr(dir, '/');
		if (slash)
			*slash = '\0';
	}
	snprintf(path, sizeof(path), "%s/toy/inject_agent.so", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, image, sizeof(image));
	if (fd >= 0)
		close(fd);
	image_bytes = n > 0 ? (size_t)n : 0;
	return n > 0 && !agt_start_va(image, image_bytes, "agent_start", &start_va, &e) &&
	       !agt_start_va(image, image_bytes, "agent_calls", &calls_va, &e) &&
	       !agt_start_va(image, image_bytes, "agent_arg", &arg_va, &e);
}

#endif
