// SPDX-License-Identifier: Apache-2.0
#include "import/json.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "base/buf.h"
#include "base/gzip.h"
#include "import/json_mend.h"

#define PIECE_BYTES (64u << 10) /* that are read at once */
#define DEPTH_MAX   64
#define ARGS_MAX    256
#define CAPTURE_MAX (1u << 20) /* bytes that are kept of a member, or of all arguments of an event */

/* A text in `texts`, which may move while it grows. */
struct place {
	size_t off, len;
	bool is;
};

struct place_arg {
	struct place key, value;
	bool string;
};

/* The members of an event that are not arguments. */
enum field { F_PH, F_NAME, F_CAT, F_ID, F_PID, F_TID, F_TS, F_DUR, FIELDS };
static const char *const fields[FIELDS] = {"ph", "name", "cat", "id", "pid", "tid", "ts", "dur"};

struct reader {
	const struct json_hooks *hooks;
	void *ctx;
	struct json_end *end;
	int err;	      /* of a hook, or -ENOMEM */
	unsigned depth, list; /* list: depth of the elements of the list of events; 0: not in it */
	bool args;	      /* in the arguments of an event */
	bool key_is_list, key_is_args;
	/* The value that is being kept. */
	struct place_arg now;
	unsigned capture; /* depth at which it began; 0: none */
	bool comma;	  /* the next item of the captured value needs one */
	bool full;
	struct buf texts;
	struct place field[FIELDS];
	struct place_arg arg[ARGS_MAX];
	size_t nargs;
};

/* ---- texts */

bool json_is(struct json_text t, const char *text)
{
	return t.at && t.len == strlen(text) && !memcmp(t.at, text, t.len);
}

bool json_begins(struct json_text t, const char *text)
{
	const size_t len = strlen(text);

	return t.at && t.len >= len && !memcmp(t.at, text, len);
}

bool json_u64_of(struct json_text t, uint64_t *n)
{
	uint64_t v = 0;
	size_t i;

	if (!t.at || !t.len || !isdigit((unsigned char)*t.at))
		return false;
	for (i = 0; i < t.len && isdigit((unsigned char)t.at[i]); i++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(t.at[i] - '0'), &v))
			return false;
	*n = v;
	return true;
}

bool json_i64_of(struct json_text t, int64_t *n)
{
	const bool negative = t.at && t.len && *t.at == '-';
	const struct json_text digits = {negative ? t.at + 1 : t.at, t.len - negative};
	uint64_t v;

	if (!json_u64_of(digits, &v) || v > INT64_MAX)
		return false;
	*n = negative ? -(int64_t)v : (int64_t)v;
	return true;
}

/* A number with an exponent. */
static bool ns_of_double(struct json_text t, uint64_t *ns)
{
	char text[JSON_WORD_MAX];
	double v;

	snprintf(text, sizeof(text), "%.*s", (int)(t.len < sizeof(text) ? t.len : sizeof(text) - 1), t.at);
	v = strtod(text, NULL) * 1000;
	if (!(v >= 0 && v < 0x1p62))
		return false;
	*ns = (uint64_t)(v + 0.5);
	return true;
}

bool json_ns_of(struct json_text t, uint64_t *ns)
{
	uint64_t us;
	unsigned digits = 0;
	size_t i;

	if (t.at && memchr(t.at, 'e', t.len))
		return ns_of_double(t, ns);
	if (t.at && memchr(t.at, 'E', t.len))
		return ns_of_double(t, ns);
	if (!json_u64_of(t, &us) || us > (1ull << 62) / 1000)
		return false;
	*ns = us;
	for (i = 0; i < t.len && t.at[i] != '.'; i++)
		;
	for (; digits < 3; digits++)
		*ns = *ns * 10 + (++i < t.len && isdigit((unsigned char)t.at[i]) ? (uint64_t)(t.at[i] - '0') : 0);
	return true;
}

struct json_text json_arg_of(const struct json_event *e, const char *key)
{
	size_t i;

	for (i = 0; i < e->nargs; i++)
		if (json_is(e->args[i].key, key))
			return e->args[i].value;
	return (struct json_text){0};
}

/* ---- what is kept */

static struct json_text text_at(const struct reader *r, struct place p)
{
	return p.is ? (struct json_text){r->texts.data + p.off, p.len} : (struct json_text){0};
}

/* The byte behind a text is 0, so that even an empty text has an address. */
static int keep(struct reader *r, struct place *p, const void *text, size_t len)
{
	if (r->texts.len + len > CAPTURE_MAX) {
		r->full = true;
		len = 0;
	}
	*p = (struct place){r->texts.len, len, true};
	if ((len && buf_put(&r->texts, text, len)) || buf_put(&r->texts, "", 1))
		r->err = -ENOMEM;
	return !r->err;
}

static struct json_arg arg_at(const struct reader *r, const struct place_arg *a)
{
	return (struct json_arg){text_at(r, a->key), text_at(r, a->value), a->string};
}

static void clear(struct reader *r)
{
	memset(r->field, 0, sizeof(r->field));
	r->nargs = 0;
	r->texts.len = 0;
	r->full = false;
}

/* A value is complete: of a member of the outermost object, of an event, or of its arguments. */
static int complete(struct reader *r)
{
	const struct json_text key = text_at(r, r->now.key);
	struct json_arg member;
	size_t i;

	if (r->args) {
		if (r->nargs < ARGS_MAX && !r->full)
			r->arg[r->nargs++] = r->now;
	} else if (r->list) {
		for (i = 0; i < FIELDS; i++)
			if (json_is(key, fields[i]))
				r->field[i] = r->now.value;
	} else {
		member = arg_at(r, &r->now);
		r->err = r->hooks->member && !r->full ? r->hooks->member(r->ctx, &member) : 0;
		clear(r);
	}
	r->now = (struct place_arg){0};
	return !r->err;
}

static int event_ends(struct reader *r)
{
	struct json_arg args[ARGS_MAX];
	struct json_event e = {
		.name = text_at(r, r->field[F_NAME]),
		.cat = text_at(r, r->field[F_CAT]),
		.id = text_at(r, r->field[F_ID]),
		.pid = text_at(r, r->field[F_PID]),
		.tid = text_at(r, r->field[F_TID]),
		.args = args,
		.nargs = r->nargs,
	};
	const struct json_text ph = text_at(r, r->field[F_PH]);
	size_t i;

	e.ph = ph.len ? *ph.at : 0;
	e.timed = json_ns_of(text_at(r, r->field[F_TS]), &e.ts_ns);
	json_ns_of(text_at(r, r->field[F_DUR]), &e.dur_ns);
	for (i = 0; i < r->nargs; i++)
		args[i] = arg_at(r, &r->arg[i]);
	r->end->events++;
	r->err = r->hooks->event(r->ctx, &e);
	clear(r);
	return !r->err;
}

/* ---- the captured value */

static int add(struct reader *r, const void *text, size_t len)
{
	struct place *p = &r->now.value;

	if (r->full || r->texts.len + len > CAPTURE_MAX) {
		r->full = true;
		return 1;
	}
	if (buf_put(&r->texts, text, len))
		r->err = -ENOMEM;
	p->len += len;
	return !r->err;
}

static int add_comma(struct reader *r)
{
	const bool comma = r->comma;

	r->comma = false;
	return comma ? add(r, ",", 1) : 1;
}

/* Quotes, backslashes and control characters have their escapes again. */
static int add_quoted(struct reader *r, const unsigned char *text, size_t len)
{
	char code[8];
	size_t i, start = 0;

	add(r, "\"", 1);
	for (i = 0; i < len; i++) {
		if (text[i] != '"' && text[i] != '\\' && text[i] >= ' ')
			continue;
		add(r, text + start, i - start);
		start = i + 1;
		snprintf(code, sizeof(code), text[i] < ' ' ? "\\u%04x" : "\\%c", text[i]);
		add(r, code, strlen(code));
	}
	add(r, text + start, len - start);
	return add(r, "\"", 1);
}

static int captured(struct reader *r)
{
	r->comma = true;
	return !r->err;
}

/* ---- what the library calls */

/* A value that is neither an array nor an object. */
static int on_scalar(struct reader *r, const void *text, size_t len, bool string)
{
	if (r->capture) {
		add_comma(r);
		if (string)
			add_quoted(r, text, len);
		else
			add(r, text, len);
		return captured(r);
	}
	if (!r->now.key.is) /* an element of a list of events that is no event */
		return 1;
	r->now.string = string;
	r->key_is_list = r->key_is_args = false;
	return keep(r, &r->now.value, text, len) && complete(r);
}

static int on_null(void *ctx)
{
	return on_scalar(ctx, "null", 4, false);
}

static int on_boolean(void *ctx, int on)
{
	return on_scalar(ctx, on ? "true" : "false", on ? 4 : 5, false);
}

static int on_number(void *ctx, const char *text, size_t len)
{
	return on_scalar(ctx, text, len, false);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
	return on_scalar(ctx, text, len, true);
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
	const struct json_text key = {(const char *)text, len};
	struct reader *r = ctx;

	if (r->capture) {
		add_comma(r);
		add_quoted(r, text, len);
		return add(r, ":", 1);
	}
	r->key_is_list = r->depth == 1 && json_is(key, "traceEvents");
	r->key_is_args = r->list && !r->args && json_is(key, "args");
	r->now = (struct place_arg){0};
	return keep(r, &r->now.key, text, len);
}

static int deeper(struct reader *r)
{
	r->depth++;
	return r->depth <= DEPTH_MAX;
}

/* An array or an object begins. `open` is its bracket. */
static int begins(struct reader *r, const char *open)
{
	const bool object = *open == '{';

	if (r->capture) {
		add_comma(r);
		add(r, open, 1);
		return deeper(r);
	}
	if (!object && (r->key_is_list || !r->depth)) {
		r->list = r->depth + 2;
		r->key_is_list = false;
		clear(r);
		r->now = (struct place_arg){0};
		return deeper(r);
	}
	if (object && r->key_is_args) {
		r->args = true;
		r->key_is_args = false;
		return deeper(r);
	}
	if (object && (!r->depth || (r->list && r->depth + 1 == r->list)))
		return deeper(r);
	r->capture = r->depth + 1;
	r->now.value = (struct place){r->texts.len, 0, true};
	add(r, open, 1);
	return deeper(r);
}

static int ends(struct reader *r, const char *close)
{
	r->depth--;
	if (r->capture) {
		r->comma = false;
		add(r, close, 1);
		if (r->depth + 1 > r->capture)
			return captured(r);
		r->capture = 0;
		r->comma = false;
		buf_put(&r->texts, "", 1);
		if (r->now.key.is)
			return complete(r);
		clear(r);
		return !r->err;
	}
	if (r->args) {
		r->args = false;
		return 1;
	}
	if (r->list && r->depth + 1 == r->list)
		return event_ends(r);
	if (r->list && r->depth + 2 == r->list)
		r->list = 0;
	return 1;
}

static int on_object(void *ctx)
{
	return begins(ctx, "{");
}

static int on_object_end(void *ctx)
{
	return ends(ctx, "}");
}

static int on_array(void *ctx)
{
	return begins(ctx, "[");
}

static int on_array_end(void *ctx)
{
	return ends(ctx, "]");
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_object,
	.yajl_map_key = on_key,
	.yajl_end_map = on_object_end,
	.yajl_start_array = on_array,
	.yajl_end_array = on_array_end,
};

/* ---- the file */

/* The library adds text of the file to its message, in further lines, which are left out. */
static void say_bad(const struct reader *r, yajl_handle y, const char *text, size_t len)
{
	unsigned char *why = yajl_get_error(y, 0, (const unsigned char *)text, len);
	struct json_end *end = r->end;

	if (r->depth > DEPTH_MAX)
		snprintf(end->why, sizeof(end->why), "its values are nested too deeply near byte %llu",
			 (unsigned long long)end->bytes);
	else
		snprintf(end->why, sizeof(end->why), "it is no JSON near byte %llu (%.*s)",
			 (unsigned long long)end->bytes, why ? (int)strcspn((const char *)why, "\n") : 0,
			 why ? (const char *)why : "");
	if (why)
		yajl_free_error(y, why);
}

/* Returns false at the end of what can be read. */
static bool feed(struct reader *r, yajl_handle y, struct json_mend *mend, const unsigned char *from, size_t n,
		 char *room)
{
	const size_t len = json_mend(mend, from, n, room);

	r->end->bytes += n;
	if (yajl_parse(y, (const unsigned char *)room, len) == yajl_status_ok)
		return true;
	if (!r->err)
		say_bad(r, y, room, len);
	return false;
}

static void json_read_all(struct reader *r, yajl_handle y, gzFile z, unsigned char *piece, char *room)
{
	struct json_mend mend = {0};
	int n = gzread(z, piece, PIECE_BYTES), code;
	const char *why;

	if (n >= 3 && !memcmp(piece, "\xef\xbb\xbf", 3)) /* a byte order mark */
		memset(piece, ' ', 3);
	for (; n > 0; n = gzread(z, piece, PIECE_BYTES))
		if (!feed(r, y, &mend, piece, (size_t)n, room))
			return;
	why = gzerror(z, &code);
	if (n < 0)
		snprintf(r->end->why, sizeof(r->end->why), "it cannot be read beyond byte %llu: %s",
			 (unsigned long long)r->end->bytes, code == Z_ERRNO ? strerror(errno) : why);
	else if (r->depth)
		snprintf(r->end->why, sizeof(r->end->why), "it ends in the middle, after %llu events",
			 (unsigned long long)r->end->events);
}

static int json_open(struct reader *r, int fd, struct err *e)
{
	gzFile z = gzip_reader(fd);
	yajl_handle y = yajl_alloc(&callbacks, NULL, r);
	unsigned char *piece = malloc(PIECE_BYTES);
	char *room = malloc(json_mend_room(PIECE_BYTES));
	bool ready = z && y && piece && room;

	if (ready) {
		gzbuffer(z, PIECE_BYTES);
		yajl_config(y, yajl_dont_validate_strings, 1);
		yajl_config(y, yajl_allow_multiple_values, 1); /* what follows the end is looked at, too */
		json_read_all(r, y, z, piece, room);
	}
	free(room);
	free(piece);
	if (y)
		yajl_free(y);
	if (z)
		gzclose_r(z);
	return ready ? 0 : err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
}

int json_each(int fd, const struct json_hooks *hooks, void *ctx, struct json_end *end, struct err *e)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err;

	*end = (struct json_end){0};
	if (!r)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	r->hooks = hooks;
	r->ctx = ctx;
	r->end = end;
	err = json_open(r, fd, e);
	err = err ? err : r->err;
	buf_fini(&r->texts);
	free(r);
	return err;
}
