/* SPDX-License-Identifier: Apache-2.0 */
/* Words of --life, for sheets and timelines. */
#ifndef FEATURE_LIFE_SHEET_H
#define FEATURE_LIFE_SHEET_H

#include "mxbpf_life.h"

extern const char *const life_parts[MXBPF_LIFE_PARTS];	    /* parts of a life, as words for programs */
extern const char *const life_wait_whats[MXBPF_WAIT_WHATS]; /* targets of a wait, as words for programs */

#endif
