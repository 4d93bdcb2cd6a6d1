// SPDX-License-Identifier: Apache-2.0
#include "view/timeline/from_json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define NESTING_MAX  16 /* of args */
#define NUMBER_BYTES 64

/* A part of the text, or what is left of it. */
struct part {
	const char *at, *end;
};

/* ---- reading */

static size_t part_len(struct part t)
{
	return (size_t)(t.end - t.at);
}

static bool skip_char(struct part *t, char c)
{
	if (t->at < t->end && *t->at == c) {
		t->at++;
		return true;
	}
	return false;
}

static void skip_blanks(struct part *t)
{
	while (t->at < t->end && *t->at == ' ')
		t->at++;
}

/* The inside of a string, of which the first quote has been read. */
static struct part take_string(struct part *t)
{
	const char *quote = memchr(t->at, '"', part_len(*t));
	struct part inside = {t->at, quote ? quote : t->end};

	if (memchr(t->at, '\\', part_len(inside)))
		for (inside.end = t->at; inside.end < t->end && *inside.end != '"';)
			inside.end += *inside.end == '\\' && t->end - inside.end > 1 ? 2 : 1;
	t->at = inside.end;
	skip_char(t, '"');
	return inside;
}

/* A whole value, with its quotes or brackets. */
static struct part take_value(struct part *t)
{
	struct part value;
	unsigned depth = 0;

	skip_blanks(t);
	value.at = t->at;
	while (t->at < t->end && (depth || (*t->at != ',' && *t->at != '}' && *t->at != ']'))) {
		const char c = *t->at++;

		if (c == '"')
			take_string(t);
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
	}
	value.end = t->at;
	return value;
}

/* The next member of an object whose bracket has been read, or that has none. */
static bool take_member(struct part *t, struct part *key, struct part *value)
{
	while (skip_char(t, ','))
		;
	skip_blanks(t);
	if (!skip_char(t, '"'))
		return false;
	*key = take_string(t);
	skip_blanks(t);
	skip_char(t, ':');
	*value = take_value(t);
	return true;
}

/* The inside of a value that is a string. Empty if it is none. */
static struct part inside_of(struct part value)
{
	return skip_char(&value, '"') ? take_string(&value) : (struct part){value.end, value.end};
}

static uint64_t u64_of(struct part t)
{
	uint64_t v = 0;

	while (t.at < t.end && isdigit((unsigned char)*t.at))
		v = v * 10 + (uint64_t)(*t.at++ - '0');
	return v;
}

/* ---- texts */

static unsigned hex_of(struct part t)
{
	unsigned v = 0, i;

	for (i = 0; i < 4 && t.at < t.end; i++, t.at++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, tolower((unsigned char)*t.at));

		v = v << 4 | (at && *at ? (unsigned)(at - digits) : 0);
	}
	return v;
}

/* One half of a character that needs two is no character. */
static int put_char(struct buf *b, unsigned c)
{
	char utf8[3];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : 3;

	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	if (n == 1)
		utf8[0] = (char)c;
	else if (n == 2)
		utf8[0] = (char)(0xc0 | c >> 6);
	else
		utf8[0] = (char)(0xe0 | c >> 12);
	if (n == 3)
		utf8[1] = (char)(0x80 | (c >> 6 & 63));
	if (n > 1)
		utf8[n - 1] = (char)(0x80 | (c & 63));
	return buf_put(b, utf8, n);
}

static int put_escape(struct buf *b, struct part *t)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char c = *t->at++, *at = strchr(from, c);
	unsigned code;

	if (c == 'u') {
		code = hex_of(*t);
		t->at += t->end - t->at < 4 ? t->end - t->at : 4;
		return put_char(b, code);
	}
	return buf_put(b, at ? &to[at - from] : &c, 1);
}

const char *from_json_text(struct from_json *f, const char *inside, size_t len, size_t *text_len)
{
	struct part t = {inside, inside + len};
	const char *escape;
	int err = 0;

	*text_len = len;
	if (!memchr(inside, '\\', len))
		return inside;
	f->text.len = 0;
	while (!err && t.at < t.end) {
		escape = memchr(t.at, '\\', part_len(t));
		err = buf_put(&f->text, t.at, (size_t)((escape ? escape : t.end) - t.at));
		t.at = escape ? escape + 1 : t.end;
		if (!err && t.at < t.end)
			err = put_escape(&f->text, &t);
	}
	f->failed |= err != 0;
	*text_len = f->text.len;
	return f->text.data;
}

static uint32_t number_of(struct from_json *f, enum packets_kind kind, struct part inside)
{
	size_t len;
	const char *text = from_json_text(f, inside.at, part_len(inside), &len);

	return packets_number(f->to, kind, text, len);
}

/* ---- args */

static void from_json_put_value(struct from_json *f, struct part value, unsigned depth);

static void from_json_put_number(struct from_json *f, struct part value)
{
	struct proto *m = &f->to->args;
	const bool negative = *value.at == '-';
	const char *c = value.at + negative;
	char text[NUMBER_BYTES];

	while (c < value.end && isdigit((unsigned char)*c))
		c++;
	if (c < value.end) { /* strtod() needs an end, and behind the value there may be anything */
		snprintf(text, sizeof(text), "%.*s", (int)part_len(value), value.at);
		proto_double(m, PACKETS_DOUBLE, strtod(text, NULL));
		return;
	}
	value.at += negative;
	if (negative)
		proto_u64(m, PACKETS_INT, 0 - u64_of(value));
	else
		proto_u64(m, PACKETS_UINT, u64_of(value));
}

static void put_member(struct from_json *f, unsigned field, struct part key, struct part value, unsigned depth)
{
	struct proto *m = &f->to->args;
	size_t begun;

	if (value.at == value.end || *value.at == 'n')
		return;
	begun = proto_begin(m, field);
	proto_u64(m, PACKETS_ARG_KEY, number_of(f, PACKETS_KEY, key));
	from_json_put_value(f, value, depth);
	proto_end(m, begun);
}

static void put_members(struct from_json *f, unsigned field, struct part members, unsigned depth)
{
	struct part key, value;

	while (take_member(&members, &key, &value))
		put_member(f, field, key, value, depth);
}

static void put_items(struct from_json *f, struct part items, unsigned depth)
{
	struct proto *m = &f->to->args;
	struct part value;
	size_t begun;

	while (items.at < items.end && *items.at != ']') {
		value = take_value(&items);
		if (value.at < value.end && *value.at != 'n') {
			begun = proto_begin(m, PACKETS_ITEM);
			from_json_put_value(f, value, depth);
			proto_end(m, begun);
		}
		if (!skip_char(&items, ','))
			break;
	}
}

static void from_json_put_value(struct from_json *f, struct part value, unsigned depth)
{
	struct part inside = value;
	size_t len;
	const char *text;

	inside.at++;
	if (*value.at == '"') {
		inside = inside_of(value);
		text = from_json_text(f, inside.at, part_len(inside), &len);
		packets_value_text(f->to, text, len);
	} else if (*value.at == 't' || *value.at == 'f') {
		proto_u64(&f->to->args, PACKETS_BOOL, *value.at == 't');
	} else if (*value.at == '{' && depth < NESTING_MAX) {
		put_members(f, PACKETS_MEMBER, inside, depth + 1);
	} else if (*value.at == '[' && depth < NESTING_MAX) {
		put_items(f, inside, depth + 1);
	} else {
		from_json_put_number(f, value);
	}
}

void from_json_args(struct from_json *f, const char *text, size_t len)
{
	if (len) /* an empty text may be NULL */
		put_members(f, PACKETS_ARG, (struct part){text, text + len}, 0);
}

void from_json_fini(struct from_json *f)
{
	buf_fini(&f->text);
}
