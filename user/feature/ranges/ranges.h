/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of the program (user annotations of a thread): which one encloses a call (--by range), and what they carry. */
#ifndef FEATURE_RANGES_H
#define FEATURE_RANGES_H

#include "model/feature.h"
#include "mxbpf_range.h"

extern const struct mdl_feature feature_ranges;
extern const struct view_sheet sheet_ranges;

/*
 * Returns the start of the range that s is the span of, or NULL if it is not known. A feature can call this in span().
 * The address is valid until the model folds the next record.
 */
const struct mxbpf_range *ranges_start(const struct mdl *m, const struct mxbpf_span *s);
/* Returns the innermost range of a thread that encloses a time, or NULL. */
const struct mxbpf_range *ranges_around(const struct mdl *m, uint32_t tgid, uint32_t tid, uint64_t start_ns,
					uint64_t end_ns);
/* How a number of a payload is written. */
enum ranges_form { RANGES_UNSIGNED, RANGES_SIGNED, RANGES_DOUBLE, RANGES_ADDRESS };

/* A number of a payload. The texts are borrowed from the model, and end where their lengths say. */
struct ranges_item {
	const char *name; /* "" without a schema */
	size_t len;
	uint64_t value;	  /* RANGES_DOUBLE: its bits */
	const char *word; /* of an enumeration; NULL: none, or none for this value */
	size_t word_len;
	enum ranges_form form;
};

/* payload.c: fills number i of what a range carries. Returns false if it has none. */
bool ranges_item(const struct mdl *m, const struct mxbpf_range *r, unsigned i, struct ranges_item *to);
/* Finds a number by its name ("Message size [bytes]"). Returns false if there is none. */
bool ranges_value(const struct mdl *m, const struct mxbpf_range *r, const char *name, uint64_t *value);
/* Adds what a second record of a range has. */
void ranges_add(struct mxbpf_range *to, const struct mxbpf_range *from);

/* A launch of a kernel. */
struct ranges_launch {
	uint64_t ns;
	uint32_t tgid, tid;
};

/* kernels.c: adds a kernel to the row of the range around its launch, if the model tells ranges apart. 0, -ENOMEM. */
int ranges_kernel(struct mdl *m, const struct ranges_launch *l, uint64_t name_id, uint64_t dur_ns);
/* Kernels of one name that were launched in ranges of one name. */
struct ranges_row {
	uint64_t name_id;
	uint64_t range_id; /* the innermost range around the launch; 0: none */
	uint64_t count, total_ns, min_ns, max_ns;
	uint32_t tgid;
};
extern const struct tbl_def ranges_kernels; /* of struct ranges_row */

/* seq.c: makes the span of a range of emit_nvtx() a forward operator or a backward node. */
void ranges_number(const struct mdl *m, const struct mxbpf_range *r, struct mxbpf_span *s);

extern const struct view_trace_feature ranges_trace;

#endif
