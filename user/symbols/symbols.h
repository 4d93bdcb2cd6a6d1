/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns ids and addresses in records into names: of spans (BPF's map of bytes, constants of the library, classes of
 * objects, names in the plan), of arguments, of threads (/proc), of Python stacks and of sampled code. Names enter the
 * model as records of kind MXBPF_NAME. There is no locking: call these functions from one thread at a time.
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

/* All members are borrowed. */
struct sym_opts {
	struct tgt *target; /* the first process: others run the same library */
	const struct plan *plan;
	struct mdl *model;
	/*
	 * Reports that the stacks of a process cannot be read. Called from the thread that calls sym_learn(). NULL: not
	 * needed
	 */
	void (*warn)(void *ctx, const char *text);
	void *ctx;
	/*
	 * 0 for the first build of a session. Another build gets ids of its own, where ids of its BPF object could be
	 * those of the first build's object and mean other names.
	 */
	unsigned apart;
};

struct sym *sym_new(const struct sym_opts *o); /* NULL: out of memory */
void sym_free(struct sym *s);		       /* NULL is legal */

/* Finds the target's Python interpreter, so that records get its stacks. Returns 0, or -errno with e set. */
int sym_python_open(struct sym *s, struct err *e);
/* Returns what BPF must know about the interpreter, or NULL if there is none. Borrowed. */
const struct mxbpf_python *sym_python(const struct sym *s);
/*
 * Address of a function of the interpreter of a process, see py_is_finalizing(). 0: it has no interpreter, or another
 * one than the first process.
 */
uint64_t sym_python_is_finalizing(struct sym *s, uint32_t tgid);
/* Prepares for samples. Returns 0 or -ENOMEM. */
int sym_samples_open(struct sym *s);

/* Sets the session whose BPF maps are read; borrowed. Before this, only sym_add() may be called. */
void sym_attached(struct sym *s, const struct att *att);
/* Tells of a further attached process that is no fork of an attached one. */
void sym_joined(struct sym *s, uint32_t tgid);

/*
 * Gives the model all new names and threads of a record, and replaces BPF's ids of stacks by ids of texts. A sample
 * becomes shorter. Returns 0 or -ENOMEM.
 */
int sym_learn(struct sym *s, struct mxbpf_rec *r);
/* Looks up missing names again, because their bytes may be in BPF's map by now. */
void sym_retry(struct sym *s);
/* Gives the model a name. Returns 0 or -ENOMEM. */
int sym_add(struct sym *s, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text, size_t len);

/*
 * Learns a list that the agent in a process has made (enum mxbpf_agent_list), and returns its id for records: args_id,
 * or a stack_id that sym_learn() replaces. 0: the list is damaged, its stack cannot be read, or there is no memory.
 */
uint64_t sym_list_id(struct sym *s, uint32_t tgid, unsigned kind, const uint64_t *list, uint32_t n);

/* The id of a text, which is its hash; the model gets the text. 0: no memory. */
uint64_t sym_text_id(struct sym *s, enum mxbpf_name_kind kind, uint32_t tgid, const char *text, size_t len);

/* Returns the number of frames whose code was freed before it was read, and of stacks that could not be read. */
uint64_t sym_lost(const struct sym *s);

#endif
