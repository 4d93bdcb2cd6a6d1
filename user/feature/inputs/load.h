/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the inputs of operators. user/feature/lines/load.c decides when. */
#ifndef FEATURE_INPUTS_LOAD_H
#define FEATURE_INPUTS_LOAD_H

#include "feature/inputs/inputs.h"
#include "mxbpf_thread.h"
#include "plan/plan.h"

struct session;
struct inputs;
/* ses: borrowed. NULL: out of memory. */
struct inputs *inputs_new(struct session *ses);
/* Reads the inputs of the operator f, the innermost one that is open on its thread. plan: the one of f. */
void inputs_look(struct inputs *in, const struct tgt *t, const struct plan *plan, const struct mxbpf_frame *f);
/* Appends what was read since the last time as records. 0 or -ENOMEM. */
int inputs_take(struct inputs *in, struct buf *recs);
void inputs_free(struct inputs *in); /* NULL is legal */

#endif
