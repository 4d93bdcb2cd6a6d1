// SPDX-License-Identifier: Apache-2.0
/*
 * gpu_memory_profile-pid_N.csv of MXNet 2.0: a line for each array that is live at the end, with its profiler scope and
 * name. This has arrays of all devices; those that are not GPUs have their full name. It is not known how many bytes a
 * pool gave for an array, nor whether they were used before.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/priv.h"
#include "feature/memory/memory.h"

#define HEADING "\"Attribute Name\",\"Requested Size\",\"Device\",\"Actual Size\",\"Reuse?\""

#define BATCH_BYTES (1u << 20)

struct memory {
	struct view s;
	struct mdl *alive; /* folds allocations only */
	struct buf batch;
};

struct line {
	char *name; /* owned */
	size_t len;
	uint64_t addr, bytes;
	uint32_t device;
	bool pooled;
};

static int mxnet_memory_fold(struct memory *m)
{
	int err = m->batch.len ? mdl_fold_all(m->alive, m->batch.data, m->batch.len) : 0;

	m->batch.len = 0;
	return err ? err_set(m->s.err, ERR_RUNTIME, err, "out of memory") : 0;
}

static int mxnet_memory_begin(struct view *s)
{
	struct memory *m = (struct memory *)s;

	m->alive = mdl_new();
	return m->alive ? 0 : err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
}

static int mxnet_memory_record(struct view *s, const struct mxbpf_rec *r)
{
	struct memory *m = (struct memory *)s;

	if (r->kind != MXBPF_ALLOC)
		return 0;
	if (buf_put(&m->batch, r, r->size))
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	return m->batch.len < BATCH_BYTES ? 0 : mxnet_memory_fold(m);
}

/* Gluon names a parameter by a UUID and a word, and MXNet shows the word. Returns its offset, or 0 for other names. */
static size_t uuid_end(const char *text, size_t len)
{
	static const unsigned char parts[] = {8, 4, 4, 4, 12};
	size_t pos = 0, i, k;

	for (i = 0; i < sizeof(parts); i++) {
		for (k = 0; k < parts[i]; k++, pos++)
			if (pos >= len || !strchr("0123456789abcdefABCDEF", text[pos]))
				return 0;
		if (pos >= len || text[pos++] != '_')
			return 0;
	}
	return pos;
}

/* Returns false if there is no memory. */
static bool set_name(struct memory *m, struct line *l, const struct mxbpf_mem_owner *h)
{
	size_t scope_len = 0, label_len = 0, skip;
	const char *scope = "", *label = "";

	if (h->scope_id && h->scope_id != MXBPF_NAME_UNNAMED)
		scope = mdl_name(m->s.in->model, h->scope_id, &scope_len);
	l->name = malloc(scope_len + MXBPF_NAME_BYTES_MAX + 1);
	if (!l->name)
		return false;
	memcpy(l->name, scope, scope_len);
	if (h->label_id && h->label_id != MXBPF_NAME_UNNAMED)
		label = mdl_name(m->s.in->model, h->label_id, &label_len);
	label_len = label_len < MXBPF_NAME_BYTES_MAX ? label_len : MXBPF_NAME_BYTES_MAX;
	skip = uuid_end(label, label_len);
	skip = skip < label_len ? skip : 0;
	memcpy(l->name + scope_len, label + skip, label_len - skip);
	l->len = scope_len + label_len - skip;
	return true;
}

static int mxnet_memory_by_name(const void *va, const void *vb)
{
	const struct line *a = va, *b = vb;
	int order = view_name_cmp(a->name, a->len, b->name, b->len);

	return order ? order : a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void mxnet_memory_put_line(struct view *s, const struct line *l)
{
	char device[48];

	mdl_device_name(s->in->session, l->device, device);
	if (!strncmp(device, "gpu/", 4))
		memmove(device, device + 4, strlen(device + 4) + 1);
	out_puts(s->out, "\"");
	view_put_utf8(s->out, l->name, l->len);
	out_printf(s->out, "\",\"%" PRIu64 "\",\"%s\",", l->bytes, device);
	if (l->pooled)
		out_puts(s->out, "\"\",\"\"\n");
	else
		out_printf(s->out, "\"%" PRIu64 "\",\"0\"\n", l->bytes);
}

static bool is_pooled(const struct mdl *m, const struct mxbpf_mem_owner *h)
{
	const struct mxbpf_mem_time *t;
	size_t i;

	for (i = 0; (t = memory_device(m, i)); i++)
		if (t->device == h->device && t->h.tgid == h->h.tgid)
			return t->pool_peak_bytes;
	return false;
}

static int read_lines(struct memory *m, struct buf *lines)
{
	struct memory_block b;
	size_t pos = 0;

	while (memory_block(m->alive, &pos, &b)) {
		struct line l = {.addr = b.addr, .bytes = b.bytes, .device = b.holder->device};

		l.pooled = is_pooled(m->alive, b.holder);
		if (!set_name(m, &l, b.holder))
			return -ENOMEM;
		if (buf_put(lines, &l, sizeof(l))) {
			free(l.name);
			return -ENOMEM;
		}
	}
	return 0;
}

static int mxnet_memory_end(struct view *s)
{
	struct memory *m = (struct memory *)s;
	struct buf lines = {0};
	size_t i, n;
	int err = mxnet_memory_fold(m);

	if (!err && read_lines(m, &lines))
		err = err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	n = buf_count(&lines, struct line);
	if (n)
		qsort(lines.data, n, sizeof(struct line), mxnet_memory_by_name);
	out_puts(s->out, HEADING "\n");
	for (i = 0; i < n; i++) {
		if (!err)
			mxnet_memory_put_line(s, buf_at(&lines, struct line, i));
		free(buf_at(&lines, struct line, i)->name);
	}
	buf_fini(&lines);
	return err;
}

static void mxnet_memory_fini(struct view *s)
{
	struct memory *m = (struct memory *)s;

	mdl_free(m->alive);
	buf_fini(&m->batch);
}

static const char *const magic[] = {HEADING, NULL};
static const char *const suffixes[] = {".memory.csv", ".memory.csv.gz", NULL};

const struct view_ops view_mxnet_memory = {
	.name = "mxnet-memory",
	.help = "the CSV of MXNet 2.0's memory profiler: arrays that are alive, by scope; requires --memory",
	.suffixes = suffixes,
	.magic = magic,
	.needs_records = true,
	.of_memory = true,
	.state_bytes = sizeof(struct memory),
	.begin = mxnet_memory_begin,
	.record = mxnet_memory_record,
	.end = mxnet_memory_end,
	.fini = mxnet_memory_fini,
};
