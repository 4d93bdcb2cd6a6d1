// SPDX-License-Identifier: Apache-2.0
/*
 * profile.proto of pprof (github.com/google/pprof/proto). It has seven small messages of numbers and references to one
 * table of strings, so writing them by hand takes less code than using a library.
 */
#include "view/profile/profile.h"

#include <errno.h>
#include <string.h>

#include "base/fmt.h"

#define TEXT_BYTES 4096

/* Numbers of fields in profile.proto. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRING };
enum { PROFILE_TIME_NS = 9, PROFILE_DURATION_NS, PROFILE_PERIOD_TYPE, PROFILE_PERIOD, PROFILE_COMMENT };
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_FILES, MAPPING_HAS_LINES };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILE = 4 };
enum { WIRE_NUMBER = 0, WIRE_BYTES = 2 };

static int put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	} while (v);
	bytes[n - 1] &= 0x7f;
	return buf_put(b, bytes, n);
}

static int profile_put_number(struct buf *b, unsigned field, uint64_t v)
{
	return v ? put_varint(b, field << 3 | WIRE_NUMBER) || put_varint(b, v) ? -ENOMEM : 0 : 0;
}

static int put_bytes(struct buf *b, unsigned field, const void *data, size_t len)
{
	return put_varint(b, field << 3 | WIRE_BYTES) || put_varint(b, len) || buf_put(b, data, len) ? -ENOMEM : 0;
}

/* Adds the content of `from` as a field, and empties it. */
static int put_message(struct buf *b, unsigned field, struct buf *from)
{
	int err = put_bytes(b, field, from->data, from->len);

	from->len = 0;
	return err;
}

/* Sets *index to the index of a text, which is made safe to show. */
static int string(struct profile *p, const char *text, size_t len, uint64_t *index)
{
	char safe[TEXT_BYTES];
	uint64_t *known;

	len = fmt_utf8(safe, sizeof(safe), text, len);
	len = len < sizeof(safe) ? len : sizeof(safe) - 1;
	known = hash_put(&p->strings, hash_text(HASH_SEED, safe, len), hash_text(len + 1, safe, len));
	if (!known)
		return -ENOMEM;
	if (!*known) {
		*known = ++p->nstrings;
		if (put_bytes(&p->profile, PROFILE_STRING, safe, len))
			return -ENOMEM;
	}
	*index = *known - 1;
	return 0;
}

static int words(struct profile *p, const char *text, uint64_t *index)
{
	return string(p, text, strlen(text), index);
}

static int function(struct profile *p, const struct view_stack_frame *f, uint64_t *id)
{
	uint64_t name, file = 0, *known;
	int err = string(p, f->name, f->name_len, &name);

	if (!err && f->file)
		err = string(p, f->file, f->file_len, &file);
	known = err ? NULL : hash_put(&p->functions, name, file);
	if (!known)
		return -ENOMEM;
	*id = *known ? *known : p->functions.len;
	if (*known)
		return 0;
	*known = *id;
	if (profile_put_number(&p->message, FUNCTION_ID, *id) || profile_put_number(&p->message, FUNCTION_NAME, name) ||
	    profile_put_number(&p->message, FUNCTION_FILE, file))
		return -ENOMEM;
	return put_message(&p->profile, PROFILE_FUNCTION, &p->message);
}

int profile_frame(void *ctx, const struct view_stack_frame *f)
{
	struct profile *p = ctx;
	uint64_t func, *id;
	int err = function(p, f, &func);

	id = err ? NULL : hash_put(&p->locations, func, f->line);
	if (!id)
		return -ENOMEM;
	if (!*id) {
		*id = p->locations.len;
		if (profile_put_number(&p->part, LINE_FUNCTION, func) ||
		    profile_put_number(&p->part, LINE_LINE, f->line) ||
		    profile_put_number(&p->message, LOCATION_ID, *id) ||
		    profile_put_number(&p->message, LOCATION_MAPPING, 1) ||
		    put_message(&p->message, LOCATION_LINE, &p->part) ||
		    put_message(&p->profile, PROFILE_LOCATION, &p->message))
			return -ENOMEM;
	}
	if (p->depth < PROFILE_FRAMES_MAX)
		p->at[p->depth++] = *id;
	return 0;
}

int profile_label(struct profile *p, const char *key, const char *text, uint64_t n)
{
	uint64_t k, t = 0;

	if (words(p, key, &k) || (text && words(p, text, &t)) || profile_put_number(&p->part, LABEL_KEY, k) ||
	    profile_put_number(&p->part, LABEL_TEXT, t) || profile_put_number(&p->part, LABEL_NUMBER, n))
		return -ENOMEM;
	return put_message(&p->message, SAMPLE_LABEL, &p->part);
}

int profile_stack(struct profile *p, const uint64_t *values, unsigned n)
{
	unsigned i;
	int err = 0;

	while (!err && p->depth) /* pprof wants the innermost first */
		err = put_varint(&p->part, p->at[--p->depth]);
	if (err || put_message(&p->message, SAMPLE_LOCATIONS, &p->part))
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (put_varint(&p->part, values[i]))
			return -ENOMEM;
	return put_message(&p->message, SAMPLE_VALUES, &p->part);
}

int profile_end_sample(struct profile *p)
{
	return put_message(&p->profile, PROFILE_SAMPLE, &p->message);
}

static int put_type(struct profile *p, unsigned field, const struct profile_type *type)
{
	uint64_t t, u;

	if (words(p, type->name, &t) || words(p, type->unit, &u) || profile_put_number(&p->message, TYPE_TYPE, t) ||
	    profile_put_number(&p->message, TYPE_UNIT, u))
		return -ENOMEM;
	return put_message(&p->profile, field, &p->message);
}

/* One mapping says that the profile has names, so pprof does not search for them in files. */
int profile_head(struct profile *p, const struct profile_head *h)
{
	uint64_t none, program;

	if (words(p, "", &none) || put_type(p, PROFILE_SAMPLE_TYPE, &h->count) ||
	    put_type(p, PROFILE_SAMPLE_TYPE, &h->time) || put_type(p, PROFILE_PERIOD_TYPE, &h->time) ||
	    words(p, h->program, &program) || profile_put_number(&p->profile, PROFILE_TIME_NS, h->start_unix_ns) ||
	    profile_put_number(&p->profile, PROFILE_DURATION_NS, h->duration_ns) ||
	    profile_put_number(&p->profile, PROFILE_PERIOD, h->period_ns) ||
	    profile_put_number(&p->message, MAPPING_ID, 1) || profile_put_number(&p->message, MAPPING_FILE, program) ||
	    profile_put_number(&p->message, MAPPING_HAS_FUNCTIONS, 1) ||
	    profile_put_number(&p->message, MAPPING_HAS_FILES, 1) ||
	    profile_put_number(&p->message, MAPPING_HAS_LINES, 1))
		return -ENOMEM;
	return put_message(&p->profile, PROFILE_MAPPING, &p->message);
}

int profile_comment(struct profile *p, const char *text)
{
	uint64_t index;

	return words(p, text, &index) || profile_put_number(&p->profile, PROFILE_COMMENT, index) ? -ENOMEM : 0;
}

void profile_fini(struct profile *p)
{
	buf_fini(&p->profile);
	buf_fini(&p->message);
	buf_fini(&p->part);
	hash_fini(&p->strings);
	hash_fini(&p->functions);
	hash_fini(&p->locations);
}
