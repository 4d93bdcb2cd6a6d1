// SPDX-License-Identifier: Apache-2.0
#include "feature/resident/resident.h"

#include <stdlib.h>

#include "base/clock.h"
#include "target/target.h"

#define COUNTS_NS    400000000ull /* between two readings of what a process has done so far */
#define PRIVATE_NS   800000000ull /* between two readings of its own pages, at least */
#define PRIVATE_MOST (4ull << 30) /* of larger ones it is not read: their page faults wait meanwhile */
#define PRIVATE_STEP 100000000ull /* between the first readings of processes, so that these do not add up */
#define PRIVATE_ONE  20		  /* reading these takes one part of so many of the time of a CPU, at most */

static void read_counts(struct mxbpf_resident *r, pid_t pid)
{
	struct tgt_usage u;
	struct buf status = {0};
	const char *swap = tgt_peek_status(pid, pid, &status) ? NULL : tgt_status_field(status.data, "VmSwap");

	r->swapped_bytes = swap ? strtoull(swap, NULL, 10) * 1024 : 0;
	r->read_bytes = tgt_peek_read(pid);
	r->majflt = tgt_peek_usage(pid, &u) ? r->majflt : u.major;
	buf_fini(&status);
}

bool resident_read(struct resident_reader *r, pid_t pid, bool rank)
{
	struct mxbpf_resident *to = &r->last;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t cost_ns;

	if (!to->h.kind) {
		r->forked = tgt_peek_forked(pid);
		r->private_ns = now + (unsigned)pid % 8 * PRIVATE_STEP;
	}
	to->h = (struct mxbpf_rec){.kind = MXBPF_RESIDENT, .size = sizeof(*to), .tgid = (uint32_t)pid, .ts_ns = now};
	to->bytes = tgt_peek_resident(pid);
	to->rank = rank;
	if (now >= r->counts_ns) {
		r->counts_ns = now + COUNTS_NS;
		read_counts(to, pid);
	}
	if (r->forked && now >= r->private_ns && to->bytes <= PRIVATE_MOST) {
		cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		to->private_bytes = tgt_peek_private(pid);
		cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cost_ns;
		r->private_ns = now + (cost_ns * PRIVATE_ONE > PRIVATE_NS ? cost_ns * PRIVATE_ONE : PRIVATE_NS);
	}
	return to->bytes;
}
