// SPDX-License-Identifier: Apache-2.0
/* Names of processes and groups for people. */
#include "feature/collective/collective.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const char *collective_process(const struct mdl_session *ss, uint32_t tgid, char text[COLLECTIVE_TEXT])
{
	const struct mdl_labels *l = mdl_labels_of(ss, tgid);

	if (l && l->numbers[MDL_RANK] != MDL_NO_NUMBER)
		snprintf(text, COLLECTIVE_TEXT, "%.40s %" PRIu32, l->texts[MDL_ROLE][0] ? l->texts[MDL_ROLE] : "rank",
			 l->numbers[MDL_RANK]);
	else
		snprintf(text, COLLECTIVE_TEXT, "process %" PRIu32, tgid);
	return text;
}

uint32_t collective_size(const struct mdl_session *ss, uint32_t ranks, uint32_t members)
{
	size_t i;

	for (i = 0; i < ss->nlabels && !ranks; i++)
		if (ss->labels[i].numbers[MDL_WORLD_SIZE] != MDL_NO_NUMBER &&
		    ss->labels[i].numbers[MDL_WORLD_SIZE] > ss->nlabels)
			return 0;
	return ranks ? ranks : members;
}

static int by_u32(const void *va, const void *vb)
{
	const uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	return a < b ? -1 : a > b;
}

/* Replaces processes by ranks. Returns false if one has none. */
static bool ranks_of(const struct mdl_session *ss, uint32_t *of, size_t n)
{
	const struct mdl_labels *l;
	size_t i;

	for (i = 0; i < n; i++) {
		l = mdl_labels_of(ss, of[i]);
		if (!l || l->numbers[MDL_RANK] == MDL_NO_NUMBER)
			return false;
		of[i] = l->numbers[MDL_RANK];
	}
	qsort(of, n, sizeof(*of), by_u32);
	return true;
}

#define RANGE_BYTES 26 /* the longest range, and what says that more follow */

static void put_ranks(const uint32_t *of, size_t n, char text[COLLECTIVE_TEXT])
{
	size_t i, k, len = (size_t)snprintf(text, COLLECTIVE_TEXT, n > 1 ? "ranks " : "rank ");

	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && of[k] == of[k - 1] + 1; k++)
			;
		if (len + RANGE_BYTES > COLLECTIVE_TEXT) {
			snprintf(text + len, COLLECTIVE_TEXT - len, ",...");
			return;
		}
		len += (size_t)snprintf(text + len, COLLECTIVE_TEXT - len, "%s%" PRIu32, i ? "," : "", of[i]);
		if (k - i > 1)
			len += (size_t)snprintf(text + len, COLLECTIVE_TEXT - len, "-%" PRIu32, of[k - 1]);
	}
}

int collective_group(const struct mdl_session *ss, const struct buf *rows, const struct mxbpf_agg_collective *row,
		     char text[COLLECTIVE_TEXT])
{
	struct buf of = {0};
	const int err = collective_members(rows, row->group, &of);

	if (!err && of.len && ranks_of(ss, (uint32_t *)of.data, buf_count(&of, uint32_t)))
		put_ranks((const uint32_t *)of.data, buf_count(&of, uint32_t), text);
	else
		snprintf(text, COLLECTIVE_TEXT, "%" PRIu32 " processes", row->members);
	buf_fini(&of);
	return err;
}
