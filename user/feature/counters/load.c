// SPDX-License-Identifier: Apache-2.0
/* --counters: what is counted of what was asked for, and how the session says so. */
#include "feature/counters/counters.h"
#include "session/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/counters/events.h"

int ses_counters_choose(struct session *ses, struct err *e)
{
	char names[CTR_NAMES_BYTES];

	ses->counters = ses->o->counters;
	if (ses->counters && ctr_keep_countable(&ses->counters, e))
		return e->code;
	if (ses->counters != ses->o->counters)
		ses_warn(ses, "--counters: this machine cannot count %s",
			 ctr_names(ses->o->counters & ~ses->counters, names));
	return 0;
}

int ses_counters_describe(struct session *ses)
{
	struct mdl_session *s = &ses->about;
	unsigned i;

	s->counters = calloc(MXBPF_COUNTERS_MAX, sizeof(*s->counters));
	for (i = 0; s->counters && ctr_name(i); i++) {
		if (!(ses->counters >> i & 1))
			continue;
		s->counters[s->ncounters].name = strdup(ctr_name(i));
		if (!s->counters[s->ncounters++].name)
			return -ENOMEM;
	}
	return s->counters ? 0 : -ENOMEM;
}
