/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operators reach on a GPU, against what the GPU can: floating-point operations and bytes that their shapes make
 * necessary, by the time of the kernels that they launched.
 */
#ifndef FEATURE_ROOFLINE_H
#define FEATURE_ROOFLINE_H

#include "feature/flops/arrays.h"
#include "model/feature.h"
#include "mxbpf_roofline.h"

extern const struct mdl_feature feature_roofline;
extern const struct view_sheet sheet_gpu_roofline;

/* ---- fold.c: rows of operators with one name and shapes. For feature/activity/fold_join.c. */

/* The work that calls of one name and shapes gave to GPUs. `total` and `self` are those of struct mxbpf_agg_gpu_work.
 */
struct roofline_row {
	uint64_t name_id, args_id; /* of kind MXBPF_NAME_SPAN and MXBPF_NAME_ARGS */
	uint64_t calls;		   /* that launched something */
	struct mxbpf_gpu_work total, self;
	uint32_t tgid;
};
/* *place receives 1 + the index of the row. Returns 0 or -ENOMEM. */
int roofline_place(struct mdl *m, const struct roofline_row *like, uint32_t *place);
/* Returns the row at a place. */
struct roofline_row *roofline_row(struct mdl *m, uint32_t place);
/* Return *n items in no order. */
const struct roofline_row *roofline_rows(const struct mdl *m, size_t *n);
const struct mxbpf_gpu_limits *roofline_limits(const struct mdl *m, size_t *n);

/* ---- estimate.c: what the shapes of one call make necessary */

struct roofline_need {
	uint64_t flops;	      /* of convolutions and matrix products; 0: of another operator, which has next to none */
	uint64_t bytes;	      /* of inputs and outputs, each once; a lower bound. 0: unknown */
	enum flops_type type; /* of the first input */
};
/* Returns false if nothing is known of the operator or these shapes. */
bool roofline_need(const char *name, size_t name_len, const char *args, size_t len, struct roofline_need *need);

/* ---- peaks.c: what a device can do */

struct roofline_peaks {
	double flops[FLOPS_TYPES]; /* per second; FLOAT32 without tensor cores; 0: unknown */
	double tf32;		   /* float32 by tensor cores */
	double bytes;		   /* per second, of the device's memory */
};
/* Both can be NULL. */
struct roofline_peaks roofline_peaks(const struct mxbpf_gpu_device *d, const struct mxbpf_gpu_limits *l);

/* ---- estimate.c: both together */

enum roofline_bound {
	ROOFLINE_UNKNOWN = 0,
	ROOFLINE_COMPUTE = 1, /* at the peak rate, its operations alone would take more than half of its time */
	ROOFLINE_MEMORY = 2,  /* at the peak bandwidth, its bytes alone would take more than half of its time */
	ROOFLINE_SMALL = 3,   /* neither, and its kernels are so short that launching and starting them counts */
	ROOFLINE_NEITHER = 4,
	ROOFLINE_BOUNDS = 5,
};
struct roofline_result {
	double flops, bytes;	   /* per second */
	double of_flops, of_bytes; /* of the peaks; NAN: unknown */
	double intensity;	   /* operations per byte; NAN: no operations or bytes are known */
	enum roofline_bound bound;
};
/* What calls that need `need` each reached. */
struct roofline_result roofline_of(const struct roofline_row *r, const struct roofline_need *need,
				   const struct roofline_peaks *p);

#endif
