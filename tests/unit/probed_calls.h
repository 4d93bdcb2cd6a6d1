/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of this process that a test puts probes on, and the session that records them. */
#ifndef PROBED_CALLS_H
#define PROBED_CALLS_H

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "records/kinds.h"
#include "ring/ring.h"
#include "unit.h"

#define PROBED __attribute__((noinline, noclone, noipa, unused))

PROBED static void on_enter(const char *name)
{
	__asm__ volatile("" ::"r"(name) : "memory");
}

PROBED static void on_exit_api(void)
{
	__asm__ volatile("" ::: "memory");
}

PROBED static void op_start(uint64_t key)
{
	__asm__ volatile("" ::"r"(key) : "memory");
}

PROBED static void op_end(uint64_t key)
{
	__asm__ volatile("" ::"r"(key), "i"(1) : "memory");
}

#define ARG1 .base = MXBPF_BASE_ARG1

static struct tgt_lib self = {.path = "/proc/self/exe", .open_path = "/proc/self/exe"};
static struct att *att; /* tests with the same options share it: an emulated kernel needs seconds to load it */

/* Returns the offset of `at` in the file behind /proc/self/exe, or 0 if `at` is no code of this program. */
static inline uint64_t offset_of(const void *at)
{
	uint64_t start, end, off, found = 0, va = (uintptr_t)at;
	FREED(file_closed) FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64, &start, &end, &off) == 3 && va >= start &&
		    va < end)
			found = va - start + off;
	return found;
}

/* Each function gets the probe of its row. */
static inline void make_sites(struct plan_site *sites, struct plan_probe *probes, const struct adp_probe *rows,
			      const void *const *functions, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		probes[i] = (struct plan_probe){.row = &rows[i], .wanted = true};
		sites[i] = (struct plan_site){&probes[i], &rows[i].row, &self, offset_of(functions[i]), 0};
	}
}

/* Ends the program unless a session could begin. */
static inline void expect_session(bool begun, const struct err *e)
{
	if (begun)
		return;
	printf("# %s\n", e->why);
	CHECK(!"attached");
	exit(unit_end());
}

static inline void run_recorded(void (*work)(void))
{
	att_activate(att, true);
	work();
	att_activate(att, false);
}

static inline void leave_session(void)
{
	att_free(att);
	att = NULL;
}

#endif
