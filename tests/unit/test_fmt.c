// SPDX-License-Identifier: Apache-2.0
#include "base/fmt.h"

#include <cjson/cJSON.h>
#include <locale.h>

#include "unit.h"

static void show_ns(void)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} t[] = {
		{0, "0 ns"},
		{812, "812 ns"},
		{999, "999 ns"},
		{1000, "1.00 us"},
		{3424, "3.42 us"},
		{9995, "10.0 us"},
		{99949, "99.9 us"},
		{99950, "100 us"},
		{999499, "999 us"},
		{999500, "1.00 ms"},
		{12100000, "12.1 ms"},
		{4200000000ull, "4.20 s"},
		{1234000000000ull, "1234 s"},
		{UINT64_MAX, "18446744074 s"},
	};
	char buf[24];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(*t); i++)
		CHECK(!strcmp(fmt_ns(t[i].ns, buf), t[i].text));
}

static void show_bytes(void)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} t[] = {
		{0, "0 B"},
		{512, "512 B"},
		{1023, "1023 B"},
		{1024, "1.00 KiB"},
		{1229, "1.20 KiB"},
		{1023 * 1024, "1023 KiB"},
		{1048575, "1.00 MiB"},
		{3303014, "3.15 MiB"},
		{UINT64_MAX, "16.0 EiB"},
	};
	char buf[24];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(*t); i++)
		CHECK(!strcmp(fmt_bytes(t[i].bytes, buf), t[i].text));
}

static void show_count(void)
{
	char buf[32];

	CHECK(!strcmp(fmt_count(0, buf), "0"));
	CHECK(!strcmp(fmt_count(999, buf), "999"));
	CHECK(!strcmp(fmt_count(1204118, buf), "1,204,118"));
	CHECK(!strcmp(fmt_count(UINT64_MAX, buf), "18,446,744,073,709,551,615"));
}

struct parse_row {
	const char *text;
	int ret;
	uint64_t value;
};

static void parse(int (*f)(const char *, uint64_t *), const struct parse_row *t)
{
	uint64_t v;

	for (; t->text; t++) {
		v = 77;
		CHECK(f(t->text, &v) == t->ret);
		CHECK(v == (t->ret ? 77 : t->value));
	}
}

static const struct parse_row durations[] = {
	{"10s", 0, 10000000000ull},
	{"500ms", 0, 500000000},
	{"2m", 0, 120000000000ull},
	{"1.5h", 0, 5400000000000ull},
	{"7", 0, 7000000000ull},
	{"0.000000001", 0, 1},
	{".5us", 0, 500},
	{"1d", 0, 86400000000000ull},
	{"", -EINVAL, 0},
	{".", -EINVAL, 0},
	{"s", -EINVAL, 0},
	{"-1s", -EINVAL, 0},
	{"+1s", -EINVAL, 0},
	{" 1s", -EINVAL, 0},
	{"1 s", -EINVAL, 0},
	{"1e3", -EINVAL, 0},
	{"0x10", -EINVAL, 0},
	{"inf", -EINVAL, 0},
	{"1.2.3", -EINVAL, 0},
	{"5 parsecs", -EINVAL, 0},
	{"300000d", -ERANGE, 0},
	{"99999999999999999999s", -ERANGE, 0},
	{"999999999999999999999999s", -ERANGE, 0},
	{NULL, 0, 0},
};

static const struct parse_row sizes[] = {
	{"4096", 0, 4096},	   {"64M", 0, 64 << 20}, {"64mb", 0, 64 << 20},
	{"2GiB", 0, 2ull << 30},   {"1.5K", 0, 1536},	 {"10B", 0, 10},
	{"12 M", -EINVAL, 0},	   {"12Q", -EINVAL, 0},	 {"-5", -EINVAL, 0},
	{"17000000T", -ERANGE, 0}, {NULL, 0, 0},
};

/* Input, output of fmt_utf8(), output of fmt_json(). */
static const struct {
	const char *in, *shown, *json;
} texts[] = {
	{"Convolution", "Convolution", "Convolution"},
	{"a\"b\\c", "a\"b\\c", "a\\\"b\\\\c"},
	{"\x1b[31m\n\t", "\\x1b[31m\\x0a\\x09", "\\u001b[31m\\n\\t"},
	{"\x7f", "\\x7f", "\\u007f"},
	{"\xc2\x9b"
	 "2J",
	 "\\xc2\\x9b2J", "\\u009b2J"},
	{"gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80",
	 "gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80"},
	{"\xe2\x80\xae", "\\xe2\\x80\\xae", "\\u202e"},
	{"\xd8\x9c", "\\xd8\\x9c", "\\u061c"},
	{"\xe2\x80\x8e", "\\xe2\\x80\\x8e", "\\u200e"},
	{"\xe2\x80\x8f", "\\xe2\\x80\\x8f", "\\u200f"},
	{"\xe2\x80\xa8", "\\xe2\\x80\\xa8", "\\u2028"},
	{"\xe2\x81\xa9", "\\xe2\\x81\\xa9", "\\u2069"},
	{"\xe2\x80\x8d", "\xe2\x80\x8d", "\xe2\x80\x8d"}, /* U+200D joins two characters into one, and stays */
	{"\xff", "\\xff", "\\\\xff"},
	{"\xc0\xaf", "\\xc0\\xaf", "\\\\xc0\\\\xaf"},
	{"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\\\xed\\\\xa0\\\\x80"},
	{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\\\xf4\\\\x90\\\\x80\\\\x80"},
	{"\xe2\x82", "\\xe2\\x82", "\\\\xe2\\\\x82"},
};

static void hostile_texts(void)
{
	char buf[128];
	cJSON *decoded;
	bool invalid;
	size_t i, n;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		n = fmt_utf8(buf, sizeof(buf), texts[i].in, strlen(texts[i].in));
		CHECK(!strcmp(buf, texts[i].shown) && n == strlen(texts[i].shown));
		n = fmt_safe(buf, sizeof(buf), texts[i].in, strlen(texts[i].in));
		CHECK(!strcmp(buf, texts[i].shown) && n == strlen(texts[i].shown));
		n = fmt_json(buf, sizeof(buf), texts[i].in, strlen(texts[i].in));
		CHECK(!strcmp(buf, texts[i].json) && n == strlen(texts[i].json));
	}
	n = fmt_json(buf, sizeof(buf), "a\0b", 3);
	CHECK(n == 8 && !strcmp(buf, "a\\u0000b"));
	n = fmt_json_exact(buf, sizeof(buf), "a\0\"\n\x1b\xff\xe2\x80\xae", 9);
	CHECK(n == 26 && !strcmp(buf, "a\\u0000\\\"\\n\\u001b\xef\xbf\xbd\\u202e"));
	n = fmt_exact(buf, sizeof(buf), "a\0\n\xff\xe2\x80\xae\xe2\x80", 9);
	CHECK(n == 18 && !memcmp(buf, "a\0\n\\xff\xe2\x80\xae\\xe2\\x80", 19));
	CHECK(fmt_is_utf8(NULL, 0) && fmt_is_utf8("a\0\xc3\xbc", 4) && !fmt_is_utf8("a\0\xc3\xbc", 3));
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		CHECK(fmt_is_utf8(texts[i].in, strlen(texts[i].in)) == !strstr(texts[i].json, "\\\\x"));
		buf[0] = '"';
		n = fmt_json(buf + 1, sizeof(buf) - 2, texts[i].in, strlen(texts[i].in));
		strcpy(buf + 1 + n, "\"");
		decoded = cJSON_Parse(buf);
		invalid = strstr(texts[i].json, "\\\\x");
		CHECK(decoded && !strcmp(cJSON_GetStringValue(decoded), invalid ? texts[i].shown : texts[i].in));
		cJSON_Delete(decoded);
	}
}

#define WIDE "\xe5\x8d\xb7\xe7\xa9\x8d" /* two characters of two columns each */
#define MARK "e\xcc\x81"		/* a letter and a combining mark: one column */

static void columns(void)
{
	const char *text = "a" WIDE MARK "z";

	setlocale(LC_CTYPE, "C.UTF-8");
	CHECK(fmt_columns("") == 0 && fmt_columns("abc") == 3 && fmt_columns("\xc3\xbc") == 1);
	CHECK(fmt_columns(WIDE) == 4 && fmt_columns(MARK) == 1 && fmt_columns(text) == 7);
	CHECK(fmt_head(text, 0) == text && fmt_head(text, 1) == text + 1);
	CHECK(fmt_head(text, 2) == text + 1 && fmt_head(text, 3) == text + 4); /* half a character counts as none */
	CHECK(!strcmp(fmt_head(text, 6), "z") && !*fmt_head(text, 99));
	CHECK(!strcmp(fmt_tail(text, 1), "z") && !strcmp(fmt_tail(text, 3), MARK "z"));
	CHECK(!strcmp(fmt_tail(text, 4), "\xe7\xa9\x8d" MARK "z") && fmt_tail(text, 7) == text && !*fmt_tail(text, 0));
	CHECK(fmt_chars(text) == 6 && !strcmp(fmt_skip_chars(text, 5), "z"));
}

/* Sets the environment variables of the locale; NULL unsets one. */
static void encoding(const char *all, const char *ctype, const char *lang)
{
	const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"}, *const values[] = {all, ctype, lang};
	size_t i;

	for (i = 0; i < 3; i++)
		if (values[i])
			setenv(names[i], values[i], 1);
		else
			unsetenv(names[i]);
	fmt_use_locale();
}

static void other_encodings(void)
{
	char buf[64];

	encoding("C", NULL, "C.UTF-8");
	CHECK(fmt_safe(buf, sizeof(buf), "gr\xc3\xbc", 4) == 10 && !strcmp(buf, "gr\\xc3\\xbc"));
	CHECK(fmt_utf8(buf, sizeof(buf), "gr\xc3\xbc", 4) == 4 && fmt_json(buf, sizeof(buf), "gr\xc3\xbc", 4) == 4);
	CHECK(!strcmp(fmt_ellipsis(), "~"));
	encoding(NULL, NULL, NULL);
	CHECK(!strcmp(fmt_ellipsis(), "~"));
	encoding("", "de_DE.ISO-8859-1", "C.UTF-8");
	CHECK(!strcmp(fmt_ellipsis(), "~"));
	encoding("", NULL, "xx_XX.utf8"); /* not installed */
	CHECK(!strcmp(fmt_ellipsis(), "\xe2\x80\xa6"));
	CHECK(fmt_safe(buf, sizeof(buf), "gr\xc3\xbc", 4) == 4);
}

static void small_buffers(void)
{
	char buf[8];

	CHECK(fmt_safe(NULL, 0, "abc", 3) == 3);
	CHECK(fmt_safe(buf, 3, "abc", 3) == 3 && !strcmp(buf, "ab"));
	CHECK(fmt_safe(buf, 4, "a\xe2\x82\xac", 4) == 4 && !strcmp(buf, "a"));
	CHECK(fmt_safe(buf, 5, "ab\n", 3) == 6 && !strcmp(buf, "ab"));
	CHECK(fmt_json(buf, 5, "\x01z", 2) == 7 && !strcmp(buf, ""));
}

int main(void)
{
	TEST("a duration has three digits and its unit, and is rounded into the next unit")
	show_ns();
	TEST("a size is shown in powers of 1024")
	show_bytes();
	TEST("a count is shown in groups of three digits")
	show_count();
	TEST("a duration is parsed exactly or refused")
	parse(fmt_parse_duration, durations);
	TEST("a size is parsed exactly or refused")
	parse(fmt_parse_bytes, sizes);
	TEST("hostile text is escaped on the terminal and in JSON, and reads the same in both")
	hostile_texts();
	TEST("truncated text never ends inside a character or an escape")
	small_buffers();
	TEST("wide characters count two columns, marks none, and Python's layouts count characters")
	columns();
	TEST("a terminal that is not UTF-8 gets ASCII, while JSON keeps UTF-8")
	other_encodings();
	UNIT_MAIN_END;
}
