/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of this room. */
#ifndef SYMBOLS_PRIV_H
#define SYMBOLS_PRIV_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_stack.h"
#include "symbols/symbols.h"

struct stacks;
struct smp;

#define SYM_USUAL 64 /* a power of two */

struct sym {
	struct sym_opts o;
	const struct att *att;
	struct hash threads; /* (tgid, tid) of threads with a known name */
	struct hash missing; /* (id, kind of name) of names that were not found; see sym_retry() */
	struct hash apart;   /* (id in records, kind of name) -> id of the name in the session; see sym_opts.apart */
	struct {
		uint64_t name_id;
		uint32_t tgid, tid;
	} usual[SYM_USUAL];    /* by name_id: names and threads of spans that are known; see is_usual() */
	struct stacks *stacks; /* NULL: there is no interpreter */
	struct smp *code;      /* NULL: there are no samples */
	int err;	       /* first error of sym_add() in this call of sym_learn() */
	char text[MXBPF_NAME_BYTES_MAX], second[MXBPF_NAME_BYTES_MAX];
	char lines[MXBPF_TEXT_BYTES_MAX];
	union {
		struct mxbpf_name rec;
		char bytes[sizeof(struct mxbpf_name) + MXBPF_TEXT_BYTES_MAX];
	} room;
};

/* names.c: writes the name of a span to text (MXBPF_NAME_BYTES_MAX bytes). Returns its length or -errno. */
int sym_span_name(struct sym *s, uint32_t tgid, uint64_t id, char *text);

/*
 * args.c: writes three to five lines of JSON for an args_id. Returns 0, -ENOENT, -E2BIG or -ENOMEM. Call buf_fini(out)
 * in any case.
 */
int sym_args_text(const struct sym *s, uint64_t id, struct buf *out);

/* The same for a list of the agent, whose id it computes as BPF would. Returns -EBADMSG for a damaged list, too. */
int sym_list_text(const struct sym *s, const uint64_t *list, uint32_t n, uint64_t *id, struct buf *out);

/*
 * stacks.c: sym_stack_id() returns the id of a stack's text for BPF's id of the stack, or 0 if the stack cannot be
 * read. The model then knows the text. sym_stack_text_id() does this for frames that BPF sent.
 */
uint64_t sym_stack_id(struct sym *s, uint32_t tgid, uint64_t bpf_id);
uint64_t sym_stack_text_id(struct sym *s, uint32_t tgid, const struct mxbpf_stack *frames);
/* Learns a stack of the agent. Returns the id that sym_stack_id() then knows, or 0. */
uint64_t sym_list_stack(struct sym *s, uint32_t tgid, const uint64_t *list, uint32_t n);
void sym_stacks_free(struct sym *s);

#endif
