// SPDX-License-Identifier: Apache-2.0
/* Where names come from: BPF's map of bytes, constants of the library, the plan's own, and /proc for threads. */
#include "cmd/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxbpf_kv.h"

#define CLASS_BYTES_MAX 256

/* A constant of the library, read from the file: the process may be gone, and its page may never have been loaded. */
static int static_name(struct live *l, uint64_t id, char *text)
{
	uint64_t va = id & ~MXBPF_NAME_STATIC_BIT;
	struct elf *elf;
	int err;

	err = tgt_lib_elf(l->target, l->plan.lib, &elf, NULL);
	return err ? err : elf_read_str_va(elf, va, text, MXBPF_NAME_BYTES_MAX);
}

/* "N5torch8autograd9generated12AddBackward0E" -> its parts joined by "::", less the scope that nobody needs to see. */
static void class_name(const char *mangled, const char *scope, char *text, size_t max)
{
	const char *p = mangled + (*mangled == 'N');
	size_t len = 0, n = scope ? strlen(scope) : 0;
	char *end;

	text[0] = '\0';
	for (unsigned long part; (part = strtoul(p, &end, 10)) && strlen(end) >= part; p = end + part) {
		bool nameless = part == strlen("_GLOBAL__N_1") && !strncmp(end, "_GLOBAL__N_1", part);

		len += (size_t)snprintf(text + len, len < max ? max - len : 0, "%s%.*s", len ? "::" : "",
					nameless ? 32 : (int)part, nameless ? "(anonymous namespace)" : end);
	}
	if (!len || len >= max) /* a template, or what else is no plain name: better mangled than cut */
		snprintf(text, max, "%s", mangled);
	else if (n && !strncmp(text, scope, n))
		memmove(text, text + n, len - n + 1);
}

/* What stands before a class's name in the row that bears the tag. */
static const char *tag_prefix(const struct live *l, unsigned tag)
{
	unsigned i;

	for (i = 0; tag && i < l->plan.adp->nprobes; i++)
		if (l->plan.adp->probes[i].row.name_tag == tag && l->plan.adp->probes[i].span_name)
			return l->plan.adp->probes[i].span_name;
	return "";
}

/* The class of an object by its vtable: the word before it is its type_info, whose second word is the mangled name. */
static int read_class(const struct tgt *t, uint64_t vtable, char mangled[CLASS_BYTES_MAX])
{
	uint64_t info, name;
	size_t n = 0;

	if (tgt_read(t, vtable - sizeof(info), &info, sizeof(info)) ||
	    tgt_read(t, info + sizeof(name), &name, sizeof(name)))
		return -EFAULT;
	do
		if (tgt_read(t, name + n, &mangled[n], 1))
			return -EFAULT;
	while (mangled[n] && ++n < CLASS_BYTES_MAX - 1);
	mangled[n] = '\0';
	return 0;
}

/* Of an object that was seen in one process: the first one has the same library, and lives longest. */
static int class_of(struct live *l, uint32_t tgid, uint64_t id, char mangled[CLASS_BYTES_MAX])
{
	uint64_t vtable = id & MXBPF_NAME_ADDR_MASK;
	unsigned image = id >> MXBPF_NAME_IMAGE_SHIFT & MXBPF_NAME_IMAGE_MASK;
	const struct mxbpf_image *here = image && image <= MXBPF_IMAGES_MAX ? &l->plan.target.images[image - 1] : NULL;
	struct mxbpf_target target;
	struct tgt *t = NULL;
	int err = -EFAULT;

	if ((here && here->end) || tgid == (uint32_t)tgt_pid(l->target))
		err = read_class(l->target, vtable + (here ? here->base : 0), mangled);
	if (!err || !att_has(l->att, (pid_t)tgid, &target) || tgt_open((pid_t)tgid, &t, NULL))
		return err;
	err = read_class(t, vtable + (here ? target.images[image - 1].base : 0), mangled);
	tgt_close(t);
	return err;
}

static int object_name(struct live *l, uint32_t tgid, uint64_t id, char *text)
{
	unsigned tag = id >> MXBPF_NAME_TAG_SHIFT & MXBPF_NAME_TAG_MASK;
	char mangled[CLASS_BYTES_MAX] = "", class[CLASS_BYTES_MAX];
	int err = class_of(l, tgid, id, mangled);

	if (err)
		return err;
	class_name(mangled + (*mangled == '*'), l->plan.adp->object_scope, class, sizeof(class));
	return snprintf(text, MXBPF_NAME_BYTES_MAX, "%s%s", tag_prefix(l, tag), class);
}

/*
 * What a tag says of the bytes that BPF read: "_backward_*::pure_python", where they stand for the star; what the row's
 * name begins with has none. The tag behind it is that without what the "::" stands before. NULL: nothing.
 */
static const char *tag_pattern(const struct live *l, unsigned tag, size_t *len)
{
	const char *own = tag_prefix(l, tag), *before = tag < 2 ? "" : tag_prefix(l, tag - 1);

	*len = strlen(own);
	if (strchr(own, '*') || !strchr(before, '*') || !strstr(before, "::"))
		return own;
	*len = (size_t)(strstr(before, "::") - before);
	return before;
}

static int read_tagged(struct live *l, uint64_t id, char *text, unsigned *tag)
{
	int n = ring_read_name(att_names_fd(l->att), id, text, tag);
	const char *pattern, *star;
	size_t len, before;

	if (n < 0 || *tag == MXBPF_NAME_TAG_PAIR)
		return n;
	pattern = tag_pattern(l, *tag, &len);
	if (!len || (size_t)n + len > MXBPF_NAME_BYTES_MAX)
		return n;
	star = memchr(pattern, '*', len);
	before = star ? (size_t)(star - pattern) : len;
	memmove(text + before, text, (size_t)n);
	memcpy(text, pattern, before);
	if (!star)
		return n + (int)len;
	memcpy(text + before + n, star + 1, len - before - 1);
	return n + (int)len - 1;
}

/* A function of autograd's has an empty type. */
static int read_half(struct live *l, uint64_t id, char *text, unsigned *tag)
{
	return id == MXBPF_NAME_UNNAMED ? 0 : read_tagged(l, id, text, tag);
}

/* Two names, of which only the ids are there. */
static int read_pair(struct live *l, char *text)
{
	static char room[MXBPF_NAME_BYTES_MAX];
	uint64_t ids[2];
	unsigned tag;
	int first, second;

	memcpy(ids, text, sizeof(ids));
	first = read_half(l, ids[0], text, &tag);
	if (first < 0 || first > MXBPF_NAME_BYTES_MAX / 2)
		return first < 0 ? first : -ENAMETOOLONG;
	second = read_half(l, ids[1], room, &tag);
	if (second < 0 || second > MXBPF_NAME_BYTES_MAX / 2 - 8)
		return second < 0 ? second : -ENAMETOOLONG;
	memcpy(text + first, "::", 2);
	memcpy(text + first + 2, room, (size_t)second);
	return first + 2 + second;
}

static int read_name(struct live *l, uint64_t id, char *text)
{
	unsigned tag;
	int len = read_tagged(l, id, text, &tag);

	return len == 2 * sizeof(uint64_t) && tag == MXBPF_NAME_TAG_PAIR ? read_pair(l, text) : len;
}

static int span_name(struct live *l, uint32_t tgid, uint64_t id, char *text)
{
	const char *planned = plan_span_name(&l->plan, id);

	if (id == MXBPF_NAME_UNNAMED)
		planned = "[unnamed]";
	if (planned)
		return snprintf(text, MXBPF_NAME_BYTES_MAX, "%s", planned);
	if (id & MXBPF_NAME_STATIC_BIT && id & MXBPF_NAME_OBJECT_BIT)
		return object_name(l, tgid, id, text);
	if (id & MXBPF_NAME_STATIC_BIT)
		return static_name(l, id, text);
	return read_name(l, id, text);
}

void live_feed_name(struct live *l, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text, size_t len)
{
	static char room[sizeof(struct mxbpf_name) + MXBPF_TEXT_BYTES_MAX] __attribute__((aligned(8)));
	struct mxbpf_name *n = (struct mxbpf_name *)room;
	size_t size = (sizeof(*n) + len + 7) & ~7ul;

	memset(room, 0, size);
	*n = (struct mxbpf_name){.h = {.kind = MXBPF_NAME, .size = (uint16_t)size, .tgid = tgid},
				 .id = id,
				 .len = (uint32_t)len,
				 .kind = kind};
	memcpy(n->text, text, len);
	if (mdl_fold(l->model, &n->h) && !l->write_error)
		l->write_error = -ENOMEM;
}

static void learn_thread(struct live *l, uint32_t tgid, uint32_t tid)
{
	uint64_t *known = hash_put(&l->threads, tgid, tid);
	char comm[32];

	if (!known || *known)
		return;
	*known = 1;
	if (tid != tgid) /* the process is called as its first thread, of which there may be no call */
		learn_thread(l, tgid, tgid);
	/* Nothing but its number is kept of a followed process: should that be another's by now, a name is wrong, no
	 * more. */
	if (tgid == (uint32_t)tgt_pid(l->target) ? !tgt_thread_comm(l->target, (pid_t)tid, comm)
						 : !tgt_peek_comm((pid_t)tgid, (pid_t)tid, comm))
		live_feed_name(l, MXBPF_NAME_THREAD, tgid, tid, comm, strlen(comm));
}

static void learn_args(struct live *l, uint32_t tgid, uint64_t id)
{
	struct buf text = {0};

	if (mdl_text(l->model, MXBPF_NAME_ARGS, id, NULL) || hash_get(&l->nameless, id, MXBPF_NAME_ARGS))
		return;
	if (!live_args_text(l, id, &text))
		live_feed_name(l, MXBPF_NAME_ARGS, tgid, id, text.data, text.len);
	else
		hash_put(&l->nameless, id, MXBPF_NAME_ARGS);
	buf_fini(&text);
}

/* That of a mark has its domain and a NUL before it. */
static void feed_name(struct live *l, uint32_t tgid, uint64_t id, const char *text, size_t len)
{
	const char *end = memchr(text, '\0', len);
	const size_t n = end ? (size_t)(end - text) : 0;

	if (end)
		live_feed_name(l, MXBPF_NAME_DOMAIN, tgid, id, text, n);
	if (end && n + 1 == len)
		live_feed_name(l, MXBPF_NAME_SPAN, tgid, id, "[unnamed]", strlen("[unnamed]"));
	else
		live_feed_name(l, MXBPF_NAME_SPAN, tgid, id, end ? end + 1 : text, end ? len - n - 1 : len);
}

static void learn_layer(struct live *l, uint32_t tgid, uint64_t id)
{
	static char text[MXBPF_NAME_BYTES_MAX];
	unsigned tag;
	int len;

	if (mdl_text(l->model, MXBPF_NAME_LAYER, id, NULL) || hash_get(&l->nameless, id, MXBPF_NAME_LAYER))
		return;
	len = ring_read_name(att_names_fd(l->att), id, text, &tag);
	if (len >= 0)
		live_feed_name(l, MXBPF_NAME_LAYER, tgid, id, text, (size_t)len);
	else
		hash_put(&l->nameless, id, MXBPF_NAME_LAYER);
}

/* A name that the model does not know yet. */
static void learn_name(struct live *l, uint32_t tgid, uint64_t id)
{
	static char text[MXBPF_NAME_BYTES_MAX];
	int len;

	if (!id || mdl_has_name(l->model, id) || hash_get(&l->nameless, id, 0))
		return;
	len = span_name(l, tgid, id, text);
	if (len >= 0)
		feed_name(l, tgid, id, text, (size_t)len);
	else /* one system call for each span of it would be too slow for the ring */
		hash_put(&l->nameless, id, 0);
}

void live_learn(struct live *l, struct mxbpf_rec *r)
{
	struct kind_id_walk id = {0};
	uint64_t *at;
	uint32_t tid;
	unsigned i;

	for (i = 0; i < KIND_THREADS_MAX; i++) {
		tid = kind_thread(r, i);
		if (tid)
			learn_thread(l, r->tgid, tid);
	}
	while (kind_next_id(r, &id)) {
		at = (uint64_t *)((char *)r + id.off);
		if (id.of == MXBPF_NAME_SPAN)
			learn_name(l, r->tgid, id.id);
		else if (id.of == MXBPF_NAME_ARGS)
			learn_args(l, r->tgid, id.id);
		else if (id.of == MXBPF_NAME_LAYER)
			learn_layer(l, r->tgid, id.id);
		else if (id.of == MXBPF_NAME_STACK && id.flags & KIND_ID_RAW && l->stacks)
			*at = live_stack_id(l, r->tgid, id.id);
	}
}

void live_learn_names(struct live *l, void *recs, size_t bytes)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;

	hash_clear(&l->nameless);
	while ((r = kind_next(recs, bytes, &pos)))
		live_learn(l, (struct mxbpf_rec *)r);
}
