// SPDX-License-Identifier: Apache-2.0
/* --counters: what is counted of what was asked for, and how the session says so. */
#include "cmd/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "counters/counters.h"

int live_counters_choose(struct live *l, struct err *e)
{
	char names[CTR_NAMES_BYTES];

	l->counters = l->o->counters;
	if (l->counters && ctr_keep_countable(&l->counters, e))
		return e->code;
	if (l->counters != l->o->counters)
		cmd_warn("--counters: this machine cannot count %s", ctr_names(l->o->counters & ~l->counters, names));
	return 0;
}

int live_counters_describe(struct live *l)
{
	struct mdl_session *s = &l->session;
	unsigned i;

	s->counters = calloc(MXBPF_COUNTERS_MAX, sizeof(*s->counters));
	for (i = 0; s->counters && ctr_name(i); i++) {
		if (!(l->counters >> i & 1))
			continue;
		s->counters[s->ncounters].name = strdup(ctr_name(i));
		if (!s->counters[s->ncounters++].name)
			return -ENOMEM;
	}
	return s->counters ? 0 : -ENOMEM;
}
