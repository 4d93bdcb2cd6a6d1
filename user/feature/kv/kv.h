/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a parameter store, by key. */
#ifndef FEATURE_KV_H
#define FEATURE_KV_H

#include "model/feature.h"

extern const struct mdl_feature feature_kv;
extern const struct view_sheet sheet_kv;
extern const struct view_trace_feature kv_trace;

/* Calls of one operation of a KVStore for one key. A call with several keys is in the row of each, with all its time.
 */
struct kv_row {
	uint64_t name_id;
	uint64_t key; /* id of a name if MXBPF_KV_NAMED is set, else a number */
	uint32_t tgid;
	uint8_t flags; /* enum mxbpf_kv_flag */
	uint64_t count, total_ns, min_ns, max_ns;
	uint64_t values;  /* arrays that were sent or received */
	uint64_t unknown; /* those of them whose size is not known */
	uint64_t sent_bytes, received_bytes;
	uint64_t hist[MXBPF_HIST_BUCKETS];
};
extern const struct tbl_def kv_table; /* of struct kv_row */

#endif
