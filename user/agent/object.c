// SPDX-License-Identifier: Apache-2.0
/* The agent's object: its symbols, and where a process has mapped it. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/image.h"
#include "agent/mapped.h"
#include "agent/state.h"

int agt_symbol(const char *name, uint64_t *va, struct err *e)
{
	return agt_start_va(agent_image, agent_image_bytes, name, va, e);
}

uint64_t agt_file_off(uint64_t va)
{
	const Elf64_Ehdr *h = (const void *)agent_image;
	const Elf64_Phdr *ph = (const void *)(agent_image + h->e_phoff);
	unsigned i;

	for (i = 0; i < h->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && va >= ph[i].p_vaddr && va - ph[i].p_vaddr < ph[i].p_filesz)
			return ph[i].p_offset + (va - ph[i].p_vaddr);
	return 0;
}

int agt_image_path(const struct agt *a, char path[96])
{
	char maps[32];
	uint64_t from, to;
	int err = -ENOENT;
	FILE *f;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", a->pid);
	f = fopen(maps, "re");
	while (f && err && fscanf(f, "%" SCNx64 "-%" SCNx64 "%*[^\n]", &from, &to) == 2)
		if (from == a->injected.base) {
			snprintf(path, 96, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, a->pid, from, to);
			err = 0;
		}
	if (f)
		fclose(f);
	return err;
}

uint64_t agt_find_mapped(pid_t pid)
{
	struct mapped_file f = {.name = AGT_NAME};
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	mapped_find(fd, &f);
	close(fd);
	return f.exec ? f.base : 0;
}

/* Compares the first segments. They contain the build-id and are never written. */
bool agt_is_same(const struct agt *a)
{
	const Elf64_Ehdr *h = (const void *)agent_image;
	const Elf64_Phdr *ph = (const void *)(agent_image + h->e_phoff);
	struct iovec to = {0}, from = {.iov_base = (void *)(uintptr_t)a->injected.base};
	unsigned char *mapped;
	size_t bytes;
	bool same;

	while (ph->p_type != PT_LOAD)
		ph++;
	bytes = to.iov_len = from.iov_len = ph->p_filesz;
	mapped = to.iov_base = malloc(bytes);
	same = mapped && process_vm_readv(a->pid, &to, 1, &from, 1, 0) == (ssize_t)bytes &&
	       !memcmp(mapped, agent_image, bytes);

	free(mapped);
	return same;
}
