// SPDX-License-Identifier: Apache-2.0
/* All features. docs/internals.md says how to add one. */
#include "feature/raised/raised.h"
#include "model/feature.h"
#include "view/sheet.h"

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

const struct view_sheet *const view_sheets[] = {
	/* clang-format off */
	&view_sheet_mem,
	&view_sheet_held_devices,
	&view_sheet_held,
	&view_sheet_values,
	&view_sheet_instants,
	&view_sheet_joins,
	&view_sheet_kvs,
	&view_sheet_activities,
	&view_sheet_teams,
	&view_sheet_lives,
	&view_sheet_waits,
	&view_sheet_slow,
	&view_sheet_scheds,
	&view_sheet_samples,
	&sheet_raised,
	&view_sheet_loops,
	&view_sheet_slowest,
	NULL,
	/* clang-format on */
};
