// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the columns of characters as this machine's C library has them, for the static binary: ranges of characters
 * that do not take one column.
 */
#include <locale.h>
#include <stdio.h>
#include <wchar.h>

int main(void)
{
	wchar_t c, from = 0;

	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		fprintf(stderr, "columns: error: the locale C.UTF-8 is missing\n");
		return 1;
	}
	for (c = 1; c <= 0x110000; c++) {
		if (c < 0x110000 && wcwidth(c) == wcwidth(from))
			continue;
		if (wcwidth(from) != 1)
			printf("{%#x, %#x, %d},\n", (unsigned)from, (unsigned)c - 1, wcwidth(from));
		from = c;
	}
	return 0;
}
