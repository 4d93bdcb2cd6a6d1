/* SPDX-License-Identifier: Apache-2.0 */
/* Makes JSON of what profilers write for JSON, as a stream, and bounds its texts. */
#ifndef IMPORT_JSON_MEND_H
#define IMPORT_JSON_MEND_H

#include <stddef.h>
#include <stdint.h>

#define JSON_TEXT_MAX 65536 /* bytes that are kept of a string */
#define JSON_WORD_MAX 128   /* of a number or another word */

struct json_mend {
	enum json_mend_in { MEND_OUTSIDE, MEND_WORD, MEND_STRING, MEND_ESCAPE, MEND_CODE } in;
	char word[JSON_WORD_MAX]; /* the word or the code that is being read */
	size_t len;
	size_t kept; /* bytes of the string */
};

/* Writes the mended bytes to `to`, which has room for json_mend_room(n). Returns their number. */
size_t json_mend(struct json_mend *m, const unsigned char *from, size_t n, char *to);
static inline size_t json_mend_room(size_t n)
{
	return 8 * n + JSON_WORD_MAX;
}

#endif
