/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the command line, and the nearest one to a wrong one. */
#ifndef CMD_WORDS_H
#define CMD_WORDS_H

#include "cmd/opts.h"

struct cmd_near {
	const char *word; /* borrowed; NULL: none is near */
	unsigned distance;
};

void cmd_near_try(struct cmd_near *n, const char *text, const char *word);
/* "; did you mean 'WORD'?" or nothing. Returns buf. */
const char *cmd_near_hint(const struct cmd_near *n, const char *dashes, char buf[64]);

/* "one, two, three". Returns buf. */
const char *cmd_join_words(const char *(*word)(unsigned), char buf[200]);

/* Index of a value among those of an option, or -EINVAL with e set. */
int cmd_find_word(const struct cmd_option *opt, const char *text, struct err *e);

#endif
