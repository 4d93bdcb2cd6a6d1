// SPDX-License-Identifier: Apache-2.0
#include "view/stacks.h"

#include "view/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static bool same(const struct view_stack *a, const struct mxbpf_sample *b, uint32_t tgid, uint32_t tid)
{
	return a->between == !!(b->flags & MXBPF_SAMPLE_BETWEEN) && a->stack_id == b->stack_id &&
	       a->code_id == b->code_id && a->tgid == tgid && a->tid == tid && a->nspans == mxbpf_sample_nspans(b) &&
	       !memcmp(a->spans, b + 1, a->nspans * sizeof(a->spans[0]));
}

static struct view_stack *stack_new(struct view_stacks *t, const struct mxbpf_sample *s, uint32_t tgid, uint32_t tid)
{
	size_t spans_bytes = mxbpf_sample_nspans(s) * sizeof(struct mxbpf_sample_span);
	struct view_stack *n = malloc(sizeof(*n) + spans_bytes);

	if (!n || buf_put(&t->list, &n, sizeof(n))) {
		free(n);
		return NULL;
	}
	*n = (struct view_stack){.stack_id = s->stack_id,
				 .code_id = s->code_id,
				 .tgid = tgid,
				 .tid = tid,
				 .between = s->flags & MXBPF_SAMPLE_BETWEEN,
				 .nspans = mxbpf_sample_nspans(s)};
	memcpy(n->spans, s + 1, spans_bytes);
	return n;
}

int view_stacks_add(struct view_stacks *t, const struct mxbpf_rec *r)
{
	const struct mxbpf_sample *s = (const void *)r;
	const struct mxbpf_sample_span *spans = (const void *)(s + 1);
	uint32_t tgid = t->by_thread ? r->tgid : 0, tid;
	struct view_stack *at;
	uint64_t h, *known;
	unsigned i, n;

	if (r->kind != MXBPF_SAMPLE)
		return 0;
	tid = t->by_thread ? s->tid : 0;
	h = mix(mix(mix(1 + !!(s->flags & MXBPF_SAMPLE_BETWEEN), s->stack_id), s->code_id), (uint64_t)tgid << 32 | tid);
	n = mxbpf_sample_nspans(s);
	for (i = 0; i < n; i++)
		h = mix(mix(h, spans[i].name_id), (uint64_t)spans[i].cls << 32 | spans[i].device);
	for (;; h++) { /* stacks with equal hashes have adjacent keys */
		known = hash_put(&t->index, h, 0);
		if (!known)
			return -ENOMEM;
		if (!*known)
			*known = (uintptr_t)stack_new(t, s, tgid, tid);
		at = (struct view_stack *)(uintptr_t)*known;
		if (!at)
			return -ENOMEM;
		if (same(at, s, tgid, tid))
			break;
	}
	at->count += s->count;
	return 0;
}

void view_stacks_fini(struct view_stacks *t)
{
	size_t i;

	for (i = 0; i < buf_count(&t->list, struct view_stack *); i++)
		free(*buf_at(&t->list, struct view_stack *, i));
	buf_fini(&t->list);
	hash_fini(&t->index);
}

/* "train.py(12): step". A line of another form, such as "nn.Module: Conv2d", is a name. */
static void split_python(const char *line, size_t len, struct view_stack_frame *f)
{
	const char *at = memmem(line, len, "): ", 3), *digit;

	*f = (struct view_stack_frame){.kind = VIEW_FRAME_PYTHON, .name = line, .name_len = len};
	if (!at)
		return;
	for (digit = at; digit > line && digit[-1] >= '0' && digit[-1] <= '9'; digit--)
		;
	if (digit == at || digit == line || digit[-1] != '(')
		return;
	f->line = (uint32_t)strtoul(digit, NULL, 10);
	f->file = line;
	f->file_len = (size_t)(digit - 1 - line);
	f->name = at + 3;
	f->name_len = len - (size_t)(at + 3 - line);
}

/* "function\tlibrary" */
static void split_code(const char *line, size_t len, struct view_stack_frame *f)
{
	const char *tab = memrchr(line, '\t', len);

	*f = (struct view_stack_frame){
		.kind = VIEW_FRAME_CODE, .name = line, .name_len = tab ? (size_t)(tab - line) : len};
	if (tab && tab + 1 < line + len) {
		f->file = tab + 1;
		f->file_len = len - f->name_len - 1;
	}
}

/* Calls fn for each line, the last one first. */
static int each_line(const char *text, size_t len,
		     void (*split)(const char *line, size_t len, struct view_stack_frame *f),
		     int (*fn)(void *ctx, const struct view_stack_frame *f), void *ctx)
{
	struct view_stack_frame f;
	const char *before;
	size_t start;
	int err = 0;

	while (!err && len) {
		before = memrchr(text, '\n', len);
		start = before ? (size_t)(before + 1 - text) : 0;
		split(text + start, len - start, &f);
		err = fn(ctx, &f);
		len = before ? start - 1 : 0;
	}
	return err;
}

int view_stack_python(const struct mdl *m, uint64_t stack_id, int (*fn)(void *ctx, const struct view_stack_frame *f),
		      void *ctx)
{
	size_t len;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, stack_id, &len);

	return text ? each_line(text, len, split_python, fn, ctx) : 0;
}

int view_stack_frames(const struct mdl *m, const struct view_stack *s,
		      int (*fn)(void *ctx, const struct view_stack_frame *f), void *ctx)
{
	const char *none = s->between ? VIEW_BETWEEN_SLICES : VIEW_NO_OPERATOR, *text;
	struct view_stack_frame f = {.kind = VIEW_FRAME_SPAN, .name = none, .name_len = strlen(none)};
	size_t len;
	unsigned i;
	int err = s->nspans ? 0 : fn(ctx, &f);

	for (i = 0; !err && i < s->nspans; i++) {
		f.name = mdl_name(m, s->spans[i].name_id, &f.name_len);
		err = fn(ctx, &f);
	}
	err = err ? err : view_stack_python(m, s->stack_id, fn, ctx);
	text = mdl_text(m, MXBPF_NAME_CODE, s->code_id, &len);
	if (!err && text)
		err = each_line(text, len, split_code, fn, ctx);
	return err;
}
