/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for people, durations from people, and text made safe to show. */
#ifndef BASE_FMT_H
#define BASE_FMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "812 ns", "3.42 us", "12.1 ms", "4.20 s": three significant digits. Returns buf. */
const char *fmt_ns(uint64_t ns, char buf[24]);
/* The same without the blank, for columns. Returns buf. */
const char *fmt_tight_ns(uint64_t ns, char buf[24]);
/* "512 B", "1.20 KiB", "3.15 MiB". Returns buf. */
const char *fmt_bytes(uint64_t bytes, char buf[24]);
/* "1,204,118". Returns buf. */
const char *fmt_count(uint64_t n, char buf[32]);

/* "10s", "500ms", "2m", "1.5h", bare number = seconds. 0 or -EINVAL, -ERANGE. */
int fmt_parse_duration(const char *text, uint64_t *ns);
/* "64M", "2GiB", "4096"; powers of 1024. 0 or -EINVAL, -ERANGE. */
int fmt_parse_bytes(const char *text, uint64_t *bytes);

/*
 * Copies hostile text so that it can be shown: control characters, DEL, C1, direction overrides and invalid UTF-8
 * become \xNN, a byte each. Always terminated; returns the length that it would have had, as snprintf() does. One text
 * has one shown form: names of tables, CSV and JSON can be joined, but for fmt_safe() on a terminal that is not UTF-8.
 */
size_t fmt_utf8(char *dst, size_t cap, const char *src, size_t len);
/* For people: follows the encoding of the locale. Without UTF-8, every byte beyond ASCII becomes \xNN. */
size_t fmt_safe(char *dst, size_t cap, const char *src, size_t len);
/* For the inside of a JSON string: a reader that decodes it has what fmt_utf8() makes of the text. */
size_t fmt_json(char *dst, size_t cap, const char *src, size_t len);

/* For traces in a format of others, who have such names too: nothing is replaced but invalid UTF-8, by U+FFFD. */
size_t fmt_json_exact(char *dst, size_t cap, const char *src, size_t len);

/* Reads the encoding of the terminal from the environment. main() calls it once, before any thread is started. */
void fmt_use_locale(void);
/* What stands for text that was cut out, in one column. */
const char *fmt_ellipsis(void);

/* Columns that text of fmt_safe() takes on a terminal: East Asian wide characters take two, combining marks none. */
size_t fmt_columns(const char *text);
/* The end of the longest beginning of text that takes at most n columns. */
const char *fmt_head(const char *text, size_t n);
/* The longest end of text that takes at most n columns. */
const char *fmt_tail(const char *text, size_t n);

/* Characters (code points), which is how Python counts, and where the n-th begins, or the end of text. */
size_t fmt_chars(const char *text);
const char *fmt_skip_chars(const char *text, size_t n);

/* Two lower-case digits a byte, and a NUL. */
void fmt_hex(const uint8_t *bytes, size_t n, char *text);

bool fmt_ends_with(const char *text, const char *end);

#endif
