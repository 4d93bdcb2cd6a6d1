/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of the program (user annotations of a thread): which one encloses a call (--by range), and what they carry. */
#ifndef FEATURE_RANGES_H
#define FEATURE_RANGES_H

#include "model/feature.h"
#include "mxbpf_range.h"

extern const struct mdl_feature feature_ranges;

/*
 * Returns the start of the range that s is the span of, or NULL if it is not known. A feature can call this in span().
 * The address is valid until the model folds the next record.
 */
const struct mxbpf_range *ranges_start(const struct mdl *m, const struct mxbpf_span *s);
/* Returns the innermost range of a thread that encloses a time, or NULL. */
const struct mxbpf_range *ranges_around(const struct mdl *m, uint32_t tgid, uint32_t tid, uint64_t start_ns,
					uint64_t end_ns);
/*
 * Finds the number that a range carries under a name of its schema ("Message size [bytes]"). Returns false if it has
 * none.
 */
bool ranges_value(const struct mdl *m, const struct mxbpf_range *r, const char *name, uint64_t *value);

#endif
