/* SPDX-License-Identifier: Apache-2.0 */
/* Words of user annotations, for sheets and timelines. */
#ifndef FEATURE_MARKS_SHEET_H
#define FEATURE_MARKS_SHEET_H

#include <stddef.h>

#include "model/model.h"
#include "mxbpf_mark.h"

extern const char *const marks_scopes[MXBPF_SCOPES]; /* "": not known */
/* Borrowed and hostile, of *len bytes. */
const char *marks_instant_name(const struct mdl *m, const struct mxbpf_instant *i, size_t *len);

#endif
