/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares tables of recordings by their descriptions (view/sheet.h). Rows are joined by their texts and numbers of
 * GPUs, because ids of processes, threads and names differ between recordings. Rows that nothing else tells apart are
 * added up.
 */
#ifndef COMPARE_TABLES_H
#define COMPARE_TABLES_H

#include "base/hash.h"
#include "base/json.h"
#include "compare/compare.h"
#include "view/sheet.h"

#define CMP_COLUMNS_MAX 16 /* keys of a table, and numbers */
#define CMP_MOST	5  /* tables that are named because they changed most */

struct cmp_table {
	const struct view_sheet *sheet;
	char name[VIEW_SHEET_BYTES];
	struct tbl_column key[CMP_COLUMNS_MAX], number[CMP_COLUMNS_MAX];
	unsigned nkeys, nnumbers;
	uint32_t keys, any_keys, numbers; /* bits of the columns that every recording has; that any has */
	bool lacks[CMP_SIDES];		  /* a recording was made without it, so it is not compared */
};

/* A number of a row, on both sides. */
struct cmp_value {
	const struct cmp_table *of;
	const struct tbl_column *number;
	size_t keys;		 /* place in cmp_tables.keys */
	size_t place;		 /* of its sums */
	double value[CMP_SIDES]; /* per iteration or second; of a size of memory the largest one. NAN: not known */
	double change;		 /* of B against A, as a share of A; 0 if A has nothing */
	double p;		 /* corrected for the number of values; 1 with one recording of a side */
	bool certain;
};

struct cmp_tables {
	struct cmp_table *table; /* owned; those that can be compared */
	unsigned n;
	bool iterations, several; /* as in struct cmp_result */
	bool one;		  /* the user named a table */
	bool slices;		  /* a recording has calls in slices only */
	struct buf values;	  /* struct cmp_value: by table, times first, then by how much they changed */
	struct buf keys;	  /* texts of the keys of rows, hostile, each with a NUL; "": none */
	struct buf sums;	  /* double: of each value, one for each recording, those of A first */
	struct hash rows;	  /* table and keys -> 1 + the place of the row's first value */
	const struct cmp_value *most[CMP_MOST]; /* times that changed most, one of each table */
	unsigned nmost;
};

bool cmp_has_table(const struct view_sheet *sh); /* the table can be compared */
/* Compares one table, or all if `only` is NULL. 0 or -errno with e set; cmp_tables_fini() either way. */
int cmp_tables_make(struct cmp_tables *t, const struct cmp_sides *of, const struct cmp_result *r,
		    const struct view_sheet *only, struct err *e);
void cmp_tables_fini(struct cmp_tables *t);

/* tables_show.c */
void cmp_put_tables(struct out *out, const struct cmp_tables *t, unsigned top);
void cmp_tables_json(struct json *j, const struct cmp_tables *t, unsigned top);

#endif
