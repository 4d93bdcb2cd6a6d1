/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the now room. */
#ifndef NOW_PRIV_H
#define NOW_PRIV_H

#include "now/now.h"

struct now; /* now.c has the rest; collective.c reads these */
struct tgt *now_target(const struct now *n);
const struct plan *now_plan(const struct now *n);
struct py *now_py(const struct now *n); /* NULL: no Python */

/* collective.c reads what pending.c needs, too. */
#define NOW_STACK_BYTES (16u << 10) /* that are searched for objects, from the stack pointer on */
#define NOW_CLASS_BYTES 128
bool now_class_of(struct tgt *t, uint64_t object, uint64_t *vtable, char name[NOW_CLASS_BYTES]);
bool now_is_in(const struct now_thread *t, const char *function); /* on its stack; part of the name */

/* pending.c: the oldest collective that the GPUs have not done for a while. Errors as for now_collective(). */
bool now_pending(struct now *n, struct now_collective *c, struct err *e);

/* Finds the probed call that a function is. */
struct calls {
	const struct plan *plan;
	struct buf entries; /* struct call, by library and address */
};

int calls_init(struct calls *c, const struct plan *p); /* 0 or -ENOMEM */
void calls_find(const struct calls *c, struct now_frame *f);
void calls_fini(struct calls *c);

#endif
