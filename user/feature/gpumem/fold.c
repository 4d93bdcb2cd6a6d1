// SPDX-License-Identifier: Apache-2.0
/*
 * Adds up calls of CUDA that allocate and free memory, by the operator around them. Spans and calls come in any order,
 * so each looks for the others that came before: a call among the last spans, and a span among the last calls. A
 * program has few such calls, because its runtime keeps memory.
 */
#include "feature/gpumem/gpumem.h"
#include "feature/gpumem/regions.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "feature/memory/memory.h"

#define SPANS_KEPT 8192u /* a power of two: 384 KiB */
#define CALLS_KEPT 1024u /* calls whose operator may still end; older ones count with the one that was found */
#define STORED_MAX 1024u /* devices of processes */

struct kept_span {
	uint64_t start_ns, end_ns, name_id, stack_id;
	uint32_t tgid, tid;
};
struct call {
	struct mxbpf_gpu_alloc a;
	uint64_t op_start_ns, op_id, stack_id; /* innermost operator so far; 0: none */
};
struct state {
	struct kept_span *spans; /* owned, a ring; NULL: there was no sign of a GPU */
	uint64_t nspans;
	struct buf calls; /* struct call */
	struct gpumem_regions regions;
	struct buf stored; /* struct mxbpf_gpu_inside */
};

static struct state *gpumem_state_of(struct mdl *m)
{
	return mdl_state(m, &feature_gpumem);
}

/* From now on spans are kept: there is a GPU. */
static int device(struct mdl *m)
{
	struct state *t = gpumem_state_of(m);

	if (t && !t->spans)
		t->spans = mem_zalloc(SPANS_KEPT * sizeof(*t->spans));
	if (t)
		t->regions.on = true;
	return t && t->spans ? 0 : -ENOMEM;
}

/* ---- rows */

static struct gpumem_row gpumem_row_of(const struct call *c)
{
	const struct mxbpf_gpu_alloc *a = &c->a;
	const bool failed = a->flags & MXBPF_GPU_ALLOC_FAILED, freed = a->flags & MXBPF_GPU_ALLOC_FREED;

	return (struct gpumem_row){
		.tgid = a->h.tgid,
		.name_id = a->name_id,
		.op_id = c->op_id,
		.stack_id = c->stack_id,
		.count = !(a->flags & MXBPF_GPU_ALLOC_MORE),
		.failed = failed,
		.alloc_bytes = freed ? 0 : a->bytes,
		.free_bytes = freed ? a->bytes : 0,
		.total_ns = a->dur_ns,
		.max_ns = a->dur_ns,
		.pool_peak_bytes = a->pool_bytes,
		.device = a->device,
		.kind = failed ? MXBPF_MEMORY_UNKNOWN : a->kind,
	};
}

/* ---- joining */

static void gpumem_look_at(struct call *c, const struct kept_span *s)
{
	if (s->tid != c->a.tid || s->tgid != c->a.h.tgid || s->start_ns > c->a.h.ts_ns || s->end_ns < c->a.h.ts_ns ||
	    s->start_ns < c->op_start_ns)
		return;
	c->op_start_ns = s->start_ns;
	c->op_id = s->name_id;
	c->stack_id = s->stack_id;
}

static int gpumem_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	struct state *t = (struct state *)mdl_state_of(m, &feature_gpumem);
	const bool details = s->h.size >= MXBPF_SPAN_BYTES_DETAILS;
	struct kept_span *k;
	size_t i;

	(void)row;
	if (!t || !t->spans || s->cls != MXBPF_CLASS_OPERATOR || s->flags & MXBPF_SPAN_USER)
		return 0;
	k = &t->spans[t->nspans++ % SPANS_KEPT];
	*k = (struct kept_span){.start_ns = s->h.ts_ns,
				.end_ns = s->h.ts_ns + s->dur_ns,
				.name_id = s->name_id,
				.stack_id = details ? s->stack_id : 0,
				.tgid = s->h.tgid,
				.tid = s->tid};
	for (i = 0; i < buf_count(&t->calls, struct call); i++)
		gpumem_look_at(buf_at(&t->calls, struct call, i), k);
	return 0;
}

/* A call that has failed, or maps memory, has no record of memory. Its GPU is that of the thread's call before it, if
 * there is one. */
static uint32_t gpumem_device_of(const struct state *t, const struct mxbpf_gpu_alloc *a)
{
	size_t i = buf_count(&t->calls, struct call);
	const struct mxbpf_gpu_alloc *before;

	while (!a->kind && !a->addr && i--) {
		before = &buf_at(&t->calls, const struct call, i)->a;
		if (before->tid == a->tid && before->h.tgid == a->h.tgid)
			return before->device;
	}
	return a->device;
}

/* The older half of the calls counts. */
static int gpumem_settle(struct mdl *m, struct state *t)
{
	const size_t n = buf_count(&t->calls, struct call), gone = n / 2;
	struct call *c = (struct call *)t->calls.data;
	struct gpumem_row one;
	size_t i;

	for (i = 0; i < gone; i++) {
		one = gpumem_row_of(&c[i]);
		if (mdl_table_add(m, &feature_gpumem, &gpumem_table, &one))
			return -ENOMEM;
	}
	memmove(c, c + gone, (n - gone) * sizeof(*c));
	t->calls.len -= gone * sizeof(*c);
	return 0;
}

static int gpumem_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *t = gpumem_state_of(m);
	struct call c = {.a = *(const struct mxbpf_gpu_alloc *)(const void *)rec};
	uint64_t i;

	if (!t || mdl_expect_name(m, c.a.name_id) || gpumem_regions_call(&t->regions, &c.a))
		return -ENOMEM;
	c.a.device = gpumem_device_of(t, &c.a);
	for (i = 0; t->spans && i < t->nspans && i < SPANS_KEPT; i++)
		gpumem_look_at(&c, &t->spans[i]);
	if (buf_put(&t->calls, &c, sizeof(c)))
		return -ENOMEM;
	return buf_count(&t->calls, struct call) > CALLS_KEPT ? gpumem_settle(m, t) : 0;
}

/* Reports come before the first sign of a GPU, too. */
static int alloc(struct mdl *m, const struct mxbpf_alloc *a)
{
	struct state *t;

	if (a->h.size < sizeof(*a) || !a->pool_bytes) /* shorter forms lack what the allocator counts */
		return 0;
	t = gpumem_state_of(m);
	return t ? gpumem_regions_report(&t->regions, a) : -ENOMEM;
}

const struct gpumem_regions *gpumem_regions_of(const struct mdl *m)
{
	const struct state *t = mdl_state_of(m, &feature_gpumem);

	return t ? &t->regions : NULL;
}

const struct mxbpf_gpu_inside *gpumem_stored(const struct mdl *m, uint32_t tgid, uint32_t device)
{
	const struct state *t = mdl_state_of(m, &feature_gpumem);
	const struct mxbpf_gpu_inside *r;
	size_t i = t ? buf_count(&t->stored, *r) : 0;

	while (i--) {
		r = buf_at(&t->stored, const struct mxbpf_gpu_inside, i);
		if (r->h.tgid == tgid && r->device == device)
			return r;
	}
	return NULL;
}

static int fold_stored(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_gpu_inside r = *(const struct mxbpf_gpu_inside *)(const void *)rec;
	struct state *t = gpumem_state_of(m);

	r.h.size = sizeof(r); /* a newer version has a longer record */
	return t ? buf_put_latest(&t->stored, &r, sizeof(r), STORED_MAX) : -ENOMEM;
}

/* ---- the state */

/* Calls whose operator may still end count with the one that was found. */
static int gpumem_finish(const struct mdl *m, struct tbl *copies)
{
	const struct state *t = mdl_state_of(m, &feature_gpumem);
	struct gpumem_row one;
	bool added;
	size_t i;

	copies->def = &gpumem_table;
	for (i = 0; i < buf_count(&t->calls, struct call); i++) {
		one = gpumem_row_of(buf_at(&t->calls, const struct call, i));
		if (!tbl_add(copies, &one, &added))
			return -ENOMEM;
	}
	return 0;
}

static int gpumem_emit(const struct mdl *m, struct buf *out)
{
	const struct mxbpf_mem_time *t;
	struct mxbpf_gpu_inside one;
	int err = 0;
	size_t i;

	for (i = 0; !err && (t = memory_device(m, i)); i++) {
		if (!t->counted && !t->pool_peak_bytes) /* the CPU, or an allocator that has no segments */
			continue;
		one = gpumem_inside(m, t);
		if (one.calls_bytes != MXBPF_GPU_INSIDE_UNKNOWN)
			err = buf_put(out, &one, sizeof(one));
	}
	return err;
}

static int gpumem_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_gpumem);
	struct state *t = gpumem_state_of(to);

	if (!t || buf_put(&t->calls, f->calls.data, f->calls.len) || gpumem_regions_copy(&t->regions, &f->regions))
		return -ENOMEM;
	return buf_put(&t->stored, f->stored.data, f->stored.len);
}

/* Calls count in the interval in which they came. Spans go on, because a later call may lie in one of them. */
static int gpumem_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct state *t = gpumem_state_of(to), *f = gpumem_state_of(from);

	(void)now_ns;
	if (!t)
		return -ENOMEM;
	t->spans = f->spans;
	t->nspans = f->nspans;
	f->spans = NULL;
	t->regions = f->regions;
	f->regions = (struct gpumem_regions){.lost = true};
	return 0;
}

static int processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	const struct state *t = mdl_state_of(m, &feature_gpumem);

	return mdl_items_processes(&t->calls, sizeof(struct call), fn, ctx);
}

static void gpumem_fini(struct mdl *m)
{
	struct state *t = gpumem_state_of(m);

	mem_free(t->spans);
	buf_fini(&t->calls);
	gpumem_regions_fini(&t->regions);
	buf_fini(&t->stored);
	*t = (struct state){0};
}

const struct mdl_feature feature_gpumem = {
	.state_bytes = sizeof(struct state),
	.by_process = true, /* each process numbers its devices itself */
	.kinds = {{MXBPF_GPU_ALLOC, gpumem_fold}, {MXBPF_GPU_INSIDE, fold_stored}},
	.tables = {{&gpumem_table}},
	.finish = gpumem_finish,
	.span = gpumem_span,
	.device = device,
	.alloc = alloc,
	.emit = gpumem_emit,
	.copy = gpumem_copy,
	.move = gpumem_move,
	.processes = processes,
	.fini = gpumem_fini,
};
