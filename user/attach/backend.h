/* SPDX-License-Identifier: Apache-2.0 */
/* The ways of attaching, inside this room. */
#ifndef ATTACH_BACKEND_H
#define ATTACH_BACKEND_H

#include "attach/attach.h"

#define BACKEND_TRACE_UPROBE_MULTI 48 /* enum bpf_attach_type */

extern const struct att_backend att_backend_multi;

#endif
