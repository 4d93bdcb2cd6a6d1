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
 * Copies hostile text for a terminal: control characters, DEL, C1 and invalid UTF-8 become \xNN. Always terminated;
 * returns the length it would have had, like snprintf.
 */
size_t fmt_safe(char *dst, size_t cap, const char *src, size_t len);

/* The same for the inside of a JSON string; invalid UTF-8 becomes U+FFFD. */
size_t fmt_json(char *dst, size_t cap, const char *src, size_t len);

/* Terminal columns of UTF-8 text that fmt_safe() made: code points. */
size_t fmt_columns(const char *text);
/* Behind the first n of them, or at its end. */
const char *fmt_skip_columns(const char *text, size_t n);

/* Two lower-case digits a byte, and a NUL. */
void fmt_hex(const uint8_t *bytes, size_t n, char *text);

bool fmt_ends_with(const char *text, const char *end);

#endif
