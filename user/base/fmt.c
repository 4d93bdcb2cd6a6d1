// SPDX-License-Identifier: Apache-2.0
#include "base/fmt.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

typedef unsigned __int128 u128;

struct unit {
	const char *name;
	uint64_t of; /* in smallest units */
};

static const unsigned pow10s[] = {1, 10, 100};

static const struct unit time_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000},
};

static const struct unit byte_units[] = {
	{"B", 1},
	{"KiB", 1ull << 10},
	{"MiB", 1ull << 20},
	{"GiB", 1ull << 30},
	{"TiB", 1ull << 40},
	{"PiB", 1ull << 50},
	{"EiB", 1ull << 60},
};

/*
 * Picks the first unit in which the rounded number is below `limit`. It calculates in integers: 999,500 ns is 1.00 ms,
 * never 1000 us.
 */
static void three_digits(uint64_t v, const struct unit *units, size_t nunits, unsigned limit, char buf[24])
{
	size_t i;
	int d;

	for (i = 0; i < nunits; i++) {
		for (d = i ? 2 : 0; d >= 0; d--) {
			u128 q = ((u128)v * pow10s[d] + units[i].of / 2) / units[i].of;

			if (q >= (d ? 1000 : limit) && (d || i + 1 < nunits))
				continue;
			if (d)
				snprintf(buf, 24, d == 2 ? "%u.%02u %s" : "%u.%u %s", (unsigned)(q / pow10s[d]),
					 (unsigned)(q % pow10s[d]), units[i].name);
			else
				snprintf(buf, 24, "%llu %s", (unsigned long long)q, units[i].name);
			return;
		}
	}
}

const char *fmt_ns(uint64_t ns, char buf[24])
{
	three_digits(ns, time_units, sizeof(time_units) / sizeof(*time_units), 1000, buf);
	return buf;
}

const char *fmt_tight_ns(uint64_t ns, char buf[24])
{
	char *blank = strchr(fmt_ns(ns, buf), ' ');

	memmove(blank, blank + 1, strlen(blank));
	return buf;
}

const char *fmt_bytes(uint64_t bytes, char buf[24])
{
	three_digits(bytes, byte_units, sizeof(byte_units) / sizeof(*byte_units), 1024, buf);
	return buf;
}

const char *fmt_count(uint64_t n, char buf[32])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	char *p = buf;
	int i;

	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = '\0';
	return buf;
}

static const struct unit duration_words[] = {
	{"", 1000000000},
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000},
	{"m", 60000000000ull},
	{"h", 3600000000000ull},
	{"d", 86400000000000ull},
	{NULL, 0},
};

static const struct unit size_words[] = {
	{"", 1},
	{"B", 1},
	{"K", 1ull << 10},
	{"KB", 1ull << 10},
	{"KiB", 1ull << 10},
	{"M", 1ull << 20},
	{"MB", 1ull << 20},
	{"MiB", 1ull << 20},
	{"G", 1ull << 30},
	{"GB", 1ull << 30},
	{"GiB", 1ull << 30},
	{"T", 1ull << 40},
	{"TB", 1ull << 40},
	{"TiB", 1ull << 40},
	{NULL, 0},
};

/*
 * Parses DIGITS[.DIGITS]UNIT, exact to the smallest unit. It refuses signs, exponents and blanks, which strtod() would
 * accept.
 */
static int parse_number(const char *text, const struct unit *words, uint64_t *value)
{
	u128 mantissa = 0, scale = 1;
	bool point = false;
	int digits = 0;
	const struct unit *u;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		if (++digits > 20)
			return -ERANGE;
		mantissa = mantissa * 10 + (unsigned)(*text - '0');
		if (point)
			scale *= 10;
	}
	if (!digits)
		return -EINVAL;
	for (u = words; u->name && strcasecmp(u->name, text); u++)
		;
	if (!u->name)
		return -EINVAL;
	/* 20 digits times 2^47 ns per day need at most 114 bits. */
	mantissa = mantissa * u->of / scale;
	if (mantissa > UINT64_MAX)
		return -ERANGE;
	*value = (uint64_t)mantissa;
	return 0;
}

int fmt_parse_duration(const char *text, uint64_t *ns)
{
	return parse_number(text, duration_words, ns);
}

int fmt_parse_bytes(const char *text, uint64_t *bytes)
{
	return parse_number(text, size_words, bytes);
}

/* Decodes the UTF-8 character at s. Returns its bytes, or 0 if it is not valid (overlong, surrogate, cut). */
static int utf8_char(const unsigned char *s, size_t len, uint32_t *cp)
{
	static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
	int n, i;

	if (s[0] < 0x80) {
		*cp = s[0];
		return 1;
	}
	n = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	if (!n || (size_t)n > len)
		return 0;
	*cp = s[0] & (0xffu >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3fu);
	}
	if (*cp < lowest[n] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp < 0xe000))
		return 0;
	return n;
}

/*
 * Returns true for characters that control a terminal or rewrite a line: C0, DEL, C1, all of Unicode's marks of
 * direction (its property Bidi_Control), and its separators of lines and paragraphs.
 */
static bool terminal_control(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x061c || cp == 0x200e || cp == 0x200f ||
	       (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

/* Appends complete pieces only, so that a cut never leaves half a character or half an escape. */
struct text {
	char *dst;
	size_t cap, len, fits;
};

static void piece(struct text *t, const void *text, size_t n)
{
	if (t->fits == t->len && t->len + n < t->cap) {
		memcpy(t->dst + t->len, text, n);
		t->fits += n;
	}
	t->len += n;
}

static size_t terminated(struct text *t)
{
	if (t->cap)
		t->dst[t->fits] = '\0';
	return t->len;
}

/* Writes \xNN for each byte. JSON requires a second backslash. */
static void hex_bytes(struct text *t, const unsigned char *s, int n, bool json)
{
	size_t each = json ? 5 : 4;
	char esc[5 * 4 + 1];
	int i;

	for (i = 0; i < n; i++)
		snprintf(esc + each * (size_t)i, each + 1, json ? "\\\\x%02x" : "\\x%02x", s[i]);
	piece(t, esc, each * (size_t)n);
}

/* The encoding of the terminal. Before fmt_use_locale(), and in tests, it is UTF-8. */
static bool ascii_only;

/* Checks the variables in the order of the C library. It works for locales that are not installed, too. */
void fmt_use_locale(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *value = NULL;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !(value && *value); i++)
		value = getenv(names[i]);
	ascii_only = !value || !(strcasestr(value, "UTF-8") || strcasestr(value, "UTF8"));
	setlocale(LC_CTYPE, "C.UTF-8"); /* needed by wcwidth() */
}

const char *fmt_ellipsis(void)
{
	return ascii_only ? "~" : "…";
}

static void json_escape(struct text *t, uint32_t cp)
{
	static const char shorts[] = "\"\"\\\\\nn\tt\rr\bb\ff";
	char esc[8];
	int i;

	for (i = 0; shorts[i]; i += 2) {
		if ((uint32_t)shorts[i] == cp) {
			piece(t, (char[]){'\\', shorts[i + 1]}, 2);
			return;
		}
	}
	snprintf(esc, sizeof(esc), "\\u%04x", cp); /* no character that needs it is above U+FFFF */
	piece(t, esc, 6);
}

enum text_form { TERMINAL, UTF8, CSV, EXACT, JSON, JSON_EXACT };

#define REPLACEMENT "\xef\xbf\xbd"

/* Copies text and escapes what may not be shown, or what has a meaning in a JSON string. */
static size_t fmt_show(enum text_form form, char *dst, size_t cap, const char *src, size_t len)
{
	struct text t = {.dst = dst, .cap = cap};
	const unsigned char *s = (const unsigned char *)src;
	uint32_t cp;
	size_t i;
	int n;

	for (i = 0; i < len; i += n ? (size_t)n : 1) {
		n = utf8_char(s + i, len - i, &cp);
		if (!n && form == JSON_EXACT)
			piece(&t, REPLACEMENT, strlen(REPLACEMENT));
		else if (n && form >= JSON && (terminal_control(cp) || cp == '"' || cp == '\\'))
			json_escape(&t, cp);
		else if (form == CSV && s[i] == '"')
			piece(&t, "\"\"", 2);
		else if (form == CSV && (s[i] == '\n' || s[i] == '\t'))
			piece(&t, s + i, 1);
		else if (n && form == EXACT)
			piece(&t, s + i, (size_t)n);
		else if (!n || terminal_control(cp) || (form == TERMINAL && ascii_only && cp > 0x7f))
			hex_bytes(&t, s + i, n ? n : 1, form == JSON);
		else
			piece(&t, s + i, (size_t)n);
	}
	return terminated(&t);
}

size_t fmt_safe(char *dst, size_t cap, const char *src, size_t len)
{
	return fmt_show(TERMINAL, dst, cap, src, len);
}

size_t fmt_utf8(char *dst, size_t cap, const char *src, size_t len)
{
	return fmt_show(UTF8, dst, cap, src, len);
}

size_t fmt_json(char *dst, size_t cap, const char *src, size_t len)
{
	return fmt_show(JSON, dst, cap, src, len);
}

size_t fmt_json_exact(char *dst, size_t cap, const char *src, size_t len)
{
	return fmt_show(JSON_EXACT, dst, cap, src, len);
}

size_t fmt_exact(char *dst, size_t cap, const char *src, size_t len)
{
	return fmt_show(EXACT, dst, cap, src, len);
}

bool fmt_is_utf8(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t cp;
	size_t i;
	int n = 1;

	for (i = 0; i < len && n; i += (size_t)n)
		n = utf8_char(s + i, len - i, &cp);
	return n;
}

size_t fmt_csv(char *dst, size_t cap, const char *src, size_t len)
{
	return fmt_show(CSV, dst, cap, src, len);
}

size_t fmt_chars(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

const char *fmt_skip_chars(const char *text, size_t n)
{
	while (*text && n--)
		for (text++; ((unsigned char)*text & 0xc0) == 0x80; text++)
			;
	return text;
}

/* Returns the columns of the character at text, and in *next the start of the next one. */
static size_t char_columns(const char *text, const char **next)
{
	uint32_t cp = 0;
	int n = utf8_char((const unsigned char *)text, strlen(text), &cp), width;

	*next = text + (n ? n : 1);
	width = n ? wcwidth((wchar_t)cp) : 1;
	return width < 0 ? 1 : (size_t)width;
}

size_t fmt_columns(const char *text)
{
	size_t n = 0;

	while (*text)
		n += char_columns(text, &text);
	return n;
}

const char *fmt_head(const char *text, size_t n)
{
	const char *next;
	size_t used = 0;

	while (*text) {
		used += char_columns(text, &next);
		if (used > n)
			break;
		text = next;
	}
	return text;
}

const char *fmt_tail(const char *text, size_t n)
{
	size_t left = fmt_columns(text);
	const char *next;

	if (left <= n)
		return text;
	while (left > n)
		left -= char_columns(text, &text);
	/* A combining mark has no columns of its own and belongs to the character before it. */
	for (next = text; *text && !char_columns(text, &next); text = next)
		;
	return text;
}

void fmt_hex(const uint8_t *bytes, size_t n, char *text)
{
	size_t i;

	for (i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	text[2 * n] = '\0';
}

bool fmt_ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), e = strlen(end);

	return n >= e && !strcmp(text + n - e, end);
}
