/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers for people, parses durations and sizes, and makes text safe to print. */
#ifndef BASE_FMT_H
#define BASE_FMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Formats "812 ns", "3.42 us", "12.1 ms", "4.20 s" with three significant digits. Returns buf. */
const char *fmt_ns(uint64_t ns, char buf[24]);
/* Formats like fmt_ns() but without the blank, for columns. Returns buf. */
const char *fmt_tight_ns(uint64_t ns, char buf[24]);
/* Formats "512 B", "1.20 KiB", "3.15 MiB". Returns buf. */
const char *fmt_bytes(uint64_t bytes, char buf[24]);
/* Formats "1,204,118". Returns buf. */
const char *fmt_count(uint64_t n, char buf[32]);

/* Parses "10s", "500ms", "2m", "1.5h"; a bare number means seconds. Returns 0, -EINVAL or -ERANGE. */
int fmt_parse_duration(const char *text, uint64_t *ns);
/* Parses "64M", "2GiB", "4096" with powers of 1024. Returns 0, -EINVAL or -ERANGE. */
int fmt_parse_bytes(const char *text, uint64_t *bytes);

/*
 * These functions copy untrusted text in a form that is safe to print: control characters, DEL, C1, marks of direction
 * and Unicode's separators of lines never reach a terminal. The copy is always terminated. Returns the length of the
 * full text as snprintf() does. fmt_utf8() writes \xNN for each byte of them and of invalid UTF-8.
 */
size_t fmt_utf8(char *dst, size_t cap, const char *src, size_t len);
/* For people: follows the encoding of the locale. Without UTF-8 every byte outside of ASCII becomes \xNN. */
size_t fmt_safe(char *dst, size_t cap, const char *src, size_t len);
/* Within quotes of CSV, which can hold line feeds and tabs: these stay, the rest is as in fmt_utf8(). */
size_t fmt_csv(char *dst, size_t cap, const char *src, size_t len);
/* For JSON strings: a decoder gets the exact text, with \xNN only for invalid UTF-8. */
size_t fmt_json(char *dst, size_t cap, const char *src, size_t len);
/* For trace formats of other programs: like fmt_json(), but each byte of invalid UTF-8 becomes U+FFFD. */
size_t fmt_json_exact(char *dst, size_t cap, const char *src, size_t len);
/* For binary formats that require UTF-8: the exact text, with \xNN for each byte of invalid UTF-8. */
size_t fmt_exact(char *dst, size_t cap, const char *src, size_t len);
bool fmt_is_utf8(const char *text, size_t len);

/* Reads the encoding of the terminal from the environment. main() calls it once, before any thread starts. */
void fmt_use_locale(void);
/* Returns the sign for omitted text, one column wide. */
const char *fmt_ellipsis(void);

/*
 * Returns the columns that text of fmt_safe() needs on a terminal. East Asian wide characters take two, combining marks
 * none.
 */
size_t fmt_columns(const char *text);
/* Returns the end of the longest prefix of text that needs at most n columns. */
const char *fmt_head(const char *text, size_t n);
/* Returns the longest suffix of text that needs at most n columns. */
const char *fmt_tail(const char *text, size_t n);

/*
 * fmt_chars() counts characters (code points), as Python does. fmt_skip_chars() returns the n-th, or the end of text.
 */
size_t fmt_chars(const char *text);
const char *fmt_skip_chars(const char *text, size_t n);

/* Writes two lower-case digits per byte and a NUL. */
void fmt_hex(const uint8_t *bytes, size_t n, char *text);

bool fmt_ends_with(const char *text, const char *end);

#endif
