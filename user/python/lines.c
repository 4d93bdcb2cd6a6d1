// SPDX-License-Identifier: Apache-2.0
/* Reads the three forms of line tables: CPython's Objects/lnotab_notes.txt and Objects/locations.md. */
#include "python/priv.h"

/* Pairs of bytes of code and lines to add. An instruction belongs to the last pair that begins at or before it. */
uint32_t py_line_lnotab(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr)
{
	uint32_t at = 0, line = first;
	size_t i;

	for (i = 0; i + 2 <= bytes; i += 2) {
		at += table[i];
		if (at > instr)
			break;
		line += (uint32_t)(int8_t)table[i + 1];
	}
	return line;
}

#define NO_LINE (-128)

/* Pairs of bytes of code and lines to add. The line of a pair is that of the bytes it counts. */
uint32_t py_line_ranges(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr)
{
	uint32_t end = 0, line = first;
	size_t i;

	for (i = 0; i + 2 <= bytes; i += 2) {
		int8_t by = (int8_t)table[i + 1];

		end += table[i];
		if (by != NO_LINE)
			line += (uint32_t)by;
		if (end > instr)
			return by == NO_LINE ? 0 : line;
	}
	return 0;
}

/* Six bits per byte, lowest first. Bit 6 means that more follow. */
static uint32_t varint(const uint8_t *table, size_t bytes, size_t *i)
{
	uint32_t v = 0, shift = 0;
	uint8_t byte;

	do {
		if (*i >= bytes || shift > 30)
			return 0;
		byte = table[(*i)++];
		v |= (uint32_t)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return v;
}

/* Kinds of entries. A kind below 10 stays on the line. */
enum { ENTRY_LINE_0 = 10, ENTRY_LINE_2 = 12, ENTRY_NO_COLUMNS = 13, ENTRY_LONG = 14, ENTRY_NONE = 15 };

/*
 * An entry is a byte with bit 7 set, which has a kind and 1 to 8 code units of 2 bytes, and then bytes without bit 7.
 */
uint32_t py_line_location(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr)
{
	uint32_t end = 0, line = first, by;
	size_t i = 0, at;
	unsigned kind;

	while (i < bytes) {
		kind = table[i] >> 3 & 15;
		end += ((table[i] & 7u) + 1) * 2;
		at = ++i;
		if (kind == ENTRY_NO_COLUMNS || kind == ENTRY_LONG) {
			by = varint(table, bytes, &at);
			line += by & 1 ? -(by >> 1) : by >> 1;
		} else if (kind >= ENTRY_LINE_0 && kind <= ENTRY_LINE_2) {
			line += kind - ENTRY_LINE_0;
		}
		if (end > instr)
			return kind == ENTRY_NONE ? 0 : line;
		while (i < bytes && !(table[i] & 0x80))
			i++;
	}
	return 0;
}
