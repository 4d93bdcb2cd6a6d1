// SPDX-License-Identifier: Apache-2.0
/* Rows of processes with one label (--by rank, --by job, --by host). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "view/priv.h"

#define RANK_DIGITS 10 /* digits of numbers in texts that are compared, so that they sort as numbers do */

bool view_by_label(enum view_by by)
{
	return by == VIEW_BY_RANK || by == VIEW_BY_JOB || by == VIEW_BY_HOST;
}

/* Writes the label of a process. digits: the least number of digits of a rank. */
static void put_label(const struct mdl_labels *l, enum view_by by, int digits, char buf[VIEW_LABEL_BYTES])
{
	const char *role = l ? l->texts[MDL_ROLE] : "", *job = l ? l->texts[MDL_JOB] : "";

	if (by == VIEW_BY_HOST)
		snprintf(buf, VIEW_LABEL_BYTES, "%s", l ? l->hostname : "no host");
	else if (by == VIEW_BY_JOB)
		snprintf(buf, VIEW_LABEL_BYTES, "%s", *job ? job : "no job");
	else if (l && l->numbers[MDL_RANK] != MDL_NO_NUMBER)
		snprintf(buf, VIEW_LABEL_BYTES, "%.64s %0*" PRIu32, *role ? role : "rank", digits,
			 l->numbers[MDL_RANK]);
	else
		snprintf(buf, VIEW_LABEL_BYTES, "%s", *role ? role : "no rank");
}

void view_label(const struct mdl_labels *l, enum view_by by, char buf[VIEW_LABEL_BYTES])
{
	put_label(l, by, 1, buf);
}

int view_labels_init(struct view_labels *l, const struct mdl_session *s, enum view_by by)
{
	uint64_t *at;
	size_t i;

	view_label(NULL, by, l->none);
	l->texts = calloc(s->nlabels + 1, sizeof(*l->texts));
	for (i = 0; l->texts && i < s->nlabels; i++) {
		at = hash_put(&l->at, s->labels[i].pid, 0);
		if (!at)
			return -ENOMEM;
		*at = i + 1;
		put_label(&s->labels[i], by, RANK_DIGITS, l->texts[i]);
	}
	return l->texts ? 0 : -ENOMEM;
}

void view_labels_fini(struct view_labels *l)
{
	hash_fini(&l->at);
	free(l->texts);
	*l = (struct view_labels){0};
}

const char *view_labels_of(const struct view_labels *l, uint32_t pid)
{
	const uint64_t *at = hash_get(&l->at, pid, 0);

	return at ? l->texts[*at - 1] : l->none;
}
