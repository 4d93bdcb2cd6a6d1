// SPDX-License-Identifier: Apache-2.0
/* --sample in a live session. */
#include "feature/sample/sample.h"
#include "session/feature.h"
#include "session/session.h"

static bool sample_asked(const struct ses_opts *o)
{
	return o->sample_hz;
}

const struct ses_feature sample_session = {
	.asked = sample_asked,
	.of_calls = true,
};
