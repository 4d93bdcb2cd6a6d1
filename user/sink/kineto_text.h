/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and stacks of a span as members of its args, each behind a comma. For snk_trace_text(). */
#ifndef SINK_KINETO_TEXT_H
#define SINK_KINETO_TEXT_H

#include "sink/trace.h"

/* "Input Dims", "Input type" and "Input Strides" of an args_id, or where it is known what comes out, that's instead of
 * the strides, which such arrays have not. A line that is not the JSON it ought to be is a string.
 */
int snk_text_args(struct snk_trace *t, uint64_t id, struct buf *b);
/* "flops" and "GFLOP/s" of a span that there is an estimate for, and nothing of others. */
void snk_trace_flops(struct snk_trace *t, const struct mxbpf_span *s);
/* "Call stack" of a stack_id: frames innermost first, joined by semicolons. */
int snk_text_stack(struct snk_trace *t, uint64_t id, struct buf *b);
/* "layer" of a layer_id. */
int snk_text_layer(struct snk_trace *t, uint64_t id, struct buf *b);

#endif
