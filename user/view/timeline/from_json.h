/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes args of packets of those in Chrome's JSON. So a feature writes the args of a span or an event once for both
 * formats.
 */
#ifndef VIEW_FROM_JSON_H
#define VIEW_FROM_JSON_H

#include "view/timeline/packets.h"

/* Zero-initialise it, set `to`, and call from_json_fini() at the end. */
struct from_json {
	struct packets *to; /* borrowed */
	bool failed;	    /* there was no memory */
	struct buf text;    /* private: a string with escapes */
};

/* Members of an object, with a comma between them, in front or behind: args of the next event. */
void from_json_args(struct from_json *f, const char *text, size_t len);
/* The text of the inside of a JSON string. Borrowed until the next call. */
const char *from_json_text(struct from_json *f, const char *inside, size_t len, size_t *text_len);

void from_json_fini(struct from_json *f);

#endif
