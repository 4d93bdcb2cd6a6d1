/* SPDX-License-Identifier: Apache-2.0 */
/* The sources that are rings of BPF programs: probes, the scheduler, samples. */
#ifndef SOURCE_RINGS_H
#define SOURCE_RINGS_H

#include "attach/attach.h"
#include "source/source.h"

/* att is borrowed and loaded; what comes there must have been asked for. NULL: out of memory. */
struct src *src_add_ring(struct src_hub *h, const struct att *att, enum att_ring ring);

#endif
