// SPDX-License-Identifier: Apache-2.0
/* Spans that are open, read from the maps while their threads go on. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "attach/priv.h"
#include "base/hash.h"

#define OPEN_BATCH 512

struct walk {
	const struct att *a;
	att_open_fn fn; /* NULL: none */
	void *ctx;
	struct hash levels; /* (start, tid) -> level + 1 of frames that end by key and are still on their thread */
	unsigned n;
};

/*
 * Frame k of a thread as it was at one moment. Its start is written last but for the depth, and no two frames start at
 * the same time, so one that was taken off and put on again while it was read has another. Processors of this
 * architecture keep the order of loads and that of stores; the compiler has to be told.
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

/* One that is taken off just now is open no more, and neither are those above it. */
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
 * What ends by key is found by key: its frame may be gone (asynchronous) or stale. In batches: from key to next key,
 * the walk would begin again at each key that is taken away meanwhile.
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
		for (i = 0; i < got && (!err || err == -ENOENT); i++) /* -ENOENT: the last ones */
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
