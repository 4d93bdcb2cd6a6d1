// SPDX-License-Identifier: Apache-2.0
/* Words of the command line, and the nearest one to a wrong one. */
#include "cmd/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NEAR_BYTES_MAX 32

/* Letters to insert, delete or replace between two words. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[NEAR_BYTES_MAX], i, j, diag, keep, best;

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

void cmd_near_try(struct cmd_near *n, const char *text, const char *word)
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

const char *cmd_near_hint(const struct cmd_near *n, const char *dashes, char buf[64])
{
	buf[0] = '\0';
	if (n->word)
		snprintf(buf, 64, "; did you mean '%s%s'?", dashes, n->word);
	return buf;
}

const char *cmd_join_words(const char *(*word)(unsigned), char buf[200])
{
	size_t len = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; word(i) && len < 200; i++)
		len += snprintf(buf + len, 200 - len, "%s%s", i ? ", " : "", word(i));
	return buf;
}

int cmd_find_word(const struct cmd_option *opt, const char *text, struct err *e)
{
	struct cmd_near n = {0};
	char hint[64], all[200];
	unsigned i;

	for (i = 0; opt->word(i); i++) {
		if (!strcmp(opt->word(i), text))
			return i;
		cmd_near_try(&n, text, opt->word(i));
	}
	return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is not one of %s%s", opt->name, text,
		       cmd_join_words(opt->word, all), cmd_near_hint(&n, "", hint));
}
