// SPDX-License-Identifier: Apache-2.0
/* Reads what BPF counted: losses, spans that never ended, and failures of cuts. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "attach/priv.h"
#include "attach/sched.h"

/* A cut is judged wrong after at least MIN failures that are also one in PART entries. */
#define CUT_LOST_MIN	 10
#define CUT_LOST_PART	 1000
#define CUT_FOREIGN_MIN	 100
#define CUT_FOREIGN_PART 10

static void call_counts(const struct att *a, uint64_t sum[MXBPF_COUNT_MAX])
{
	unsigned i, k;

	for (i = 0; i < MXBPF_THREADS_MAX; i++)
		for (k = 0; k < MXBPF_COUNT_MAX; k++)
			sum[k] += __atomic_load_n(&a->threads[i].counts[k], __ATOMIC_RELAXED);
}

static void sample_counts(const struct att *a, uint64_t sum[MXBPF_COUNT_MAX])
{
	unsigned k;

	for (k = 0; k < MXBPF_COUNT_MAX; k++)
		sum[k] += __atomic_load_n(&a->skel->bss->sample_counts[k], __ATOMIC_RELAXED);
}

void att_loss(const struct att *a, enum att_ring ring, struct mxbpf_loss *loss)
{
	static void (*const of[ATT_RINGS])(const struct att *a, uint64_t sum[MXBPF_COUNT_MAX]) = {
		[ATT_CALLS] = call_counts, [ATT_SWITCHES] = sched_counts, [ATT_SAMPLES] = sample_counts};
	uint64_t sum[MXBPF_COUNT_MAX] = {0};

	of[ring](a, sum);
	*loss = (struct mxbpf_loss){
		.attempted = sum[MXBPF_COUNT_ATTEMPTED],
		.dropped = sum[MXBPF_COUNT_DROPPED],
		.truncated = sum[MXBPF_COUNT_TRUNCATED],
		.unreadable = sum[MXBPF_COUNT_UNREADABLE],
		.unmatched = sum[MXBPF_COUNT_UNMATCHED],
	};
}

uint64_t att_ring_full(const struct att *a)
{
	return __atomic_load_n(&a->skel->bss->ring_full, __ATOMIC_RELAXED);
}

uint64_t att_entries(const struct att *a, const struct plan *p)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < buf_count(&p->funcs, uint64_t) && p->first_func + i < MXBPF_FUNCS_MAX; i++)
		sum += __atomic_load_n(&a->cut_checks[p->first_func + i].entries, __ATOMIC_RELAXED);
	return sum;
}

uint64_t att_hits(const struct att *a)
{
	uint64_t sum[MXBPF_COUNT_MAX] = {0};

	call_counts(a, sum);
	return sum[MXBPF_COUNT_HITS];
}

const struct mxbpf_frame *att_frame(const struct att *a, const struct mxbpf_thread *t, unsigned k)
{
	uint32_t slot = __atomic_load_n(&t->slots[k / MXBPF_SLOT_FRAMES], __ATOMIC_RELAXED);

	return &a->threads[slot < a->nslots ? slot : 0].frames[k % MXBPF_SLOT_FRAMES];
}

struct left {
	uint64_t until_ns;
	att_left_fn was_left;
	void *was_left_ctx;
	void (*fn)(void *ctx, const struct mxbpf_span *s);
	void *ctx;
};

static unsigned left_of_thread(const struct att *a, const struct mxbpf_thread *t, const struct left *l)
{
	uint64_t inner_ns = 0; /* duration of the frame nested in this one, in ns */
	unsigned k, n = 0;

	for (k = t->depth; k-- > 0 && k < MXBPF_FRAMES_MAX; n++) {
		const struct mxbpf_frame *f = att_frame(a, t, k);
		const bool thrown = f->end == MXBPF_END_CUT && t->raised_ns > f->start_ns;
		const uint64_t dur_ns = (thrown ? t->raised_ns : l->until_ns) - f->start_ns;
		const uint64_t child_ns = f->child_ns + inner_ns;
		/*
		 * The autograd node of an operator is known only at its end. Backward spans have its number from the
		 * start.
		 */
		const uint32_t flags = f->flags & MXBPF_SPAN_BACKWARD ? f->flags : f->flags & ~(uint32_t)MXBPF_SPAN_SEQ;
		struct mxbpf_span s = {
			.h = {.kind = MXBPF_SPAN,
			      .size = f->layer_id ? sizeof(s) : MXBPF_SPAN_BYTES_ACCOUNT,
			      .tgid = t->tgid,
			      .ts_ns = f->start_ns},
			.dur_ns = dur_ns,
			.self_ns = dur_ns > child_ns ? dur_ns - child_ns : 0,
			.name_id = f->name_id,
			.link = f->link,
			.tid = f->tid,
			.end_tid = f->tid,
			.device = f->device,
			.cls = f->cls,
			.flags = (uint8_t)(MXBPF_SPAN_UNWOUND | flags),
			.cpu = f->cpu,
			.alloc_bytes = f->alloc_bytes,
			.self_alloc_bytes = f->self_alloc_bytes,
			.args_id = f->args_id,
			.stack_id = f->stack_id,
			.seq = f->seq,
			.origin = f->origin,
			.account = {.end_cpu = f->cpu,
				    .flags = MXBPF_ACCOUNT_PART}, /* the account could not be read at the end */
			.counters = {MXBPF_COUNTER_NONE},
			.layer_id = f->layer_id,
		};

		if (f->flags & MXBPF_FRAME_SLICED) /* its slice is over, so nobody saw its end */
			break;
		if ((f->end != MXBPF_END_CUT && f->end != MXBPF_END_NEXT) || !l->was_left(l->was_left_ctx, f))
			break;
		l->fn(l->ctx, &s);
		inner_ns = dur_ns;
	}
	return n;
}

unsigned att_left_spans(const struct att *a, uint64_t until_ns, att_left_fn left, void *left_ctx,
			void (*fn)(void *ctx, const struct mxbpf_span *s), void *ctx)
{
	const struct left l = {until_ns, left, left_ctx, fn, ctx};
	unsigned i, n = 0;

	for (i = 1; i < MXBPF_THREADS_MAX; i++)
		if (a->threads[i].slot && a->threads[i].depth)
			n += left_of_thread(a, &a->threads[i], &l);
	return n;
}

/*
 * Returns true if a cut misses ends. A wrong cut fails again and again. Losses for other reasons (a jump out of the
 * function, a switch of stacks) and foreign ends (calls in flight when recording started) are rare in comparison.
 */
static bool cut_fails(const struct att *a, const struct mxbpf_cut_check *c, const struct mxbpf_row *row)
{
	/* If exceptions are not probed, they may explain all losses, unless no call ever ends at the cut. */
	if (c->lost >= CUT_LOST_MIN && c->lost >= c->entries / CUT_LOST_PART && (a->sees_raises || !c->matched))
		return true;
	/* Hidden calls, and inner operators whose task has a span already, have no span for the cut to end. */
	return !row->hides && !row->inside && c->foreign >= CUT_FOREIGN_MIN &&
	       c->foreign >= c->entries / CUT_FOREIGN_PART;
}

void att_check_cuts(struct att *a, const struct plan *p, void (*fn)(void *ctx, const char *name, uint64_t spans),
		    void *ctx)
{
	const struct plan_site *sites;
	struct mxbpf_cut_check c;
	struct timespec now;
	size_t i, n;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sites = sites_of(p, &n);
	for (i = 0; i < n; i++) {
		uint32_t func = (uint32_t)(sites[i].cookie & MXBPF_FUNC_MASK);

		if (sites[i].row->action != MXBPF_ACT_OPEN || sites[i].row->end != MXBPF_END_CUT)
			continue;
		c = a->cut_checks[func];
		if (c.fallen_ns || !cut_fails(a, &c, sites[i].row))
			continue;
		__atomic_store_n(&a->cut_checks[func].fallen_ns,
				 (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, __ATOMIC_RELAXED);
		fn(ctx, plan_func_name(p, sites[i].probe, func), c.matched + c.unwound);
	}
}

/* Returns the size of a map, or 0 for an invalid fd. */
static uint64_t map_bytes(int fd)
{
	char path[64], line[128];
	uint64_t bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "memlock: %lu", &bytes) != 1)
		;
	if (f)
		fclose(f);
	return bytes;
}

uint64_t att_map_bytes(const struct att *a)
{
	uint64_t sum = 0;
	struct bpf_map *map;

	bpf_object__for_each_map(map, a->skel->obj) sum += map_bytes(bpf_map__fd(map));
	return sum;
}
