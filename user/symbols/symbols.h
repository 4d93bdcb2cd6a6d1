/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the ids and addresses in records to names: of spans (BPF's map of bytes, constants of the library, classes of
 * objects, the plan's own names), of arguments, of threads (/proc), of Python's stacks and of sampled code. Names go
 * into the model as records of kind MXBPF_NAME. Nothing here locks: one thread at a time.
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "attach/attach.h"
#include "base/err.h"
#include "model/model.h"
#include "mxbpf_stack.h"
#include "plan/plan.h"
#include "target/target.h"

struct sym;

/* All borrowed. */
struct sym_opts {
	struct tgt *target; /* the first process: others run the same library, and it lives longest */
	const struct plan *plan;
	struct mdl *model;
	/* That stacks of a process cannot be told; NULL: nobody asked for them. From the thread that learns. */
	void (*warn)(void *ctx, const char *text);
	void *ctx;
};

struct sym *sym_new(const struct sym_opts *o); /* NULL: out of memory */
void sym_free(struct sym *s);		       /* NULL is legal */

/* Finds the target's Python interpreter, whose stacks records then have. 0, or -errno with e set. */
int sym_python_open(struct sym *s, struct err *e);
/* Returns what BPF must know of the interpreter, or NULL if there is none. Borrowed. */
const struct mxbpf_python *sym_python(const struct sym *s);
/* Samples will come. 0 or -ENOMEM. */
int sym_samples_open(struct sym *s);

/* Where BPF's maps are read from now on; borrowed. Before that only sym_add() may be called. */
void sym_attached(struct sym *s, const struct att *att);
/* One more process was attached to, that is no fork of one that was. */
void sym_joined(struct sym *s, uint32_t tgid);

/*
 * Gives the model the names and threads of a record that it does not know yet, and puts ids of texts in place of BPF's.
 * A sample as BPF sends it gets shorter. 0 or -ENOMEM.
 */
int sym_learn(struct sym *s, struct mxbpf_rec *r);
/* Calls sym_retry(), and then sym_learn() for each record of a checked batch. */
int sym_learn_all(struct sym *s, void *recs, size_t bytes);
/* Names that were not found are looked for again: their bytes may be in BPF's map by now. */
void sym_retry(struct sym *s);
/* Gives the model a name. 0 or -ENOMEM. */
int sym_add(struct sym *s, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text, size_t len);

/* Frames of stacks whose code was gone before it was read, and stacks of which nothing can be told. */
uint64_t sym_lost(const struct sym *s);

#endif
