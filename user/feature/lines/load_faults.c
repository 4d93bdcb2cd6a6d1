// SPDX-License-Identifier: Apache-2.0
#include "feature/lines/load_faults.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/faults.h"
#include "base/clock.h"
#include "base/hash.h"
#include "feature/lines/lines.h"
#include "mxbpf_lines.h"
#include "session/priv.h"

#define TOUCHES_PROCESSES_MAX 64
#define PENDING_MAX	      8192
#define LOOK_MAX	      50 /* samples that are kept of a look */
#define PLACES_MAX	      65536
#define AGE_NS		      1500000000ull /* after which a page that is there counts */
#define LAST_AGE_NS	      300000000ull  /* the same at the end of the session */
#define AGAIN_NS	      500000000ull  /* what is touched again after that is memory that comes and goes */
#define CHECKS		      3		    /* whether it is there, in that time */
#define WEIGHT_SPARSE	      4 /* of a sample: from here on most faults are not seen, and neighbours count as well */
#define PAGE_SHIFT	      12
#define NEAR_SHIFT	      16
#define TEXT_BYTES	      8192

struct touch {
	uint64_t ts_ns, addr, weight, stack_id;
	uint32_t tgid;
	uint8_t checks, shift;
};

struct process {
	pid_t tgid; /* 0: free */
	struct py *py;
	int pagemap;
	bool forked; /* what it copies lies here and there, and is told by its pages alone */
};

struct touches {
	struct session *ses;
	struct faults *faults;
	struct mxbpf_python layout;
	struct process processes[TOUCHES_PROCESSES_MAX];
	struct buf pending; /* struct touch, in order of time */
	struct hash places; /* (address of a page or its neighbourhood, tgid) -> when it was touched */
	uint32_t nplaces;
	unsigned taken, each; /* samples of the present look; of them, one of so many is kept */
	char text[TEXT_BYTES];
};

struct touches *touches_new(struct session *ses, const struct mxbpf_python *layout)
{
	struct touches *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ses = ses;
	t->layout = *layout;
	if (!faults_open(layout, &t->faults))
		return t;
	free(t);
	return NULL;
}

static struct process *process_of(struct touches *t, pid_t tgid)
{
	unsigned i;

	for (i = 0; i < TOUCHES_PROCESSES_MAX; i++)
		if (t->processes[i].tgid == tgid)
			return &t->processes[i];
	return NULL;
}

static struct process *process_new(struct touches *t, pid_t tgid, struct py *py, bool forked)
{
	struct process *p = memcmp(py_offsets(py), &t->layout, sizeof(t->layout)) ? NULL : process_of(t, 0);
	char path[64];

	if (!p)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", tgid);
	p->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (p->pagemap < 0)
		return NULL;
	p->tgid = tgid;
	p->py = py;
	p->forked = forked;
	return p;
}

void touches_watch(struct touches *t, pid_t tgid, pid_t tid, struct py *py, bool forked)
{
	/* The number is from the memory of the process, and in a container it is one of another namespace. */
	if (!faults_is_thread(tgid, tid))
		return;
	if (process_of(t, tgid) || process_new(t, tgid, py, forked))
		faults_watch(t->faults, tgid, tid);
}

void touches_tidy(struct touches *t)
{
	faults_tidy(t->faults);
}

void touches_forget(struct touches *t, pid_t tgid)
{
	struct process *p = process_of(t, tgid);

	if (!p)
		return;
	faults_forget(t->faults, tgid);
	close(p->pagemap);
	p->tgid = 0;
}

/* Pages and neighbourhoods have keys that differ. */
static uint64_t place_of(const struct touch *touch)
{
	return touch->addr >> touch->shift << touch->shift | touch->shift;
}

#define LAST 32 /* in the key of a place: its value is the last time, not the first one */

static void note_place(struct touches *t, const struct touch *touch)
{
	uint64_t *at;

	if (t->nplaces >= PLACES_MAX) {
		hash_fini(&t->places);
		t->places = (struct hash){0};
		t->nplaces = 0;
	}
	at = hash_put(&t->places, place_of(touch), touch->tgid);
	if (!at)
		return;
	t->nplaces += !*at;
	*at = *at ? *at : touch->ts_ns;
	at = hash_put(&t->places, place_of(touch) | LAST, touch->tgid);
	if (at)
		*at = touch->ts_ns;
}

/* The memory was touched at another time as well. */
static bool comes_and_goes(struct touches *t, const struct touch *touch)
{
	const uint64_t *first = hash_get(&t->places, place_of(touch), touch->tgid);
	const uint64_t *last = hash_get(&t->places, place_of(touch) | LAST, touch->tgid);

	return first && last && *last > *first + AGAIN_NS;
}

static void on_fault(void *ctx, const struct mxbpf_fault *s)
{
	struct touches *t = ctx;
	struct process *p = process_of(t, (pid_t)s->tgid);
	struct touch touch = {.ts_ns = s->ts_ns, .addr = s->addr, .weight = s->weight, .tgid = s->tgid};
	struct mxbpf_touched r = {.h = {.kind = MXBPF_TOUCHED, .size = sizeof(r), .tgid = s->tgid, .ts_ns = s->ts_ns}};
	unsigned lost = 0;
	size_t len;

	if (!p || !s->tgid || t->taken++ % t->each)
		return;
	touch.weight *= t->each;
	touch.shift = s->weight > WEIGHT_SPARSE && !p->forked ? NEAR_SHIFT : PAGE_SHIFT;
	note_place(t, &touch);
	if (buf_count(&t->pending, touch) >= PENDING_MAX)
		return;
	len = py_stack_text(p->py, &s->stack, t->text, sizeof(t->text), &lost);
	if (!len || lost)
		return;
	touch.stack_id = ses_learn_stack(t->ses, &r.h, t->text, lines_shorten(t->text, len));
	buf_put(&t->pending, &touch, sizeof(touch)); /* without memory a sample is lost, which is one of many */
}

/* Present or swapped out. */
static bool is_there(const struct process *p, uint64_t addr)
{
	uint64_t page;

	return pread(p->pagemap, &page, sizeof(page), (off_t)((addr >> PAGE_SHIFT) * sizeof(page))) == sizeof(page) &&
	       page >> 62;
}

/* Returns whether the sample is decided; *kept: the page has stayed. */
static bool decide(struct touches *t, struct touch *touch, uint64_t now_ns, bool last, bool *kept)
{
	const uint64_t age = now_ns > touch->ts_ns ? now_ns - touch->ts_ns : 0;
	const struct process *p = process_of(t, (pid_t)touch->tgid);

	*kept = false;
	if (!last && age < AGE_NS * (touch->checks + 1u) / CHECKS)
		return false;
	if (!p || !is_there(p, touch->addr))
		return true;
	touch->checks++;
	*kept = age >= LAST_AGE_NS && !comes_and_goes(t, touch);
	return touch->checks == CHECKS || last;
}

static void put_touched(const struct touch *touch, bool kept, struct buf *recs)
{
	struct mxbpf_touched r = {.h = {.kind = MXBPF_TOUCHED, .size = sizeof(r), .tgid = touch->tgid},
				  .stack_id = touch->stack_id,
				  .pages = kept ? touch->weight : 0,
				  .gone = kept ? 0 : touch->weight,
				  .samples = kept};

	r.h.ts_ns = touch->ts_ns;
	buf_put(recs, &r, sizeof(r)); /* without memory a sample is lost, which is one of many */
}

void touches_look(struct touches *t, bool last, struct buf *recs)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct touch *at;
	size_t i, n, kept = 0;
	bool stays;

	t->each = t->taken / LOOK_MAX + 1;
	t->taken = 0;
	faults_take(t->faults, on_fault, t);
	n = buf_count(&t->pending, struct touch);
	for (i = 0; i < n; i++) {
		at = buf_at(&t->pending, struct touch, i);
		if (decide(t, at, now_ns, last, &stays))
			put_touched(at, stays, recs);
		else
			*buf_at(&t->pending, struct touch, kept++) = *at;
	}
	t->pending.len = kept * sizeof(struct touch);
}

void touches_free(struct touches *t)
{
	unsigned i;

	if (!t)
		return;
	for (i = 0; i < TOUCHES_PROCESSES_MAX; i++)
		if (t->processes[i].tgid)
			close(t->processes[i].pagemap);
	faults_close(t->faults);
	buf_fini(&t->pending);
	hash_fini(&t->places);
	free(t);
}
