/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds a model with the records of a job: its loop, its operators, looks at its threads, processes beside it. */
#ifndef FINDINGS_FEED_H
#define FINDINGS_FEED_H

#include <sys/syscall.h>

#include "findings_model.h"
#include "mxbpf_gauge.h"
#include "mxbpf_lines.h"
#include "mxbpf_neighbours.h"

#define WORKER 200
#define RANK   300

static struct mdl_session session = {.fault_ns = 1000, .duration_ns = 4000 * MS};

static inline void iteration_of(uint32_t pid, uint64_t nr, uint64_t dur_ms, enum mxbpf_step_part part, uint64_t part_ms)
{
	struct mxbpf_iteration it = {
		.h = {.kind = MXBPF_ITERATION, .size = sizeof(it), .tgid = pid, .ts_ns = (1000 + nr * dur_ms) * MS},
		.dur_ns = dur_ms * MS,
		.nr = nr,
		.tid = pid,
		.flags = MXBPF_ITERATION_PARTS,
	};

	it.part_ns[part] = part_ms * MS;
	it.part_ns[MXBPF_PART_OPERATOR] += (dur_ms - part_ms) * MS;
	it.busy_ns = it.part_ns[MXBPF_PART_OPERATOR];
	feed(&it);
}

/* An iteration of dur_ms, of which part_ms are of the part and the rest is operators. */
static inline void iteration(uint64_t nr, uint64_t dur_ms, enum mxbpf_step_part part, uint64_t part_ms, int64_t live)
{
	static uint64_t now_ns;
	struct mxbpf_iteration it = {
		.h = {.kind = MXBPF_ITERATION, .size = sizeof(it), .tgid = PID},
		.dur_ns = dur_ms * MS,
		.nr = nr,
		.busy_ns = (dur_ms - part_ms) * MS,
		.tid = PID,
		.flags = MXBPF_ITERATION_PARTS,
		.live_bytes = live,
	};

	now_ns = nr ? now_ns : 1000 * MS;
	it.h.ts_ns = now_ns;
	now_ns += it.dur_ns;
	it.part_ns[part] = part_ms * MS;
	it.part_ns[MXBPF_PART_OPERATOR] += (dur_ms - part_ms) * MS;
	feed(&it);
}

static inline void operators(uint64_t calls, uint64_t each_ns, uint64_t runq_ns, uint64_t faults)
{
	struct mxbpf_span s = {
		.h = {.kind = MXBPF_SPAN, .size = sizeof(s), .tgid = PID, .ts_ns = 2000 * MS},
		.name_id = 7,
		.tid = PID,
		.cls = MXBPF_CLASS_OPERATOR,
		.dur_ns = each_ns,
		.self_ns = each_ns,
		.flags = MXBPF_SPAN_ACCOUNT,
		.account = {.on_cpu_ns = each_ns - runq_ns, .runq_ns = runq_ns, .minflt = (uint32_t)faults},
	};

	for (; calls; calls--) {
		feed(&s);
		s.h.ts_ns += each_ns;
	}
}

static inline void process_that_waits(uint32_t pid, uint64_t cpu_ms, uint64_t runq_ms, bool job)
{
	struct mxbpf_neighbour n = {
		.h = {.kind = MXBPF_NEIGHBOUR, .size = sizeof(n), .tgid = pid, .ts_ns = 5000 * MS},
		.cpu_ns = cpu_ms * MS,
		.runq_ns = runq_ms * MS,
		.elapsed_ns = 4000 * MS,
		.job = job,
		.comm = "noisy",
	};

	feed(&n);
}

static inline void process(uint32_t pid, uint64_t cpu_ms, bool job)
{
	process_that_waits(pid, cpu_ms, 0, job);
}

enum { ASLEEP = 1, IN_LOCK = 2, IN_API = 4, OTHER_RANK = 8 };

/* Looks at a thread that stood in that stack, outside calls of the runtime unless IN_API; name 9 is that of the call.
 */
static inline void looks(uint32_t pid, uint32_t tid, const char *stack, uint64_t count, unsigned flags)
{
	static uint64_t id = 1000;
	struct mxbpf_agg_line l = {
		.h = {.kind = MXBPF_AGG_LINE, .size = sizeof(l), .tgid = pid, .ts_ns = 2000 * MS},
		.stack_id = ++id,
		.count = count,
		.tid = tid,
		.syscall = flags & IN_LOCK ? SYS_futex : -1,
		.sleeps = !!(flags & (ASLEEP | IN_LOCK)),
		.main = pid == tid,
		.rank = !!(flags & OTHER_RANK),
	};

	if (flags & IN_API) {
		l.cls = MXBPF_CLASS_API;
		l.name_id = 9;
	}
	name(id, MXBPF_NAME_STACK, stack);
	feed(&l);
}

static inline void calls(uint32_t pid, uint8_t cls, uint64_t name_id, uint64_t n, uint64_t each_ns)
{
	struct mxbpf_span s = {
		.h = {.kind = MXBPF_SPAN, .size = sizeof(s), .tgid = pid, .ts_ns = 2000 * MS},
		.name_id = name_id,
		.tid = pid + 1,
		.cls = cls,
		.dur_ns = each_ns,
	};

	for (; n; n--, s.h.ts_ns += each_ns)
		feed(&s);
}

static inline void machine(uint64_t busy_ms, uint64_t idle_ms)
{
	const uint16_t ids[] = {MXBPF_GAUGE_CPU_BUSY, MXBPF_GAUGE_CPU_IDLE};
	const uint64_t ms[] = {busy_ms, idle_ms};
	unsigned i, k;

	for (k = 0; k < 2; k++)
		for (i = 0; i < 2; i++) {
			struct mxbpf_gauge g = {
				.h = {.kind = MXBPF_GAUGE,
				      .size = MXBPF_GAUGE_BYTES_MIN,
				      .ts_ns = (1000 + 4000 * k) * MS},
				.id = ids[i],
			};

			g.value = 1 + k * ms[i] * MS;
			feed(&g);
		}
}

static inline void begin(void)
{
	new_model();
	machine(4000, 4000);
	process(PID, 4000, true);
}

static inline void loop(uint64_t n, uint64_t dur_ms, enum mxbpf_step_part part, uint64_t part_ms)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		iteration(i, dur_ms, part, part_ms, 0);
}

/* Begins a job of 40 iterations of 100 ms. */
static inline void begin_loop(enum mxbpf_step_part part, uint64_t part_ms)
{
	begin();
	loop(40, 100, part, part_ms);
}

/* Begins a job that computes most of its time. */
static inline void begin_busy(uint64_t runq_ns, uint64_t faults)
{
	begin_loop(MXBPF_PART_OUTSIDE, 5);
	operators(400, 9 * MS, runq_ns, faults);
}

static inline bool says(const char *text)
{
	return told.n && told.list[0].text.len && strstr(told.list[0].text.data, text);
}

#endif
