/* SPDX-License-Identifier: Apache-2.0 */
/* --raised: calls that an exception left, which user space finds among the spans. BPF sends none of these. */
#ifndef MXBPF_RAISED_H
#define MXBPF_RAISED_H

#include "mxbpf_event.h"

#define MXBPF_AGG_RAISED ((enum mxbpf_kind)37)

/* Those of one name, and with --py-stacks of one place in the program. */
struct mxbpf_agg_raised {
	struct mxbpf_rec h; /* ts_ns: start of the first one */
	__u64 name_id;
	__u64 stack_id; /* of the interpreter's frames: a name of kind MXBPF_NAME_STACK; 0: not known */
	__u64 count;
	__u64 last_ns; /* start of the last one */
	__u8 cls;      /* enum mxbpf_class */
	__u8 pad[7];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_raised) == 56);

#endif
