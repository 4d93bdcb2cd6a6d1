/* SPDX-License-Identifier: Apache-2.0 */
/* --raised: calls that an exception left. User space finds them among the spans; BPF sends no such record. */
#ifndef MXBPF_RAISED_H
#define MXBPF_RAISED_H

#include "mxbpf_event.h"

#define MXBPF_AGG_RAISED ((enum mxbpf_kind)37)

/* Calls of one name, and with --py-stacks from one Python stack. */
struct mxbpf_agg_raised {
	struct mxbpf_rec h; /* ts_ns: start of the first call */
	__u64 name_id;
	__u64 stack_id; /* Python stack: a name of kind MXBPF_NAME_STACK; 0: unknown */
	__u64 count;
	__u64 last_ns; /* start of the last call */
	__u8 cls;      /* enum mxbpf_class */
	__u8 pad[7];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_raised) == 56);

#endif
