/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments, stack and layer of a span as members of its args, with a comma before each. For view_trace_text(). */
#ifndef VIEW_KINETO_TEXT_H
#define VIEW_KINETO_TEXT_H

#include "view/timeline/trace.h"

/*
 * "Input Dims", "Input type" and "Input Strides" of an args_id. If outputs are known, "Output Dims" and "Output type"
 * replace the strides, which such arrays do not have. A line that is not valid JSON becomes a string.
 */
int view_text_args(struct view_trace *t, uint64_t id, struct buf *b);
/* "Call stack" of a stack_id: the innermost frame first, joined by semicolons. */
int view_text_stack(struct view_trace *t, uint64_t id, struct buf *b);
/* "layer" of a layer_id. */
int view_text_layer(struct view_trace *t, uint64_t id, struct buf *b);

#endif
