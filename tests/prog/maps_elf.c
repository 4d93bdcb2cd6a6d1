// SPDX-License-Identifier: Apache-2.0
/*
 * Maps the segments of the library in its argument as a loader would, runs none of its code, prints "ready PID", and
 * waits. This allows tests with libraries that cannot be loaded on this machine.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES 4096ull

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int map_segment(int fd, char *base, const Elf64_Phdr *ph)
{
	uint64_t before = ph->p_vaddr % PAGE_BYTES;
	int prot = (ph->p_flags & PF_R ? PROT_READ : 0) | (ph->p_flags & PF_W ? PROT_WRITE : 0) |
		   (ph->p_flags & PF_X ? PROT_EXEC : 0);

	return mmap(base + ph->p_vaddr - before, ph->p_filesz + before, prot, MAP_PRIVATE | MAP_FIXED, fd,
		    (off_t)(ph->p_offset - before)) == MAP_FAILED
		       ? -1
		       : 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	uint64_t end = 0;
	Elf64_Phdr *ph;
	Elf64_Ehdr eh;
	char *base;

	if (fd < 0 || pread(fd, &eh, sizeof(eh), 0) != sizeof(eh))
		return fail("usage: maps_elf LIBRARY");
	ph = calloc(eh.e_phnum, sizeof(*ph));
	if (!ph || pread(fd, ph, eh.e_phnum * sizeof(*ph), (off_t)eh.e_phoff) < 0)
		return fail("program headers");
	for (int i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > end)
			end = ph[i].p_vaddr + ph[i].p_memsz;
	base = mmap(NULL, end, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return fail("mmap");
	for (int i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && map_segment(fd, base, &ph[i]))
			return fail("mmap of a segment");
	printf("ready %d\n", getpid());
	fflush(stdout);
	pause();
	return 0;
}
