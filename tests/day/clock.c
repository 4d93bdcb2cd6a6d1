// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into mxbpf: moves the wall clock of this process alone. The file that MXBPF_DAY_CLOCK names holds the
 * nanoseconds to add, as a binary number of 8 bytes; it can change at any time.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll

static const volatile int64_t *offset;

__attribute__((constructor)) static void open_offset(void)
{
	const char *path = getenv("MXBPF_DAY_CLOCK");
	const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		abort();
	offset = at;
	close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	const int err = (int)syscall(SYS_clock_gettime, clock, t);
	int64_t ns;

	if (err || !offset || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return err;
	ns = t->tv_sec * NS_PER_S + t->tv_nsec + *offset;
	*t = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
	return 0;
}

int gettimeofday(struct timeval *t, void *zone)
{
	struct timespec now;
	const int err = clock_gettime(CLOCK_REALTIME, &now);

	*t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return err;
}

time_t time(time_t *to)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}
