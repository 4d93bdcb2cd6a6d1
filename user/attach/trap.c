// SPDX-License-Identifier: Apache-2.0
/* Measures what one hit costs: mxbpf probes a function of its own and calls it. */
#include "attach/trap.h"

#include <bpf/libbpf.h>
#include <link.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "attach/backend.h"

#define TRIALS	   501
#define WALK_BYTES (256u << 10) /* memory that a program touches between two calls of the runtime, by assumption */

/*
 * mxbpf attaches a probe to this function. The nop is an instruction that the kernel emulates, like those that plans
 * choose.
 */
void trap_trial(void);
__asm__(".pushsection .text\n"
	".balign 16\n"
	".globl trap_trial\n"
	".type trap_trial, @function\n"
	"trap_trial:\n"
	"	nop\n"
	"	ret\n"
	".size trap_trial, . - trap_trial\n"
	".popsection\n");

/* Converts *arg from an address in the program to its file offset. The first object of the list is the program. */
static int to_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t *at = arg, va = *at - info->dlpi_addr;
	const ElfW(Phdr) * p;

	for (p = info->dlpi_phdr; p < info->dlpi_phdr + info->dlpi_phnum; p++)
		if (p->p_type == PT_LOAD && va - p->p_vaddr < p->p_filesz) {
			*at = va - p->p_vaddr + p->p_offset;
			return 1;
		}
	return -1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int ascending(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

/*
 * Returns the median time of one call, in ns. Interrupts and preemption do not move a median. Between two calls the
 * CPU's caches are filled with other data, because a hit in a tight loop takes half as long as one in a real program.
 * The fill is not timed. The result is a lower bound: 0.7 to 1.3 us were measured on a shared virtual CPU.
 */
static uint64_t run_trials(volatile char room[WALK_BYTES])
{
	uint64_t ns[TRIALS], began;
	size_t i, k;

	for (i = 0; i < TRIALS; i++) {
		for (k = 0; k < WALK_BYTES; k += 64)
			room[k]++;
		began = now_ns();
		trap_trial();
		ns[i] = now_ns() - began;
	}
	qsort(ns, TRIALS, sizeof(ns[0]), ascending);
	return ns[TRIALS / 2];
}

/* The link is closed with the others, so a second measurement would find the probe on the function already. */
uint64_t trap_hit_ns(struct att *a, int prog_fd)
{
	uint64_t off = (uintptr_t)trap_trial, cookie = MXBPF_COOKIE_SHARED, without, with = 0;
	char *room = calloc(1, WALK_BYTES);
	struct att_link *link;
	int fd;

	if (a->trap_measured || !room) {
		free(room);
		return a->trap_hit_ns;
	}
	run_trials(room); /* fault in the pages */
	without = run_trials(room);
	if (dl_iterate_phdr(to_offset, &off) != 1 ||
	    a->backend->attach(prog_fd, "/proc/self/exe", &off, &cookie, 1, getpid(), &fd) != 1)
		goto out;
	link = buf_add(&a->links, sizeof(*link));
	if (!link) {
		close(fd);
		goto out;
	}
	*link = (struct att_link){.tgid = getpid(), .fd = fd};
	with = run_trials(room);
	a->trap_trials += TRIALS;
	a->trap_measured = true;
out:
	free(room);
	a->trap_hit_ns = with > without ? with - without : 0;
	return a->trap_hit_ns;
}
