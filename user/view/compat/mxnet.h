/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of mxnet.profiler.dumps(), for its text and its JSON. */
#ifndef VIEW_MXNET_H
#define VIEW_MXNET_H

#include "view/view.h"

struct view_mxnet_row {
	char *name; /* owned */
	size_t len;
	bool counter; /* values of a counter instead of durations */
	uint64_t count;
	double total, self, p99, min, max; /* us; bytes in a memory category */
};

struct view_mxnet_category {
	char *title; /* owned */
	bool memory;
	bool bare;	 /* printed although it has no rows */
	struct buf rows; /* struct view_mxnet_row, sorted, cut to opts.top */
};

struct view_mxnet_tables {
	struct buf categories; /* struct view_mxnet_category, sorted by title, without empty ones */
};

/* Returns 0 or -ENOMEM. Free the tables in both cases. */
int view_mxnet_make(const struct view *s, struct view_mxnet_tables *t);
void view_mxnet_fini(struct view_mxnet_tables *t);
double view_mxnet_avg(const struct view_mxnet_row *r);
/* us to ms, bytes to kB. The original computes with float, so this does, too: the digits are the same. */
float view_mxnet_thousandth(double v);

#endif
