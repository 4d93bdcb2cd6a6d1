// SPDX-License-Identifier: Apache-2.0
#include "view/timeline/from_json.h"

#include <ctype.h>
#include <stdlib.h>

#define NESTING_MAX 16 /* of args */

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

static bool part_is(struct part t, const char *text)
{
	return part_len(t) == strlen(text) && !memcmp(t.at, text, part_len(t));
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

/* Nanoseconds of a number of microseconds, which has at most three digits behind the point. */
static uint64_t ns_of(struct part t)
{
	uint64_t v = u64_of(t);
	unsigned i;

	while (t.at < t.end && isdigit((unsigned char)*t.at))
		t.at++;
	skip_char(&t, '.');
	for (i = 0; i < 3; i++)
		v = v * 10 + (t.at < t.end && isdigit((unsigned char)*t.at) ? (uint64_t)(*t.at++ - '0') : 0);
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

static void put_value(struct from_json *f, struct part value, unsigned depth);

static void put_number(struct from_json *f, struct part value)
{
	struct proto *m = &f->to->args;
	const bool negative = *value.at == '-';
	const char *c = value.at + negative;

	while (c < value.end && isdigit((unsigned char)*c))
		c++;
	if (c < value.end) {
		proto_double(m, PACKETS_DOUBLE, strtod(value.at, NULL)); /* a comma or a bracket is behind it */
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
	put_value(f, value, depth);
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
			put_value(f, value, depth);
			proto_end(m, begun);
		}
		if (!skip_char(&items, ','))
			break;
	}
}

static void put_value(struct from_json *f, struct part value, unsigned depth)
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
		put_number(f, value);
	}
}

void from_json_args(struct from_json *f, const char *text, size_t len)
{
	if (len) /* an empty text may be NULL */
		put_members(f, PACKETS_ARG, (struct part){text, text + len}, 0);
}

/* ---- events */

struct event {
	struct part ph, pid, tid, ts, dur, cat, name, id, scope, enclosing, args;
};

/* The members of an event that have a meaning, in the usual order. */
static const struct {
	const char *key;
	size_t len, off;
} members[] = {
#define MEMBER(key, field)                                                                                             \
	{                                                                                                              \
		key, sizeof(key) - 1, offsetof(struct event, field)                                                    \
	}
	MEMBER("ph", ph),   MEMBER("pid", pid), MEMBER("tid", tid),	 MEMBER("ts", ts),
	MEMBER("dur", dur), MEMBER("cat", cat), MEMBER("name", name),	 MEMBER("args", args),
	MEMBER("id", id),   MEMBER("s", scope), MEMBER("bp", enclosing),
};

static struct event event_of(struct part line)
{
	const size_t n = sizeof(members) / sizeof(members[0]);
	struct event e;
	struct part key, value;
	size_t i;

	memset(&e, 0, sizeof(e));
	skip_char(&line, '{');
	while (take_member(&line, &key, &value)) {
		for (i = 0;
		     i < n && (part_len(key) != members[i].len || memcmp(key.at, members[i].key, members[i].len)); i++)
			;
		if (i < n)
			*(struct part *)((char *)&e + members[i].off) = value;
	}
	return e;
}

static void settle_track(struct from_json *f)
{
	if (!f->track.used)
		return;
	f->track.used = false;
	f->track.about.name = f->track.about.name_len ? f->track.name.data : NULL;
	f->track.about.label = f->track.about.label_len ? f->track.label.data : NULL;
	if (f->track.thread)
		packets_about_thread(f->to, f->track.pid, f->track.tid, &f->track.about);
	else
		packets_about_process(f->to, f->track.pid, &f->track.about);
}

static void settle_end(struct from_json *f)
{
	if (f->end.used)
		packets_end(f->to, f->end.track, f->end.ts_ns);
	f->end.used = false;
}

static size_t keep_text(struct from_json *f, struct buf *b, struct part value)
{
	const struct part inside = inside_of(value);
	size_t len;
	const char *text = from_json_text(f, inside.at, part_len(inside), &len);

	b->len = 0;
	f->failed |= buf_put(b, text, len) != 0;
	return b->len;
}

static void on_metadata(struct from_json *f, const struct event *e)
{
	const struct part what = inside_of(e->name);
	const bool thread = part_len(what) > 7 && !memcmp(what.at, "thread_", 7);
	const uint32_t pid = (uint32_t)u64_of(e->pid), tid = thread ? (uint32_t)u64_of(e->tid) : 0;
	struct part args = e->args, key, value;

	skip_char(&args, '{');
	if (!take_member(&args, &key, &value))
		return;
	if (!f->track.used || f->track.thread != thread || f->track.pid != pid || f->track.tid != tid) {
		settle_track(f);
		f->track.used = true;
		f->track.thread = thread;
		f->track.pid = pid;
		f->track.tid = tid;
		f->track.about = (struct packets_about){0};
	}
	if (part_is(key, "name"))
		f->track.about.name_len = keep_text(f, &f->track.name, value);
	else if (part_is(key, "labels"))
		f->track.about.label_len = keep_text(f, &f->track.label, value);
	else if (part_is(key, "sort_index")) {
		f->track.about.placed = true;
		f->track.about.place = strtoll(value.at, NULL, 10);
	}
}

/* Each member of its args is a track: "memory cpu(0) bytes". */
static void on_counter(struct from_json *f, const struct event *e)
{
	const struct part inside = inside_of(e->name);
	struct part args = e->args, key, value;
	struct packets_event event = {.type = PACKETS_COUNTER};
	struct buf name = {0};
	size_t len;
	double v;

	skip_char(&args, '{');
	while (take_member(&args, &key, &value)) {
		const char *text = from_json_text(f, inside.at, part_len(inside), &len);

		name.len = 0;
		f->failed |= buf_put(&name, text, len) || buf_put(&name, " ", 1);
		text = from_json_text(f, key.at, part_len(key), &len);
		f->failed |= buf_put(&name, text, len) != 0;
		if (f->failed)
			break;
		v = strtod(value.at, NULL);
		event.value = &v;
		packets_event(
			f->to,
			packets_counter(f->to, (uint32_t)u64_of(e->pid), name.data, name.len, part_is(key, "bytes")),
			ns_of(e->ts), &event);
	}
	buf_fini(&name);
}

static unsigned scope_of(struct part value)
{
	const struct part inside = inside_of(value);
	static const char scopes[] = " gpt"; /* as in the format: 1 is global */
	const char *at = part_len(inside) ? strchr(scopes, *inside.at) : NULL;

	return at && *at ? (unsigned)(at - scopes) : 3;
}

#define STARTS_MAX (1u << 16)

/*
 * Where a slice ends. The reader sorts packets by time, and those with the same time by their place in the file. A
 * slice that ends where one before it in the file starts would end that one, so it ends 1 ns earlier.
 */
static uint64_t end_of(struct from_json *f, uint64_t track, uint64_t start_ns, uint64_t dur_ns)
{
	const bool touches = dur_ns && hash_get(&f->starts, track, start_ns + dur_ns);

	if (f->starts.len >= STARTS_MAX)
		hash_clear(&f->starts);
	f->failed |= !hash_put(&f->starts, track, start_ns);
	return start_ns + dur_ns - touches;
}

static void on_other(struct from_json *f, const struct event *e, char ph)
{
	const uint64_t track = packets_thread(f->to, (uint32_t)u64_of(e->pid), (uint32_t)u64_of(e->tid));
	const uint64_t ts_ns = ns_of(e->ts);
	struct packets_event event = {.letter = ph, .enclosing = e->enclosing.at != NULL, .id = u64_of(e->id)};
	struct part args = e->args;

	event.type = ph == 'X' ? PACKETS_BEGIN : PACKETS_LEGACY;
	event.scope = ph == 'i' ? scope_of(e->scope) : 0;
	if (e->cat.at)
		event.category = number_of(f, PACKETS_CATEGORY, inside_of(e->cat));
	if (e->name.at)
		event.name = number_of(f, PACKETS_NAME, inside_of(e->name));
	skip_char(&args, '{');
	from_json_args(f, args.at, part_len(args));
	packets_event(f->to, track, ts_ns, &event);
	if (ph != 'X')
		return;
	f->end.used = true;
	f->end.track = track;
	f->end.ts_ns = end_of(f, track, ts_ns, ns_of(e->dur));
}

static void on_event(struct from_json *f, struct part line)
{
	const struct event e = event_of(line);
	const struct part ph = inside_of(e.ph);
	const char c = part_len(ph) ? *ph.at : '\0';

	if (c != 's' && c != 'f')
		settle_end(f);
	if (c != 'M')
		settle_track(f);
	if (c == 'M')
		on_metadata(f, &e);
	else if (c == 'C')
		on_counter(f, &e);
	else if (c)
		on_other(f, &e, c);
}

/* ---- lines */

static void on_line(struct from_json *f, struct part line)
{
	static const char about[] = "\"otherData\":", last[] = "\"traceEvents\":[";
	const size_t len = part_len(line);

	if (f->events && len && *line.at == '{')
		on_event(f, line);
	if (f->events)
		return;
	f->events = len >= sizeof(last) - 1 && !memcmp(line.end - (sizeof(last) - 1), last, sizeof(last) - 1);
	if (len < sizeof(about) || memcmp(line.at, about, sizeof(about) - 1))
		return;
	line.at += sizeof(about) - 1;
	line = take_value(&line);
	packets_metadata(f->to, "mxbpf", line.at, part_len(line));
}

void from_json_take(void *ctx, const char *data, size_t n)
{
	struct from_json *f = ctx;
	struct part rest = {data, data + n}, line;

	while (rest.at < rest.end && !f->failed) {
		const char *cut = memchr(rest.at, '\n', part_len(rest));

		line = (struct part){rest.at, cut ? cut : rest.end};
		rest.at = cut ? cut + 1 : rest.end;
		if (f->line.len || !cut) {
			f->failed |= buf_put(&f->line, line.at, part_len(line)) != 0;
			line = (struct part){f->line.data, f->line.data + f->line.len};
		}
		if (!cut || f->failed)
			break;
		on_line(f, line);
		f->line.len = 0;
	}
}

void from_json_settle(struct from_json *f)
{
	const struct part line = {f->line.data, f->line.data + f->line.len};

	if (part_len(line))
		on_line(f, line);
	f->line.len = 0;
	settle_end(f);
	settle_track(f);
}

void from_json_fini(struct from_json *f)
{
	buf_fini(&f->line);
	hash_fini(&f->starts);
	buf_fini(&f->text);
	buf_fini(&f->track.name);
	buf_fini(&f->track.label);
}
