// SPDX-License-Identifier: Apache-2.0
/* Texts of ranges, and those that the program registers. */
#include "lib.h"

#include <string.h>

#define KEPT_MAX (256u << 10)

/* Texts that end with NUL. A handle of a registered string is the address of its text. */
static char kept[KEPT_MAX];
static unsigned nkept;

size_t text_add(char *to, size_t n, const char *text)
{
	while (*text && n + 1 < TEXT_MAX)
		to[n++] = *text++;
	to[n] = '\0';
	return n;
}

size_t text_add_wide(char *to, size_t n, const wchar_t *text)
{
	for (; *text && n + 5 < TEXT_MAX; text++) {
		const uint32_t c = (uint32_t)*text;

		if (c < 0x80) {
			to[n++] = (char)c;
		} else if (c < 0x800) {
			to[n++] = (char)(0xc0 | c >> 6);
			to[n++] = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			to[n++] = (char)(0xe0 | c >> 12);
			to[n++] = (char)(0x80 | (c >> 6 & 0x3f));
			to[n++] = (char)(0x80 | (c & 0x3f));
		} else {
			to[n++] = (char)(0xf0 | (c >> 18 & 7));
			to[n++] = (char)(0x80 | (c >> 12 & 0x3f));
			to[n++] = (char)(0x80 | (c >> 6 & 0x3f));
			to[n++] = (char)(0x80 | (c & 0x3f));
		}
	}
	to[n] = '\0';
	return n;
}

const char *text_wide(char *to, const wchar_t *text)
{
	text_add_wide(to, 0, text ? text : L"");
	return to;
}

/* BPF cannot read a page that nobody has read yet, such as that of a constant. A longer text may lie on two pages. */
const char *text_touch(const char *text)
{
	if (!text)
		return "";
	(void)*(const volatile char *)text;
	return text;
}

const char *text_keep_bytes(const char *text, size_t bytes)
{
	unsigned at = __atomic_load_n(&nkept, __ATOMIC_RELAXED);

	do
		if (bytes >= KEPT_MAX - at)
			return NULL;
	while (!__atomic_compare_exchange_n(&nkept, &at, at + (unsigned)bytes + 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	return memcpy(kept + at, text, bytes); /* a zero follows */
}

const char *text_keep(const char *text)
{
	const size_t bytes = strlen(text);

	return bytes < TEXT_MAX ? text_keep_bytes(text, bytes) : NULL;
}
