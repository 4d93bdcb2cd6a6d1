// SPDX-License-Identifier: Apache-2.0
/* Families by enum met_id: what a metric is called, and what it means. */
#include "metrics/priv.h"

/*
 * Bounds of calls are powers of four nanoseconds, from 4 us to 4.3 s, because the model's buckets end there: what they
 * have counted can be told exactly.
 */
static const double call_bounds[MET_BUCKETS - 1] = {4.096e-06,	 1.6384e-05,  6.5536e-05,  0.000262144,
						    0.001048576, 0.004194304, 0.016777216, 0.067108864,
						    0.268435456, 1.073741824, 4.294967296};
static const double iteration_bounds[MET_BUCKETS - 1] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100};

const struct met_family met_families[MET_FAMILIES] = {
	[MET_BUILD] = {"mxbpf_build_info", "Version of mxbpf; always 1", MET_GAUGE},
	[MET_TARGETS] = {"mxbpf_targets", "Processes that are watched now", MET_GAUGE},
	[MET_ITERATION] = {"mxbpf_iteration_duration_seconds",
			   "Iterations of the training loop, without the cost of watching", MET_HISTOGRAM, MET_NS,
			   iteration_bounds},
	[MET_ITERATION_PART] = {"mxbpf_iteration_part_seconds",
				"Where the time of iterations went on the thread of the loop: data, wait, kvstore, "
				"inline, api, outside",
				MET_COUNTER, MET_NS},
	[MET_OPERATOR] = {"mxbpf_operator_duration_seconds", "Calls of operators with what they call in turn",
			  MET_HISTOGRAM, MET_NS, call_bounds},
	[MET_OPERATOR_SELF] = {"mxbpf_operator_self_seconds", "Time in operators without the operators that they call",
			       MET_COUNTER, MET_NS},
	[MET_CALL] = {"mxbpf_call_duration_seconds",
		      "Other calls by kind: functions of the C API, waits, data, exchanges, annotations", MET_HISTOGRAM,
		      MET_NS, call_bounds},
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
	[MET_GPU_BUSY] = {"mxbpf_gpu_busy_seconds", "Time in which GPUs did work of the job, added up over GPUs",
			  MET_COUNTER, MET_NS},
	[MET_GPU_SEEN] = {"mxbpf_gpu_seen_seconds", "Time in which these GPUs were watched", MET_COUNTER, MET_NS},
	[MET_GPU_KERNELS] = {"mxbpf_gpu_kernels", "Kernels that the job ran", MET_COUNTER},
	[MET_MACHINE_CPU] = {"mxbpf_machine_cpu_seconds", "CPU time of the machine while it was watched", MET_COUNTER,
			     MET_NS},
	[MET_PRESSURE] = {"mxbpf_machine_pressure_seconds",
			  "Time in which some or all tasks of the machine waited for a resource", MET_COUNTER, MET_NS},
	[MET_CGROUP_PRESSURE] = {"mxbpf_cgroup_pressure_seconds",
				 "Time in which some or all tasks of the control group waited for a resource",
				 MET_COUNTER, MET_NS},
	[MET_CGROUP_CPU] = {"mxbpf_cgroup_cpu_seconds", "CPU time of the control group", MET_COUNTER, MET_NS},
	[MET_CGROUP_THROTTLED] = {"mxbpf_cgroup_throttled_seconds",
				  "Time in which the CPU limit of the control group held its tasks up", MET_COUNTER,
				  MET_NS},
	[MET_CGROUP_PERIODS] = {"mxbpf_cgroup_periods", "Periods in which the CPU limit was enforced", MET_COUNTER},
	[MET_CGROUP_PERIODS_THROTTLED] = {"mxbpf_cgroup_throttled_periods", "Periods in which tasks were held up",
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
	[MET_ADDED] = {"mxbpf_added_cpu_seconds", "CPU time that watching added to the processes, measured",
		       MET_COUNTER, MET_NS},
	[MET_LEFT_OUT] = {"mxbpf_series_left_out", "Values that found no room among the series", MET_COUNTER},
	[MET_OWN_CPU] = {"process_cpu_seconds", "CPU time of mxbpf itself", MET_COUNTER, MET_NS},
	[MET_OWN_RESIDENT] = {"process_resident_memory_bytes", "Memory of mxbpf itself that is in RAM", MET_GAUGE,
			      MET_BYTES},
	[MET_OWN_START] = {"process_start_time_seconds", "When mxbpf started, in seconds since 1970", MET_GAUGE,
			   MET_NS},
};
