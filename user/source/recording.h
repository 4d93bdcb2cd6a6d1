/* SPDX-License-Identifier: Apache-2.0 */
/* The source that reads a recording. It has all records at once. */
#ifndef SOURCE_RECORDING_H
#define SOURCE_RECORDING_H

#include "model/model.h"
#include "record/record.h"
#include "source/source.h"

/* Reads a recording into an empty model. With `events`, also loads single events. Returns 0, or -errno with e set. */
int src_read_recording(struct rec_reader *r, bool events, struct mdl *m, struct err *e);

#endif
