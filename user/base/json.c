// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"

static uint64_t bit(const struct json *j)
{
	return 1ull << (j->depth & 63);
}

static void break_line(struct json *j)
{
	if (j->line)
		out_printf(j->out, "\n%*s", (int)j->line - 1, "");
	j->line = 0;
}

/* Writes all that stands before the value. */
static void base_json_begin(struct json *j, const char *key)
{
	if (j->filled & bit(j) && !j->keyed)
		out_puts(j->out, j->line || j->tight ? "," : ", ");
	j->filled |= bit(j);
	j->keyed = false;
	break_line(j);
	if (!key)
		return;
	out_puts(j->out, "\"");
	out_puts(j->out, key);
	out_puts(j->out, j->tight ? "\":" : "\": ");
}

static void put_string(struct json *j, const char *text, size_t len)
{
	out_puts(j->out, "\"");
	out_escaped(j->out, j->exact ? fmt_json_exact : fmt_json, text, len);
	out_puts(j->out, "\"");
}

void json_key(struct json *j, const char *text, size_t len)
{
	base_json_begin(j, NULL);
	put_string(j, text, len);
	out_puts(j->out, j->tight ? ":" : ": ");
	j->keyed = true;
}

static void open_level(struct json *j, const char *key, bool object)
{
	base_json_begin(j, key);
	out_puts(j->out, object ? "{" : "[");
	j->depth++;
	j->filled &= ~bit(j);
	j->objects = object ? j->objects | bit(j) : j->objects & ~bit(j);
}

void json_object(struct json *j, const char *key)
{
	open_level(j, key, true);
}

void json_array(struct json *j, const char *key)
{
	open_level(j, key, false);
}

void json_end(struct json *j)
{
	break_line(j);
	out_puts(j->out, j->objects & bit(j) ? "}" : "]");
	j->depth--;
}

void json_text(struct json *j, const char *key, const char *text, size_t len)
{
	base_json_begin(j, key);
	put_string(j, text, len);
}

void json_string(struct json *j, const char *key, const char *text)
{
	json_text(j, key, text, strlen(text));
}

void json_u64(struct json *j, const char *key, uint64_t n)
{
	json_printf(j, key, "%" PRIu64, n);
}

void json_i64(struct json *j, const char *key, int64_t n)
{
	json_printf(j, key, "%" PRId64, n);
}

void json_bool(struct json *j, const char *key, bool on)
{
	json_raw(j, key, on ? "true" : "false", on ? 4 : 5);
}

void json_null(struct json *j, const char *key)
{
	json_raw(j, key, "null", 4);
}

void json_raw(struct json *j, const char *key, const char *text, size_t len)
{
	base_json_begin(j, key);
	out_write(j->out, text, len);
}

void json_printf(struct json *j, const char *key, const char *fmt, ...)
{
	char text[512]; /* a double has at most 309 digits before its point */
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	json_raw(j, key, text, n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

void json_line(struct json *j, unsigned indent)
{
	j->line = indent + 1;
}
