// SPDX-License-Identifier: Apache-2.0
/* --counters in a live session. */
#include "feature/counters/counters.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/counters/events.h"

unsigned counters_counted(const struct session *ses)
{
	return *(const unsigned *)ses_state(ses, &counters_session);
}

static bool counters_asked(const struct ses_opts *o)
{
	return o->counters;
}

/* Leaves out counters that this machine does not have. */
static int counters_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	unsigned *counted = ses_state(ses, &counters_session);
	char names[CTR_NAMES_BYTES];

	*counted = ses->o->counters;
	if (ctr_keep_countable(counted, e))
		return e->code;
	if (*counted != ses->o->counters)
		ses_warn(ses, "--counters: this machine cannot count %s",
			 ctr_names(ses->o->counters & ~*counted, names));
	return 0;
}

static int counters_describe(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	const unsigned counted = counters_counted(ses);
	char names[CTR_NAMES_BYTES];
	unsigned i;

	s->counters = calloc(MXBPF_COUNTERS_MAX, sizeof(*s->counters));
	for (i = 0; s->counters && ctr_name(i); i++) {
		if (!(counted >> i & 1))
			continue;
		s->counters[s->ncounters].name = strdup(ctr_name(i));
		if (!s->counters[s->ncounters++].name)
			return -ENOMEM;
	}
	if (!s->counters)
		return -ENOMEM;
	if (counted == ses->o->counters)
		return 0;
	return ses_add_note(s, "counters", "this machine cannot count %s",
			    ctr_names(ses->o->counters & ~counted, names));
}

const struct ses_feature counters_session = {
	.state_bytes = sizeof(unsigned), /* counters_counted() */
	.asked = counters_asked,
	.check = counters_check,
	.describe = counters_describe,
};
