/* SPDX-License-Identifier: Apache-2.0 */
/* Times in which records were lost. Iterations in them are incomplete. */
#ifndef FEATURE_STEPS_LOST_H
#define FEATURE_STEPS_LOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_loss.h"
#include "mxbpf_step.h"

#define LOST_MAX 64 /* the last ones are kept */

struct lost {
	struct {
		uint64_t from_ns, to_ns;
		bool ends; /* what says where an iteration ends, too */
	} last[LOST_MAX];
	size_t n; /* so far */
};

void lost_add(struct lost *l, const struct mxbpf_lost *r);
/* Returns whether records are lost of this time; ends: those that say where an iteration ends. */
bool lost_in(const struct lost *l, uint64_t from_ns, uint64_t to_ns, bool ends);
/* The cost of iterations of such a time is not known: they become as much shorter as the others did. */
void lost_shorten(struct mxbpf_iteration *it, size_t n);

#endif
