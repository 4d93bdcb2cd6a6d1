// SPDX-License-Identifier: Apache-2.0
/* Ranges and marks of NVTX. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/cupti.h"
#include "import/json.h"
#include "mxbpf_mark.h"
#include "mxbpf_name.h"

#define SEQ   ", seq = "
#define OP_ID ", op_id = "
#define SIZES ", sizes = "
#define NODE  "Backward"

static struct json_text behind(struct json_text t, const char *words)
{
	const char *at = t.len ? memmem(t.at, t.len, words, strlen(words)) : NULL;

	if (!at)
		return (struct json_text){NULL, 0};
	at += strlen(words);
	return (struct json_text){at, (size_t)(t.at + t.len - at)};
}

/* Returns whether a name ends with "Backward" and digits, as "MmBackward0" does. */
static bool names_node(struct json_text t)
{
	while (t.len && t.at[t.len - 1] >= '0' && t.at[t.len - 1] <= '9')
		t.len--;
	return t.len >= strlen(NODE) && !memcmp(t.at + t.len - strlen(NODE), NODE, strlen(NODE));
}

/* The name alone: what stands before the first of the numbers. */
static struct json_text name_in(struct json_text t)
{
	static const char *const words[] = {SEQ, OP_ID, SIZES};
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		at = t.len ? memmem(t.at, t.len, words[i], strlen(words[i])) : NULL;
		t.len = at ? (size_t)(at - t.at) : t.len;
	}
	return t;
}

static bool names_operator(struct json_text whole, struct json_text name)
{
	return name.len < whole.len || json_begins(name, "aten::") || json_begins(name, "autograd::") ||
	       json_begins(name, "c10d::");
}

/*
 * Appends the list at the start of "[[2, 3], []], input_op_ids = ..." without blanks. Returns false if there is none,
 * or no memory. Outputs check that it is a list of numbers: a program can give its ranges any name.
 */
static bool put_list(struct buf *to, struct json_text t)
{
	size_t i, depth = 0;

	for (i = 0; i < t.len; i++) {
		if (t.at[i] != ' ' && buf_put(to, &t.at[i], 1))
			return false;
		depth += t.at[i] == '[';
		depth -= depth && t.at[i] == ']';
		if (!depth)
			return t.at[i] == ']';
	}
	return false;
}

static bool seq_of(struct json_text whole, uint64_t *nr)
{
	const struct json_text t = behind(whole, SEQ);
	size_t i;

	*nr = 0;
	for (i = 0; i < t.len && i < 15 && t.at[i] >= '0' && t.at[i] <= '9'; i++)
		*nr = *nr * 10 + (uint64_t)(t.at[i] - '0');
	return i;
}

/* Three lines of JSON, as mxbpf keeps arguments: sizes, types, strides. */
static uint64_t sizes_of(struct cupti *c, struct json_text whole)
{
	c->text.len = 0;
	if (!put_list(&c->text, behind(whole, SIZES)) || buf_put(&c->text, "\n[]\n[]", 6) ||
	    c->text.len > MXBPF_TEXT_BYTES_MAX)
		return 0;
	c->shapes = true;
	return sink_name(c->s, MXBPF_NAME_ARGS, c->text.data, c->text.len);
}

static int take_operator(struct cupti *c, const struct cupti_range *r, struct json_text whole, struct json_text name)
{
	const struct json_text shown = r->whole ? whole : name;
	struct mxbpf_span span = sink_span(r->tgid, r->tid, r->start_ns, r->dur_ns,
					   sink_name(c->s, MXBPF_NAME_SPAN, shown.at, shown.len), MXBPF_CLASS_OPERATOR);
	uint64_t nr;

	span.flags = r->apart ? MXBPF_SPAN_ASYNC : 0;
	span.args_id = sizes_of(c, whole);
	/* The engine's own range around a node has the number of the node, and no operator made it. */
	if (seq_of(whole, &nr) && !json_begins(name, "autograd::")) {
		c->numbers = true;
		span.seq = MXBPF_SEQ(0, nr);
		span.flags |= MXBPF_SPAN_SEQ | (names_node(name) ? MXBPF_SPAN_BACKWARD : 0);
	}
	c->operators |= names_operator(whole, name);
	return sink_put(c->s, &span.h);
}

/* The name of a range in a domain is "domain: text". */
static uint64_t annotation_name(struct cupti *c, const struct cupti_range *r)
{
	c->text.len = 0;
	if (r->domain_len && (buf_put(&c->text, r->domain, r->domain_len) || buf_put(&c->text, ": ", 2)))
		return 0;
	if (r->len && buf_put(&c->text, r->text, r->len))
		return 0;
	return sink_name(c->s, MXBPF_NAME_SPAN, c->text.data, c->text.len);
}

static struct mxbpf_range start_of(struct cupti *c, const struct cupti_range *r, uint64_t name_id)
{
	return (struct mxbpf_range){
		.h = {.kind = MXBPF_RANGE, .size = sizeof(struct mxbpf_range), .tgid = r->tgid, .ts_ns = r->start_ns},
		.name_id = name_id,
		.domain_id = r->domain_len ? sink_name(c->s, MXBPF_NAME_SPAN, r->domain, r->domain_len) : 0,
		.category_id = r->category_id,
		.tid = r->tid,
		.cls = MXBPF_CLASS_EVENT,
		.depth = MXBPF_RANGE_APART,
		.data = r->data,
	};
}

int cupti_range(struct cupti *c, const struct cupti_range *r)
{
	const struct json_text whole = {r->text, r->len}, name = name_in(whole);
	struct mxbpf_span span;
	struct mxbpf_range start;
	uint64_t id;
	int err;

	c->events++;
	if (r->is_operator || names_operator(whole, name))
		return take_operator(c, r, whole, name);
	id = annotation_name(c, r);
	span = sink_span(r->tgid, r->tid, r->start_ns, r->dur_ns, id, MXBPF_CLASS_EVENT);
	span.flags = MXBPF_SPAN_USER | (r->apart ? MXBPF_SPAN_ASYNC : 0);
	start = start_of(c, r, id);
	err = sink_put(c->s, &start.h);
	return err ? err : sink_put(c->s, &span.h);
}

int cupti_mark(struct cupti *c, const struct cupti_range *r)
{
	const struct mxbpf_instant mark = {
		.h = {.kind = MXBPF_INSTANT, .size = sizeof(mark), .tgid = r->tgid, .ts_ns = r->start_ns},
		.name_id = annotation_name(c, r),
		.count = 1,
		.tid = r->tid,
		.what = MXBPF_INSTANT_MARKER,
		.scope = MXBPF_SCOPE_THREAD,
	};

	c->events++;
	return sink_put(c->s, &mark.h);
}
