// SPDX-License-Identifier: Apache-2.0
/* Reads open spans from the maps while their threads keep running. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "attach/priv.h"
#include "base/hash.h"

#define OPEN_BATCH 512

struct walk {
	const struct att *a;
	att_open_fn fn; /* NULL: only count */
	void *ctx;
	struct hash levels; /* (start, tid) -> level + 1; frames on their thread that end by key */
	unsigned n;
};

/*
 * Copies frame k of a thread in a consistent state. BPF writes the start last, except for the depth, and no two frames
 * have the same start. A frame that was replaced during the copy therefore has another start. x86 keeps the order of
 * loads and the order of stores, so only the compiler needs barriers.
 */
static bool read_frame(const struct att *a, const struct mxbpf_thread *t, uint32_t k, struct mxbpf_frame *out)
{
	const struct mxbpf_frame *f;
	uint64_t start;

	if (k >= __atomic_load_n(&t->depth, __ATOMIC_ACQUIRE))
		return false;
	f = att_frame(a, t, k);
	start = __atomic_load_n(&f->start_ns, __ATOMIC_ACQUIRE);
	*out = *f;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return k < __atomic_load_n(&t->depth, __ATOMIC_ACQUIRE) && f == att_frame(a, t, k) &&
	       start == __atomic_load_n(&f->start_ns, __ATOMIC_ACQUIRE) && start == out->start_ns;
}

/* Stops at the first frame that is popped during the walk, because the frames above it are gone too. */
static int walk_thread(struct walk *w, const struct mxbpf_thread *t)
{
	const uint32_t tgid = t->tgid;
	struct mxbpf_frame f;
	uint64_t *level;
	uint32_t k;

	for (k = 0; k < MXBPF_FRAMES_MAX && read_frame(w->a, t, k, &f) && t->slot; k++) {
		if (f.end == MXBPF_END_KEY) {
			level = hash_put(&w->levels, f.start_ns, f.tid);
			if (!level)
				return -ENOMEM;
			*level = k + 1;
			continue;
		}
		w->n++;
		if (w->fn)
			w->fn(w->ctx, &(struct att_open){.frame = &f, .tgid = tgid, .level = k});
	}
	return 0;
}

static void tell_key(struct walk *w, const struct mxbpf_key *key, const struct mxbpf_frame *f)
{
	const uint64_t *level = hash_get(&w->levels, f->start_ns, f->tid);
	const struct att_open o = {
		.frame = f, .tgid = key->tgid, .level = level ? (unsigned)*level - 1 : 0, .async = !level};

	w->n++;
	if (w->fn)
		w->fn(w->ctx, &o);
}

/*
 * Finds spans that end by key in the map of keys: their frame may be popped (asynchronous) or stale. Reads the map in
 * batches. A walk from key to key would start over at each key that BPF removes meanwhile.
 */
static int walk_keys(struct walk *w)
{
	struct {
		struct mxbpf_key keys[OPEN_BATCH];
		struct mxbpf_frame frames[OPEN_BATCH];
	} *batch = malloc(sizeof(*batch));
	int fd = bpf_map__fd(w->a->skel->maps.open_keys), err = batch ? 0 : -ENOMEM;
	bool first = true;
	__u32 at, got, i;

	while (!err) {
		got = OPEN_BATCH;
		err = bpf_map_lookup_batch(fd, first ? NULL : &at, &at, batch->keys, batch->frames, &got, NULL);
		for (i = 0; i < got && (!err || err == -ENOENT); i++) /* -ENOENT marks the last batch */
			tell_key(w, &batch->keys[i], &batch->frames[i]);
		first = false;
	}
	free(batch);
	return err == -ENOENT ? 0 : err;
}

unsigned att_open_spans(const struct att *a, att_open_fn fn, void *ctx)
{
	struct walk w = {.a = a, .fn = fn, .ctx = ctx};
	unsigned i;
	int err = 0;

	for (i = 1; !err && i < MXBPF_THREADS_MAX; i++)
		err = walk_thread(&w, &a->threads[i]);
	if (!err)
		walk_keys(&w);
	hash_fini(&w.levels);
	return w.n;
}

void att_open_on_threads(const struct att *a, att_open_fn fn, void *ctx)
{
	struct walk w = {.a = a, .fn = fn, .ctx = ctx};
	unsigned i;
	int err = 0;

	for (i = 1; !err && i < MXBPF_THREADS_MAX; i++)
		err = walk_thread(&w, &a->threads[i]);
	hash_fini(&w.levels);
}
