// SPDX-License-Identifier: Apache-2.0
/* All features. docs/internals.md says how to add one. */
#include "feature/activity/activity.h"
#include "feature/backward/backward.h"
#include "feature/collective/collective.h"
#include "feature/cost/cost.h"
#include "feature/counters/counters.h"
#include "feature/devmem/devmem.h"
#include "feature/findings/findings.h"
#include "feature/flops/flops.h"
#include "feature/gpumem/gpumem.h"
#include "feature/idle/idle.h"
#include "feature/kernels/kernels.h"
#include "feature/kv/kv.h"
#include "feature/life/life.h"
#include "feature/launches/launches.h"
#include "feature/lines/lines.h"
#include "feature/machine/machine.h"
#include "feature/marks/marks.h"
#include "feature/memory/memory.h"
#include "feature/inputs/inputs.h"
#include "feature/modes/modes.h"
#include "feature/neighbours/neighbours.h"
#include "feature/omp/omp.h"
#include "feature/path/path.h"
#include "feature/raised/raised.h"
#include "feature/ranges/ranges.h"
#include "feature/ranks/ranks.h"
#include "feature/resident/resident.h"
#include "feature/roofline/roofline.h"
#include "feature/sample/sample.h"
#include "feature/sched/sched.h"
#include "feature/slow/slow.h"
#include "feature/steps/steps.h"
#include "feature/threads/threads.h"
#include "model/feature.h"
#include "view/calls.h"
#include "view/sheet.h"

const struct mdl_feature *const mdl_features[] = {
	/* clang-format off */
	&feature_counters,
	&feature_cost,
	&feature_flops,
	&feature_slow,
	&feature_machine,
	&feature_sample,
	&feature_sched,
	&feature_omp,
	&feature_life,
	&feature_steps,
	&feature_kv,
	&feature_memory,
	&feature_marks,
	&feature_ranges,
	&feature_activity,
	&feature_idle,
	&feature_launches,
	&feature_path,
	&feature_roofline,
	&feature_kernels,
	&feature_gpumem,
	&feature_devmem,
	&feature_collective,
	&feature_backward,
	&feature_raised,
	&feature_lines,
	&feature_neighbours,
	&feature_resident,
	&feature_threads,
	&feature_modes,
	&feature_inputs,
	NULL,
	/* clang-format on */
};
_Static_assert(sizeof(mdl_features) / sizeof(mdl_features[0]) <= MDL_FEATURES_MAX, "a model has room for each state");

const struct view_sheet *const view_sheets[] = {
	/* clang-format off */
	&sheet_calls,
	&sheet_events,
	&sheet_counters,
	&sheet_memory_totals,
	&sheet_memory_devices,
	&sheet_memory,
	&sheet_memory_failed,
	&sheet_devmem,
	&sheet_marks_values,
	&sheet_marks_instants,
	&sheet_backward,
	&sheet_kv,
	&sheet_gpu_kernels,
	&sheet_gpu_work,
	&sheet_gpu_copies,
	&sheet_gpu_sets,
	&sheet_gpu_waits,
	&sheet_gpu_modules,
	&sheet_gpu_layers,
	&sheet_gpu_graphs,
	&sheet_gpu_devices,
	&sheet_gpu_streams,
	&sheet_gpu_idle,
	&sheet_gpu_types,
	&sheet_gpu_launches,
	&sheet_gpu_queues,
	&sheet_gpu_path,
	&sheet_gpu_sequences,
	&sheet_gpu_roofline,
	&sheet_gpu_counters,
	&sheet_gpu_allocs,
	&sheet_gpu_loss,
	&sheet_ranges,
	&sheet_omp,
	&sheet_life,
	&sheet_life_waits,
	&sheet_ranks,
	&sheet_collective,
	&sheet_collective_ranks,
	&sheet_collective_overlap,
	&sheet_slow,
	&sheet_sched,
	&sheet_sample,
	&sheet_raised,
	&sheet_threads,
	&sheet_findings,
	&sheet_lines,
	&sheet_steps_loops,
	&sheet_steps_slowest,
	&sheet_opens,
	&sheet_machine,
	NULL,
	/* clang-format on */
};
