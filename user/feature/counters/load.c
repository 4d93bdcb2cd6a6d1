// SPDX-License-Identifier: Apache-2.0
/* --counters in a live session. */
#include "feature/counters/counters.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/counters/events.h"

static bool asked(const struct ses_opts *o)
{
	return o->counters;
}

/* Leaves out counters that this machine does not have. */
static int check(struct session *ses, const struct ses_target *of, struct err *e)
{
	char names[CTR_NAMES_BYTES];

	ses->counters = ses->o->counters;
	if (ctr_keep_countable(&ses->counters, e))
		return e->code;
	if (ses->counters != ses->o->counters)
		ses_warn(ses, "--counters: this machine cannot count %s",
			 ctr_names(ses->o->counters & ~ses->counters, names));
	return 0;
}

static int describe(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	char names[CTR_NAMES_BYTES];
	unsigned i;

	s->counters = calloc(MXBPF_COUNTERS_MAX, sizeof(*s->counters));
	for (i = 0; s->counters && ctr_name(i); i++) {
		if (!(ses->counters >> i & 1))
			continue;
		s->counters[s->ncounters].name = strdup(ctr_name(i));
		if (!s->counters[s->ncounters++].name)
			return -ENOMEM;
	}
	if (!s->counters)
		return -ENOMEM;
	if (ses->counters == ses->o->counters)
		return 0;
	return ses_add_note(s, "counters", "this machine cannot count %s",
			    ctr_names(ses->o->counters & ~ses->counters, names));
}

const struct ses_feature counters_session = {
	.asked = asked,
	.check = check,
	.describe = describe,
};
