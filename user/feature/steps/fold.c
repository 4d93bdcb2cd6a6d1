// SPDX-License-Identifier: Apache-2.0
/*
 * Iterations of a training loop that no mark tells. Each ends with the last operator of an optimizer before the next
 * backward pass, or with an optimizer's step where there is such a call; of several optimizers with that of the one
 * that was seen first. Where there are none, with the last call of a store of parameters before the next backward pass,
 * and else where a backward pass begins. Records of a thread come in the order of their ends, which is all that this
 * needs.
 */
#include "feature/steps/steps.h"
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX    (1u << 16) /* iterations; twice as many for a moment */
#define PIECES_MAX  (1u << 18) /* of a process */
#define FOREIGN_MAX 16	       /* steps of other optimizers: the one that counted is not used any more */

/* What a span is for iterations, by its name. */
enum role {
	ROLE_NONE,
	ROLE_LOADER,	/* takes what a worker of a loader made: what the thread did before was to wait for it */
	ROLE_DATA,	/* waits for data */
	ROLE_KVSTORE,	/* a call of the KVStore that moves parameters */
	ROLE_MOVES,	/* the same, if its class says that it is one */
	ROLE_OPTIMIZER, /* a step */
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
	{"push", ROLE_MOVES}, /* as a span of KVSTORE */
	{"pull", ROLE_MOVES},
	{"Optimizer.step#", ROLE_OPTIMIZER},
	{"autograd::engine::evaluate_function", ROLE_PASS},
};

/* Of a span that lies in an iteration, or in a part. */
struct piece {
	uint64_t start_ns, end_ns;
	uint32_t tid; /* 0: it says nothing of its thread */
	uint8_t part; /* enum mxbpf_step_part */
	bool loader, busy;
};

struct extent {
	uint64_t start_ns, end_ns;
	uint32_t tid;
	uint8_t told;
	bool full; /* not all of its pieces are there */
};

struct process {
	uint32_t tgid;
	uint8_t mode;	   /* enum mxbpf_step_what: how its iterations are told */
	bool passes;	   /* a backward pass has been seen */
	uint64_t start_ns; /* of the iteration under way; 0: not known */
	uint64_t nr;	   /* of the next that ends */
	/* Calls that may be the end of it, until a backward pass says that they were. */
	bool burst;
	uint64_t burst_key, burst_end_ns;
	uint32_t burst_tid;
	uint32_t call_tid;   /* the thread of the last of them, whose end is to come; 0: none */
	uint64_t main_key;   /* of the optimizer that counts; 0: none yet */
	unsigned foreign;    /* steps of others since its last */
	struct extent ended; /* the last; end_ns 0: none. What ran across its end comes later. */
	struct buf pieces;   /* struct piece, of it and of the one under way */
	bool full;	     /* there was no room for a piece of the one under way */
};

static struct process *process_of(const struct mdl *m, uint32_t tgid)
{
	const uint64_t *at = hash_get(&m->step_index, tgid, 0);

	return at ? (void *)(uintptr_t)*at : NULL;
}

static struct process *process_add(struct mdl *m, uint32_t tgid)
{
	uint64_t *at = hash_put(&m->step_index, tgid, 0);
	struct process *p;

	if (!at || *at)
		return at ? (void *)(uintptr_t)*at : NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tgid = tgid;
	*at = (uintptr_t)p;
	return p;
}

/* ---- where its time went */

struct edge {
	uint64_t ns;
	const struct piece *piece;
	bool ends;
};

struct sweep {
	struct mxbpf_iteration *it;
	unsigned own[MXBPF_STEP_PARTS], nours, nbusy; /* pieces that are open */
	uint64_t now_ns, idle_ns;		      /* since then none of its own thread is */
};

static int by_time(const void *va, const void *vb)
{
	const struct edge *a = va, *b = vb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->ends - b->ends;
}

static void until(struct sweep *s, uint64_t ns)
{
	const uint64_t dt = ns - s->now_ns;
	unsigned part = 0;

	if (s->nbusy)
		s->it->busy_ns += dt;
	while (s->nours && !s->own[part])
		part++;
	if (s->nours)
		s->it->part_ns[part] += dt;
	s->now_ns = ns;
}

/* What the thread did outside of calls, before one or at the end. */
static void idle(struct sweep *s, enum mxbpf_step_part part)
{
	const uint64_t dt = s->now_ns - s->idle_ns;

	s->it->part_ns[part] += dt;
	if (s->idle_ns == s->it->h.ts_ns && part == MXBPF_PART_OUTSIDE)
		s->it->first_ns = dt;
}

static void pass(struct sweep *s, const struct edge *e)
{
	const struct piece *p = e->piece;

	until(s, e->ns);
	s->nbusy += p->busy ? (e->ends ? -1u : 1u) : 0;
	if (p->tid != s->it->tid)
		return;
	if (!e->ends && !s->nours)
		idle(s, p->loader ? MXBPF_PART_DATA : MXBPF_PART_OUTSIDE);
	s->own[p->part] += e->ends ? -1u : 1u;
	s->nours += e->ends ? -1u : 1u;
	if (!s->nours)
		s->idle_ns = e->ns;
}

static size_t edges_of(const struct process *p, const struct extent *x, struct edge *edges)
{
	const struct piece *piece = (const struct piece *)p->pieces.data;
	size_t i, n = 0;

	for (i = 0; i < buf_count(&p->pieces, struct piece); i++, piece++) {
		const uint64_t start = piece->start_ns > x->start_ns ? piece->start_ns : x->start_ns;
		const uint64_t end = piece->end_ns < x->end_ns ? piece->end_ns : x->end_ns;

		if (start >= end || (piece->tid != x->tid && !piece->busy))
			continue;
		edges[n++] = (struct edge){start, piece, false};
		edges[n++] = (struct edge){end, piece, true};
	}
	return n;
}

static int make(const struct process *p, const struct extent *x, uint64_t nr, struct mxbpf_iteration *it)
{
	struct edge *edges = malloc((2 * buf_count(&p->pieces, struct piece) + 1) * sizeof(*edges));
	struct sweep s = {.it = it, .now_ns = x->start_ns, .idle_ns = x->start_ns};
	size_t i, n;

	if (!edges)
		return -ENOMEM;
	*it = (struct mxbpf_iteration){
		.h = {.kind = MXBPF_ITERATION, .size = sizeof(*it), .tgid = p->tgid, .ts_ns = x->start_ns},
		.dur_ns = x->end_ns - x->start_ns,
		.nr = nr,
		.tid = x->tid,
		.told = x->told,
	};
	n = edges_of(p, x, edges);
	if (n && !x->full) {
		it->flags = MXBPF_ITERATION_PARTS;
		qsort(edges, n, sizeof(*edges), by_time);
		for (i = 0; i < n; i++)
			pass(&s, &edges[i]);
		until(&s, x->end_ns);
		if (!s.nours)
			idle(&s, MXBPF_PART_OUTSIDE);
	}
	free(edges);
	return 0;
}

/* ---- their ends */

static int keep(struct mdl *m, const struct mxbpf_iteration *it)
{
	if (buf_count(&m->iterations, *it) >= 2 * KEPT_MAX) {
		m->iterations.len -= KEPT_MAX * sizeof(*it);
		memmove(m->iterations.data, m->iterations.data + KEPT_MAX * sizeof(*it), m->iterations.len);
	}
	return buf_put(&m->iterations, it, sizeof(*it));
}

static int settle_ended(struct mdl *m, struct process *p)
{
	struct mxbpf_iteration it;
	int err;

	if (!p->ended.end_ns)
		return 0;
	err = make(p, &p->ended, p->nr++, &it);
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

/* What lies on both sides of a pause is none. */
static bool is_whole(const struct mdl *m, const struct process *p, uint64_t ns)
{
	return p->start_ns && ns > p->start_ns && !(m->resumed_ns > p->start_ns && m->resumed_ns <= ns);
}

static int boundary(struct mdl *m, struct process *p, uint64_t ns, uint32_t tid)
{
	int err = settle_ended(m, p);

	if (is_whole(m, p, ns)) {
		p->ended = (struct extent){p->start_ns, ns, tid, p->mode, p->full};
		forget_pieces(p, p->start_ns);
	} else {
		forget_pieces(p, ns);
	}
	p->start_ns = ns;
	p->full = false;
	return err;
}

/* Whether the burst is of the optimizer that counts, or becomes the one that does. */
static bool burst_counts(const struct process *p)
{
	return !p->main_key || p->burst_key == p->main_key || p->foreign + 1 >= FOREIGN_MAX;
}

static int end_burst(struct mdl *m, struct process *p)
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

/* There is something better to tell them by: those that were told before were none. */
static void change_mode(struct mdl *m, struct process *p, uint8_t mode)
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

/* A call that may be the end of an iteration. */
static void may_end(struct mdl *m, struct process *p, uint8_t what, uint64_t key, uint64_t ns, uint32_t tid)
{
	if (what < p->mode && !p->burst) /* a store in which nothing is changed */
		return;
	if (what > p->mode)
		change_mode(m, p, what);
	if (!p->burst) {
		p->burst = true;
		p->burst_key = key | 1; /* 0 is none */
		p->burst_end_ns = 0;
	}
	p->burst_tid = tid;
	if (ns > p->burst_end_ns)
		p->burst_end_ns = ns;
}

static int begins_pass(struct mdl *m, struct process *p)
{
	p->passes = true;
	return p->burst ? end_burst(m, p) : 0;
}

static int sampled(struct mdl *m, struct process *p, const struct mxbpf_step *s)
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
	struct process *p = process_add(m, s->h.tgid);

	m->counters[MXBPF_CLASS_STEP][MXBPF_TALLY_MOMENTS]++;
	if (!p)
		return -ENOMEM;
	if (s->what == MXBPF_STEP_COUNTED)
		return sampled(m, p, s);
	if (p->mode == MXBPF_STEP_COUNTED)
		return 0;
	if (s->what == MXBPF_STEP_UPDATE) {
		may_end(m, p, s->what, s->key, s->h.ts_ns, s->tid);
		p->call_tid = s->tid;
		return 0;
	}
	if (p->burst || p->mode > MXBPF_STEP_BACKWARD)
		return begins_pass(m, p);
	p->passes = true;
	p->mode = MXBPF_STEP_BACKWARD;
	return boundary(m, p, s->h.ts_ns, s->tid);
}

/* ---- spans */

static enum role role_of(struct mdl *m, uint64_t name_id)
{
	const uint64_t *known = hash_get(&m->step_roles, name_id, 0);
	enum role role = ROLE_NONE;
	const char *name;
	uint64_t *at;
	size_t i;

	if (known)
		return (enum role) * known;
	if (!mdl_has_name(m, name_id))
		return ROLE_NONE;
	name = mdl_name(m, name_id, NULL);
	for (i = 0; i < sizeof(roles) / sizeof(roles[0]) && !role; i++)
		if (!strncmp(name, roles[i].prefix, strlen(roles[i].prefix)))
			role = roles[i].role;
	at = hash_put(&m->step_roles, name_id, 0);
	if (at)
		*at = role;
	return role;
}

static enum role role_of_span(struct mdl *m, const struct mxbpf_span *s)
{
	const enum role role = role_of(m, s->name_id);

	if (role != ROLE_MOVES)
		return role;
	return s->cls == MXBPF_CLASS_KVSTORE ? ROLE_KVSTORE : ROLE_NONE;
}

static const uint8_t part_of_role[] = {
	[ROLE_LOADER] = MXBPF_PART_DATA, [ROLE_DATA] = MXBPF_PART_DATA, [ROLE_KVSTORE] = MXBPF_PART_KVSTORE};

/* One more than the part; 0: it tells nothing. */
static const uint8_t part_of_class[MXBPF_CLASS_MAX] = {
	[MXBPF_CLASS_API] = MXBPF_PART_API + 1,		[MXBPF_CLASS_OPERATOR] = MXBPF_PART_OPERATOR + 1,
	[MXBPF_CLASS_WAIT] = MXBPF_PART_WAIT + 1,	[MXBPF_CLASS_KERNEL] = MXBPF_PART_OPERATOR + 1,
	[MXBPF_CLASS_DATA] = MXBPF_PART_DATA + 1,	[MXBPF_CLASS_KVSTORE] = MXBPF_PART_KVSTORE + 1,
	[MXBPF_CLASS_CUSTOM] = MXBPF_PART_OPERATOR + 1,
};

/* The program's own annotations are no work, and may enclose anything; but for what its runtime writes with them. */
static int put_piece(struct process *p, const struct mxbpf_span *s, enum role role)
{
	const bool named = role >= ROLE_LOADER && role <= ROLE_KVSTORE;
	struct piece piece = {.start_ns = s->h.ts_ns, .end_ns = s->h.ts_ns + s->dur_ns, .loader = role == ROLE_LOADER};

	if (!p->start_ns || !part_of_class[s->cls] || (s->flags & MXBPF_SPAN_USER && !named))
		return 0;
	piece.part = named ? part_of_role[role] : part_of_class[s->cls] - 1;
	piece.busy = piece.part == MXBPF_PART_OPERATOR;
	piece.tid = s->flags & MXBPF_SPAN_ASYNC ? 0 : s->tid;
	if (buf_count(&p->pieces, piece) >= PIECES_MAX) {
		p->full = true;
		return 0;
	}
	return buf_put(&p->pieces, &piece, sizeof(piece));
}

/* The step of an optimizer has ended. Backward passes between steps, where they are seen, say which belong together. */
static int ends_step(struct mdl *m, struct process *p, const struct mxbpf_span *s)
{
	may_end(m, p, MXBPF_STEP_OPTIMIZER, s->name_id, s->h.ts_ns + s->dur_ns, s->tid);
	return p->passes ? 0 : end_burst(m, p);
}

static int steps_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	const enum role role = role_of_span(m, s);
	struct process *p =
		role == ROLE_OPTIMIZER || role == ROLE_PASS ? process_add(m, s->h.tgid) : process_of(m, s->h.tgid);
	int err = 0;

	if (!p)
		return role == ROLE_OPTIMIZER || role == ROLE_PASS ? -ENOMEM : 0;
	if (p->call_tid == s->tid && s->cls == MXBPF_CLASS_API && p->burst) {
		if (s->h.ts_ns + s->dur_ns > p->burst_end_ns)
			p->burst_end_ns = s->h.ts_ns + s->dur_ns;
		p->call_tid = 0;
	}
	if (p->mode != MXBPF_STEP_COUNTED) {
		if (role == ROLE_PASS)
			err = begins_pass(m, p);
		else if (role == ROLE_KVSTORE && p->passes)
			may_end(m, p, MXBPF_STEP_KVSTORE, 1, s->h.ts_ns + s->dur_ns, s->tid);
		else if (role == ROLE_OPTIMIZER)
			err = ends_step(m, p, s);
	}
	return err ? err : put_piece(p, s, role);
}

void steps_resumed(struct mdl *m, const struct mxbpf_gauge *g)
{
	if (g->flags & MXBPF_GAUGE_RESUMED && g->h.ts_ns > m->resumed_ns)
		m->resumed_ns = g->h.ts_ns;
}

/* ---- all of them */

static int steps_fold_iteration(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_iteration *from = (const void *)rec;
	struct mxbpf_iteration it = *from;

	it.h.size = sizeof(it); /* a newer one is longer */
	return keep(m, &it);
}

/* What steps_iterations() would settle, without settling it: the window goes on. */
static int emit_pending(const struct mdl *m, const struct process *p, struct buf *out)
{
	const struct extent last = {p->start_ns, p->burst_end_ns, p->burst_tid, p->mode, p->full};
	struct mxbpf_iteration it;
	uint64_t nr = p->nr;
	int err = 0;

	if (p->ended.end_ns) {
		err = make(p, &p->ended, nr++, &it);
		err = err ? err : buf_put(out, &it, sizeof(it));
	}
	if (err || !p->burst || !burst_counts(p) || !is_whole(m, p, p->burst_end_ns))
		return err;
	err = make(p, &last, nr, &it);
	return err ? err : buf_put(out, &it, sizeof(it));
}

static int steps_emit(const struct mdl *m, struct buf *out)
{
	const struct hash_entry *h;
	size_t pos = 0;
	int err = buf_put(out, m->iterations.data, m->iterations.len);

	while (!err && (h = hash_next(&m->step_index, &pos)))
		err = emit_pending(m, (const void *)(uintptr_t)h->val, out);
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
	const struct hash_entry *h;
	size_t pos = 0;

	while ((h = hash_next(&m->step_index, &pos))) {
		struct process *p = (void *)(uintptr_t)h->val;

		/* Without memory it is one less. */
		if (p->burst)
			end_burst(m, p);
		settle_ended(m, p);
	}
	*n = buf_count(&m->iterations, struct mxbpf_iteration);
	if (*n)
		qsort(m->iterations.data, *n, sizeof(struct mxbpf_iteration), by_start);
	return (const void *)m->iterations.data;
}

static void steps_fini(struct mdl *m)
{
	const struct hash_entry *h;
	size_t pos = 0;

	while ((h = hash_next(&m->step_index, &pos))) {
		struct process *p = (void *)(uintptr_t)h->val;

		if (p)
			buf_fini(&p->pieces);
		free(p);
	}
	hash_fini(&m->step_index);
	hash_fini(&m->step_roles);
	buf_fini(&m->iterations);
}

static void steps_move(struct mdl *to, struct mdl *from)
{
	steps_fini(to);
	to->step_index = from->step_index;
	to->resumed_ns = from->resumed_ns;
	from->step_index = (struct hash){0};
}

static void *dup_process(const void *item)
{
	const struct process *from = item;
	struct process *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	*p = *from;
	p->pieces = (struct buf){0};
	if (!buf_put(&p->pieces, from->pieces.data, from->pieces.len))
		return p;
	free(p);
	return NULL;
}

static int steps_copy(struct mdl *to, const struct mdl *from)
{
	return copy_owned(&to->step_index, &from->step_index, dup_process);
}

const struct mdl_feature feature_steps = {
	.kinds = {{MXBPF_STEP, steps_fold}, {MXBPF_ITERATION, steps_fold_iteration}},
	.span = steps_span,
	.emit = steps_emit,
	.copy = steps_copy,
	.move = steps_move,
	.fini = steps_fini,
};
