// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the iterations of training loops without help of the program. A loop is what a thread does: its iterations
 * begin and end on it. Calls of threads that end no iterations, such as those of an engine, are parts of the iterations
 * of all loops of their process. An iteration ends with:
 *
 * 1. the last operator of an optimizer before the next backward pass, or the optimizer's step if that is a call. If
 * there are several optimizers, the first one that was seen in the loop counts.
 * 2. without an optimizer: the last call of a KVStore before the next backward pass.
 * 3. without both: the start of a backward pass.
 *
 * Records of one thread must come in the order of their ends.
 */
#include "feature/activity/activity.h"
#include "feature/steps/loops.h"
#include "feature/steps/steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PIECES_MAX   (1u << 18) /* per process, which its loops share */
#define POWER_LEAST  0.5	/* between estimates and what was measured */
#define POWER_MOST   4.0
#define COST_MOST    0.95
#define NEWTON_TRIES 6
#define ALONE_MAX    32 /* steps without a backward pass, after which passes are not seen any more, see ends_step() */

/* The meaning of a span for iterations, by its name. */
enum role {
	ROLE_NONE,
	ROLE_LOADER,	/* takes a batch from a worker of a loader: the thread waited for it before the call */
	ROLE_DATA,	/* waits for data */
	ROLE_KVSTORE,	/* a call of the KVStore that moves parameters */
	ROLE_MOVES,	/* ROLE_KVSTORE if the class of the span is KVSTORE */
	ROLE_EXCHANGE,	/* exchanges data with other processes, from start to end */
	ROLE_OPTIMIZER, /* a step of an optimizer */
	ROLE_PASS,	/* runs in a backward pass */
	ROLE_WAITS,	/* a call of the C API that does nothing but wait: for recordings of others, which lack waits */
};

static const struct {
	const char *prefix;
	enum role role;
} roles[] = {
	{"MXNDArrayCreateFromSharedMem", ROLE_LOADER},
	{"MXDataIter", ROLE_DATA},
	{"enumerate(DataLoader)#", ROLE_DATA},
	{"MXKVStorePush", ROLE_KVSTORE},
	{"MXKVStorePull", ROLE_KVSTORE},
	{"push", ROLE_MOVES},
	{"pull", ROLE_MOVES},
	{"Optimizer.step#", ROLE_OPTIMIZER},
	{"autograd::engine::evaluate_function", ROLE_PASS},
	{"MXNDArrayWait", ROLE_WAITS},
	{"MXNDArraySyncCopyToCPU", ROLE_WAITS},
	{"gloo:", ROLE_EXCHANGE},
	{"nccl:", ROLE_EXCHANGE},
	{"mpi:", ROLE_EXCHANGE},
	{"ucc:", ROLE_EXCHANGE},
	{"xccl:", ROLE_EXCHANGE},
	{"KVStoreDist", ROLE_EXCHANGE},
};

/* A process that has no iterations so far may have some later, so its memory counts from the start. */
static int steps_alloc(struct mdl *m, const struct mxbpf_alloc *a)
{
	struct steps_state *state = mdl_state(m, &feature_steps);
	struct loops *p = state ? loops_process_add(state, a->h.tgid) : NULL;

	return p ? loops_alloc(p, a->h.ts_ns, a->bytes) : -ENOMEM;
}

static int steps_window(struct mdl *m)
{
	struct steps_state *state = mdl_state(m, &feature_steps);
	size_t i;
	int err = 0;

	if (!state)
		return -ENOMEM;
	loops_settle_memory(state);
	for (i = 0; !err && i < buf_count(&state->told, struct mdl_ended); i++)
		err = mdl_see_iteration(m, buf_at(&state->told, const struct mdl_ended, i));
	state->told.len = 0;
	return err;
}

static int sampled(struct steps_state *m, struct loops *p, const struct mxbpf_step *s)
{
	struct loop *l;
	size_t i;

	if (p->mode != MXBPF_STEP_COUNTED)
		loops_mode(m, p, MXBPF_STEP_COUNTED);
	for (i = 0; s->flags & MXBPF_STEP_OPENS && (l = loops_at(p, i)); i++)
		l->start_ns = 0;
	l = loops_add(p, s->tid);
	return l ? loops_boundary(m, p, l, s->h.ts_ns) : 0;
}

/*
 * Handles the end of an optimizer's step, or its start in a program in C++. If backward passes are seen, they say which
 * steps belong together. Passes that were seen may be so no longer, because --max-overhead has left out their probes;
 * then each step is the end of an iteration, and those up to now cannot be told apart. In slices passes are seen, but
 * not between them.
 */
static int ends_step(struct steps_state *m, struct loops *p, uint64_t optimizer, uint64_t end_ns, uint32_t tid)
{
	struct loop *l = loops_may_end(m, p, MXBPF_STEP_OPTIMIZER, optimizer, end_ns, tid);

	if (!l)
		return 0;
	if (l->passes && !m->sliced) {
		if (++l->alone < ALONE_MAX)
			return 0;
		l->start_ns = 0;
	}
	l->passes = false;
	return loops_end(m, p, l);
}

static int steps_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_step *s = (const void *)rec;
	struct steps_state *state = mdl_state(m, &feature_steps);
	struct loops *p = state ? loops_process_add(state, s->h.tgid) : NULL;
	struct loop *l;

	mdl_tally_add(m, MXBPF_CLASS_STEP, MXBPF_TALLY_MOMENTS, 1);
	if (!p)
		return -ENOMEM;
	if (s->what == MXBPF_STEP_COUNTED)
		return sampled(state, p, s);
	if (p->mode == MXBPF_STEP_COUNTED)
		return 0;
	if (s->what == MXBPF_STEP_UPDATE && state->sliced)
		return 0;
	if (s->what == MXBPF_STEP_UPDATE) {
		l = loops_may_end(state, p, s->what, s->key, s->h.ts_ns, s->tid);
		if (l)
			l->called = true;
		return 0;
	}
	if (s->what == MXBPF_STEP_OPTIMIZER)
		return ends_step(state, p, s->key, s->h.ts_ns, s->tid);
	if (p->mode > MXBPF_STEP_BACKWARD)
		return loops_pass(state, p, s->tid);
	p->passes = true;
	p->mode = MXBPF_STEP_BACKWARD;
	l = loops_add(p, s->tid);
	if (l)
		l->passes = true;
	return l ? loops_boundary(state, p, l, s->h.ts_ns) : 0;
}

static int steps_fold_lost(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct steps_state *state = mdl_state(m, &feature_steps);

	if (state)
		lost_add(&state->lost, (const void *)rec);
	return state ? 0 : -ENOMEM;
}

void steps_sliced(struct mdl *m, bool sliced)
{
	struct steps_state *state = mdl_state(m, &feature_steps);
	const struct hash_entry *e;
	struct loops *p;
	struct loop *l;
	size_t pos = 0, i;

	if (!state)
		return;
	state->sliced = sliced;
	while (sliced && (e = hash_next(&state->processes, &pos))) {
		p = (struct loops *)(uintptr_t)e->val;
		if (p->mode != MXBPF_STEP_UPDATE)
			continue;
		p->mode = MXBPF_STEP_BACKWARD;
		for (i = 0; (l = loops_at(p, i)); i++) {
			l->burst = false;
			l->start_ns = l->main_key = 0;
		}
	}
}

/* Drops the iterations of a process that have a part of this time, but also of another. */
static void drop(struct steps_state *m, uint32_t tgid, uint64_t from_ns, uint64_t to_ns)
{
	struct mxbpf_iteration *it = (struct mxbpf_iteration *)m->iterations.data;
	size_t i, n = buf_count(&m->iterations, *it), kept = 0;

	for (i = 0; i < n; i++)
		if (it[i].h.tgid != tgid || steps_end_ns(&it[i]) <= from_ns || it[i].h.ts_ns > to_ns ||
		    (it[i].h.ts_ns >= from_ns && steps_end_ns(&it[i]) <= to_ns))
			it[kept++] = it[i];
	m->iterations.len = kept * sizeof(*it);
}

void steps_gap(struct mdl *m, uint32_t tgid, uint64_t from_ns, uint64_t to_ns)
{
	struct steps_state *state = mdl_state(m, &feature_steps);
	struct loops *p = state ? loops_process(state, tgid) : NULL;
	struct loop *l;
	size_t i;

	if (!p)
		return;
	for (i = 0; (l = loops_at(p, i)); i++) {
		if (l->burst) /* no pass is seen that would confirm it */
			loops_end(state, p, l);
		loops_settle(state, p, l); /* without memory it is not kept */
		l->start_ns = 0;
	}
	drop(state, tgid, from_ns, to_ns);
}

/* ---- spans */

static enum role role_of_name(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strncmp(name, roles[i].prefix, strlen(roles[i].prefix)))
			return roles[i].role;
	return ROLE_NONE;
}

enum steps_sign steps_sign_of(const char *name)
{
	const enum role role = role_of_name(name);

	return role == ROLE_OPTIMIZER ? STEPS_ENDS : role == ROLE_PASS ? STEPS_CONFIRMS : STEPS_NO_SIGN;
}

bool steps_is_exchange(const struct mdl *m, uint64_t name_id)
{
	return role_of_name(mdl_name(m, name_id, NULL)) == ROLE_EXCHANGE;
}

bool steps_is_data(const struct mdl *m, uint64_t name_id)
{
	const enum role role = role_of_name(mdl_name(m, name_id, NULL));

	return role == ROLE_DATA || role == ROLE_LOADER;
}

static enum role steps_role_of(const struct mdl *m, struct steps_state *state, uint64_t name_id)
{
	const uint64_t *known = hash_get(&state->roles, name_id, 0);
	enum role role;
	uint64_t *at;

	if (known)
		return (enum role) * known;
	if (!mdl_has_name(m, name_id))
		return ROLE_NONE;
	role = role_of_name(mdl_name(m, name_id, NULL));
	at = hash_put(&state->roles, name_id, 0);
	if (at)
		*at = role;
	return role;
}

static enum role role_of_span(const struct mdl *m, struct steps_state *state, const struct mxbpf_span *s)
{
	const enum role role = steps_role_of(m, state, s->name_id);

	if (role != ROLE_MOVES)
		return role;
	return s->cls == MXBPF_CLASS_KVSTORE ? ROLE_KVSTORE : ROLE_NONE;
}

static const uint8_t part_of_role[] = {
	[ROLE_LOADER] = MXBPF_PART_DATA,
	[ROLE_DATA] = MXBPF_PART_DATA,
	[ROLE_KVSTORE] = MXBPF_PART_KVSTORE,
	[ROLE_EXCHANGE] = MXBPF_PART_KVSTORE,
};

/* 1 + enum mxbpf_step_part; 0: spans of the class belong to no part. */
static const uint8_t part_of_class[MXBPF_CLASS_MAX] = {
	[MXBPF_CLASS_API] = MXBPF_PART_API + 1,		[MXBPF_CLASS_OPERATOR] = MXBPF_PART_OPERATOR + 1,
	[MXBPF_CLASS_WAIT] = MXBPF_PART_WAIT + 1,	[MXBPF_CLASS_KERNEL] = MXBPF_PART_OPERATOR + 1,
	[MXBPF_CLASS_DATA] = MXBPF_PART_DATA + 1,	[MXBPF_CLASS_KVSTORE] = MXBPF_PART_KVSTORE + 1,
	[MXBPF_CLASS_CUSTOM] = MXBPF_PART_OPERATOR + 1,
};

static uint8_t part_of(struct loops *p, const struct mxbpf_span *s, enum role role)
{
	p->waits |= s->cls == MXBPF_CLASS_WAIT;
	return role == ROLE_WAITS && s->cls == MXBPF_CLASS_API && !p->waits ? MXBPF_PART_WAIT
									    : part_of_class[s->cls] - 1;
}

static int add_piece(const struct loops *p, struct loop *l, const struct piece *piece)
{
	if (!l->start_ns)
		return 0;
	if (buf_count(&l->pieces, *piece) >= PIECES_MAX / buf_count(&p->loops, *l)) {
		l->full = true;
		return 0;
	}
	return buf_put(&l->pieces, piece, sizeof(*piece));
}

/*
 * Keeps a span for the parts of an iteration. User annotations do no work and can enclose any span, except those that
 * the runtime makes, which have a role.
 */
static int put_piece(struct loops *p, const struct mxbpf_span *s, enum role role)
{
	const bool named = (role >= ROLE_LOADER && role <= ROLE_KVSTORE) || role == ROLE_EXCHANGE;
	struct piece piece = {.start_ns = s->h.ts_ns, .end_ns = s->h.ts_ns + s->dur_ns, .loader = role == ROLE_LOADER};
	const bool works = part_of_class[s->cls] && (!(s->flags & MXBPF_SPAN_USER) || named);
	const struct loop *own = loops_of(p, s->tid);
	struct loop *l;
	size_t i;
	int err = 0;

	if (!works && !s->cost.self)
		return 0;
	piece.part = !works ? MXBPF_STEP_PARTS : named ? part_of_role[role] : part_of(p, s, role);
	piece.busy = part_of_class[s->cls] - 1 == MXBPF_PART_OPERATOR && !(s->flags & MXBPF_SPAN_USER);
	piece.awaited = role == ROLE_EXCHANGE ? AWAITS_EXCHANGE : role == ROLE_PASS ? AWAITS_PASS : AWAITS_NOTHING;
	piece.tid = s->flags & MXBPF_SPAN_ASYNC ? 0 : s->tid;
	piece.self_cost_ns = (uint64_t)s->cost.self * MXBPF_COST_UNIT_NS;
	piece.self_runq_ns = s->account.runq_ns > s->nested.runq_ns ? s->account.runq_ns - s->nested.runq_ns : 0;
	piece.before_cost_ns = (uint64_t)s->cost.before * MXBPF_COST_UNIT_NS;
	for (i = 0; !err && (l = loops_at(p, i)); i++)
		if (!own || l == own)
			err = add_piece(p, l, &piece);
	return err;
}

/* Looks for the end of an iteration in a span. */
static int see_span(struct steps_state *state, struct loops *p, const struct mxbpf_span *s, enum role role)
{
	const uint64_t end_ns = s->h.ts_ns + s->dur_ns;
	struct loop *l = s->cls == MXBPF_CLASS_API ? loops_of(p, s->tid) : NULL;

	if (l && l->called && l->burst) {
		if (end_ns > l->burst_end_ns)
			l->burst_end_ns = end_ns;
		l->called = false;
	}
	if (p->mode == MXBPF_STEP_COUNTED)
		return 0;
	if (role == ROLE_PASS)
		return loops_pass(state, p, s->tid);
	if (role == ROLE_KVSTORE && p->passes)
		loops_may_end(state, p, MXBPF_STEP_KVSTORE, 1, end_ns, s->tid);
	return role == ROLE_OPTIMIZER ? ends_step(state, p, s->name_id, end_ns, s->tid) : 0;
}

static int steps_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	struct steps_state *state = mdl_state(m, &feature_steps);
	struct loops *p;
	enum role role;
	int err;

	if (!state)
		return -ENOMEM;
	role = role_of_span(m, state, s);
	if (role == ROLE_OPTIMIZER || role == ROLE_PASS) {
		p = loops_process_add(state, s->h.tgid);
		if (!p)
			return -ENOMEM;
	} else {
		p = loops_process(state, s->h.tgid);
		if (!p)
			return 0;
	}
	err = see_span(state, p, s, role);
	return err ? err : put_piece(p, s, role);
}

int steps_resumed(struct mdl *m, const struct mxbpf_gauge *g)
{
	struct steps_state *state;

	if (!(g->flags & MXBPF_GAUGE_RESUMED))
		return 0;
	state = mdl_state(m, &feature_steps);
	if (state && g->h.ts_ns > state->resumed_ns)
		state->resumed_ns = g->h.ts_ns;
	return state ? 0 : -ENOMEM;
}

/* ---- the state */

static int steps_fold_iteration(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct steps_state *state = mdl_state(m, &feature_steps);
	struct mxbpf_iteration it = {0};

	if (!state)
		return -ENOMEM;
	memcpy(&it, rec, rec->size < sizeof(it) ? rec->size : sizeof(it)); /* before version 1.3 it was shorter */
	it.h.size = sizeof(it);						   /* a newer version has a longer record */
	memset(it.pad, 0, sizeof(it.pad));
	if (rec->size < sizeof(it))
		it.flags &= (uint8_t)~MXBPF_ITERATION_COST;
	return loops_keep(state, &it);
}

/* Adds what is known of GPUs. The iterations of a recording have it already. */
static void add_gpu(const struct mdl *m, struct mxbpf_iteration *it)
{
	struct mxbpf_gpu_work work;

	if (!activity_of_iteration(m, it->h.tgid, it->h.ts_ns, it->dur_ns, &work))
		return;
	it->flags |= MXBPF_ITERATION_GPU;
	it->gpu_ns = work.gpu_ns;
	it->kernels = work.kernels;
}

static int emit_one(const struct mdl *m, const struct mxbpf_iteration *from, struct buf *out)
{
	struct mxbpf_iteration it = *from;

	add_gpu(m, &it);
	it.h.size = it.flags & MXBPF_ITERATION_COST  ? sizeof(it)
		    : it.flags & MXBPF_ITERATION_GPU ? MXBPF_ITERATION_BYTES_GPU
						     : MXBPF_ITERATION_BYTES_PLAIN;
	return buf_put(out, &it, it.h.size);
}

static int add_extent(const struct loops *p, const struct loop *l, const struct extent *x, uint64_t nr, struct buf *out)
{
	struct mxbpf_iteration it;
	const int err = parts_make(&l->pieces, p->tgid, x, nr, &it);

	it.live_bytes = loops_live(p, x->end_ns);
	return err ? err : buf_put(out, &it, sizeof(it));
}

/* Appends the iterations that steps_iterations() would end, without ending them, because the window goes on. */
static int add_pending(const struct steps_state *m, const struct loops *p, const struct loop *l, struct buf *out)
{
	const struct extent last = loops_extent(m, p, l, l->burst_end_ns);
	const bool ended = l->ended.end_ns;
	const int err = ended ? add_extent(p, l, &l->ended, l->nr, out) : 0;

	if (err || !l->burst || !loops_counts(l) || !loops_whole(m, l, l->burst_end_ns))
		return err;
	return add_extent(p, l, &last, l->nr + ended, out);
}

int steps_list(const struct mdl *m, bool pending, struct buf *out)
{
	const struct steps_state *state = mdl_state_of(m, &feature_steps);
	const struct loops *p;
	const struct hash_entry *h;
	const struct loop *l;
	size_t pos = 0, i;
	const size_t before = out->len;
	int err = state ? buf_put(out, state->iterations.data, state->iterations.len) : 0;

	if (!err && state)
		loops_set_memory(state, (struct mxbpf_iteration *)(out->data + before),
				 buf_count(&state->iterations, struct mxbpf_iteration));
	while (!err && state && pending && (h = hash_next(&state->processes, &pos))) {
		p = (const void *)(uintptr_t)h->val;
		for (i = 0; !err && (l = loops_at(p, i)); i++)
			err = add_pending(state, p, l, out);
	}
	return err;
}

static int steps_emit(const struct mdl *m, struct buf *out)
{
	struct buf all = {0};
	int err = steps_list(m, true, &all);
	size_t i;

	for (i = 0; !err && i < buf_count(&all, struct mxbpf_iteration); i++)
		err = emit_one(m, buf_at(&all, struct mxbpf_iteration, i), out);
	buf_fini(&all);
	return err;
}

static int steps_by_start(const void *va, const void *vb)
{
	const struct mxbpf_iteration *a = va, *b = vb;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->h.ts_ns < b->h.ts_ns ? -1 : a->h.ts_ns > b->h.ts_ns;
}

const struct mxbpf_iteration *steps_iterations(struct mdl *m, size_t *n)
{
	struct steps_state *state = mdl_state(m, &feature_steps);
	const struct hash_entry *h;
	struct loop *l;
	size_t pos = 0, i;

	*n = 0;
	if (!state)
		return NULL;
	while ((h = hash_next(&state->processes, &pos))) {
		struct loops *p = (void *)(uintptr_t)h->val;

		/* If there is no memory, the iteration is missing. */
		for (i = 0; (l = loops_at(p, i)); i++) {
			if (l->burst)
				loops_end(state, p, l);
			loops_settle(state, p, l);
		}
	}
	loops_settle_memory(state);
	*n = buf_count(&state->iterations, struct mxbpf_iteration);
	for (i = 0; i < *n; i++)
		add_gpu(m, buf_at(&state->iterations, struct mxbpf_iteration, i));
	if (*n)
		qsort(state->iterations.data, *n, sizeof(struct mxbpf_iteration), steps_by_start);
	return (const void *)state->iterations.data;
}

const struct mxbpf_iteration *steps_at(const struct mxbpf_iteration *it, size_t n, uint64_t ns)
{
	size_t low = 0, high = n, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (steps_end_ns(&it[mid]) <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && it[low].h.ts_ns <= ns ? &it[low] : NULL;
}

/* The part of an iteration that is cost by the estimates. They are never so exact that nothing is left. */
static double cost_share(const struct mxbpf_iteration *it, const struct mdl_cost *cost)
{
	const double share = it->dur_ns ? (double)parts_cost(it, cost) / (double)it->dur_ns : 0;

	return share < COST_MOST ? share : COST_MOST;
}

/* Of how much the iterations of other threads shrink nothing is known but the estimates. */
static bool is_measured(const struct mxbpf_iteration *it, const struct mdl_cost *cost)
{
	return !cost->thread || it->tid == cost->thread;
}

/*
 * An iteration keeps a power of the share that is not cost. The more of it is cost, the less can be missing in the
 * estimate, and the nearer the power is to 1.
 */
static double power_for(double p, double share)
{
	return p > 1 ? 1 + (p - 1) * (1 - share) * (1 - share) : p;
}

/* What is left of all iterations with p, and how much less that gets with a larger p (*slope, below 0). */
static double left_of(const struct mxbpf_iteration *it, size_t n, const struct mdl_cost *cost, double p, double *slope)
{
	double sum = 0, share, l, left;
	size_t i;

	*slope = 0;
	for (i = 0; i < n; i++) {
		if (it[i].flags & MXBPF_ITERATION_LOST || !is_measured(&it[i], cost))
			continue;
		share = cost_share(&it[i], cost);
		l = log1p(-share);
		left = (double)it[i].dur_ns * exp(power_for(p, share) * l);
		sum += left;
		*slope += left * l * (p > 1 ? (1 - share) * (1 - share) : 1);
	}
	return sum;
}

/*
 * If the mean of all iterations without the cost was measured (cost->shrink), returns the power for left_of() with
 * which they have this mean. One factor for all would leave nothing of iterations that did not wait, because the mean
 * also has what profiling adds to the waits of a few.
 */
static double power_of(const struct mxbpf_iteration *it, size_t n, const struct mdl_cost *cost)
{
	double slope, p = 1, wanted;
	unsigned tries;

	if (!cost->shrink)
		return 1;
	wanted = left_of(it, n, cost, 0, &slope) * (1 - cost->shrink / 1000.0);
	for (tries = 0; tries < NEWTON_TRIES; tries++) {
		const double off = left_of(it, n, cost, p, &slope) - wanted;

		if (slope > -1)
			return 1; /* nothing costs */
		p -= off / slope;
		p = p < POWER_LEAST ? POWER_LEAST : p > POWER_MOST ? POWER_MOST : p;
	}
	return p;
}

int steps_take_cost(struct mdl *m, const struct mdl_cost *cost)
{
	size_t n, i;
	struct mxbpf_iteration *it = (struct mxbpf_iteration *)steps_iterations(m, &n);
	const double p = power_of(it, n, cost);
	double share, goes_ns, estimate_ns;

	for (i = 0; i < n; i++) {
		share = cost_share(&it[i], cost);
		goes_ns = (double)it[i].dur_ns *
			  (1 - pow(1 - share, is_measured(&it[i], cost) ? power_for(p, share) : 1));
		estimate_ns = (double)parts_cost(&it[i], cost);
		parts_take_cost(&it[i], cost, estimate_ns > 0 ? goes_ns / estimate_ns : 1);
	}
	lost_shorten(it, n);
	return it || !n ? 0 : -ENOMEM;
}

static void free_process(struct loops *p)
{
	loops_forget(p);
	buf_fini(&p->loops);
	buf_fini(&p->moments);
}

static void *dup_process(const void *item)
{
	const struct loops *from = item;
	struct loops *p = mem_alloc(sizeof(*p));
	struct loop *l;
	size_t i;
	int err;

	if (!p)
		return NULL;
	*p = *from;
	p->loops = p->moments = (struct buf){0};
	err = buf_put(&p->loops, from->loops.data, from->loops.len) ||
	      buf_put(&p->moments, from->moments.data, from->moments.len);
	for (i = 0; (l = loops_at(p, i)); i++)
		l->pieces = (struct buf){0};
	for (i = 0; !err && (l = loops_at(p, i)); i++)
		err = buf_put(&l->pieces, loops_at(from, i)->pieces.data, loops_at(from, i)->pieces.len);
	if (!err)
		return p;
	free_process(p);
	mem_free(p);
	return NULL;
}

static int steps_copy(struct mdl *to, const struct mdl *from)
{
	const struct steps_state *f = mdl_state_of(from, &feature_steps);
	struct steps_state *t = mdl_state(to, &feature_steps);
	int err;

	if (!t)
		return -ENOMEM;
	t->resumed_ns = f->resumed_ns;
	t->lost = f->lost;
	t->unset = f->unset;
	err = mdl_items_copy(&t->roles, &t->iterations, &f->roles, &f->iterations);
	err = err ? err : buf_put(&t->seen, f->seen.data, f->seen.len);
	return err ? err : mdl_owned_copy(&t->processes, &f->processes, dup_process);
}

static void steps_fini(struct mdl *m)
{
	struct steps_state *state = mdl_state(m, &feature_steps);
	const struct hash_entry *h;
	size_t pos = 0;

	while ((h = hash_next(&state->processes, &pos)))
		if (h->val)
			free_process((struct loops *)(uintptr_t)h->val);
	mdl_owned_fini(&state->processes);
	mdl_items_fini(&state->roles, &state->iterations);
	hash_fini(&state->begun);
	buf_fini(&state->told);
	buf_fini(&state->seen);
}

uint64_t steps_begun(const struct mdl *m, uint32_t tgid, uint32_t tid)
{
	const struct steps_state *state = mdl_state_of(m, &feature_steps);
	const uint64_t *nr = state ? hash_get(&state->begun, tgid, tid) : NULL;

	return nr ? *nr : 0;
}

/* Iterations are numbered on. */
static int begin_numbers(struct steps_state *state)
{
	const struct hash_entry *h;
	const struct loop *l;
	uint64_t *begun;
	size_t pos = 0, i;

	while ((h = hash_next(&state->processes, &pos)))
		for (i = 0; h->val && (l = loops_at((const struct loops *)(uintptr_t)h->val, i)); i++) {
			begun = hash_put(&state->begun, h->a, l->tid);
			if (!begun)
				return -ENOMEM;
			*begun = l->nr;
		}
	return 0;
}

/* The iterations that have ended stay in `from`. */
static int steps_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct steps_state *t = mdl_state(to, &feature_steps), *f = mdl_state(from, &feature_steps);

	if (!t)
		return -ENOMEM;
	loops_settle_memory(f);
	steps_fini(to);
	t->processes = f->processes;
	t->resumed_ns = f->resumed_ns;
	t->lost = f->lost;
	f->processes = (struct hash){0};
	return begin_numbers(t);
}

const struct mdl_feature feature_steps = {
	.option = &steps_option,
	.session = &steps_session,
	.trace = &steps_trace,
	.state_bytes = sizeof(struct steps_state),
	.alloc = steps_alloc,
	.kinds = {{MXBPF_STEP, steps_fold}, {MXBPF_ITERATION, steps_fold_iteration}, {MXBPF_LOST, steps_fold_lost}},
	.span = steps_span,
	.window = steps_window,
	.emit = steps_emit,
	.copy = steps_copy,
	.move = steps_move,
	.fini = steps_fini,
};
