/* SPDX-License-Identifier: Apache-2.0 */
/* The ways of attaching, inside this room. */
#ifndef ATTACH_BACKEND_H
#define ATTACH_BACKEND_H

#include "attach/attach.h"

extern const struct att_backend att_backend_multi;
extern const struct att_backend att_backend_perf;

/* fd of a program that does nothing, to try links with; -errno with e set. */
int backend_trial_prog(int attach_type, struct err *e);

#endif
