// SPDX-License-Identifier: Apache-2.0
/* LD_PRELOAD: the process has MANY_MAPS mappings and MANY_THREADS threads, which sleep, beside its own. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

static long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : 0;
}

/* Neighbouring pages with different rights are mappings of their own. */
static void make_maps(long n)
{
	char *at = n ? mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0)
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
