// SPDX-License-Identifier: Apache-2.0
/*
 * Collects records into the buffers of the client and hands them over. Calls are recorded by their own thread when they
 * end. An operation has its place in the buffer of the launching thread from its launch on, and its record is complete
 * when the simulated device has done it; until then it waits in a queue per stream. A buffer with an incomplete record
 * is handed over only by a forced flush. Callbacks of completed buffers are called without the lock.
 */
#include "buffers.h"
#include "collect.h"
#include "replay.h"

#include <pthread.h>
#include <sys/syscall.h>

#define QUEUES	       64
#define NULL_BUFFER_OK 27     /* first API version that survives a NULL buffer */
#define PER_THREAD     130000 /* first API version with buffers per thread */
#define GRAPHS_RIGHT   130101 /* first API version with the right numbers of launches of graphs: 13.1 U1 */
#define FLUSH_OVERHEAD (1u << 16)
#define LATE_NS	       50000000ull
#define MEET_SECONDS   5
#define ABSURD_NS      100000000000000ull

bool system_tids, all_syncs = true;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below but the atomic ones */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static struct {
	requested_fn requested;
	completed_fn completed;
} client; /* neighbours in .bss, as in the real libraries */
static struct lane device_lane, shared_lane, *thread_lanes;
static struct buffer *held, **held_end = &held;	   /* full ones with incomplete records */
static struct buffer *ready, **ready_end = &ready; /* buffers to hand over */
static struct buffer *kept;			   /* with late and at-exit; the last one first */
static struct queue queues[QUEUES];
static unsigned nqueues;
static bool thread_runs, graph_level;
static unsigned delivering;
static size_t dropped;
static uint64_t nrecords, nkernels, since_subscription, corrupt_left, corrupt_by;
static __thread struct lane *my_lane;
static __thread bool in_delivery, in_meeting;

/* For measurements: the callbacks of the client that is registered. */
DOUBLE_EXPORT void double_callbacks(requested_fn *requested, completed_fn *completed);
DOUBLE_EXPORT void double_callbacks(requested_fn *requested, completed_fn *completed)
{
	*requested = client.requested;
	*completed = client.completed;
}

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- buffers; the lock is held */

static void append(struct buffer ***end, struct buffer *b)
{
	b->next = NULL;
	**end = b;
	*end = &b->next;
}

static void make_ready(struct buffer *b)
{
	b->gone = b->incomplete > 0;
	append(&ready_end, b);
}

/* A buffer with an incomplete record stays open, and a full one is held, unless the client insists. */
static void close_lane(struct lane *l, bool full, bool forced)
{
	struct buffer *b = l->b;

	if (!b || (b->incomplete && !full && !forced))
		return;
	l->b = NULL;
	if (b->incomplete && !forced)
		append(&held_end, b);
	else
		make_ready(b);
}

/* Buffers that were held and have become complete are ready. */
static void release_held(bool forced)
{
	struct buffer *list = held, *next;

	held = NULL;
	held_end = &held;
	for (; list; list = next) {
		next = list->next;
		if (list->incomplete && !forced)
			append(&held_end, list);
		else
			make_ready(list);
	}
}

static bool open_lane(struct lane *l)
{
	uint8_t *data = NULL;
	size_t size = 0, most = 0;

	if (!client.requested)
		return false;
	client.requested(&data, &size, &most);
	count(&account->buffers_requested);
	if (!data) {
		count(&account->null_buffers);
		if (version < NULL_BUFFER_OK)
			double_abort("null-buffer", "a NULL buffer crashes CUPTI of API version %u", version);
		return false;
	}
	if ((uintptr_t)data & 7)
		double_abort("alignment", "buffer %p is not aligned to 8 bytes", (void *)data);
	l->b = calloc(1, sizeof(*l->b));
	l->b->data = data;
	l->b->size = size;
	l->b->records_max = most;
	return true;
}

/* Returns room for a record, or NULL if it is dropped. */
static uint8_t *room(struct lane *l, uint32_t kind)
{
	size_t bytes = record_bytes(kind, version);
	struct buffer *b;

	count(&account->made[kind]);
	nrecords++;
	if (options.drop && nrecords % options.drop == 0)
		goto drop;
	b = l->b;
	if (b && (b->used + bytes > b->size || (b->records_max && b->records == b->records_max)))
		close_lane(l, true, false);
	if (!l->b && !open_lane(l))
		goto drop;
	b = l->b;
	if (bytes > b->size)
		goto drop;
	b->used += bytes;
	b->records++;
	b->counts[kind]++;
	return b->data + b->used - bytes;
drop:
	dropped++;
	count(&account->dropped[kind]);
	return NULL;
}

static struct lane *lane_of_thread(void)
{
	if (version < PER_THREAD)
		return &shared_lane;
	if (!my_lane) {
		my_lane = calloc(1, sizeof(*my_lane));
		my_lane->next = thread_lanes;
		thread_lanes = my_lane;
	}
	return my_lane;
}

static void close_all(bool forced)
{
	struct lane *l;

	release_held(forced);
	for (l = thread_lanes; l; l = l->next)
		close_lane(l, false, forced);
	close_lane(&shared_lane, false, forced);
	close_lane(&device_lane, false, forced);
}

static struct buffer *take_ready(void)
{
	struct buffer *list = ready, *next;

	ready = NULL;
	ready_end = &ready;
	if (options.late || options.at_exit) {
		for (; list; list = next) {
			next = list->next;
			list->closed = double_now();
			list->next = kept;
			kept = list;
		}
	}
	if (list)
		delivering++;
	return list;
}

/* ---- handing over; without the lock */

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* Of a buffer with incomplete records the client can read what is before the first of them. */
static void count_readable(struct buffer *b)
{
	const uint8_t *r = b->data, *end = r + b->used;
	uint64_t times[2];
	uint32_t kind;

	memset(b->counts, 0, sizeof(b->counts));
	b->kernel_ns = 0;
	for (; r < end; r += record_bytes(kind, version)) {
		memcpy(&kind, r, sizeof(kind));
		if (!kind)
			return;
		b->counts[kind]++;
		memcpy(times, r + 16, sizeof(times));
		b->kernel_ns += kind == KIND_KERNEL ? times[1] - times[0] : 0;
	}
}

/* The last who has the buffer frees it. The lock is held. */
static void free_if_unused(struct buffer *b)
{
	if (b->handed_over && !b->incomplete)
		free(b);
}

static void drop_buffer(struct buffer *b)
{
	if (b->names)
		arena_reuse(b->names);
	b->handed_over = true;
	free_if_unused(b);
}

static void hand_over(struct buffer *b)
{
	completed_fn f = client.completed;
	uint64_t all[KINDS];
	unsigned k;

	memcpy(all, b->counts, sizeof(all));
	if (b->gone)
		count_readable(b);
	in_delivery = true;
	if (f)
		f(NULL, 0, b->data, b->size, b->used);
	in_delivery = false;
	for (k = 0; k < KINDS; k++) {
		add(f ? &account->delivered[k] : &account->lost[k], b->counts[k]);
		add(&account->lost[k], all[k] - b->counts[k]);
		add(&account->unreadable, all[k] - b->counts[k]);
	}
	count(&account->buffers_completed);
	add(&account->kernel_ns, b->kernel_ns);
	pthread_mutex_lock(&lock);
	drop_buffer(b);
	pthread_mutex_unlock(&lock);
}

static void *hand_over_thread(void *l)
{
	hand_over(l);
	return NULL;
}

/* Hands over from a thread that the program does not know. */
static void hand_over_foreign(struct buffer *l)
{
	pthread_t t;

	if (pthread_create(&t, NULL, hand_over_thread, l))
		hand_over(l);
	else
		pthread_join(t, NULL);
}

static void deliver(struct buffer *list, bool foreign)
{
	struct buffer *next;

	if (!list)
		return;
	for (; list; list = next) {
		next = list->next;
		if (foreign)
			hand_over_foreign(list);
		else
			hand_over(list);
	}
	pthread_mutex_lock(&lock);
	delivering--;
	pthread_cond_broadcast(&idle);
	pthread_mutex_unlock(&lock);
}

/* Takes the kept buffers that are old enough, the last one first. The lock is held. */
static struct buffer *take_kept(bool all)
{
	struct buffer *list = kept;

	if (!list || (options.at_exit && !all) || (!all && list->closed + LATE_NS > double_now()))
		return NULL;
	kept = NULL;
	delivering++;
	return list;
}

static void unlock_and_deliver(void)
{
	struct buffer *list = take_ready();

	pthread_mutex_unlock(&lock);
	deliver(list, false);
}

/* ---- records */

static uint32_t thread_number(void)
{
	return system_tids ? (uint32_t)syscall(SYS_gettid) : (uint32_t)pthread_self();
}

/* A record that the client never sees, nor hears of. */
static void lose_one(uint32_t kind)
{
	count(&account->made[kind]);
	count(&account->lost[kind]);
}

void collect_call(const struct double_call *call)
{
	uint32_t kind = call->domain == DOUBLE_RUNTIME ? KIND_RUNTIME : KIND_DRIVER;
	uint8_t *r;

	if (replay_on() || !enabled_call(call->domain, call->cbid))
		return;
	if (options.lose_calls && call->correlation % options.lose_calls == 0) {
		lose_one(kind);
		return;
	}
	pthread_mutex_lock(&lock);
	r = room(lane_of_thread(), kind);
	if (r)
		record_call(r, call, (uint32_t)getpid(), thread_number(), clock_of(call->start), clock_of(call->end));
	unlock_and_deliver();
}

static bool every(uint64_t interval, uint64_t number)
{
	return interval && number % interval == 0;
}

/* Makes the times of a kernel wrong if MXBPF_DOUBLE or a broken rule demands it. */
static void spoil(const struct waiting *w, uint64_t *start, uint64_t *end)
{
	if (!w->op.start || every(options.zero, w->number)) { /* the first: it was measured, see cupti_op() */
		*start = *end = 0;
		count(&account->zero_times);
		return;
	}
	if (every(options.early, w->number)) {
		*end -= *start - clock_of(w->op.called - 5000);
		*start = clock_of(w->op.called - 5000);
		count(&account->early);
	}
	*start += options.base_ns;
	*end += options.base_ns;
	if (corrupt_left || (options.spoil && since_subscription > options.spoil)) {
		*start += corrupt_left ? corrupt_by : ABSURD_NS;
		*end += corrupt_left ? corrupt_by : ABSURD_NS;
		corrupt_left -= corrupt_left > 0;
		count(&account->corrupted);
	}
}

/* Returns NULL without a name or without room for it. */
static const char *name_in(struct buffer *b, const char *name)
{
	if (!name || every(options.no_name, nkernels))
		return NULL;
	if (options.reuse_names && !b->names)
		b->names = arena_take();
	return b->names ? arena_name(b->names, name) : name;
}

/* Finds a place for the record of an operation that was launched. Returns false if it has none. */
static bool reserve(struct lane *l, struct waiting *w)
{
	const uint32_t kind = w->op.kind;

	since_subscription++;
	if (kind == KIND_KERNEL) {
		w->number = ++nkernels;
		if (every(options.lose, nkernels)) {
			lose_one(kind);
			return false;
		}
		if (l->b && l->b->names && !arena_name(l->b->names, w->op.name))
			close_lane(l, true, false); /* the arena of the buffer is full */
	}
	w->at = room(l, kind);
	if (!w->at)
		return false;
	w->in = l->b;
	w->in->incomplete++;
	if (kind == KIND_KERNEL)
		w->name = name_in(w->in, w->op.name);
	memset(w->at, 0, record_bytes(kind, version)); /* kind 0: incomplete */
	return true;
}

/* The operation has ended. */
static void complete(const struct waiting *w)
{
	uint64_t start = clock_of(w->op.start), end = clock_of(w->op.end);
	struct buffer *b = w->in;

	b->incomplete--;
	if (b->gone) {
		free_if_unused(b);
		return;
	}
	if (w->op.kind == KIND_KERNEL)
		spoil(w, &start, &end);
	if (w->op.kind == KIND_KERNEL)
		b->kernel_ns += end - start;
	record_op(w->at, &w->op, w->name, start, end);
}

static struct queue *queue_of(uint32_t stream)
{
	unsigned i;

	for (i = 0; i < nqueues && queues[i].stream != stream; i++)
		;
	if (i == QUEUES)
		return &queues[QUEUES - 1];
	if (i == nqueues)
		queues[nqueues++].stream = stream;
	return &queues[i];
}

static void push(const struct double_op *op)
{
	struct queue *q = queue_of(op->stream);
	struct chunk *c = q->last;
	struct waiting w = {.op = *op};

	/* At graph level the operations of one launch are one record. */
	if (op->kind == KIND_GRAPH && c && c->to > c->from && c->ops[c->to - 1].op.kind == KIND_GRAPH &&
	    c->ops[c->to - 1].op.correlation == op->correlation) {
		c->ops[c->to - 1].op.end = op->end;
		return;
	}
	if (!reserve(lane_of_thread(), &w))
		return;
	if (!c || c->to == CHUNK) {
		c = malloc(sizeof(*c));
		c->next = NULL;
		c->from = c->to = 0;
		*(q->last ? &q->last->next : &q->first) = c;
		q->last = c;
	}
	c->ops[c->to++] = w;
}

/* Completes the records of operations that have ended. Returns true if others remain. */
static bool record_ended(uint64_t now)
{
	bool remain = false;
	struct chunk *c;
	unsigned i;

	for (i = 0; i < nqueues; i++) {
		while ((c = queues[i].first) != NULL) {
			for (; c->from < c->to && c->ops[c->from].op.end <= now; c->from++)
				complete(&c->ops[c->from]);
			if (c->from < c->to || c->to < CHUNK)
				break;
			queues[i].first = c->next;
			queues[i].last = c->next ? queues[i].last : NULL;
			free(c);
		}
		remain |= c && c->from < c->to;
	}
	release_held(false);
	return remain;
}

static void *device_thread(void *ctx)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	struct buffer *list, *late;
	bool remain;

	for (;;) {
		pthread_mutex_lock(&lock);
		while (!(remain = record_ended(double_now())) && !ready && (!kept || options.at_exit))
			pthread_cond_wait(&work, &lock);
		list = take_ready();
		late = take_kept(false);
		pthread_mutex_unlock(&lock);
		deliver(list, false);
		deliver(late, true);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* Below 13.1 U1 work of a graph has the number of another call, in all sessions of a process but the first. */
static bool has_wrong_number(const struct double_op *op)
{
	return op->graph && version < GRAPHS_RIGHT && account->subscriptions > 1;
}

void collect_op(const struct double_op *given)
{
	struct double_op op = *given;
	struct waiting wait;

	op.correlation -= has_wrong_number(&op);
	if (graph_level && op.graph)
		op.kind = KIND_GRAPH;
	if (replay_on() || !(enabled_kinds() >> op.kind & 1) || (op.unready && !all_syncs))
		return;
	pthread_mutex_lock(&lock);
	if (op.kind == KIND_SYNC || op.kind == KIND_MEMORY) {
		wait = (struct waiting){.op = op};
		if (reserve(lane_of_thread(), &wait))
			complete(&wait);
	} else {
		push(&op);
		pthread_cond_signal(&work);
	}
	unlock_and_deliver();
}

/* Single functions of the driver can be enabled without the kind of their records. */
static bool is_wanted(uint32_t kind, const uint8_t *record)
{
	uint32_t cbid;

	if (kind != KIND_RUNTIME && kind != KIND_DRIVER)
		return enabled_kinds() >> kind & 1;
	memcpy(&cbid, record + 4, sizeof(cbid));
	return enabled_call(kind == KIND_RUNTIME ? DOUBLE_RUNTIME : DOUBLE_DRIVER, cbid);
}

void collect_raw(uint32_t kind, const uint8_t *record)
{
	uint8_t *r;

	if (!is_wanted(kind, record))
		return;
	pthread_mutex_lock(&lock);
	r = room(&device_lane, kind);
	if (r)
		memcpy(r, record, record_bytes(kind, version));
	unlock_and_deliver();
}

void collect_devices(void)
{
	uint8_t *r;

	pthread_mutex_lock(&lock);
	r = room(&device_lane, KIND_DEVICE);
	if (r)
		record_device(r, 0);
	unlock_and_deliver();
}

/* ---- what the client sets */

void collect_register(requested_fn requested, completed_fn completed)
{
	pthread_mutex_lock(&lock);
	client.requested = requested;
	client.completed = completed;
	pthread_mutex_unlock(&lock);
}

void collect_enable(uint32_t kind, bool on)
{
	pthread_attr_t attributes;
	pthread_t t;

	enabled_set_kind(kind, on);
	pthread_mutex_lock(&lock);
	if (on && !thread_runs) {
		pthread_attr_init(&attributes);
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		thread_runs = !pthread_create(&t, &attributes, device_thread, NULL);
		pthread_attr_destroy(&attributes);
	}
	pthread_mutex_unlock(&lock);
}

void collect_graph_level(void)
{
	graph_level = true;
	account->graph_level = 1;
}

static void flush_overhead(uint64_t began)
{
	uint8_t *r;

	if (replay_on() || !(enabled_kinds() >> KIND_OVERHEAD & 1))
		return;
	pthread_mutex_lock(&lock);
	r = room(&device_lane, KIND_OVERHEAD);
	if (r)
		record_overhead(r, FLUSH_OVERHEAD, (uint32_t)getpid(), clock_of(began), clock_of(double_now()));
	pthread_mutex_unlock(&lock);
}

static bool worth_it(const struct buffer *list)
{
	for (; list; list = list->next)
		if (list->records > list->counts[KIND_OVERHEAD])
			return true;
	return false;
}

void collect_flush(bool forced)
{
	uint64_t began = double_now();
	struct buffer *list, *late;
	bool overhead;

	pthread_mutex_lock(&lock);
	record_ended(began);
	close_all(forced);
	list = take_ready();
	late = take_kept(forced && !options.at_exit);
	overhead = worth_it(list) || worth_it(late);
	pthread_mutex_unlock(&lock);
	deliver(list, false);
	deliver(late, true);
	pthread_mutex_lock(&lock);
	while (delivering && !in_delivery)
		pthread_cond_wait(&idle, &lock);
	pthread_mutex_unlock(&lock);
	if (overhead)
		flush_overhead(began);
}

/* The client never sees these buffers again, nor can it free them. Nothing waits for a place in them. */
static void lose(struct buffer **list)
{
	struct buffer *b;
	unsigned k;

	while ((b = *list) != NULL) {
		*list = b->next;
		for (k = 0; k < KINDS; k++)
			add(&account->lost[k], b->counts[k]);
		drop_buffer(b);
	}
	ready_end = &ready;
}

/* The records of operations that have not ended are lost with their buffers. */
static void lose_queues(void)
{
	struct chunk *c;
	unsigned i;

	for (i = 0; i < nqueues; i++) {
		while ((c = queues[i].first) != NULL) {
			for (; c->from < c->to; c->from++) {
				c->ops[c->from].in->incomplete--;
				free_if_unused(c->ops[c->from].in);
			}
			queues[i].first = c->next;
			free(c);
		}
		queues[i].last = NULL;
	}
}

void collect_reset(void)
{
	pthread_mutex_lock(&lock);
	lose_queues();
	close_all(true);
	lose(&ready);
	lose(&kept);
	enabled_nothing();
	graph_level = false;
	client.requested = NULL;
	client.completed = NULL;
	pthread_mutex_unlock(&lock);
}

/* At exit the buffers are handed over for the last time; operations that have not ended are lost. */
void collect_exit(void)
{
	struct buffer *list, *late;

	pthread_mutex_lock(&lock);
	record_ended(double_now());
	enabled_nothing();
	if (!options.lost_at_exit) {
		close_all(true);
		list = take_ready();
		late = take_kept(true);
		pthread_mutex_unlock(&lock);
		deliver(list, false);
		deliver(late, true);
		pthread_mutex_lock(&lock);
	}
	lose_queues();
	close_all(true);
	lose(&ready);
	lose(&kept);
	pthread_mutex_unlock(&lock);
}

void collect_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	enabled_nothing();
}

void collect_corrupt(uint64_t records)
{
	pthread_mutex_lock(&lock);
	corrupt_left = records;
	corrupt_by = records * ABSURD_NS;
	pthread_mutex_unlock(&lock);
}

void collect_subscribed(void)
{
	since_subscription = 0;
}

/* CUPTI asks for a buffer under its lock while another thread is in a function of CUPTI. The buffer returns empty. */
static void *ask_meanwhile(void *unused)
{
	uint8_t *data = NULL;
	size_t size, most;

	in_meeting = true;
	pthread_mutex_lock(&lock);
	client.requested(&data, &size, &most);
	pthread_mutex_unlock(&lock);
	if (data)
		client.completed(NULL, 0, data, size, 0);
	return unused;
}

static void meet(void)
{
	struct timespec until;
	pthread_t t;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += MEET_SECONDS;
	if (!client.requested || pthread_create(&t, NULL, ask_meanwhile, NULL))
		return;
	if (pthread_timedjoin_np(t, NULL, &until))
		double_abort("lock-order",
			     "the client holds a lock that its callback for buffers takes, while it calls CUPTI");
}

size_t collect_take_dropped(void)
{
	size_t n;

	if (options.lock_order && !in_meeting)
		meet();
	pthread_mutex_lock(&lock);
	n = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return n;
}
