// SPDX-License-Identifier: Apache-2.0
/* --sample in tables: how many samples each operator has, of what ran in it and in nothing that is probed below. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink/priv.h"

static int most_first(const void *va, const void *vb)
{
	const struct snk_sample *a = va, *b = vb;
	int order;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	order = snk_name_cmp(a->name, a->len, b->name, b->len);
	return order ? order : a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

int snk_samples(const struct snk *s, struct snk_sample **rows, size_t *n)
{
	const struct mdl_samples *all = mdl_samples(s->in->model, n);
	struct snk_sample *r = calloc(*n + 1, sizeof(*r));
	size_t i;

	*rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < *n; i++) {
		r[i] = (struct snk_sample){.name = SNK_NO_OPERATOR,
					   .len = strlen(SNK_NO_OPERATOR),
					   .tgid = all[i].tgid,
					   .count = all[i].count};
		if (!all[i].cls)
			continue;
		r[i].name = mdl_name(s->in->model, all[i].name_id, &r[i].len);
		r[i].title = s->in->session->class_title[all[i].cls];
	}
	qsort(r, *n, sizeof(*r), most_first);
	return 0;
}
