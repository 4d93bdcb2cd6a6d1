/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that read rings of BPF programs: probes, the scheduler, samples. */
#ifndef SOURCE_RINGS_H
#define SOURCE_RINGS_H

#include "attach/attach.h"
#include "source/source.h"

/*
 * Adds a source for a ring that the options of att_load() asked for. `att` and `name` are borrowed; a name of NULL
 * means src_ring_name(). Returns NULL if there is no memory.
 */
struct src *src_add_ring(struct src_hub *h, const struct att *att, enum att_ring ring, const char *name);
const char *src_ring_name(enum att_ring ring);

#endif
