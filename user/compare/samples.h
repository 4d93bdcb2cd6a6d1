/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a recording: how long each iteration took, and each operator, part and kernel in it. Times are
 * without the cost of watching, as in the tables, and without waiting for a CPU, because that belongs to the machine.
 */
#ifndef COMPARE_SAMPLES_H
#define COMPARE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "model/model.h"
#include "model/session.h"
#include "mxbpf_step.h"

/* Iterations that follow each other share a bin if there are more of them. */
#define CMP_BINS_MAX 2048
/* A recording without iterations is cut into so many slices of time. */
#define CMP_SLICES 64
/* Rows beyond this are left out and counted. */
#define CMP_SERIES_MAX 4096

enum cmp_kind {
	CMP_ITERATION, /* the iteration itself */
	CMP_RUNQ,      /* waiting for a CPU */
	CMP_PART,      /* a part of an iteration in which no operator ran on its thread; detail: its word */
	CMP_OPERATOR,  /* an operator, without calls in it */
	CMP_LAYER,     /* an operator in a layer of the model; detail: the layer */
	CMP_KERNEL,    /* a kernel of a GPU; detail: its grid */
	CMP_MEMORY,    /* bytes that an iteration needs beyond those at its lowest point */
	CMP_KINDS
};

/* A row of one recording: what it took in each bin, divided by the iterations of the bin. */
struct cmp_series {
	enum cmp_kind kind;
	uint64_t key;		     /* of kind, name and detail, equal in all recordings */
	char *name, *detail;	     /* owned; hostile; detail: NULL if it has none */
	size_t name_len, detail_len; /* bytes */
	uint64_t calls;
	double blocked_ns; /* time asleep, only of operators */
	double cost_ns;	   /* cost of watching, which was subtracted; only of operators */
	double runq_ns;	   /* waiting for a CPU, which is in the values of a JSON result; only of operators */
	float *value;	   /* owned; one for each bin; ns or bytes */
};

/* Shapes of an operator's tensors, by how many calls had them. */
struct cmp_shape {
	uint64_t key, name_key;
	char *name, *args; /* owned; hostile */
	size_t name_len, args_len;
	uint64_t calls;
};

struct cmp_samples {
	bool iterations; /* false: bins are slices of time */
	bool sums;	 /* of a JSON result: one bin */
	bool events;	 /* the recording has single calls; false: there are no rows of operators */
	uint32_t tgid;	 /* the process with the loop; 0: all processes, if there is no loop */
	size_t n;	 /* bins */
	uint64_t count;	 /* iterations */
	double wall_ns;	 /* median time of an iteration, with waiting for a CPU */
	struct buf series, shapes;
	uint64_t left_out;    /* calls of rows beyond CMP_SERIES_MAX */
	uint64_t peak_bytes;  /* memory at most, beyond the lowest point of the window */
	bool peak_known;      /* allocations were seen */
	struct cmp_bin *bin;  /* owned; n of them, in the order of time */
	struct hash by_id;    /* (name_id, detail) -> 1 + place in series, while records are read */
	struct hash by_shape; /* (name_id, args_id) -> 1 + place in shapes */
	struct buf allocs;    /* struct cmp_alloc, while records are read */
};

struct cmp_bin {
	uint64_t start_ns, end_ns;
	uint32_t iterations;
};

/* A moment at which memory was allocated or freed. */
struct cmp_alloc {
	uint64_t ns;
	int64_t bytes;
};

/* Passes batches of checked records to fn: all events of a recording. Returns 0 or -errno. */
typedef int (*cmp_batch_fn)(void *ctx, const void *recs, size_t bytes);
typedef int (*cmp_events_fn)(void *source, cmp_batch_fn fn, void *ctx);

/* A recording to take samples from. */
struct cmp_from {
	const struct mdl *m;
	const struct mdl_session *s;
	const struct buf *iterations; /* struct mxbpf_iteration, with the cost of watching in them */
	cmp_events_fn each;
	void *source;
};

/* Fills *x. tgid: the process whose loop counts; 0: no loop. Returns 0 or -errno. cmp_samples_fini() in any case. */
int cmp_samples_take(struct cmp_samples *x, const struct cmp_from *from, uint32_t tgid);
void cmp_samples_fini(struct cmp_samples *x);

/* Adds a series with n zeros. Returns NULL if out of memory. detail may be NULL. */
struct cmp_series *cmp_series_add(struct cmp_samples *x, enum cmp_kind kind, const char *name, size_t len,
				  const char *detail, size_t detail_len);
/* Returns the series with the key, or NULL. */
const struct cmp_series *cmp_series_find(const struct cmp_samples *x, uint64_t key);
/* Names of parts of an iteration in which no operator runs on its thread; NULL: it has no row. */
extern const char *const cmp_part_words[MXBPF_STEP_PARTS];
#define CMP_OUTSIDE "your Python code"
/* The names of the rows that are no operators. */
extern const char *const cmp_kind_words[CMP_KINDS];

#endif
