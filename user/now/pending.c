// SPDX-License-Identifier: Apache-2.0
/*
 * Collectives that the GPUs of a process have not done yet. Its threads need not wait for them, but each process group
 * has a thread that watches over them and sleeps most of the time: its stack leads to the group, and that to its queue.
 * Offsets come from the library's code, and classes confirm each object on the way.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "now/now.h"
#include "now/priv.h"

#define GROUPS_MAX  64 /* of a class, that are looked at */
#define STREAMS_MAX 256
#define OWNER_WORDS 16 /* of the object that points to the group */

/* A group's queue and where its members are. */
struct pending {
	struct tgt *t;
	const struct adp_queue *adp;
	int32_t off[QUEUE_MEMBERS];
	uint64_t now_ns;
	unsigned tries; /* left, for all threads */
};

#define TRIES	     60
#define TRIES_OF_ONE 3 /* a thread that computes never sleeps */
#define TRY_NS	     5000000
#define HOOKS_MAX    16
#define CALLS_MAX    4096
#define TREE_DEPTH   64
/* libstdc++: a table has its first node one word before the number of its entries, and two words behind its start. */
#define FIRST_BEFORE_COUNT 8
#define FIRST_AFTER_START  16

/* The nodes of libstdc++'s containers. */
struct streams_node {
	uint64_t next, stream;
	uint64_t blocks, nblocks;
	uint64_t first, first_begin, first_end, first_block; /* iterators of the first element, and behind the last */
	uint64_t last;
};

struct list_node {
	uint64_t next, prev;
};

struct hook_node {
	uint64_t next, key, function; /* std::function, whose first word points to what it has captured */
};

struct key_node {
	uint64_t next, key;
	int64_t value;
};

struct tree_node {
	uint64_t color, parent, left, right; /* of the header: its parent is the root */
	int64_t key;
};

static int pending_find(struct pending *p, enum adp_queue_member m, struct err *e)
{
	const struct adp_member_at *at = &p->adp->at[m];
	struct tgt_lib *lib;
	struct elf_sym sym;
	struct elf *elf;
	int err;

	p->off[m] = -1;
	if (!at->symbol)
		return 0;
	lib = tgt_find_lib(p->t, at->lib_glob);
	if (!lib)
		return err_set(e, ERR_TARGET, -ENOENT, "%s is not mapped", at->lib_glob);
	err = tgt_lib_elf(p->t, lib, &elf, e);
	err = err ? err : elf_find_sym(elf, at->symbol, &sym, e);
	return err ? err : members_find(elf, &sym, at->how, at->of, &p->off[m], e);
}

/* Without a member that only says the operation, the rest is shown. */
static int find_members(struct pending *p, struct err *e)
{
	struct err why = {0};
	int m, err = 0;

	for (m = 0; m < QUEUE_MEMBERS && (!err || m > QUEUE_FOR_OP); m++) {
		err = pending_find(p, (enum adp_queue_member)m, &why);
		if (err)
			err_set(e, ERR_TARGET, err, "process %d: %s on its GPUs is not shown: %s: %s", tgt_pid(p->t),
				m < QUEUE_FOR_OP ? "what waits for collectives" : "the operation of collectives",
				p->adp->at[m].symbol, why.why);
	}
	return m <= QUEUE_FOR_OP ? err : 0;
}

static bool is_class(struct tgt *t, uint64_t object, const char *name)
{
	char is[NOW_CLASS_BYTES];
	uint64_t vtable;

	return now_class_of(t, object, &vtable, is) && !strcmp(is, name);
}

/* Finds the address of an object of the class among n words. */
static uint64_t pending_among(const struct pending *p, const uint64_t *words, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (is_class(p->t, words[i], name))
			return words[i];
	return 0;
}

static uint64_t group_on(const struct pending *p, uint64_t sp)
{
	uint64_t words[NOW_STACK_BYTES / 8], via;
	ssize_t got = tgt_read_some(p->t, sp & ~7ull, words, sizeof(words));
	size_t n = got > 0 ? (size_t)got / sizeof(words[0]) : 0;

	if (!p->adp->via)
		return pending_among(p, words, n, p->adp->group);
	via = pending_among(p, words, n, p->adp->via);
	if (!via || tgt_read(p->t, via, words, OWNER_WORDS * sizeof(words[0])))
		return 0;
	return pending_among(p, words + 1, OWNER_WORDS - 1, p->adp->group);
}

/* A watching thread may have run during the look. It soon sleeps again, and classes say what is on its stack. */
static uint64_t group_of(struct pending *p, const struct now_thread *t)
{
	const struct timespec wait = {.tv_nsec = TRY_NS};
	struct tgt_doing doing;
	unsigned i;

	if (t->still)
		return now_is_in(t, p->adp->function) ? group_on(p, t->doing.sp) : 0;
	for (i = 0; p->tries && i < TRIES_OF_ONE; i++, p->tries--) {
		if (!tgt_peek_doing(tgt_pid(p->t), t->tid, &doing) && doing.sp)
			return group_on(p, doing.sp);
		if (!doing.state) /* it has ended */
			return 0;
		nanosleep(&wait, NULL);
	}
	return 0;
}

static void read_name(const struct pending *p, uint64_t group, struct now_collective *c)
{
	uint64_t text[2]; /* and its length */

	if (p->off[QUEUE_NAME] < 0 || tgt_read(p->t, group + (uint64_t)p->off[QUEUE_NAME], text, sizeof(text)) ||
	    text[1] >= sizeof(c->group) || tgt_read(p->t, text[0], c->group, text[1]))
		return;
	c->group[text[1]] = '\0';
}

/* Finds the recorder among the hooks of a group. Returns 0 if it has none. */
static uint64_t recorder_of(const struct pending *p, uint64_t group)
{
	struct hook_node node = {0};
	char name[NOW_CLASS_BYTES];
	uint64_t shared[2], vtable;
	unsigned i;

	if (tgt_read(p->t, group + (uint64_t)p->off[QUEUE_HOOKS] - FIRST_BEFORE_COUNT, &node.next, sizeof(node.next)))
		return 0;
	for (i = 0; i < HOOKS_MAX && node.next && !tgt_read(p->t, node.next, &node, sizeof(node)); i++)
		if (!tgt_read(p->t, node.function, shared, sizeof(shared)) &&
		    now_class_of(p->t, shared[1], &vtable, name) &&
		    !strncmp(name, p->adp->recorder, strlen(p->adp->recorder)))
			return shared[0];
	return 0;
}

/* Finds the node of a call in the recorder's tree. Returns 0 if it is not there. */
static uint64_t call_of(const struct pending *p, uint64_t recorder, uint64_t key)
{
	const uint64_t header = recorder + (uint64_t)p->off[QUEUE_CALLS];
	struct key_node at = {0};
	struct tree_node node;
	uint64_t next;
	unsigned i;

	if (tgt_read(p->t, recorder + (uint64_t)p->off[QUEUE_RECORDED] - FIRST_BEFORE_COUNT, &at.next, sizeof(at.next)))
		return 0;
	for (i = 0; at.key != key || !i; i++)
		if (i == CALLS_MAX || !at.next || tgt_read(p->t, at.next, &at, sizeof(at)))
			return 0;
	if (tgt_read(p->t, header, &node, sizeof(node)))
		return 0;
	for (next = node.parent, i = 0; i < TREE_DEPTH && next && !tgt_read(p->t, next, &node, sizeof(node)); i++) {
		if (node.key == at.value)
			return next;
		next = node.key < at.value ? node.right : node.left;
	}
	return 0;
}

static bool has_recorder(const struct pending *p)
{
	int m;

	for (m = QUEUE_KEY; m < QUEUE_MEMBERS; m++)
		if (p->off[m] < 0)
			return false;
	return true;
}

static void read_op(const struct pending *p, uint64_t group, uint64_t work, struct now_collective *c)
{
	uint64_t at = work, key;
	int32_t off = p->off[QUEUE_OP];
	uint8_t op, i = 0;

	c->name = NOW_COLLECTIVE;
	if (has_recorder(p)) {
		at = recorder_of(p, group);
		off = p->off[QUEUE_CALL_OP];
		at = at && !tgt_read(p->t, work + (uint64_t)p->off[QUEUE_KEY], &key, sizeof(key)) ? call_of(p, at, key)
												  : 0;
	}
	if (off < 0 || !at || tgt_read(p->t, at + (uint64_t)off, &op, sizeof(op)))
		return;
	while (i < op && p->adp->ops[i])
		i++;
	if (p->adp->ops[i] && *p->adp->ops[i])
		c->name = p->adp->ops[i];
}

/* Reads a work, if it is not known to be done. Returns its time, or 0. */
static uint64_t read_work(const struct pending *p, uint64_t work, uint64_t *number)
{
	uint64_t since;
	uint32_t status = 0;

	if (tgt_read(p->t, work + (uint64_t)p->off[QUEUE_NUMBER], number, sizeof(*number)) ||
	    tgt_read(p->t, work + (uint64_t)p->off[QUEUE_SINCE], &since, sizeof(since)) ||
	    (p->off[QUEUE_STATUS] >= 0 &&
	     (tgt_read(p->t, work + (uint64_t)p->off[QUEUE_STATUS], &status, sizeof(status)) ||
	      status >= p->adp->done)))
		return 0;
	return since < p->now_ns ? since : 0;
}

/* The first work of a list. Returns 0 if there is none. */
static uint64_t first_of_list(const struct pending *p, uint64_t queue)
{
	struct list_node head;
	uint64_t work;

	if (tgt_read(p->t, queue, &head, sizeof(head)) || head.next == queue)
		return 0;
	work = head.next + sizeof(head);
	return is_class(p->t, work, p->adp->work) ? work : 0;
}

/* The first work of one stream. */
static uint64_t first_of_stream(const struct pending *p, const struct streams_node *node)
{
	uint64_t shared[2], vtable;
	char name[NOW_CLASS_BYTES];

	/* A shared pointer: the object, and the block that it is in. */
	if (node->first == node->last || tgt_read(p->t, node->first, shared, sizeof(shared)) ||
	    !now_class_of(p->t, shared[1], &vtable, name) || strncmp(name, p->adp->work, strlen(p->adp->work)) != 0 ||
	    shared[0] != shared[1] + 16)
		return 0;
	return shared[0];
}

/* Finds the oldest work of a group. Returns its time, or 0. */
static uint64_t oldest(const struct pending *p, uint64_t group, uint64_t *work, uint64_t *number)
{
	const uint64_t queue = group + (uint64_t)p->off[QUEUE_AT];
	struct streams_node node = {0};
	uint64_t one, since, best = 0, its;
	unsigned i;

	if (!p->adp->streams) {
		*work = first_of_list(p, queue);
		return *work ? read_work(p, *work, number) : 0;
	}
	if (tgt_read(p->t, queue + FIRST_AFTER_START, &node.next, sizeof(node.next)))
		return 0;
	for (i = 0; i < STREAMS_MAX && node.next && !tgt_read(p->t, node.next, &node, sizeof(node)); i++) {
		one = first_of_stream(p, &node);
		since = one ? read_work(p, one, &its) : 0;
		if (!since || (best && since >= best))
			continue;
		best = since;
		*work = one;
		*number = its;
	}
	return best;
}

/* Reads the collective for which a group waits. Returns its time, or 0. */
static uint64_t read_queue(const struct pending *p, uint64_t group, struct now_collective *c)
{
	uint64_t work = 0, since;
	int32_t of[2];

	*c = (struct now_collective){.numbered = true};
	since = oldest(p, group, &work, &c->number);
	c->age_ns = p->now_ns - since;
	if (!since || tgt_read(p->t, group + (uint64_t)p->off[QUEUE_RANK], of, sizeof(of)))
		return 0;
	if (of[0] >= 0 && of[1] > of[0]) {
		c->rank = (uint32_t)of[0];
		c->ranks = (uint32_t)of[1];
	}
	read_name(p, group, c);
	read_op(p, group, work, c);
	return since;
}

/* Finds the oldest work of the groups of one class. *best: its time, or 0. */
static void pending_of(struct pending *p, struct now *n, uint64_t *best, struct now_collective *c, struct err *e)
{
	uint64_t seen[GROUPS_MAX], group, since;
	const struct now_thread *t;
	struct now_collective one;
	size_t i, k, groups = 0;

	for (i = 0; groups < GROUPS_MAX && (t = now_thread_at(n, i)); i++) {
		group = group_of(p, t);
		for (k = 0; k < groups && seen[k] != group; k++)
			;
		if (!group || k < groups)
			continue;
		if (!groups && find_members(p, e))
			return;
		seen[groups++] = group;
		since = read_queue(p, group, &one);
		if (!since || (*best && since >= *best))
			continue;
		*best = since;
		*c = one;
		c->tid = t->tid;
	}
}

bool now_pending(struct now *n, struct now_collective *c, struct err *e)
{
	struct pending p = {.t = now_target(n),
			    .adp = now_plan(n)->adp->collective.queues,
			    .now_ns = clock_ns(CLOCK_MONOTONIC),
			    .tries = TRIES};
	uint64_t best = 0;

	for (; p.adp && p.adp->function; p.adp++)
		if (tgt_find_lib(p.t, p.adp->at[QUEUE_AT].lib_glob))
			pending_of(&p, n, &best, c, e);
	return best;
}
