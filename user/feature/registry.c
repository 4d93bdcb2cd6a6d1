// SPDX-License-Identifier: Apache-2.0
/* All features. docs/internals.md says how to add one. */
#include "feature/raised/raised.h"
#include "model/feature.h"
#include "sink/sheet.h"

const struct mdl_feature *const mdl_features[] = {
	/* clang-format off */
	&feature_slow,
	&feature_gauges,
	&feature_samples,
	&feature_sched,
	&feature_teams,
	&feature_lives,
	&feature_steps,
	&feature_kv,
	&feature_held,
	&feature_marks,
	&feature_activities,
	&feature_joins,
	&feature_raised,
	NULL,
	/* clang-format on */
};
_Static_assert(sizeof(mdl_features) / sizeof(mdl_features[0]) <= MDL_FEATURES_MAX, "a model has room for each state");

const struct snk_sheet *const snk_sheets[] = {
	/* clang-format off */
	&snk_sheet_mem,
	&snk_sheet_held_devices,
	&snk_sheet_held,
	&snk_sheet_values,
	&snk_sheet_instants,
	&snk_sheet_joins,
	&snk_sheet_kvs,
	&snk_sheet_activities,
	&snk_sheet_teams,
	&snk_sheet_lives,
	&snk_sheet_waits,
	&snk_sheet_slow,
	&snk_sheet_scheds,
	&snk_sheet_samples,
	&sheet_raised,
	&snk_sheet_loops,
	&snk_sheet_slowest,
	NULL,
	/* clang-format on */
};
