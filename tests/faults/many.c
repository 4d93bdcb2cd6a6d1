// SPDX-License-Identifier: Apache-2.0
/*
 * LD_PRELOAD: the process has MANY_MAPS mappings and MANY_THREADS threads, which sleep, beside its own. With MANY_FILE
 * the mappings are of a file whose path has more than 4,000 bytes.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

static long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : 0;
}

/* Makes the file below the current directory, and returns to that. */
static int deep_file(long n)
{
	const int here = open(".", O_RDONLY | O_DIRECTORY);
	char name[251] = "";
	int file, i;

	memset(name, 'd', sizeof(name) - 1);
	for (i = 0; i < 16; i++)
		if (mkdir(name, 0700) || chdir(name))
			abort();
	file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || ftruncate(file, n * PAGE) || fchdir(here))
		abort();
	close(here);
	return file;
}

/* Neighbouring pages with different rights are mappings of their own. */
static void make_maps(long n)
{
	const int file = n && number("MANY_FILE") ? deep_file(n) : -1;
	char *at = n ? mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0), file, 0)
		     : NULL;
	long i;

	if (at == MAP_FAILED)
		abort();
	for (i = 0; i < n; i += 2)
		if (mprotect(at + i * PAGE, PAGE, PROT_READ))
			abort();
}

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	long n = number("MANY_THREADS");

	make_maps(number("MANY_MAPS"));
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16 * PAGE);
	for (; n > 0; n--)
		if (pthread_create(&thread, &attributes, sleep_on, NULL))
			abort();
}
