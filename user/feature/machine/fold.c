// SPDX-License-Identifier: Apache-2.0
/* The table of gauges: where each is read and how it is shown. */
#include "feature/machine/gauge.h"

#define US_NS	1000
#define TICK_NS 10000000 /* /proc counts in USER_HZ, which is 100 on x86 for any CONFIG_HZ */

/* /proc/stat: user nice system idle iowait irq softirq steal */
#define BUSY_FIELDS (1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6)

#define STAT(f)                                                                                                        \
	{                                                                                                              \
		.file = "/proc/stat", .form = MACHINE_FORM_TICKS, .key = "cpu", .fields = (f), .times = TICK_NS        \
	}
#define STALL(f, which)                                                                                                \
	{                                                                                                              \
		.file = (f), .form = MACHINE_FORM_STALL, .key = (which), .times = US_NS                                \
	}
#define KEYED(f, k)                                                                                                    \
	{                                                                                                              \
		.file = (f), .form = MACHINE_FORM_KEYED, .key = (k)                                                    \
	}
#define KEYED_US(f, k)                                                                                                 \
	{                                                                                                              \
		.file = (f), .form = MACHINE_FORM_KEYED, .key = (k), .times = US_NS                                    \
	}
#define V1_KEYED(c, f, k)                                                                                              \
	{                                                                                                              \
		.controller = (c), .file = (f), .form = MACHINE_FORM_KEYED, .key = (k)                                 \
	}
#define V1_NUMBER(c, f)                                                                                                \
	{                                                                                                              \
		.controller = (c), .file = (f)                                                                         \
	}

const char *const machine_units[] = {
	[MACHINE_UNIT_NS] = "ns",	[MACHINE_UNIT_BYTES] = "bytes",
	[MACHINE_UNIT_COUNT] = "count", [MACHINE_UNIT_MILLICPUS] = "millicpus",
	[MACHINE_UNIT_KHZ] = "kHz",
};

/* Rows of one file stand together: it is read once for them. */
const struct machine_gauge machine_gauges[MXBPF_GAUGE_IDS] = {
	[MXBPF_GAUGE_CPU_BUSY] = {.name = "cpu_busy",
				  .rises = true,
				  .from = {STAT(BUSY_FIELDS)},
				  .track = MACHINE_TRACK_CPUS,
				  .title = "busy"},
	[MXBPF_GAUGE_CPU_IDLE] = {.name = "cpu_idle", .rises = true, .from = {STAT(1 << 3)}},
	[MXBPF_GAUGE_CPU_IOWAIT] = {.name = "cpu_iowait",
				    .rises = true,
				    .from = {STAT(1 << 4)},
				    .track = MACHINE_TRACK_CPUS,
				    .title = "I/O wait"},
	[MXBPF_GAUGE_CPU_STEAL] = {.name = "cpu_steal",
				   .rises = true,
				   .from = {STAT(1 << 7)},
				   .track = MACHINE_TRACK_CPUS,
				   .title = "steal",
				   .share = MACHINE_SHARE_CPU_TIME,
				   .threshold = 5,
				   .says = "the hypervisor took %s of CPU time (steal)"},
	[MXBPF_GAUGE_CPU_KHZ] = {.name = "cpu_khz",
				 .unit = MACHINE_UNIT_KHZ,
				 .from = {{.file = "/proc/stat", .form = MACHINE_FORM_KHZ}},
				 .track = MACHINE_TRACK_VALUE,
				 .title = "frequency of busy CPUs",
				 .share = MACHINE_SHARE_KHZ,
				 .threshold = 50,
				 .says = "the CPUs ran at %s of their highest frequency"},
	[MXBPF_GAUGE_CPU_KHZ_MAX] = {.name = "cpu_khz_max",
				     .unit = MACHINE_UNIT_KHZ,
				     .from = {{.file = "/proc/stat", .form = MACHINE_FORM_KHZ_MAX}}},
	[MXBPF_GAUGE_STALL_CPU] = {.name = "stall_cpu",
				   .rises = true,
				   .from = {STALL("/proc/pressure/cpu", "some")},
				   .track = MACHINE_TRACK_PERCENT,
				   .title = "CPU pressure",
				   .share = MACHINE_SHARE_TIME,
				   .threshold = 20,
				   .says = "CPU pressure: some task waited for a CPU %s of the window",
				   .unless = MXBPF_GAUGE_GROUP_STALL_CPU},
	[MXBPF_GAUGE_STALL_IO] = {.name = "stall_io",
				  .rises = true,
				  .from = {STALL("/proc/pressure/io", "some")},
				  .track = MACHINE_TRACK_PERCENT,
				  .title = "I/O pressure",
				  .share = MACHINE_SHARE_TIME,
				  .threshold = 10,
				  .says = "I/O pressure: some task stalled %s of the window",
				  .unless = MXBPF_GAUGE_GROUP_STALL_IO},
	[MXBPF_GAUGE_STALL_IO_ALL] = {.name = "stall_io_all",
				      .rises = true,
				      .from = {STALL("/proc/pressure/io", "full")}},
	[MXBPF_GAUGE_STALL_MEMORY] = {.name = "stall_memory",
				      .rises = true,
				      .from = {STALL("/proc/pressure/memory", "some")},
				      .track = MACHINE_TRACK_PERCENT,
				      .title = "memory pressure",
				      .share = MACHINE_SHARE_TIME,
				      .threshold = 5,
				      .says = "memory pressure: some task stalled %s of the window",
				      .unless = MXBPF_GAUGE_GROUP_STALL_MEMORY},
	[MXBPF_GAUGE_STALL_MEMORY_ALL] = {.name = "stall_memory_all",
					  .rises = true,
					  .from = {STALL("/proc/pressure/memory", "full")}},

	[MXBPF_GAUGE_GROUP_WEIGHT] = {.name = "group_weight",
				      .unit = MACHINE_UNIT_COUNT,
				      .of = MACHINE_OF_GROUP,
				      .from = {{.file = "cpu.weight"}, V1_NUMBER("cpu", "cpu.shares")}},
	[MXBPF_GAUGE_GROUP_CPUS] =
		{.name = "group_cpus",
		 .unit = MACHINE_UNIT_COUNT,
		 .of = MACHINE_OF_GROUP,
		 .from = {{.file = "cpuset.cpus.effective", .form = MACHINE_FORM_CPUS},
			  {.controller = "cpuset", .file = "cpuset.effective_cpus", .form = MACHINE_FORM_CPUS}}},
	[MXBPF_GAUGE_GROUP_STALL_CPU] =
		{.name = "group_stall_cpu",
		 .rises = true,
		 .of = MACHINE_OF_GROUP,
		 .from = {STALL("cpu.pressure", "some")},
		 .track = MACHINE_TRACK_PERCENT,
		 .title = "CPU pressure",
		 .share = MACHINE_SHARE_TIME,
		 .threshold = 20,
		 .says = "CPU pressure: some task of the cgroup waited for a CPU %s of the window"},
	[MXBPF_GAUGE_GROUP_STALL_IO] = {.name = "group_stall_io",
					.rises = true,
					.of = MACHINE_OF_GROUP,
					.from = {STALL("io.pressure", "some")},
					.track = MACHINE_TRACK_PERCENT,
					.title = "I/O pressure",
					.share = MACHINE_SHARE_TIME,
					.threshold = 10,
					.says = "I/O pressure: some task of the cgroup stalled %s of the window"},
	[MXBPF_GAUGE_GROUP_STALL_IO_ALL] = {.name = "group_stall_io_all",
					    .rises = true,
					    .of = MACHINE_OF_GROUP,
					    .from = {STALL("io.pressure", "full")}},
	[MXBPF_GAUGE_GROUP_STALL_MEMORY] =
		{.name = "group_stall_memory",
		 .rises = true,
		 .of = MACHINE_OF_GROUP,
		 .from = {STALL("memory.pressure", "some")},
		 .track = MACHINE_TRACK_PERCENT,
		 .title = "memory pressure",
		 .share = MACHINE_SHARE_TIME,
		 .threshold = 5,
		 .says = "memory pressure: some task of the cgroup stalled %s of the window"},
	[MXBPF_GAUGE_GROUP_STALL_MEMORY_ALL] = {.name = "group_stall_memory_all",
						.rises = true,
						.of = MACHINE_OF_GROUP,
						.from = {STALL("memory.pressure", "full")}},
	[MXBPF_GAUGE_GROUP_MEMORY] = {.name = "group_memory",
				      .unit = MACHINE_UNIT_BYTES,
				      .of = MACHINE_OF_GROUP,
				      .from = {{.file = "memory.current"},
					       V1_NUMBER("memory", "memory.usage_in_bytes")},
				      .track = MACHINE_TRACK_VALUE,
				      .title = "memory"},
	[MXBPF_GAUGE_GROUP_CPU] = {.name = "group_cpu",
				   .rises = true,
				   .of = MACHINE_OF_GROUP,
				   .from = {KEYED_US("cpu.stat", "usage_usec"), V1_NUMBER("cpuacct", "cpuacct.usage")},
				   .track = MACHINE_TRACK_CPUS,
				   .title = "busy"},

	[MXBPF_GAUGE_PERIODS] = {.name = "periods",
				 .unit = MACHINE_UNIT_COUNT,
				 .rises = true,
				 .of = MACHINE_OF_GROUPS,
				 .from = {KEYED("cpu.stat", "nr_periods"), V1_KEYED("cpu", "cpu.stat", "nr_periods")}},
	[MXBPF_GAUGE_PERIODS_THROTTLED] = {.name = "periods_throttled",
					   .unit = MACHINE_UNIT_COUNT,
					   .rises = true,
					   .of = MACHINE_OF_GROUPS,
					   .from = {KEYED("cpu.stat", "nr_throttled"),
						    V1_KEYED("cpu", "cpu.stat", "nr_throttled")}},
	/* The sum over CPUs: the kernel throttles a cgroup on each CPU by itself. */
	[MXBPF_GAUGE_THROTTLED] = {.name = "throttled",
				   .rises = true,
				   .of = MACHINE_OF_GROUPS,
				   .from = {KEYED_US("cpu.stat", "throttled_usec"),
					    V1_KEYED("cpu", "cpu.stat", "throttled_time")},
				   .track = MACHINE_TRACK_PERCENT,
				   .title = "throttled",
				   .share = MACHINE_SHARE_TIME,
				   .threshold = 1,
				   .says = "throttled %s of the window by the cgroup's %s",
				   .limit = MXBPF_GAUGE_CPU_MAX},
	[MXBPF_GAUGE_CPU_MAX] = {.name = "cpu_max",
				 .unit = MACHINE_UNIT_MILLICPUS,
				 .of = MACHINE_OF_GROUPS,
				 .from = {{.file = "cpu.max", .form = MACHINE_FORM_QUOTA},
					  {.controller = "cpu",
					   .file = "cpu.cfs_quota_us",
					   .file2 = "cpu.cfs_period_us",
					   .form = MACHINE_FORM_QUOTA}}},
	[MXBPF_GAUGE_MEMORY_MAX] = {.name = "memory_max",
				    .unit = MACHINE_UNIT_BYTES,
				    .of = MACHINE_OF_GROUPS,
				    .from = {{.file = "memory.max"}, V1_NUMBER("memory", "memory.limit_in_bytes")}},
	[MXBPF_GAUGE_MEMORY_HIGH] = {.name = "memory_high",
				     .unit = MACHINE_UNIT_BYTES,
				     .of = MACHINE_OF_GROUPS,
				     .from = {{.file = "memory.high"}}},
	[MXBPF_GAUGE_MEMORY_MAX_HITS] = {.name = "memory_max_hits",
					 .unit = MACHINE_UNIT_COUNT,
					 .rises = true,
					 .of = MACHINE_OF_GROUPS,
					 .from = {KEYED("memory.events", "max"), V1_NUMBER("memory", "memory.failcnt")},
					 .share = MACHINE_SHARE_HITS,
					 .threshold = 10,
					 .says = "memory ran into its limit %s times: the cgroup's %s",
					 .limit = MXBPF_GAUGE_MEMORY_MAX},
	[MXBPF_GAUGE_MEMORY_HIGH_HITS] = {.name = "memory_high_hits",
					  .unit = MACHINE_UNIT_COUNT,
					  .rises = true,
					  .of = MACHINE_OF_GROUPS,
					  .from = {KEYED("memory.events", "high")},
					  .share = MACHINE_SHARE_HITS,
					  .threshold = 10,
					  .says = "memory was slowed down %s times: the cgroup's %s",
					  .limit = MXBPF_GAUGE_MEMORY_HIGH},
	[MXBPF_GAUGE_OOM_KILLS] = {.name = "oom_kills",
				   .unit = MACHINE_UNIT_COUNT,
				   .rises = true,
				   .of = MACHINE_OF_GROUPS,
				   .from = {KEYED("memory.events", "oom_kill"),
					    V1_KEYED("memory", "memory.oom_control", "oom_kill")},
				   .share = MACHINE_SHARE_HITS,
				   .threshold = 1,
				   .says = "out of memory: the kernel killed %s processes of the cgroup"},
};
