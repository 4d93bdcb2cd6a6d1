// SPDX-License-Identifier: Apache-2.0
#include "base/near.h"

#include <stdio.h>
#include <string.h>

#define NEAR_BYTES_MAX 32

/* How many letters have to be inserted, deleted or replaced to make one word the other. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[NEAR_BYTES_MAX] = {0}, i, j, diag, keep, best;

	for (j = 0; j <= strlen(b); j++)
		row[j] = j;
	for (i = 1; a[i - 1]; i++) {
		diag = row[0];
		row[0] = i;
		for (j = 1; b[j - 1]; j++) {
			keep = row[j];
			best = diag + (a[i - 1] != b[j - 1]);
			best = best < keep + 1 ? best : keep + 1;
			row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
			diag = keep;
		}
	}
	return row[strlen(b)];
}

void near_try(struct near *n, const char *text, const char *word)
{
	unsigned d;

	if (strlen(text) >= NEAR_BYTES_MAX || strlen(word) >= NEAR_BYTES_MAX)
		return;
	d = edit_distance(text, word);
	if (d > 2 || d * 2 > strlen(word) || (n->word && d >= n->distance))
		return;
	n->word = word;
	n->distance = d;
}

const char *near_hint(const struct near *n, const char *dashes, char buf[NEAR_HINT_BYTES])
{
	buf[0] = '\0';
	if (n->word)
		snprintf(buf, NEAR_HINT_BYTES, "; did you mean '%s%s'?", dashes, n->word);
	return buf;
}
