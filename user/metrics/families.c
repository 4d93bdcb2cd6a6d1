// SPDX-License-Identifier: Apache-2.0
/* Families by enum met_id: what a metric is called, and what it means. */
#include "metrics/priv.h"

/*
 * Bounds of calls are 2^n and 1.5 * 2^n nanoseconds, from 4 us to 4.3 s, because the model's buckets end there: what
 * they have counted can be told exactly. A call that takes twice as long is two buckets higher, and one at a bound that
 * takes a little longer seems 1.5 times as long at most.
 */
static const double call_bounds[] = {4.096e-06,	  6.144e-06,   8.192e-06,   1.2288e-05,	 1.6384e-05,  2.4576e-05,
				     3.2768e-05,  4.9152e-05,  6.5536e-05,  9.8304e-05,	 0.000131072, 0.000196608,
				     0.000262144, 0.000393216, 0.000524288, 0.000786432, 0.001048576, 0.001572864,
				     0.002097152, 0.003145728, 0.004194304, 0.006291456, 0.008388608, 0.012582912,
				     0.016777216, 0.025165824, 0.033554432, 0.050331648, 0.067108864, 0.100663296,
				     0.134217728, 0.201326592, 0.268435456, 0.402653184, 0.536870912, 0.805306368,
				     1.073741824, 1.610612736, 2.147483648, 3.221225472, 4.294967296};
/* Ten in a decade, so that 1.6 times as long is two buckets higher. */
static const double iteration_bounds[] = {
	0.001, 0.00125, 0.0016, 0.002, 0.0025, 0.0032, 0.004, 0.005, 0.0063, 0.008, 0.01, 0.0125, 0.016,
	0.02,  0.025,	0.032,	0.04,  0.05,   0.063,  0.08,  0.1,   0.125,  0.16,  0.2,  0.25,	  0.32,
	0.4,   0.5,	0.63,	0.8,   1,      1.25,   1.6,   2,     2.5,    3.2,   4,	  5,	  6.3,
	8,     10,	12.5,	16,    20,     25,     32,    40,    50,     63,    80,	  100};
#define BOUNDS(bounds) bounds, sizeof(bounds) / sizeof((bounds)[0])
_Static_assert(sizeof(iteration_bounds) / sizeof(double) < MET_BUCKETS_MAX, "all bounds and +Inf");
_Static_assert(sizeof(call_bounds) / sizeof(double) < MET_BUCKETS_MAX, "all bounds and +Inf");

static const struct met_family families[MET_FAMILIES] = {
	[MET_BUILD] = {"mxbpf_build_info", "Version of mxbpf; always 1", MET_GAUGE},
	[MET_TARGETS] = {"mxbpf_targets", "Processes that are watched now", MET_GAUGE},
	[MET_PROCESS] = {"mxbpf_process_info",
			 "Processes that are watched now, by number; iterations=\"yes\": it has ended one; always 1",
			 MET_GAUGE},
	[MET_ITERATION] = {"mxbpf_iteration_duration_seconds",
			   "Iterations of the training loop, without the profiling overhead", MET_HISTOGRAM, MET_NS,
			   BOUNDS(iteration_bounds)},
	[MET_ITERATION_PART] = {"mxbpf_iteration_part_seconds",
				"Where the time of iterations went on the thread of the loop: data, wait, kvstore, "
				"inline, api, outside",
				MET_COUNTER, MET_NS},
	[MET_OPERATOR] = {"mxbpf_operator_duration_seconds", "Calls of operators with what they call in turn",
			  MET_HISTOGRAM, MET_NS, BOUNDS(call_bounds)},
	[MET_OPERATOR_SELF] = {"mxbpf_operator_self_seconds", "Time in operators without the operators that they call",
			       MET_COUNTER, MET_NS},
	[MET_CALL] = {"mxbpf_call_duration_seconds",
		      "Other calls by kind: functions of the C API, waits, data, exchanges, annotations", MET_HISTOGRAM,
		      MET_NS, BOUNDS(call_bounds)},
	[MET_CALL_SELF] = {"mxbpf_call_self_seconds", "Time in these calls without the calls that they contain",
			   MET_COUNTER, MET_NS},
	[MET_CPU] = {"mxbpf_target_cpu_seconds", "CPU time of the processes while they were watched", MET_COUNTER,
		     MET_NS},
	[MET_RESIDENT] = {"mxbpf_target_resident_bytes", "Memory of the processes that is in RAM", MET_GAUGE,
			  MET_BYTES},
	[MET_FAULTS] = {"mxbpf_target_page_faults", "Page faults of the processes while they were watched",
			MET_COUNTER},
	[MET_LIVE] = {"mxbpf_memory_live_bytes",
		      "Memory of the runtime that was allocated less freed since mxbpf began to watch, at the last "
		      "iteration",
		      MET_GAUGE, MET_BYTES},
	[MET_FINDING] =
		{"mxbpf_finding_ratio",
		 "What bounds the job: the share of the time that each finding explains; 0: it is not found now",
		 MET_GAUGE, MET_MILLIONTHS},
	[MET_GPU_INFO] = {"mxbpf_gpu_info", "GPUs of the machine; always 1", MET_GAUGE},
	[MET_GPU_UTILIZED] = {"mxbpf_gpu_utilized_seconds",
			      "Time in which the GPU ran kernels of any process, as the driver says", MET_COUNTER,
			      MET_NS},
	[MET_GPU_SAMPLED] = {"mxbpf_gpu_sampled_seconds", "Time for which the driver said that", MET_COUNTER, MET_NS},
	[MET_GPU_MEMORY] = {"mxbpf_gpu_memory_used_bytes", "Memory of the GPU that the process has, as the driver says",
			    MET_GAUGE, MET_BYTES},
	[MET_GPU_MEMORY_TOTAL] = {"mxbpf_gpu_memory_total_bytes", "Memory of the GPU, as the driver says", MET_GAUGE,
				  MET_BYTES},
	[MET_GPU_MEMORY_FREE] = {"mxbpf_gpu_memory_free_bytes",
				 "Memory of the GPU that neither processes nor the driver use, as it says", MET_GAUGE,
				 MET_BYTES},
	[MET_MACHINE_CPU] = {"mxbpf_machine_cpu_seconds", "CPU time of the machine while it was watched", MET_COUNTER,
			     MET_NS},
	[MET_PRESSURE] = {"mxbpf_machine_pressure_seconds",
			  "Time in which some or all tasks of the machine waited for a resource", MET_COUNTER, MET_NS},
	[MET_CGROUP_PRESSURE] = {"mxbpf_cgroup_pressure_seconds",
				 "Time in which some or all tasks of the control group waited for a resource",
				 MET_COUNTER, MET_NS},
	[MET_CGROUP_CPU] = {"mxbpf_cgroup_cpu_seconds", "CPU time of the control group", MET_COUNTER, MET_NS},
	[MET_CGROUP_THROTTLED] = {"mxbpf_cgroup_throttled_seconds",
				  "Time in which the CPU limit of the control group stopped its tasks", MET_COUNTER,
				  MET_NS},
	[MET_CGROUP_PERIODS] = {"mxbpf_cgroup_periods", "Periods in which the CPU limit was enforced", MET_COUNTER},
	[MET_CGROUP_PERIODS_THROTTLED] = {"mxbpf_cgroup_throttled_periods", "Periods in which tasks were stopped",
					  MET_COUNTER},
	[MET_CGROUP_MEMORY] = {"mxbpf_cgroup_memory_bytes", "Memory of the control group", MET_GAUGE, MET_BYTES},
	[MET_CGROUP_LIMIT_HITS] = {"mxbpf_cgroup_memory_limit_hits",
				   "How often the control group reached a limit of memory", MET_COUNTER},
	[MET_CGROUP_OOM_KILLS] = {"mxbpf_cgroup_oom_kills",
				  "Processes of the control group that were killed for memory", MET_COUNTER},
	[MET_EVENTS] = {"mxbpf_events", "Events that were recorded, by source", MET_COUNTER},
	[MET_LOST] = {"mxbpf_events_lost", "Events that were lost, by source: other counters lack them", MET_COUNTER},
	[MET_PARTIAL] =
		{"mxbpf_partial",
		 "1: because of --max-overhead not all calls are recorded; counters of calls are estimated from "
		 "slices",
		 MET_GAUGE},
	[MET_SLICES] = {"mxbpf_slices",
			"Slices in which all calls of the job were recorded, because that costs too much "
			"always",
			MET_COUNTER},
	[MET_SLICED] = {"mxbpf_slice_seconds", "Length of these slices", MET_COUNTER, MET_NS},
	[MET_OPERATOR_ERROR] = {"mxbpf_operator_error_ratio",
				"Of an operator whose time is estimated from slices: half the 95 % confidence interval "
				"of the rate of mxbpf_operator_self_seconds_total, relative to that rate; 1: not known",
				MET_GAUGE, MET_MILLIONTHS},
	[MET_UNSEEN] = {"mxbpf_iterations_unseen",
			"1: iterations are not recorded all the time but in slices, so they are estimated", MET_GAUGE},
	[MET_WATCHED] = {"mxbpf_watched_seconds", "Time in which probes were active, without pauses", MET_COUNTER,
			 MET_NS},
	[MET_ADDED] = {"mxbpf_added_cpu_seconds", "CPU time that profiling added to the processes, measured",
		       MET_COUNTER, MET_NS},
	[MET_LEFT_OUT] = {"mxbpf_series_left_out", "Values that found no room among the series", MET_COUNTER},
	[MET_OWN_CPU] = {"process_cpu_seconds", "CPU time of mxbpf itself", MET_COUNTER, MET_NS},
	[MET_OWN_RESIDENT] = {"process_resident_memory_bytes", "Memory of mxbpf itself that is in RAM", MET_GAUGE,
			      MET_BYTES},
	[MET_OWN_START] = {"process_start_time_seconds", "When mxbpf started, in seconds since 1970", MET_GAUGE,
			   MET_NS},
};

const struct met_family *met_family(unsigned family)
{
	return family < MET_FAMILIES ? &families[family] : met_table_family(family - MET_FAMILIES);
}
