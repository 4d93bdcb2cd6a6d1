// SPDX-License-Identifier: Apache-2.0
/* Tests base/open_in.h. This program plays the kernel. */

static long answer(long number, ...);
#define syscall answer
#include "base/open_in.h"
#undef syscall

#include "unit.h"

static unsigned calls, renames; /* renames: calls in a row during which somebody renames a file */

static long answer(long number, ...)
{
	CHECK(number == SYS_openat2);
	errno = ++calls <= renames ? EAGAIN : 0;
	return errno ? -1 : 7;
}

static int open_during(unsigned n)
{
	calls = 0;
	renames = n;
	return open_in(3, "a/../b", (struct open_how){.resolve = RESOLVE_IN_ROOT});
}

int main(void)
{
	TEST("a path is walked again while others rename files, and not for ever")
	{
		CHECK(open_during(0) == 7 && calls == 1);
		CHECK(open_during(5) == 7 && calls == 6);
		CHECK(open_during(1u << 20) == -1 && errno == EAGAIN && calls == OPEN_IN_TRIES);
	}
	UNIT_MAIN_END;
}
