// SPDX-License-Identifier: Apache-2.0
/* Tests a library that a process is still mapping, step by step as the dynamic loader does. */
#include <elf.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "target/target.h"
#include "unit.h"

#define PAGE ((uint64_t)4096)

static char path[PATH_MAX]; /* of the library */

/* A child process that maps the library. */
static struct {
	pid_t pid;
	int says; /* the child writes a byte when the code is mapped and the data is not */
	int go;	  /* at a byte the child maps the rest; it exits when this is closed */
} child;

static pid_t looker; /* the thread that inspects the child */
static atomic_bool looked;

/* Builds a library whose data has other offsets in the file than in memory, as in libtorch_cpu.so. */
static void build_library(const char *program)
{
	char command[3 * PATH_MAX];

	snprintf(path, sizeof(path), "%s-%d.so", program, getpid());
	snprintf(command, sizeof(command),
		 "echo 'int data[3] = {1, 2, 3}; int code(int x) { return x + 1; }' |"
		 "cc -shared -fPIC -nostdlib -Wl,--build-id -x c - -o '%s'",
		 path);
	if (system(command)) /* NOLINT(cert-env33-c): the names are our own */
		abort();
}

static int rights(const Elf64_Phdr *ph)
{
	return (ph->p_flags & PF_R ? PROT_READ : 0) | (ph->p_flags & PF_W ? PROT_WRITE : 0) |
	       (ph->p_flags & PF_X ? PROT_EXEC : 0);
}

static void map_segment(int fd, char *image, const Elf64_Phdr *ph)
{
	uint64_t before = ph->p_vaddr % PAGE;

	if (mmap(image + ph->p_vaddr - before, before + ph->p_filesz, rights(ph), MAP_PRIVATE | MAP_FIXED, fd,
		 (off_t)(ph->p_offset - before)) == MAP_FAILED)
		_exit(1);
}

/* Maps the whole file in one piece, then each segment over it; stops after the segment with the code. */
static void map_library(int says, int go)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), i;
	const Elf64_Phdr *ph, *last = NULL;
	const Elf64_Ehdr *head;
	char *image, word;

	head = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	ph = (const Elf64_Phdr *)((const char *)head + head->e_phoff);
	for (i = 0; i < head->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD)
			last = &ph[i];
	image = mmap(NULL, last->p_vaddr + last->p_memsz, PROT_READ, MAP_PRIVATE, fd, 0);
	for (i = 0; i < head->e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD)
			continue;
		map_segment(fd, image, &ph[i]);
		if ((ph[i].p_flags & PF_X) && (write(says, "1", 1) != 1 || read(go, &word, 1) != 1))
			return;
	}
	(void)!read(go, &word, 1);
}

static void start_child(void)
{
	int up[2], down[2];
	char word;

	if (pipe2(up, O_CLOEXEC) || pipe2(down, O_CLOEXEC))
		abort();
	child.pid = fork();
	if (!child.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(down[1]);
		map_library(up[1], down[0]);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	child.says = up[0];
	child.go = down[1];
	if (read(child.says, &word, 1) != 1)
		abort();
}

static void end_child(void)
{
	close(child.go);
	close(child.says);
	waitpid(child.pid, NULL, 0);
}

static bool looker_naps(void)
{
	char name[64], text[64] = "";
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/syscall", looker);
	f = fopen(name, "re");
	if (!f)
		abort();
	(void)!fgets(text, sizeof(text), f);
	fclose(f);
	return strtol(text, NULL, 10) == SYS_clock_nanosleep;
}

/* Lets the child map the rest as soon as the other thread waits for that or has given up. */
static void *let_it_load(void *none)
{
	while (!looker_naps() && !looked)
		sched_yield();
	return write(child.go, "2", 1) == 1 ? NULL : path;
}

int main(int argc, char **argv)
{
	struct tgt_lib *lib;
	struct err e = {0};
	struct elf *elf;
	pthread_t other;
	struct tgt *t;

	build_library(argv[0]);
	looker = (pid_t)syscall(SYS_gettid);
	TEST("a library whose data is not mapped yet is waited for and not reported as overwritten")
	{
		start_child();
		CHECK(!tgt_open(child.pid, &t, &e));
		lib = t ? tgt_find_lib(t, "test_loading-*.so") : NULL;
		CHECK(lib);
		pthread_create(&other, NULL, let_it_load, NULL);
		CHECK(lib && !tgt_lib_elf(t, lib, &elf, NULL)); /* NULL instead of an err: no reason is wanted */
		looked = true;
		pthread_join(other, NULL);
		tgt_close(t);
		end_child();
	}
	TEST("a process that stays in the middle of loading is reported as such after a limited time")
	{
		start_child();
		e = (struct err){0};
		CHECK(!tgt_open(child.pid, &t, &e));
		lib = t ? tgt_find_lib(t, "test_loading-*.so") : NULL;
		CHECK(lib && tgt_lib_elf(t, lib, &elf, &e) == -EAGAIN && e.cls == ERR_TARGET &&
		      strstr(e.why, "is only partly mapped"));
		tgt_close(t);
		end_child();
	}
	unlink(path);
	UNIT_MAIN_END;
}
