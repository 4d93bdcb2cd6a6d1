// SPDX-License-Identifier: Apache-2.0
/* All features. docs/internals.md says how to add one. */
#include "model/feature.h"

const struct mdl_feature *const mdl_features[] = {
	&feature_slow,	&feature_gauges, &feature_samples, &feature_sched, &feature_teams,	&feature_lives,
	&feature_steps, &feature_kv,	 &feature_held,	   &feature_marks, &feature_activities, &feature_joins,
	NULL,
};
_Static_assert(sizeof(mdl_features) / sizeof(mdl_features[0]) <= MDL_FEATURES_MAX, "a model has room for each state");
