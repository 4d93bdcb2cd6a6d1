// SPDX-License-Identifier: Apache-2.0
#include "symbols/sample_priv.h"

#define CALL_NEAR 0xe8
#define GROUP_5	  0xff /* with 2 in bits 3 to 5 of the next byte: a call through a register or memory */

/*
 * Returns the size of a group 5 instruction from its opcode on, in bytes: Intel's manual, volume 2, tables 2-2 and 2-3.
 */
static unsigned group_5_bytes(const uint8_t *at)
{
	unsigned mod = at[1] >> 6, rm = at[1] & 7, sib = mod != 3 && rm == 4;

	if (mod == 1)
		return 3 + sib;
	if (mod == 2 || (!mod && rm == 5))
		return 6 + sib;
	if (!mod && sib && (at[2] & 7) == 5)
		return 7;
	return 2 + sib;
}

bool ends_in_call(const uint8_t bytes[CALL_BYTES])
{
	unsigned n;

	if (bytes[CALL_BYTES - 5] == CALL_NEAR)
		return true;
	for (n = 2; n <= CALL_BYTES; n++) {
		const uint8_t *at = bytes + CALL_BYTES - n;

		if (at[0] == GROUP_5 && (at[1] >> 3 & 7) == 2 && group_5_bytes(at) == n)
			return true;
	}
	return false;
}
