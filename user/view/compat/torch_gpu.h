/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of torch's table: operators with the work that they launched on GPUs, and that work by its name. */
#ifndef VIEW_TORCH_GPU_H
#define VIEW_TORCH_GPU_H

#include "view/priv.h"

struct torch_row {
	struct mdl_row r; /* `device`: only name and count, the other members are 0 */
	/* Of an operator: work that it launched itself, and also that of nested operators. */
	uint64_t gpu_self_ns, gpu_total_ns;
	bool device; /* kernels, copies or sets of one name */
};

struct torch_rows {
	struct torch_row *rows; /* owned, sorted by the options */
	size_t n;
	size_t shown;	    /* the first ones, see --top */
	uint64_t device_ns; /* of all rows with `device` */
	bool gpu;	    /* some row has work on a GPU */
};

/*
 * `with_devices`: rows of kernels, copies and sets, too. Work on GPUs is known by name only, so there is none if rows
 * are grouped by anything else. Returns 0 or -ENOMEM.
 */
int torch_rows_make(struct torch_rows *t, const struct view *s, const struct view_table *of, bool with_devices);
void torch_rows_fini(struct torch_rows *t);

#endif
