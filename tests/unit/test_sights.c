/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the queue of what the kernel told of processes (targets/sights.c). */
#include "unit.h"

#include "targets/follow.h"

static struct buf queue;

static struct mxbpf_sighting seen(unsigned kind, uint32_t tgid, uint32_t stopped)
{
	return (struct mxbpf_sighting){.kind = kind, .tgid = tgid, .stopped = stopped};
}

static bool covers(unsigned kind, uint32_t tgid, uint32_t stopped)
{
	const struct mxbpf_sighting s = seen(kind, tgid, stopped);

	return sights_cover(&queue, &s);
}

static void put(unsigned kind, uint32_t tgid, uint32_t stopped)
{
	const struct sight at = {.seen = seen(kind, tgid, stopped)};

	CHECK(!buf_put(&queue, &at, sizeof(at)));
}

int main(void)
{
	struct sight at;

	TEST("one look serves all that a process has mapped before, so the queue of one that loads libraries without "
	     "end stays short")
	{
		CHECK(!covers(MXBPF_SIGHT_MAPPED, 1, 0));
		put(MXBPF_SIGHT_MAPPED, 1, 0);
		put(MXBPF_SIGHT_FORK, 2, 0);
		CHECK(covers(MXBPF_SIGHT_MAPPED, 1, 0) && !covers(MXBPF_SIGHT_MAPPED, 2, 0));
		CHECK(!covers(MXBPF_SIGHT_EXEC, 1, 0) && !covers(MXBPF_SIGHT_EXIT, 1, 0));
	}
	TEST("a process that is stopped, or has executed another program since, has a look of its own")
	{
		CHECK(!covers(MXBPF_SIGHT_MAPPED, 1, 1));
		put(MXBPF_SIGHT_EXEC, 1, 1);
		CHECK(!covers(MXBPF_SIGHT_MAPPED, 1, 0));
		CHECK(sights_stopped(&queue, 1) && !sights_stopped(&queue, 2));
	}
	TEST("the oldest comes first, and nothing of an empty queue counts")
	{
		CHECK(sights_next(&queue, &at) && at.seen.kind == MXBPF_SIGHT_MAPPED);
		CHECK(sights_next(&queue, &at) && at.seen.kind == MXBPF_SIGHT_FORK);
		CHECK(sights_next(&queue, &at) && at.seen.kind == MXBPF_SIGHT_EXEC && !sights_next(&queue, &at));
		put(MXBPF_SIGHT_MAPPED, 1, 0);
		CHECK(sights_next(&queue, &at) && !covers(MXBPF_SIGHT_MAPPED, 1, 0));
	}
	buf_fini(&queue);
	return unit_end();
}
