/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the word that somebody meant who mistyped it. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

struct near {
	const char *word; /* the nearest word so far; borrowed; NULL: no word is near */
	unsigned distance;
};

/* Compares one more word with the text. */
void near_try(struct near *n, const char *text, const char *word);

#define NEAR_HINT_BYTES 64
/* "; did you mean '--WORD'?", with `dashes` before the word, or "" if no word is near. Returns buf. */
const char *near_hint(const struct near *n, const char *dashes, char buf[NEAR_HINT_BYTES]);

#endif
