// SPDX-License-Identifier: Apache-2.0
#include "sink/kineto_text.h"

#define DEPTH_MAX 4 /* lists of lists of dimensions */

static const char *skip_value(const char *p, const char *end, int depth);

/* Behind the list at p; NULL: it is none. */
static const char *skip_list(const char *p, const char *end, int depth)
{
	if (++p < end && *p == ']')
		return p + 1;
	for (; p; p++) {
		while (p < end && *p == ' ')
			p++;
		p = skip_value(p, end, depth);
		if (!p || p == end || (*p != ',' && *p != ']'))
			return NULL;
		if (*p == ']')
			return p + 1;
	}
	return NULL;
}

static const char *skip_string(const char *p, const char *end)
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

/* Far less than JSON can have, but all that these lines may: lists, whole numbers, plain words. */
static const char *skip_value(const char *p, const char *end, int depth)
{
	if (p == end)
		return NULL;
	if (*p == '[')
		return depth < DEPTH_MAX ? skip_list(p, end, depth + 1) : NULL;
	return *p == '"' ? skip_string(p, end) : skip_number(p, end);
}

static bool is_list(const char *text, size_t len)
{
	return len && *text == '[' && skip_value(text, text + len, 0) == text + len;
}

static int put_member(struct buf *b, const char *key, const char *text, size_t len)
{
	int ret = buf_printf(b, ",\"%s\":", key);

	if (ret)
		return ret;
	if (is_list(text, len))
		return buf_put(b, text, len);
	ret = buf_put(b, "\"", 1);
	if (!ret)
		ret = snk_text_escape(b, text, len);
	return ret ? ret : buf_put(b, "\"", 1);
}

/* The next line of *rest, which loses it. False: there is none. */
static bool next_line(const char **rest, size_t *left, const char **line, size_t *len)
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

int snk_text_args(struct snk_trace *t, uint64_t id, struct buf *b)
{
	static const char *const keys[] = {"Input Dims", "Input type", "Input Strides"};
	size_t left = 0, len, i;
	const char *text = mdl_text(t->s.in->model, MXBPF_NAME_ARGS, id, &left), *line;
	int ret = 0;

	if (!text)
		return 0;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]) && !ret && next_line(&text, &left, &line, &len); i++)
		ret = put_member(b, keys[i], line, len);
	return ret;
}

int snk_text_stack(struct snk_trace *t, uint64_t id, struct buf *b)
{
	size_t left = 0, len;
	const char *text = mdl_text(t->s.in->model, MXBPF_NAME_STACK, id, &left), *line, *mark = "";
	int ret = text ? buf_printf(b, ",\"Call stack\":\"") : 0;

	if (!text)
		return 0;
	for (; !ret && next_line(&text, &left, &line, &len); mark = ";") {
		ret = buf_put(b, mark, strlen(mark));
		if (!ret)
			ret = snk_text_escape(b, line, len);
	}
	return ret ? ret : buf_put(b, "\"", 1);
}
