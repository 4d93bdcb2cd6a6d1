// SPDX-License-Identifier: Apache-2.0
#include "import/json_mend.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* A number, or one of the three words of JSON. NaN, Infinity and all else become null. */
static size_t put_word(const struct json_mend *m, char *to)
{
	static const char *const words[] = {"true", "false", "null"};
	const char *from = m->word;
	size_t len = m->len, i;

	if (isdigit((unsigned char)m->word[m->word[0] == '-']) && m->len < JSON_WORD_MAX - 1) {
		memcpy(to, from, len);
		return len;
	}
	for (i = 0; i < 2; i++)
		if (len == strlen(words[i]) && !memcmp(from, words[i], len))
			break;
	len = strlen(words[i]);
	memcpy(to, words[i], len);
	return len;
}

static void put(struct json_mend *m, char **to, const char *text, size_t n)
{
	if (m->kept >= JSON_TEXT_MAX)
		return;
	memcpy(*to, text, n);
	*to += n;
	m->kept += n;
}

/* The longest piece of a string that can be taken as it is. */
static size_t plain(const unsigned char *from, size_t n)
{
	size_t i = 0;

	while (i < n && from[i] != '"' && from[i] != '\\' && from[i] >= ' ')
		i++;
	return i;
}

static size_t take_string(struct json_mend *m, const unsigned char *from, size_t n, char **to)
{
	const size_t len = plain(from, n);

	if (len) {
		put(m, to, (const char *)from, len);
		return len;
	}
	if (*from == '"') {
		*(*to)++ = '"';
		m->in = MEND_OUTSIDE;
	} else if (*from == '\\') {
		m->in = MEND_ESCAPE;
	} else {
		put(m, to, " ", 1);
	}
	return 1;
}

/* A backslash in front of a letter that means nothing is one of the text. */
static size_t take_escape(struct json_mend *m, unsigned char c, char **to)
{
	const char known[2] = {'\\', (char)c};

	m->in = MEND_STRING;
	if (c == 'u') {
		m->in = MEND_CODE;
		m->len = 0;
	} else if (c && strchr("\"\\/bfnrt", c)) {
		put(m, to, known, 2);
	} else {
		put(m, to, "\\\\", 2);
		return 0;
	}
	return 1;
}

static size_t take_code(struct json_mend *m, unsigned char c, char **to)
{
	const bool digit = isxdigit(c);
	char code[6] = {'\\', 'u', 'f', 'f', 'f', 'd'};

	if (digit)
		m->word[m->len++] = (char)c;
	if (digit && m->len < 4)
		return 1;
	if (m->len == 4)
		memcpy(code + 2, m->word, 4);
	m->in = MEND_STRING;
	put(m, to, code, sizeof(code));
	return digit;
}

static bool is_of_word(unsigned char c)
{
	return isalnum(c) || c == '+' || c == '-' || c == '.' || c == '_';
}

static size_t take_word(struct json_mend *m, unsigned char c, char **to)
{
	if (is_of_word(c)) {
		if (m->len < JSON_WORD_MAX - 1)
			m->word[m->len++] = (char)c;
		return 1;
	}
	*to += put_word(m, *to);
	m->in = MEND_OUTSIDE;
	return 0;
}

static size_t take_outside(struct json_mend *m, unsigned char c, char **to)
{
	if (is_of_word(c)) {
		m->in = MEND_WORD;
		m->len = 0;
		memset(m->word, 0, 2);
		return 0;
	}
	if (c == '"') {
		m->in = MEND_STRING;
		m->kept = 0;
	}
	*(*to)++ = (char)c;
	return 1;
}

size_t json_mend(struct json_mend *m, const unsigned char *from, size_t n, char *to)
{
	char *const start = to;
	size_t at = 0;

	while (at < n)
		switch (m->in) {
		case MEND_OUTSIDE:
			at += take_outside(m, from[at], &to);
			break;
		case MEND_WORD:
			at += take_word(m, from[at], &to);
			break;
		case MEND_STRING:
			at += take_string(m, from + at, n - at, &to);
			break;
		case MEND_ESCAPE:
			at += take_escape(m, from[at], &to);
			break;
		case MEND_CODE:
			at += take_code(m, from[at], &to);
			break;
		}
	return (size_t)(to - start);
}
