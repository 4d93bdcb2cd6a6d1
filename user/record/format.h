/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that writer and reader agree on beside include/mxbpf_file.h. Private to user/record. */
#ifndef RECORD_FORMAT_H
#define RECORD_FORMAT_H

#define REC_META_MAX_BYTES (16u << 20) /* of a META payload */
#define REC_SLOT_MIN_BYTES (64u << 10) /* what a reader accepts as slot size */
#define REC_SLOT_MAX_BYTES (16u << 20)
#define REC_SLOTS_MAX	   (4u << 20)

#endif
