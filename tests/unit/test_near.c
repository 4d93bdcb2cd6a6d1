// SPDX-License-Identifier: Apache-2.0
#include "base/near.h"

#include "unit.h"

static const char *hint_among(const char *text, const char *const *words)
{
	static char hint[NEAR_HINT_BYTES];
	struct near n = {0};

	for (; *words; words++)
		near_try(&n, text, *words);
	return near_hint(&n, "--", hint);
}

int main(void)
{
	static const char *const words[] = {"trace", "top", "sort", "a-word-of-more-than-thirty-one-letters", NULL};

	TEST("the nearest word is proposed")
	{
		CHECK(!strcmp(hint_among("trxce", words), "; did you mean '--trace'?"));
		CHECK(!strcmp(hint_among("sorq", words), "; did you mean '--sort'?"));
	}
	TEST("a word that is not near, too short or too long is not proposed")
	{
		CHECK(!strcmp(hint_among("backend", words), ""));
		CHECK(!strcmp(hint_among("x", words), ""));
		CHECK(!strcmp(hint_among("a-word-of-more-than-thirty-one-lettres", words), ""));
	}
	UNIT_MAIN_END;
}
