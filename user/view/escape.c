// SPDX-License-Identifier: Apache-2.0
#include "view/priv.h"

#include "base/fmt.h"

#include <string.h>

void view_put_safe(struct out *o, const char *text, size_t len)
{
	out_escaped(o, fmt_safe, text, len);
}

void view_put_utf8(struct out *o, const char *text, size_t len)
{
	out_escaped(o, fmt_utf8, text, len);
}

void view_put_json_exact(struct out *o, const char *text, size_t len)
{
	out_puts(o, "\"");
	out_escaped(o, fmt_json_exact, text, len);
	out_puts(o, "\"");
}

bool view_next_line(const char **rest, size_t *left, const char **line, size_t *len)
{
	const char *eol = *left ? memchr(*rest, '\n', *left) : NULL;

	if (!*left)
		return false;
	*line = *rest;
	*len = eol ? (size_t)(eol - *rest) : *left;
	*rest += *len + !!eol;
	*left -= *len + !!eol;
	return true;
}

void view_put_csv(struct out *o, const char *text, size_t len)
{
	out_escaped(o, fmt_csv, text, len);
}

int view_name_cmp(const char *a, size_t alen, const char *b, size_t blen)
{
	size_t n = alen < blen ? alen : blen;
	int order = n ? memcmp(a, b, n) : 0; /* an empty name may be NULL */

	if (order)
		return order;
	return alen < blen ? -1 : alen > blen;
}

/* ---- the lists of JSON that mxbpf itself writes; other JSON is refused */

#define DEPTH_MAX 4 /* list of tensors, lists of tensors, dimensions */

static const char *skip_value(const char *p, const char *end, bool words, int depth);

/* Returns the end of the list at p, or NULL if it is not a list. */
static const char *skip_list(const char *p, const char *end, bool words, int depth)
{
	if (++p < end && *p == ']')
		return p + 1;
	for (; p; p++) {
		p = skip_value(p, end, words, depth);
		if (!p || p == end || (*p != ',' && *p != ']'))
			return NULL;
		if (*p == ']')
			return p + 1;
	}
	return NULL;
}

static const char *skip_word(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p < ' ' || *p > '~' || *p == '\\')
			return NULL;
	return p < end ? p + 1 : NULL;
}

static const char *skip_number(const char *p, const char *end)
{
	const char *digits;

	p += *p == '-';
	for (digits = p; p < end && *p >= '0' && *p <= '9'; p++)
		;
	return p == digits || (*digits == '0' && p > digits + 1) ? NULL : p;
}

static const char *skip_value(const char *p, const char *end, bool words, int depth)
{
	if (p == end)
		return NULL;
	if (*p == '[')
		return depth < DEPTH_MAX ? skip_list(p, end, words, depth + 1) : NULL;
	if (*p == '"')
		return words ? skip_word(p, end) : NULL;
	return skip_number(p, end);
}

bool view_is_list(const char *text, size_t len, bool words)
{
	return len && *text == '[' && skip_value(text, text + len, words, 0) == text + len;
}
