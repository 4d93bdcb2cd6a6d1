// SPDX-License-Identifier: Apache-2.0
/*
 * Takes samples by a clock per CPU, whatever runs there. An event per thread would cost time at each switch, and new
 * threads and child processes would each need one.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "attach/backend.h"
#include "attach/priv.h"

#define NS_PER_S 1000000000u

/* The clock of a CPU. The kernel removes it when the CPU goes offline, and does not bring it back. */
struct clock {
	struct bpf_link *link; /* owned; NULL: the CPU is offline */
	int fd;		       /* of the link */
	uint64_t ran_ns;       /* for how long the kernel has had the clock, in ns */
	bool failed;
};

/* Opens the clock of a CPU. It does not tick while the CPU is idle. */
static int open_clock(int cpu, unsigned hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NS_PER_S / hz,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.exclude_idle = 1,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Returns -ENODEV if the CPU is offline. */
static int start_clock(struct att *a, struct clock *c, int cpu)
{
	*c = (struct clock){.fd = open_clock(cpu, a->clock_hz)};
	if (c->fd < 0)
		return -errno;
	c->link = bpf_program__attach_perf_event(a->skel->progs.on_sample, c->fd);
	if (c->link)
		return 0;
	close(c->fd);
	return -errno;
}

static int cannot(struct err *e, int code)
{
	if (code == -EACCES || code == -EPERM)
		return err_set(e, ERR_PRIVILEGE, code,
			       "--sample: the clocks of all CPUs require CAP_PERFMON; run mxbpf with sudo");
	return err_set(e, ERR_RUNTIME, code, "--sample: cannot use the clock of a CPU: %s", strerror(-code));
}

int att_clocks_start(struct att *a, unsigned hz, struct err *e)
{
	int ncpus = libbpf_num_possible_cpus(), cpu, err;
	struct clock c;

	a->clock_hz = hz;
	for (cpu = 0; cpu < ncpus; cpu++) {
		err = start_clock(a, &c, cpu);
		if (err && err != -ENODEV)
			return cannot(e, err);
		if (buf_put(&a->clocks, &c, sizeof(c))) {
			bpf_link__destroy(c.link);
			return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
		}
	}
	return 0;
}

/* Returns true if the kernel still has the clock. Its time goes on even while its CPU is idle. */
static bool still_there(struct clock *c)
{
	const uint64_t ran_ns = c->ran_ns;
	uint64_t now[2]; /* the count, the time */

	if (read(c->fd, now, sizeof(now)) == sizeof(now))
		c->ran_ns = now[1];
	return c->ran_ns > ran_ns;
}

void att_clocks_check(struct att *a, void (*fn)(void *ctx, unsigned cpu, int err), void *ctx)
{
	const unsigned n = (unsigned)buf_count(&a->clocks, struct clock);
	unsigned there = 0, i;
	struct clock *c;
	int err;

	for (i = 0; i < n; i++) {
		c = buf_at(&a->clocks, struct clock, i);
		if (c->link && !still_there(c)) {
			bpf_link__destroy(c->link);
			c->link = NULL;
		}
		there += c->link || c->failed;
	}
	for (i = 0; n && there < (unsigned)get_nprocs() && i < n; i++) {
		c = buf_at(&a->clocks, struct clock, i);
		if (c->link || c->failed)
			continue;
		err = start_clock(a, c, (int)i);
		if (err == -ENODEV)
			continue;
		c->failed = err;
		there++;
		fn(ctx, i, err);
	}
}

void att_clocks_stop(struct att *a)
{
	size_t i;

	for (i = 0; i < buf_count(&a->clocks, struct clock); i++)
		bpf_link__destroy(buf_at(&a->clocks, struct clock, i)->link);
	buf_fini(&a->clocks);
}
