// SPDX-License-Identifier: Apache-2.0
/*
 * Takes samples by a clock per CPU, whatever runs there. An event per thread would cost time at each switch, and new
 * threads and child processes would each need one.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/backend.h"
#include "attach/priv.h"

#define NS_PER_S 1000000000u

/* Opens the clock of a CPU. It does not tick while the CPU is idle. */
static int open_clock(int cpu, unsigned hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NS_PER_S / hz,
		.exclude_idle = 1,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
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
	int ncpus = libbpf_num_possible_cpus(), cpu, fd;
	struct bpf_link *link;

	for (cpu = 0; cpu < ncpus; cpu++) {
		fd = open_clock(cpu, hz);
		if (fd < 0 && errno == ENODEV) /* this CPU is offline */
			continue;
		if (fd < 0)
			return cannot(e, -errno);
		link = bpf_program__attach_perf_event(a->skel->progs.on_sample, fd);
		if (!link) {
			close(fd);
			return cannot(e, -errno);
		}
		if (buf_put(&a->clocks, &link, sizeof(link))) {
			bpf_link__destroy(link);
			return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
		}
	}
	return 0;
}

void att_clocks_stop(struct att *a)
{
	size_t i;

	for (i = 0; i < buf_count(&a->clocks, struct bpf_link *); i++)
		bpf_link__destroy(*buf_at(&a->clocks, struct bpf_link *, i));
	buf_fini(&a->clocks);
}
