// SPDX-License-Identifier: Apache-2.0
/* Attacks by the file that the agent writes for --no-bpf. The job has no agent and writes the file itself. */
#define _GNU_SOURCE
#include "evil.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The path of a process's file. Process 1 does not end. */
static const char *path_of(long pid)
{
	static char path[4096];
	const char *prefix = getenv("MXBPF_AGENT_FILE");

	snprintf(path, sizeof(path), "%s.%ld", prefix ? prefix : "", pid);
	return path;
}

static int must(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "evil: %s: %s\n", what, strerror(errno));
		exit(1);
	}
	return result;
}

/* Makes a file that looks like one of a running agent. Returns it, open. */
static int make_file(const char *path)
{
	const int fd = must(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), path);
	struct mxbpf_agent_shared *s;

	must(ftruncate(fd, (off_t)EVIL_BYTES), "ftruncate");
	s = mmap(NULL, EVIL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		must(-1, "mmap");
	s->magic = MXBPF_AGENT_MAGIC;
	s->version = MXBPF_AGENT_VERSION;
	s->gpu.state = MXBPF_GPU_ON;
	s->gpu.want = 0x55555555;
	munmap(s, EVIL_BYTES);
	return fd;
}

/* 4 TiB of zeros, in which a batch might begin anywhere. */
static void file_sparse(void)
{
	const int fd = make_file(path_of(getpid()));

	must(ftruncate(fd, 1ll << 42), "ftruncate");
	close(fd);
}

static void file_random(void)
{
	const int fd = make_file(path_of(getpid()));
	uint64_t words[3 + 512];
	unsigned i, k;

	must((int)lseek(fd, 0, SEEK_END), "lseek");
	for (i = 0; i < 4096; i++) {
		for (k = 3; k < sizeof(words) / sizeof(words[0]); k++)
			words[k] = evil_random();
		words[0] = 0; /* looks like a batch of the GPU */
		words[1] = (evil_random() % 200) << 32;
		words[2] = (uint64_t)MXBPF_AGENT_GPU << 32;
		if (write(fd, words, sizeof(words)) != sizeof(words))
			must(-1, "write");
	}
	close(fd);
}

/* The file of another user looks like one of an agent that runs, so mxbpf would tell it to stop. */
static void file_link(void)
{
	close(make_file(evil_file));
	must(link(evil_file, path_of(1)), "link");
}

static void file_symlink(void)
{
	close(make_file(evil_file));
	must(symlink(evil_file, path_of(1)), "symlink");
}

static void file_fifo(void)
{
	must(mkfifo(path_of(1), 0600), "mkfifo");
}

const struct attack evil_files[] = {
	{.name = "file-sparse", .run = file_sparse, .early = true},
	{.name = "file-random", .run = file_random, .early = true},
	{.name = "file-link", .run = file_link, .early = true},
	{.name = "file-symlink", .run = file_symlink, .early = true},
	{.name = "file-fifo", .run = file_fifo, .early = true},
	{.name = NULL},
};
