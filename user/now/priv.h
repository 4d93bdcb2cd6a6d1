/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the now room. */
#ifndef NOW_PRIV_H
#define NOW_PRIV_H

#include "now/now.h"

/* Finds the probed call that a function is. */
struct calls {
	const struct plan *plan;
	struct buf entries; /* struct call, by library and address */
};

int calls_init(struct calls *c, const struct plan *p); /* 0 or -ENOMEM */
void calls_find(const struct calls *c, struct now_frame *f);
void calls_fini(struct calls *c);

#endif
