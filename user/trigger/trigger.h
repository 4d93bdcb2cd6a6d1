/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions of `mxbpf serve --on`, such as "iteration > 3 * median". A condition is judged after each interval. It
 * fires when it becomes true, and again only after it was false in between. Knows models only.
 */
#ifndef TRIGGER_TRIGGER_H
#define TRIGGER_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/model.h"
#include "model/session.h"

struct trg;

/* text is borrowed. Returns 0, or -errno with e set: ERR_USAGE says at which character something else was expected. */
int trg_parse(const char *text, struct trg **out, struct err *e);
void trg_free(struct trg *t); /* NULL is legal */

#define TRG_WHY_BYTES 256
/*
 * Takes the state of a condition of an earlier session, so that a hang goes on while mxbpf begins anew: the iterations
 * of each process, and, if both conditions say the same, whether it has fired. Both stay valid.
 */
void trg_continue(struct trg *t, const struct trg *before);
/* Takes the iterations of an interval that is not judged: the last one of a session, whose processes are let go. */
void trg_see(struct trg *t, const struct mdl_interval *in);

/* Returns true if the condition fires now, and says why: "an iteration of process 12 took 340 ms, 5.1 times the
 * median". */
bool trg_judge(struct trg *t, const struct mdl_interval *in, char why[TRG_WHY_BYTES]);
const char *trg_word(const struct trg *t); /* for names of files: "iteration", "operator", "memory", ... */
/* The iteration for which a condition on iterations fired last; NULL: the condition is another one. */
struct trg_slow {
	uint32_t tgid;
	uint64_t dur_ns, end_ns;
};
const struct trg_slow *trg_slow(const struct trg *t);
bool trg_is_hang(const struct trg *t);

#endif
