/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and stacks of a span as members of its args, each behind a comma. For view_trace_text(). */
#ifndef VIEW_KINETO_TEXT_H
#define VIEW_KINETO_TEXT_H

#include "view/timeline/trace.h"

/* "Input Dims", "Input type" and "Input Strides" of an args_id, or where it is known what comes out, that's instead of
 * the strides, which such arrays have not. A line that is not the JSON it ought to be is a string.
 */
int view_text_args(struct view_trace *t, uint64_t id, struct buf *b);
/* "flops" and "GFLOP/s" of a span that there is an estimate for, and nothing of others. */
void view_trace_flops(struct view_trace *t, const struct mxbpf_span *s);
/* "Call stack" of a stack_id: frames innermost first, joined by semicolons. */
int view_text_stack(struct view_trace *t, uint64_t id, struct buf *b);
/* "layer" of a layer_id. */
int view_text_layer(struct view_trace *t, uint64_t id, struct buf *b);

#endif
