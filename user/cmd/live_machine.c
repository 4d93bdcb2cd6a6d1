// SPDX-License-Identifier: Apache-2.0
/* The machine around the target: read at the edges of the window, and about once a second in it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "cmd/live.h"
#include "machine/machine.h"

static void on_absent(void *ctx, const char *gauge, const char *why)
{
	char safe[1024];

	fmt_safe(safe, sizeof(safe), why, strlen(why));
	fprintf(stderr, "mxbpf: not read: %s: %s\n", gauge, safe);
}

int live_machine_start(struct live *l, struct err *e)
{
	l->machine = mach_open(tgt_pid(l->target), l->o->verbose ? on_absent : NULL, NULL);
	if (!l->machine)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	live_machine_read(l, false);
	return 0;
}

void live_machine_read(struct live *l, bool resumed)
{
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err;

	l->readings.len = 0;
	err = mach_read(l->machine, resumed, &l->readings);
	l->reading_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	l->nreadings++;
	live_keep(l, l->readings.data, l->readings.len, err);
}

void live_machine_end(struct live *l)
{
	char ns[24];

	if (!l->paused_at_ns)
		live_machine_read(l, false);
	if (l->o->verbose)
		fprintf(stderr, "mxbpf: the machine was read %llu times, in %s of CPU time each\n",
			(unsigned long long)l->nreadings, fmt_ns(l->reading_ns / l->nreadings, ns));
}
