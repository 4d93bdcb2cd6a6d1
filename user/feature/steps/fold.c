// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the iterations of a training loop without help of the program. An iteration ends with:
 *
 * 1. the last operator of an optimizer before the next backward pass, or the optimizer's step if that is a call. If
 * there are several optimizers, the first one that was seen counts.
 * 2. without an optimizer: the last call of a KVStore before the next backward pass.
 * 3. without both: the start of a backward pass.
 *
 * Records of one thread must come in the order of their ends.
 */
#include "feature/activity/activity.h"
#include "feature/steps/lost.h"
#include "feature/steps/parts.h"
#include "feature/steps/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define KEPT_MAX     (1u << 16) /* iterations; the older half of twice as many is dropped */
#define PIECES_MAX   (1u << 18) /* per process */
#define TAKEN_MAX    4096
#define FACTOR_LEAST 0.5 /* between estimates and what was measured */
#define FACTOR_MOST  4.0
#define FOREIGN_MAX  16 /* steps of other optimizers, after which another one counts */
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
	{"gloo:", ROLE_EXCHANGE},
	{"nccl:", ROLE_EXCHANGE},
	{"mpi:", ROLE_EXCHANGE},
	{"ucc:", ROLE_EXCHANGE},
	{"xccl:", ROLE_EXCHANGE},
	{"KVStoreDist", ROLE_EXCHANGE},
};

struct process {
	uint32_t tgid;
	uint8_t mode;	   /* enum mxbpf_step_what: what ends its iterations */
	bool passes;	   /* a backward pass has been seen */
	uint64_t start_ns; /* of the current iteration; 0: not known */
	uint64_t nr;	   /* number of the next iteration that ends */
	/* Calls that can be the end of the iteration. The next backward pass confirms it. */
	bool burst;
	uint64_t burst_key, burst_end_ns;
	uint32_t burst_tid;
	uint32_t call_tid;   /* thread of the last such call, if its end is not known yet; else 0 */
	uint64_t main_key;   /* key of the optimizer that counts; 0: none yet */
	unsigned foreign;    /* steps of other optimizers since its last step */
	unsigned alone;	     /* steps of optimizers since the last backward pass */
	struct extent ended; /* the last iteration; end_ns 0: none. It waits for spans that ran across its end. */
	struct buf pieces;   /* struct piece, of the last iteration and the current one */
	int64_t live_bytes;  /* allocated less freed since the window began */
	bool full;	     /* a piece of the current iteration is missing, see PIECES_MAX */
	bool after_lost;     /* records are lost since the last iteration that was kept, so live_bytes may be wrong */
};

struct state {
	struct hash processes; /* tgid -> struct process *, owned */
	struct lost lost;
	struct hash roles;     /* name_id -> enum role */
	struct buf iterations; /* struct mxbpf_iteration */
	struct buf taken;      /* struct steps_end: ended, but not taken by steps_take_ended() */
	struct hash begun;     /* tgid -> number of its first iteration in this model; none: 0 */
	uint64_t resumed_ns;   /* end of the last pause of the session */
	bool sliced;	       /* calls of optimizers' operators are seen in slices only */
};

static struct process *process_of(const struct state *m, uint32_t tgid)
{
	const uint64_t *at = hash_get(&m->processes, tgid, 0);

	return at ? (void *)(uintptr_t)*at : NULL;
}

static struct process *process_add(struct state *m, uint32_t tgid)
{
	uint64_t *at = hash_put(&m->processes, tgid, 0);
	struct process *p;

	if (!at || *at)
		return at ? (void *)(uintptr_t)*at : NULL;
	p = mem_zalloc(sizeof(*p));
	if (!p) {
		hash_del(&m->processes, tgid, 0, NULL);
		return NULL;
	}
	p->tgid = tgid;
	*at = (uintptr_t)p;
	return p;
}

/* ---- ends of iterations */

static int keep(struct state *m, const struct mxbpf_iteration *it)
{
	if (buf_count(&m->iterations, *it) >= 2 * KEPT_MAX) {
		m->iterations.len -= KEPT_MAX * sizeof(*it);
		memmove(m->iterations.data, m->iterations.data + KEPT_MAX * sizeof(*it), m->iterations.len);
	}
	return buf_put(&m->iterations, it, sizeof(*it));
}

/* A process that has no iterations so far may have some later, so its memory counts from the start. */
static int steps_alloc(struct mdl *m, const struct mxbpf_alloc *a)
{
	struct state *state = mdl_state(m, &feature_steps);
	struct process *p = state ? process_add(state, a->h.tgid) : NULL;

	if (!p)
		return -ENOMEM;
	add_sat_signed(&p->live_bytes, a->bytes);
	return 0;
}

static int settle_ended(struct state *m, struct process *p)
{
	const struct steps_end end = {p->tgid, p->ended.start_ns, p->ended.end_ns};
	struct mxbpf_iteration it;
	int err;

	if (!p->ended.end_ns)
		return 0;
	if (buf_count(&m->taken, end) < TAKEN_MAX && buf_put(&m->taken, &end, sizeof(end)))
		return -ENOMEM;
	err = parts_make(&p->pieces, p->tgid, &p->ended, p->nr++, &it);
	it.live_bytes = p->live_bytes;
	p->ended.end_ns = 0;
	return err ? err : keep(m, &it);
}

static void forget_pieces(struct process *p, uint64_t before_ns)
{
	struct piece *piece = (struct piece *)p->pieces.data;
	size_t i, n = buf_count(&p->pieces, struct piece), kept = 0;

	for (i = 0; i < n; i++)
		if (piece[i].end_ns > before_ns)
			piece[kept++] = piece[i];
	p->pieces.len = kept * sizeof(*piece);
}

/* Returns whether the start and the end of the current iteration, ns, are known. A pause is no part of one. */
static bool is_whole(const struct state *m, const struct process *p, uint64_t ns)
{
	return p->start_ns && ns > p->start_ns && !(m->resumed_ns > p->start_ns && m->resumed_ns <= ns) &&
	       !lost_in(&m->lost, p->start_ns, ns, true);
}

static int boundary(struct state *m, struct process *p, uint64_t ns, uint32_t tid)
{
	const bool lost = lost_in(&m->lost, p->start_ns, ns, false);
	int err = settle_ended(m, p);

	if (is_whole(m, p, ns)) {
		p->ended = (struct extent){p->start_ns, ns, tid, p->mode, p->full, lost || p->after_lost};
		p->after_lost = false;
		forget_pieces(p, p->start_ns);
	} else {
		forget_pieces(p, ns);
		p->after_lost |= lost;
	}
	p->start_ns = ns;
	p->full = false;
	return err;
}

/* Returns whether the calls are of the optimizer that counts, or that counts from now on. */
static bool burst_counts(const struct process *p)
{
	return !p->main_key || p->burst_key == p->main_key || p->foreign + 1 >= FOREIGN_MAX;
}

static int end_burst(struct state *m, struct process *p)
{
	p->burst = false;
	p->call_tid = 0;
	if (!burst_counts(p)) {
		p->foreign++;
		return 0;
	}
	p->main_key = p->burst_key;
	p->foreign = 0;
	return boundary(m, p, p->burst_end_ns, p->burst_tid);
}

/* A better sign of the end was found. The iterations that were found before it are wrong. */
static void change_mode(struct state *m, struct process *p, uint8_t mode)
{
	struct mxbpf_iteration *it = (struct mxbpf_iteration *)m->iterations.data;
	size_t i, n = buf_count(&m->iterations, *it), kept = 0;

	for (i = 0; i < n && p->mode; i++)
		if (it[i].h.tgid != p->tgid)
			it[kept++] = it[i];
	if (p->mode)
		m->iterations.len = kept * sizeof(*it);
	p->mode = mode;
	p->start_ns = p->nr = p->main_key = 0;
	p->ended.end_ns = 0;
	p->burst = false;
	p->pieces.len = 0;
}

/* Notes a call that can be the end of an iteration. */
static void may_end(struct state *m, struct process *p, uint8_t what, uint64_t key, uint64_t ns, uint32_t tid)
{
	if (what < p->mode && !p->burst) /* calls of a KVStore, although there is an optimizer */
		return;
	if (what > p->mode)
		change_mode(m, p, what);
	if (!p->burst) {
		p->burst = true;
		p->burst_key = key | 1; /* 0 means none */
		p->burst_end_ns = 0;
	}
	p->burst_tid = tid;
	if (ns > p->burst_end_ns)
		p->burst_end_ns = ns;
}

static int begins_pass(struct state *m, struct process *p)
{
	p->passes = true;
	p->alone = 0;
	return p->burst ? end_burst(m, p) : 0;
}

static int sampled(struct state *m, struct process *p, const struct mxbpf_step *s)
{
	if (p->mode != MXBPF_STEP_COUNTED)
		change_mode(m, p, MXBPF_STEP_COUNTED);
	if (s->flags & MXBPF_STEP_OPENS)
		p->start_ns = 0;
	return boundary(m, p, s->h.ts_ns, s->tid);
}

static int steps_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_step *s = (const void *)rec;
	struct state *state = mdl_state(m, &feature_steps);
	struct process *p = state ? process_add(state, s->h.tgid) : NULL;

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
		may_end(state, p, s->what, s->key, s->h.ts_ns, s->tid);
		p->call_tid = s->tid;
		return 0;
	}
	if (p->burst || p->mode > MXBPF_STEP_BACKWARD)
		return begins_pass(state, p);
	p->passes = true;
	p->mode = MXBPF_STEP_BACKWARD;
	return boundary(state, p, s->h.ts_ns, s->tid);
}

static int steps_fold_lost(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *state = mdl_state(m, &feature_steps);

	if (state)
		lost_add(&state->lost, (const void *)rec);
	return state ? 0 : -ENOMEM;
}

void steps_sliced(struct mdl *m, bool sliced)
{
	struct state *state = mdl_state(m, &feature_steps);
	const struct hash_entry *e;
	struct process *p;
	size_t pos = 0;

	if (!state)
		return;
	state->sliced = sliced;
	while (sliced && (e = hash_next(&state->processes, &pos))) {
		p = (struct process *)(uintptr_t)e->val;
		if (p->mode != MXBPF_STEP_UPDATE)
			continue;
		p->mode = MXBPF_STEP_BACKWARD;
		p->burst = false;
		p->start_ns = p->main_key = 0;
	}
}

/* Drops the iterations of a process that began in this time. */
static void drop(struct state *m, uint32_t tgid, uint64_t from_ns, uint64_t to_ns)
{
	struct mxbpf_iteration *it = (struct mxbpf_iteration *)m->iterations.data;
	size_t i, n = buf_count(&m->iterations, *it), kept = 0;

	for (i = 0; i < n; i++)
		if (it[i].h.tgid != tgid || it[i].h.ts_ns < from_ns || it[i].h.ts_ns > to_ns)
			it[kept++] = it[i];
	m->iterations.len = kept * sizeof(*it);
}

void steps_gap(struct mdl *m, uint32_t tgid, uint64_t from_ns, uint64_t to_ns)
{
	struct state *state = mdl_state(m, &feature_steps);
	struct process *p = state ? process_of(state, tgid) : NULL;

	if (!p)
		return;
	if (p->burst) /* no pass is seen that would confirm it */
		end_burst(state, p);
	settle_ended(state, p); /* without memory it is not kept */
	drop(state, tgid, from_ns, to_ns);
	p->start_ns = 0;
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

static enum role role_of(const struct mdl *m, struct state *state, uint64_t name_id)
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

static enum role role_of_span(const struct mdl *m, struct state *state, const struct mxbpf_span *s)
{
	const enum role role = role_of(m, state, s->name_id);

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

/*
 * Keeps a span for the parts of an iteration. User annotations do no work and can enclose any span, except those that
 * the runtime makes, which have a role.
 */
static int put_piece(struct process *p, const struct mxbpf_span *s, enum role role)
{
	const bool named = (role >= ROLE_LOADER && role <= ROLE_KVSTORE) || role == ROLE_EXCHANGE;
	struct piece piece = {.start_ns = s->h.ts_ns, .end_ns = s->h.ts_ns + s->dur_ns, .loader = role == ROLE_LOADER};
	const bool works = part_of_class[s->cls] && (!(s->flags & MXBPF_SPAN_USER) || named);

	if (!p->start_ns || (!works && !s->cost.self))
		return 0;
	piece.part = !works ? MXBPF_STEP_PARTS : named ? part_of_role[role] : part_of_class[s->cls] - 1;
	piece.busy = part_of_class[s->cls] - 1 == MXBPF_PART_OPERATOR && !(s->flags & MXBPF_SPAN_USER);
	piece.awaited = role == ROLE_EXCHANGE ? AWAITS_EXCHANGE : role == ROLE_PASS ? AWAITS_PASS : AWAITS_NOTHING;
	piece.tid = s->flags & MXBPF_SPAN_ASYNC ? 0 : s->tid;
	piece.self_cost_ns = (uint64_t)s->cost.self * MXBPF_COST_UNIT_NS;
	piece.self_runq_ns = s->account.runq_ns > s->nested.runq_ns ? s->account.runq_ns - s->nested.runq_ns : 0;
	piece.before_cost_ns = (uint64_t)s->cost.before * MXBPF_COST_UNIT_NS;
	if (buf_count(&p->pieces, piece) >= PIECES_MAX) {
		p->full = true;
		return 0;
	}
	return buf_put(&p->pieces, &piece, sizeof(piece));
}

/*
 * Handles the end of an optimizer's step. If backward passes are seen, they say which steps belong together. Passes
 * that were seen may be so no longer, because --max-overhead has left out their probes; then each step is the end of an
 * iteration, and those up to now cannot be told apart.
 */
static int ends_step(struct state *m, struct process *p, const struct mxbpf_span *s)
{
	may_end(m, p, MXBPF_STEP_OPTIMIZER, s->name_id, s->h.ts_ns + s->dur_ns, s->tid);
	if (p->passes && ++p->alone < ALONE_MAX)
		return 0;
	if (p->passes)
		p->start_ns = 0;
	p->passes = false;
	return end_burst(m, p);
}

/* Looks for the end of an iteration in a span. */
static int see_span(struct state *state, struct process *p, const struct mxbpf_span *s, enum role role)
{
	const uint64_t end_ns = s->h.ts_ns + s->dur_ns;

	if (p->call_tid == s->tid && s->cls == MXBPF_CLASS_API && p->burst) {
		if (end_ns > p->burst_end_ns)
			p->burst_end_ns = end_ns;
		p->call_tid = 0;
	}
	if (p->mode == MXBPF_STEP_COUNTED)
		return 0;
	if (role == ROLE_PASS)
		return begins_pass(state, p);
	if (role == ROLE_KVSTORE && p->passes)
		may_end(state, p, MXBPF_STEP_KVSTORE, 1, end_ns, s->tid);
	return role == ROLE_OPTIMIZER ? ends_step(state, p, s) : 0;
}

static int steps_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	struct state *state = mdl_state(m, &feature_steps);
	struct process *p;
	enum role role;
	int err;

	if (!state)
		return -ENOMEM;
	role = role_of_span(m, state, s);
	if (role == ROLE_OPTIMIZER || role == ROLE_PASS) {
		p = process_add(state, s->h.tgid);
		if (!p)
			return -ENOMEM;
	} else {
		p = process_of(state, s->h.tgid);
		if (!p)
			return 0;
	}
	err = see_span(state, p, s, role);
	return err ? err : put_piece(p, s, role);
}

int steps_resumed(struct mdl *m, const struct mxbpf_gauge *g)
{
	struct state *state;

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
	struct state *state = mdl_state(m, &feature_steps);
	struct mxbpf_iteration it = {0};

	if (!state)
		return -ENOMEM;
	memcpy(&it, rec, rec->size < sizeof(it) ? rec->size : sizeof(it)); /* before version 1.3 it was shorter */
	it.h.size = sizeof(it);						   /* a newer version has a longer record */
	if (rec->size < sizeof(it))
		it.flags &= (uint8_t)~MXBPF_ITERATION_COST;
	return keep(state, &it);
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

/* Appends the iterations that steps_iterations() would end, without ending them, because the window goes on. */
static int add_pending(const struct state *m, const struct process *p, struct buf *out)
{
	const bool lost = lost_in(&m->lost, p->start_ns, p->burst_end_ns, false) || p->after_lost;
	const struct extent last = {p->start_ns, p->burst_end_ns, p->burst_tid, p->mode, p->full, lost};
	struct mxbpf_iteration it;
	uint64_t nr = p->nr;
	int err = 0;

	if (p->ended.end_ns) {
		err = parts_make(&p->pieces, p->tgid, &p->ended, nr++, &it);
		it.live_bytes = p->live_bytes;
		err = err ? err : buf_put(out, &it, sizeof(it));
	}
	if (err || !p->burst || !burst_counts(p) || !is_whole(m, p, p->burst_end_ns))
		return err;
	err = parts_make(&p->pieces, p->tgid, &last, nr, &it);
	it.live_bytes = p->live_bytes;
	return err ? err : buf_put(out, &it, sizeof(it));
}

int steps_list(const struct mdl *m, bool pending, struct buf *out)
{
	const struct state *state = mdl_state_of(m, &feature_steps);
	const struct hash_entry *h;
	size_t pos = 0;
	int err = state ? buf_put(out, state->iterations.data, state->iterations.len) : 0;

	while (!err && state && pending && (h = hash_next(&state->processes, &pos)))
		err = add_pending(state, (const void *)(uintptr_t)h->val, out);
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

int steps_take_ended(struct mdl *m, struct buf *out)
{
	struct state *state = mdl_state(m, &feature_steps);
	int err;

	if (!state)
		return -ENOMEM;
	err = buf_put(out, state->taken.data, state->taken.len);
	state->taken.len = 0;
	return err;
}

static int by_start(const void *va, const void *vb)
{
	const struct mxbpf_iteration *a = va, *b = vb;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	return a->h.ts_ns < b->h.ts_ns ? -1 : a->h.ts_ns > b->h.ts_ns;
}

const struct mxbpf_iteration *steps_iterations(struct mdl *m, size_t *n)
{
	struct state *state = mdl_state(m, &feature_steps);
	const struct hash_entry *h;
	size_t pos = 0, i;

	*n = 0;
	if (!state)
		return NULL;
	while ((h = hash_next(&state->processes, &pos))) {
		struct process *p = (void *)(uintptr_t)h->val;

		/* If there is no memory, the iteration is missing. */
		if (p->burst)
			end_burst(state, p);
		settle_ended(state, p);
	}
	*n = buf_count(&state->iterations, struct mxbpf_iteration);
	for (i = 0; i < *n; i++)
		add_gpu(m, buf_at(&state->iterations, struct mxbpf_iteration, i));
	if (*n)
		qsort(state->iterations.data, *n, sizeof(struct mxbpf_iteration), by_start);
	return (const void *)state->iterations.data;
}

/* If it was measured by how much iterations shrink, their costs add up to that: returns the factor. */
static double factor_of(const struct mxbpf_iteration *it, size_t n, const struct mdl_cost *cost)
{
	uint64_t all = 0, sum = 0;
	double factor;
	size_t i;

	for (i = 0; i < n; i++) {
		if (it[i].flags & MXBPF_ITERATION_LOST)
			continue;
		add_sat(&all, it[i].dur_ns);
		add_sat(&sum, parts_cost(&it[i], cost));
	}
	if (!cost->shrink || !sum)
		return 1;
	factor = (double)all * cost->shrink / 1000 / (double)sum;
	return factor < FACTOR_LEAST ? FACTOR_LEAST : factor > FACTOR_MOST ? FACTOR_MOST : factor;
}

int steps_take_cost(struct mdl *m, const struct mdl_cost *cost)
{
	size_t n, i;
	struct mxbpf_iteration *it = (struct mxbpf_iteration *)steps_iterations(m, &n);
	const double factor = factor_of(it, n, cost);

	for (i = 0; i < n; i++)
		parts_take_cost(&it[i], cost, factor);
	lost_shorten(it, n);
	return it || !n ? 0 : -ENOMEM;
}

static void *dup_process(const void *item)
{
	const struct process *from = item;
	struct process *p = mem_alloc(sizeof(*p));

	if (!p)
		return NULL;
	*p = *from;
	p->pieces = (struct buf){0};
	if (!buf_put(&p->pieces, from->pieces.data, from->pieces.len))
		return p;
	mem_free(p);
	return NULL;
}

static int steps_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_steps);
	struct state *t = mdl_state(to, &feature_steps);
	int err;

	if (!t)
		return -ENOMEM;
	t->resumed_ns = f->resumed_ns;
	t->lost = f->lost;
	err = mdl_items_copy(&t->roles, &t->iterations, &f->roles, &f->iterations);
	return err ? err : mdl_owned_copy(&t->processes, &f->processes, dup_process);
}

static void steps_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_steps);
	const struct hash_entry *h;
	size_t pos = 0;

	while ((h = hash_next(&state->processes, &pos)))
		if (h->val)
			buf_fini(&((struct process *)(uintptr_t)h->val)->pieces);
	mdl_owned_fini(&state->processes);
	mdl_items_fini(&state->roles, &state->iterations);
	hash_fini(&state->begun);
	buf_fini(&state->taken);
}

uint64_t steps_begun(const struct mdl *m, uint32_t tgid)
{
	const struct state *state = mdl_state_of(m, &feature_steps);
	const uint64_t *nr = state ? hash_get(&state->begun, tgid, 0) : NULL;

	return nr ? *nr : 0;
}

/* Iterations are numbered on. */
static int begin_numbers(struct state *state)
{
	const struct hash_entry *h;
	uint64_t *begun;
	size_t pos = 0;

	while ((h = hash_next(&state->processes, &pos))) {
		begun = h->val ? hash_put(&state->begun, h->a, 0) : NULL;
		if (h->val && !begun)
			return -ENOMEM;
		if (begun)
			*begun = ((const struct process *)(uintptr_t)h->val)->nr;
	}
	return 0;
}

/* The iterations that have ended stay in `from`. */
static int steps_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct state *t = mdl_state(to, &feature_steps), *f = mdl_state(from, &feature_steps);

	if (!t)
		return -ENOMEM;
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
	.state_bytes = sizeof(struct state),
	.alloc = steps_alloc,
	.kinds = {{MXBPF_STEP, steps_fold}, {MXBPF_ITERATION, steps_fold_iteration}, {MXBPF_LOST, steps_fold_lost}},
	.span = steps_span,
	.emit = steps_emit,
	.copy = steps_copy,
	.move = steps_move,
	.fini = steps_fini,
};
