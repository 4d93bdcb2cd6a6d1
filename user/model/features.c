// SPDX-License-Identifier: Apache-2.0
/* The features of the model, in the order in which their records stand in recordings. */
#include "model/priv.h"

const struct mdl_feature *const mdl_features[] = {
	&feature_slow,	&feature_gauges, &feature_samples, &feature_sched, &feature_teams,	&feature_lives,
	&feature_steps, &feature_kv,	 &feature_held,	   &feature_marks, &feature_activities, &feature_joins,
	NULL,
};

void mdl_move(struct mdl *to, struct mdl *from)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		if ((*f)->move)
			(*f)->move(to, from);
}
