/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON to an output: commas, quotes, escapes and line breaks. It allocates no memory. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"

/* Initialize with the output and the two choices; the other fields are private and start as 0. */
struct json {
	struct out *out;
	bool exact;	  /* escape like fmt_json_exact(), not like fmt_json() */
	bool tight;	  /* no blank after a comma or a colon */
	bool keyed;	  /* json_key() wrote the name of the next value */
	unsigned line;	  /* indentation of the next item plus 1; 0: no line break */
	unsigned depth;	  /* open objects and arrays, at most 63 */
	uint64_t filled;  /* bit for each depth: it has an item already */
	uint64_t objects; /* bit for each depth: it is an object, not an array */
};

/*
 * Every function below writes one value. In an object, `key` is the name of the member. In an array and at the top,
 * `key` is NULL. `key` is written unchanged, so it must contain nothing to escape: json_key() is for other names.
 */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j); /* ends the innermost object or array */

/* Writes a name for the next value, whose `key` is then NULL. */
void json_key(struct json *j, const char *text, size_t len);
void json_text(struct json *j, const char *key, const char *text, size_t len);
void json_string(struct json *j, const char *key, const char *text);
void json_u64(struct json *j, const char *key, uint64_t n);
void json_i64(struct json *j, const char *key, int64_t n);
void json_bool(struct json *j, const char *key, bool on);
void json_null(struct json *j, const char *key);
/* Writes text that is JSON already. */
void json_raw(struct json *j, const char *key, const char *text, size_t len);
void json_printf(struct json *j, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The next item, or the end of the object or array, begins on a line of its own after `indent` blanks. */
void json_line(struct json *j, unsigned indent);

#endif
