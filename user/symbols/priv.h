/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room only. */
#ifndef SYMBOLS_PRIV_H
#define SYMBOLS_PRIV_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_stack.h"
#include "symbols/symbols.h"

struct stacks;
struct smp;

struct sym {
	struct sym_opts o;
	const struct att *att;
	struct hash threads;   /* (tgid, tid) whose names are known */
	struct hash missing;   /* (id, kind of name) that were not found; sym_retry() */
	struct stacks *stacks; /* NULL: there is no interpreter */
	struct smp *code;      /* NULL: no samples */
	int err;	       /* first error of sym_add() since sym_learn() began */
	char text[MXBPF_NAME_BYTES_MAX], second[MXBPF_NAME_BYTES_MAX];
	char lines[MXBPF_TEXT_BYTES_MAX];
	union {
		struct mxbpf_name rec;
		char bytes[sizeof(struct mxbpf_name) + MXBPF_TEXT_BYTES_MAX];
	} room;
};

/* names.c: the name of a span into text, which holds MXBPF_NAME_BYTES_MAX: its length, or -errno. */
int sym_span_name(struct sym *s, uint32_t tgid, uint64_t id, char *text);

/* args.c: three lines of JSON for an args_id. -ENOENT, -E2BIG, -ENOMEM. buf_fini(out) in any case. */
int sym_args_text(const struct sym *s, uint64_t id, struct buf *out);

/*
 * stacks.c. sym_stack_id: the id of a stack's text by that which BPF gave, 0 if it cannot be told; the model knows the
 * text then. sym_stack_text_id: the same of frames that BPF sent.
 */
uint64_t sym_stack_id(struct sym *s, uint32_t tgid, uint64_t bpf_id);
uint64_t sym_stack_text_id(struct sym *s, uint32_t tgid, const struct mxbpf_stack *frames);
void sym_stacks_free(struct sym *s);

/* symbols.c: the id of a text of that kind, which the model knows then. */
uint64_t sym_text_id(struct sym *s, enum mxbpf_name_kind kind, uint32_t tgid, const char *text, size_t len);

#endif
