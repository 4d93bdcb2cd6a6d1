/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of the running threads (--sample). */
#ifndef FEATURE_SAMPLE_H
#define FEATURE_SAMPLE_H

#include "model/feature.h"

extern const struct mdl_feature feature_sample;
extern const struct cmd_option sample_option;
extern const struct ses_feature sample_session;
extern const struct view_sheet sheet_sample;

/* Samples that were taken in one span, and in no span nested in it. */
struct sample_row {
	uint64_t name_id, count;
	uint32_t tgid;
	uint8_t cls;  /* enum mxbpf_class; 0: samples outside all spans */
	bool between; /* between slices: it is not known in which span, and cls is 0 */
};

extern const struct tbl_def sample_table; /* of struct sample_row */

#endif
