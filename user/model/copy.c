// SPDX-License-Identifier: Apache-2.0
/*
 * Copies a model, so that outputs can read the copy while records are folded into the model. The copy has the same rows
 * in the same order.
 */
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int copy_stores(struct mdl *to, const struct mdl *m)
{
	unsigned cls;
	int err = 0;

	for (cls = 0; cls < MXBPF_CLASS_MAX && !err; cls++)
		err = store_copy(&to->row_index[cls], &to->rows[cls], &m->row_index[cls], &m->rows[cls],
				 sizeof(struct mdl_row), &to->reserved);
	if (!err)
		err = mdl_rows_copy(&to->mem_index, &to->mem_rows, &m->mem_index, &m->mem_rows,
				    sizeof(struct mdl_mem_row));
	if (!err)
		err = mdl_items_copy(&to->group_index, &to->groups, &m->group_index, &m->groups);
	err = err ? err : hash_copy(&to->nrows, &m->nrows);
	err = err ? err : hash_copy(&to->text_bytes, &m->text_bytes);
	return err ? err : buf_put(&to->opens, m->opens.data, m->opens.len);
}

static void copy_numbers(struct mdl *to, const struct mdl *m)
{
	to->ngrouped = m->ngrouped;
	to->texts_left_out = m->texts_left_out;
	to->tells_threads = m->tells_threads;
	to->tells_ranges = m->tells_ranges;
	to->tells_processes = m->tells_processes;
	memcpy(to->tallies, m->tallies, sizeof(to->tallies));
	memcpy(to->folded_ns, m->folded_ns, sizeof(to->folded_ns));
	to->summed = m->summed;
}

size_t mdl_nrows(const struct mdl *m)
{
	unsigned cls;
	size_t n = 0;

	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		n += buf_count(&m->rows[cls], struct mdl_row *);
	return n;
}

int mdl_reserve(struct mdl *to, size_t nrows)
{
	void *row;

	for (; nrows; nrows--) {
		row = mem_alloc(sizeof(struct mdl_row));
		if (!row || buf_put(&to->reserved, &row, sizeof(row))) {
			mem_free(row);
			return -ENOMEM;
		}
		memset(row, 0, sizeof(struct mdl_row)); /* makes the kernel allocate the pages now */
	}
	return 0;
}

int mdl_copy_to(struct mdl *to, const struct mdl *from)
{
	int err = copy_stores(to, from);

	copy_numbers(to, from);
	err = err ? err : names_copy(to, from);
	return err ? err : features_copy(to, from);
}
