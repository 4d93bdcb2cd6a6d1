/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the now room. */
#ifndef NOW_PRIV_H
#define NOW_PRIV_H

#include "now/now.h"

struct now; /* now.c has the rest; collective.c reads these */
struct tgt *now_target(const struct now *n);
const struct plan *now_plan(const struct now *n);

/* Finds the probed call that a function is. */
struct calls {
	const struct plan *plan;
	struct buf entries; /* struct call, by library and address */
};

int calls_init(struct calls *c, const struct plan *p); /* 0 or -ENOMEM */
void calls_find(const struct calls *c, struct now_frame *f);
void calls_fini(struct calls *c);

#endif
