/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of memory (--memory), for sheets and timelines. */
#ifndef FEATURE_MEMORY_SHEET_H
#define FEATURE_MEMORY_SHEET_H

#include "mxbpf_memory.h"
#include "view/sheet.h"

/*
 * One owner, that is one kind of allocations on one device. Owners that differ in their stacks alone are one row if
 * what is shown of the stacks is the same.
 */
struct memory_owners_row {
	struct view_text name, category, layer, scope, label; /* without data if there is none */
	struct view_text line, stack;			      /* of Python; without data if unknown or not asked for */
	struct mxbpf_mem_owner h;
	int64_t start_bytes; /* live bytes when the window began; with --reset */
	int64_t grown_each;  /* growth in an iteration, in a second without iterations; 0: it does not grow */
};
struct memory_owners {
	struct view_list list;		/* struct memory_owners_row, by device, the most at its peak first */
	struct mxbpf_mem_time *devices; /* owned, by device */
	size_t ndevices;
	bool layers, scopes;		/* some row has one */
	bool lines;			/* people see the lines in a column */
	uint64_t lineless;		/* with --py-stacks: allocations whose stack is unknown */
	bool carried, fresh;		/* some memory was live at the start; or none was */
	bool several;			/* more than one device */
	bool per_iteration, per_second; /* some row grows, and its growth is that of an iteration, or of a second */
};
/* make and fini of the sheet. Free the rows and call fini even if make fails. */
int memory_owners_make(const struct view *s, void *table);
void memory_owners_fini(void *table);

#endif
