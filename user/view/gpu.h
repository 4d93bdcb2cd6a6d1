/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for tables of GPUs. Several features have such tables. */
#ifndef VIEW_GPU_H
#define VIEW_GPU_H

#include "feature/activity/activity.h"
#include "view/priv.h"
#include "view/sheet.h"

/* The values by which --sort can order the rows of a table. */
struct gpu_keys {
	uint64_t total_ns, self_ns, count, avg_ns, min_ns, max_ns, p99_ns;
};
/* Orders two rows by opts, and rows of equal keys by name. */
int gpu_order(const struct view_opts *opts, const struct gpu_keys *a, const struct gpu_keys *b,
	      const struct view_text *name_a, const struct view_text *name_b);

/* Returns true if the session records GPUs. CSV then has the columns of these tables. */
bool gpu_when(const struct view *s);
/* JSON has all lists if there is something in one of them. */
void gpu_show_empty(const struct view *s, struct view_list *list);
/* Writes a share as percent, without decimal places. */
void gpu_percent_cell(const void *value, char cell[TBL_CELL_BYTES]);
/*
 * People read the name of a kernel without its result, its parameters and what all names of a library begin with. What
 * is left is the function and its template arguments. Returns a text in `to`, or `name`.
 */
struct view_text gpu_short_kernel(struct view_text name, char *to, size_t size);
/* Returns "" for 1 and "s" for other numbers. */
const char *gpu_plural(uint64_t n);
/* Writes a title and the number of rows. */
void gpu_put_title(struct view *s, const struct view_list *list, const char *prefix, const char *text);
/* Returns the device with this number in a process, or NULL. A process of 0 has those of all. */
const struct mxbpf_gpu_device *gpu_device(const struct view *s, uint32_t tgid, uint32_t device);
/* Returns the owner of a GPU's time as --by groups it: the process, its rank or its job. Returns buf. */
const char *gpu_owner(const struct view *s, uint32_t tgid, char buf[VIEW_LABEL_BYTES]);
/*
 * The column with the owner of a row, for people who group by process. The rows' type ROW and SEEN() are as in the
 * sheets.
 */
#define GPU_OWNER_COLUMN                                                                                               \
	{                                                                                                              \
		NULL, NULL, "process", TBL_TEXT, AT(owner), SEEN(processes)                                            \
	}

#endif
