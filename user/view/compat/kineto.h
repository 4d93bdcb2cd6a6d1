/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and categories of events in Kineto's form, for the same form in another format. t: the state of a
 * view_kineto. */
#ifndef VIEW_KINETO_H
#define VIEW_KINETO_H

#include "view/compat/kineto_plan.h"
#include "view/timeline/trace.h"

/* Types of devices are those of torch::DeviceType plus one, because 0 means "no device". A CPU has no index. */
#define KINETO_CPU 1

extern const struct view_form view_kineto_form;

/* The numbers of a span; all are 0 if the first pass has not seen it. */
struct view_number view_kineto_number(const struct view_trace *t, uint64_t ordinal);
const char *view_kineto_category(const struct view_trace *t, const struct mxbpf_span *s);
/* Writes the end of an arrow that has a number. */
void view_kineto_arrow(struct view_trace *t, const struct mxbpf_span *s, uint32_t tid, uint32_t id);

#endif
