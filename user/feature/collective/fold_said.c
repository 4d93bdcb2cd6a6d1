// SPDX-License-Identifier: Apache-2.0
/*
 * What NCCL says of its collectives in ranges of NVTX: each function of its interface is a range in the domain "NCCL",
 * whose payload has bytes, communicator, root and reduction (nvtx_payload_schemas.h of NCCL). A kernel belongs to the
 * range around its launch. Calls between ncclGroupStart() and ncclGroupEnd() launch nothing; the end of the group does.
 */
#include "feature/collective/state.h"

#include <errno.h>
#include <string.h>

#include "feature/ranges/ranges.h"

#define SAID_MAX   (1u << 16)
#define COMMS_MAX  4096
#define NESTED_MAX 8	/* ranges of NCCL that begin inside of one */
#define GROUP_MAX  1024 /* calls of a group that are looked at */
#define PREFIX	   "NCCL: nccl"

enum said_what {
	SAID_NOTHING,
	SAID_COMM, /* a communicator is made */
	SAID_GROUP_START,
	SAID_GROUP_END,
	SAID_CALL,
	SAID_RECV, /* a call that gives nothing */
};

static const struct {
	const char *name;
	enum said_what what;
	enum mxbpf_collective_op op;
	bool for_each;
} names[] = {
	{"GroupStart", SAID_GROUP_START, 0, false},
	{"GroupEnd", SAID_GROUP_END, 0, false},
	{"CommInitRank", SAID_COMM, 0, false},
	{"CommInitRankConfig", SAID_COMM, 0, false},
	{"CommInitRankScalable", SAID_COMM, 0, false},
	{"CommInitAll", SAID_COMM, 0, false},
	{"CommSplit", SAID_COMM, 0, false},
	{"CommShrink", SAID_COMM, 0, false},
	{"CommGrow", SAID_COMM, 0, false},
	{"AllReduce", SAID_CALL, MXBPF_COLLECTIVE_ALL_REDUCE, false},
	{"AllGather", SAID_CALL, MXBPF_COLLECTIVE_ALL_GATHER, false},
	{"ReduceScatter", SAID_CALL, MXBPF_COLLECTIVE_REDUCE_SCATTER, true},
	{"AlltoAll", SAID_CALL, MXBPF_COLLECTIVE_ALL_TO_ALL, true},
	{"Broadcast", SAID_CALL, MXBPF_COLLECTIVE_BROADCAST, false},
	{"Reduce", SAID_CALL, MXBPF_COLLECTIVE_REDUCE, false},
	{"Gather", SAID_CALL, MXBPF_COLLECTIVE_GATHER, false},
	{"Scatter", SAID_CALL, MXBPF_COLLECTIVE_SCATTER, true},
	{"Send", SAID_CALL, MXBPF_COLLECTIVE_SEND_RECV, false},
	{"Recv", SAID_RECV, MXBPF_COLLECTIVE_SEND_RECV, false},
};

unsigned said_named(const char *name, size_t len)
{
	const size_t n = strlen(PREFIX);
	unsigned i;

	if (len < n || memcmp(name, PREFIX, n))
		return 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == len - n && !memcmp(names[i].name, name + n, len - n))
			return i + 1;
	return 0;
}

/* ---- ranges */

/* Returns 1 + a number that is not below 0, or 0. */
static uint32_t number_of(const struct mdl *m, const struct mxbpf_range *r, const char *name)
{
	uint64_t v;

	return ranges_value(m, r, name, &v) && v < INT32_MAX ? (uint32_t)v + 1 : 0;
}

static int take_comm(const struct mdl *m, struct state *t, const struct mxbpf_range *r)
{
	const uint32_t ranks = number_of(m, r, "No. of ranks"), devices = number_of(m, r, "No. of devices");
	const uint32_t n = ranks ? ranks : devices;
	uint64_t comm = 0, *to;

	if (n < 2 || !ranges_value(m, r, "NCCL communicator ID", &comm) || !comm || t->comms.len >= COMMS_MAX)
		return 0;
	to = hash_put(&t->comms, comm, 0);
	if (to)
		*to = n - 1;
	return to ? 0 : -ENOMEM;
}

static void take_payload(const struct mdl *m, const struct mxbpf_range *r, struct said *s)
{
	const uint32_t reduction = number_of(m, r, "Reduction operation");
	uint64_t bytes;

	if (ranges_value(m, r, "Message size [bytes]", &bytes) || ranges_value(m, r, "Bytes", &bytes))
		s->bytes = bytes;
	ranges_value(m, r, "NCCL communicator ID", &s->comm);
	s->root = number_of(m, r, "Root");
	s->reduction = reduction < UINT8_MAX ? (uint8_t)reduction : UINT8_MAX;
}

int said_take(const struct mdl *m, struct state *t, const struct mxbpf_span *s, unsigned named)
{
	const struct mxbpf_range *r = ranges_start(m, s);
	struct said said = {.start_ns = s->h.ts_ns,
			    .end_ns = s->h.ts_ns + s->dur_ns,
			    .bytes = MXBPF_COLLECTIVE_UNSIZED,
			    .tgid = s->h.tgid,
			    .tid = s->tid,
			    .what = (uint8_t)names[named - 1].what,
			    .op = (uint8_t)names[named - 1].op,
			    .flags = names[named - 1].for_each ? MXBPF_COLLECTIVE_FOR_EACH : 0};

	if (said.what == SAID_COMM)
		return r ? take_comm(m, t, r) : 0;
	if (r)
		take_payload(m, r, &said);
	return buf_put_latest(&t->said, &said, sizeof(said), SAID_MAX);
}

/* ---- kernels */

static int collective_fold_said_by_thread(const void *va, const void *vb)
{
	const struct said *a = va, *b = vb;

	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(a->tid, b->tid);
	BUF_ORDER(a->start_ns, b->start_ns);
	return 0;
}

/* Returns 1 + the place of the innermost range around the launch of a kernel, or 0. */
static size_t collective_fold_said_place_of(const struct buf *said, const struct event *e)
{
	const struct said behind = {.start_ns = e->launched_ns + 1, .tgid = e->c.h.tgid, .tid = e->c.tid}, *s;
	const size_t from = buf_first(said, sizeof(behind), &behind, collective_fold_said_by_thread);
	size_t i;

	for (i = 0; i < NESTED_MAX && i < from; i++) {
		s = buf_at(said, struct said, from - 1 - i);
		if (s->tgid != behind.tgid || s->tid != behind.tid)
			break;
		if (s->end_ns >= e->launched_ns)
			return from - i;
	}
	return 0;
}

/* The calls of a group. */
struct group {
	struct said all;       /* what all of them have in common; bytes: of one */
	uint64_t given, taken; /* bytes */
	uint64_t n;
	bool mixed; /* they are not all the same operation */
	bool even;  /* they have the same size */
};

static void collective_add_call(struct group *g, const struct said *s)
{
	uint64_t *sum = s->what == SAID_RECV ? &g->taken : &g->given;

	if (!g->n++) {
		g->all = *s;
		g->even = true;
	}
	g->all.comm = g->all.comm == s->comm ? s->comm : 0;
	g->all.root = g->all.root == s->root ? s->root : 0;
	g->all.reduction = g->all.reduction == s->reduction ? s->reduction : 0;
	g->mixed |= g->all.op != s->op;
	g->even &= g->all.bytes == s->bytes && g->all.what == s->what;
	if (s->bytes == MXBPF_COLLECTIVE_UNSIZED || __builtin_add_overflow(*sum, s->bytes, sum))
		*sum = MXBPF_COLLECTIVE_UNSIZED;
}

/* Adds the calls of the group that ends with said[at]. */
static void add_group(struct group *g, const struct said *said, size_t at)
{
	const struct said *end = &said[at], *s;
	unsigned depth = 1, i;

	for (i = 0; depth && i < GROUP_MAX && i < at; i++) {
		s = end - 1 - i;
		if (s->tgid != end->tgid || s->tid != end->tid)
			return;
		if (s->what == SAID_GROUP_END)
			depth++;
		else if (s->what == SAID_GROUP_START)
			depth--;
		else
			collective_add_call(g, s);
	}
}

/* Returns what one of n kernels of a group does: all of its calls, or one of them. */
static struct said of_group(const struct group *g, uint64_t n)
{
	struct said s = g->all;

	if (g->mixed) {
		s.op = MXBPF_COLLECTIVE_OTHER;
		s.bytes = MXBPF_COLLECTIVE_UNSIZED;
	} else if (n == 1) {
		s.bytes = g->given ? g->given : g->taken;
	} else if (!g->even || n != g->n) {
		s.bytes = MXBPF_COLLECTIVE_UNSIZED;
	}
	return s;
}

static void collective_fold_said_tell(const struct state *t, struct event *e, const struct said *s)
{
	const uint64_t *ranks = s->comm ? hash_get(&t->comms, s->comm, 0) : NULL;

	e->c.group = s->comm;
	e->c.root = s->root;
	e->c.reduction = s->reduction;
	e->c.op = s->op ? s->op : e->c.op;
	e->c.ranks = ranks ? (uint32_t)*ranks : 0;
	if (s->bytes == MXBPF_COLLECTIVE_UNSIZED)
		return;
	e->c.bytes = s->bytes;
	e->c.source = MXBPF_COLLECTIVE_FROM_NVTX;
	e->c.flags = s->flags;
}

/* The number of kernels that each range launched tells whether one has all calls of a group. */
static int count_kernels(const struct buf *said, struct buf *events, struct hash *kernels)
{
	uint64_t *count;
	size_t i, at;

	for (i = 0; i < buf_count(events, struct event); i++) {
		struct event *e = buf_at(events, struct event, i);

		at = e->launched_ns && !e->said ? collective_fold_said_place_of(said, e) : 0;
		count = at ? hash_put(kernels, at, 0) : NULL;
		if (at && !count)
			return -ENOMEM;
		if (count)
			++*count;
	}
	return 0;
}

static void resolve(const struct state *t, const struct buf *said, struct event *e, const struct hash *kernels)
{
	const size_t at = e->launched_ns && !e->said ? collective_fold_said_place_of(said, e) : 0;
	struct group g = {.n = 0};
	struct said s;

	if (!at)
		return;
	e->said = true;
	s = *buf_at(said, struct said, at - 1);
	if (s.what == SAID_GROUP_END) {
		add_group(&g, (const void *)said->data, at - 1);
		s = of_group(&g, *hash_get(kernels, at, 0));
	}
	if (s.what >= SAID_CALL)
		collective_fold_said_tell(t, e, &s);
}

/* A stream has the collectives of one communicator, so kernels of graphs are of that of the others in their stream. */
static int resolve_streams(struct buf *events)
{
	struct hash comms = {0};
	struct event *e;
	uint64_t *comm = NULL;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(events, *e); i++) {
		e = buf_at(events, struct event, i);
		if (!e->c.group || e->c.backend != MXBPF_BACKEND_NCCL)
			continue;
		comm = hash_put(&comms, e->c.lane, (uint64_t)e->c.h.tgid << 32 | e->c.device);
		err = comm ? 0 : -ENOMEM;
		if (comm)
			*comm = !*comm || *comm == e->c.group ? e->c.group : UINT64_MAX;
	}
	for (i = 0; !err && comms.len && i < buf_count(events, *e); i++) {
		e = buf_at(events, struct event, i);
		comm = e->c.group || e->c.backend != MXBPF_BACKEND_NCCL
			       ? NULL
			       : hash_get(&comms, e->c.lane, (uint64_t)e->c.h.tgid << 32 | e->c.device);
		if (comm && *comm != UINT64_MAX)
			e->c.group = *comm;
	}
	hash_fini(&comms);
	return err;
}

int said_resolve(const struct state *t, struct buf *events)
{
	struct buf said = {0};
	struct hash kernels = {0};
	size_t i;
	int err = buf_put(&said, t->said.data, t->said.len);

	buf_sort(&said, sizeof(struct said), collective_fold_said_by_thread);
	err = err ? err : count_kernels(&said, events, &kernels);
	for (i = 0; !err && i < buf_count(events, struct event); i++)
		resolve(t, &said, buf_at(events, struct event, i), &kernels);
	buf_fini(&said);
	hash_fini(&kernels);
	return err ? err : resolve_streams(events);
}
