// SPDX-License-Identifier: Apache-2.0
/* Where names come from: BPF's map of bytes, constants of the library, the plan's own, and /proc for threads. */
#include "cmd/live.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A constant of the library, read from the file: the process may be gone, and its page may never have been loaded. */
static int static_name(struct live *l, uint64_t id, char *text)
{
	uint64_t va = (id & ~MXBPF_NAME_STATIC_BIT) - l->plan.lib->load_bias;
	struct elf *elf;
	int err;

	err = tgt_lib_elf(l->target, l->plan.lib, &elf, NULL);
	return err ? err : elf_read_str_va(elf, va, text, MXBPF_NAME_BYTES_MAX);
}

static int span_name(struct live *l, uint64_t id, char *text)
{
	const char *planned = plan_span_name(&l->plan, id);

	if (id == MXBPF_NAME_UNNAMED)
		planned = "[unnamed]";
	if (planned)
		return snprintf(text, MXBPF_NAME_BYTES_MAX, "%s", planned);
	if (id & MXBPF_NAME_STATIC_BIT)
		return static_name(l, id, text);
	return ring_read_name(att_names_fd(l->att), id, text);
}

static void feed_name(struct live *l, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text, int len)
{
	static char room[sizeof(struct mxbpf_name) + MXBPF_NAME_BYTES_MAX] __attribute__((aligned(8)));
	struct mxbpf_name *n = (struct mxbpf_name *)room;
	size_t size = (sizeof(*n) + (size_t)len + 7) & ~7ul;

	memset(room, 0, size);
	*n = (struct mxbpf_name){.h = {.kind = MXBPF_NAME, .size = (uint16_t)size, .tgid = tgid},
				 .id = id,
				 .len = (uint32_t)len,
				 .kind = kind};
	memcpy(n->text, text, (size_t)len);
	if (mdl_feed(l->model, n, size) && !l->write_error)
		l->write_error = -ENOMEM;
}

static void learn_thread(struct live *l, uint32_t tgid, uint32_t tid)
{
	uint64_t *known = hash_put(&l->threads, tgid, tid);
	char comm[32];

	if (!known || *known)
		return;
	*known = 1;
	if (!tgt_thread_comm(l->target, (pid_t)tid, comm))
		feed_name(l, MXBPF_NAME_THREAD, tgid, tid, comm, (int)strlen(comm));
}

size_t live_learn_names(struct live *l, const void *recs, size_t bytes)
{
	static char text[MXBPF_NAME_BYTES_MAX];
	const struct mxbpf_rec *r;
	size_t pos = 0, n;
	bool bad;
	int len;

	hash_clear(&l->nameless);
	for (n = 0; (r = mdl_next_rec(recs, bytes, &pos, &bad)); n++) {
		const struct mxbpf_span *s = (const struct mxbpf_span *)r;

		if (r->kind != MXBPF_SPAN)
			continue;
		learn_thread(l, r->tgid, s->tid);
		if (s->end_tid != s->tid)
			learn_thread(l, r->tgid, s->end_tid);
		if (!s->name_id || mdl_has_name(l->model, s->name_id) || hash_get(&l->nameless, s->name_id, 0))
			continue;
		len = span_name(l, s->name_id, text);
		if (len >= 0)
			feed_name(l, MXBPF_NAME_SPAN, r->tgid, s->name_id, text, len);
		else /* one system call for each span of it would be too slow for the ring */
			hash_put(&l->nameless, s->name_id, 0);
	}
	return n;
}
