/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sheet describes one table once: its columns, and where its rows come from. The table for people, JSON, CSV, the
 * published schema and the manual are made from it. docs/internals.md says how to add a column or a sheet.
 */
#ifndef VIEW_SHEET_H
#define VIEW_SHEET_H

#include <string.h>

#include "mxbpf_memory.h"
#include "table/column.h"
#include "view/view.h"

/* Text of the model or of the row. It is untrusted and not NUL-terminated. data is NULL if there is no text. */
struct view_text {
	const char *data;
	size_t len;
};

/* A name, or the digits of a number, which JSON writes as a number. */
struct view_key {
	struct view_text text;
	bool number;
};

/* First member of each table. */
struct view_list {
	const char *title; /* if the runtime names the table, else NULL */
	void *rows;	   /* owned; NULL: view_sheet.row makes each one */
	size_t n, all;	   /* rows to show (opts.top), all rows */
	bool empty_too;	   /* JSON and CSV get the table even without rows */
	bool people;	   /* the table is for people; set before `make` runs */
};

struct view_sheet {
	const char *title; /* in the manual */
	const char *help;  /* what the table shows; for the schema and the manual */
	/* In JSON {"member": {"list": [...]}}, without list {"member": [...]}. The lists of sheets that follow one
	 * another and have one member stand in one object. */
	const char *member, *list;
	const char *def; /* instead of a member: it is one of the "tables" of JSON, with such $defs of the schema */
	/* First cell of its rows; "": only columns with rows of their own are in CSV; NULL: nothing is. */
	const char *csv;
	const struct tbl_column *columns;
	const struct tbl_column *totals;  /* values of the whole table: members next to the list; NULL: none */
	const char *row_help, *list_help; /* for the schema; NULL: help says it */
	size_t row_bytes, table_bytes;
	unsigned people_max; /* rows that people see without --top; 0: all */
	bool whole;	     /* --top does not shorten it, except for people if people_max is set */
	bool brief_first;    /* people read it before the tables of calls in a short output */
	bool first;	     /* people read it before the tables of calls */
	bool if_any;	     /* shown only if it has rows; else whenever an option asked for it */
	bool at_end;	     /* outputs write it last, see view_write_sheet(); JSON indents it deeper */
	bool of_class;	     /* calls.c makes one for each class of calls; make is NULL */
	bool by_range;	     /* it needs a model with rows for each range, so that only --by range shows it */
	/* Returns whether an option asked for the table; CSV then has its columns. The same in all windows of a
	 * session. */
	bool (*when)(const struct view *s);
	/*
	 * Of a stored table: the rows of the output begin with the stored ones. `fill` makes the other members of a
	 * row, and `finish` what needs all rows. The sum of all rows is at sum_at in the table; 0: none.
	 */
	const struct tbl_def *stored;
	const struct mdl_feature *feature; /* has the table `stored` */
	bool joins;			   /* rows with the same texts and keys other than names are one */
	void (*fill)(const struct view *s, void *row);
	void (*finish)(const struct view *s, void *table);
	uint16_t sum_at;
	/* Order of its rows; NULL: by --sort, TBL_BY_COUNT and TBL_BY_TIME, then by name and keys. */
	int (*order)(const void *a, const void *b, void *opts); /* struct view_opts */
	/* Else: fills a zeroed table. Returns 0 or -ENOMEM; fini is called in both cases. */
	int (*make)(const struct view *s, void *table);
	/* For tables without list.rows: makes row i, valid until the next call. Returns NULL if memory is out. */
	const void *(*row)(const struct view *s, void *table, size_t i);
	void (*fini)(void *table); /* NULL: the table owns only its rows */
	/* For people: write the line above the table and the lines below it, each with the prefix. People do not get a
	 * table of view_sheets[] without `above`. */
	void (*above)(struct view *s, const void *table, const char *prefix);
	void (*below)(struct view *s, const void *table, const char *prefix);
	const char
		*left_out; /* a short output has only this name of the table, among those that it leaves out; or NULL */
	/* Instead of these two and the rows: everything that people get. 0 or -errno with s->err set. */
	int (*print)(struct view *s, const void *table);
};
extern const struct view_sheet
	*const view_sheets[]; /* user/feature/registry.c: in the order of the outputs, NULL-terminated */

/* Returns row i of the table, or NULL if memory is out. */
static inline const void *view_row(const struct view *s, const struct view_sheet *sh, const void *table, size_t i)
{
	const char *rows = ((const struct view_list *)table)->rows;

	return rows ? rows + i * sh->row_bytes : sh->row(s, (void *)table, i);
}

#define VIEW_MADE_MAX 16
struct view_made {
	struct tbl_column columns[VIEW_MADE_MAX + 1];
};
/* Returns the columns of a part, an object or a list, or NULL. `made` stores columns that the session names. */
const struct tbl_column *view_members(const struct view *s, const struct tbl_column *c, struct view_made *made);

/* Lists the columns of the session and replaces parts and objects by their columns. s NULL: of any session. */
#define VIEW_COLUMNS_MAX 96
struct view_flat {
	struct tbl_column columns[VIEW_COLUMNS_MAX + 1];
	unsigned n;
};
void view_flatten(const struct view *s, struct view_flat *flat, const struct tbl_column *columns, uint16_t at);

/* Lists the columns that are members of a row in JSON, of any session: without the members of objects. */
void view_row_columns(const struct view_sheet *sh, struct view_flat *flat);
/* Lists the columns that people see in this table, in their order. */
void view_people_columns(const struct view *s, struct view_flat *flat, const struct tbl_column *columns,
			 const void *table);
/* The text of a cell for people. It is in cell or borrowed from the row, and untrusted. */
struct view_text view_people_text(const struct view *s, const struct tbl_column *c, const void *row,
				  char cell[TBL_CELL_BYTES]);
bool view_is_below(const struct tbl_column *c); /* people see the column below the row */
bool view_is_text(const struct tbl_column *c);
bool view_is_double(const struct tbl_column *c);
/* Returns false for values that TBL_OMIT leaves out. */
bool view_is_there(const struct tbl_column *c, const void *row);
/* Returns whether JSON and CSV have the value of this row. */
bool view_has_value(const struct tbl_column *c, const void *row);
/* Return values of a row. */
uint64_t view_cell_number(const struct tbl_column *c, const void *row);
double view_cell_double(const struct tbl_column *c, const void *row);
double view_cell_value(const struct tbl_column *c, const void *row); /* of any number; NAN: not known */
struct view_text view_cell_text(const struct tbl_column *c, const void *row);
/* Returns whether the session asked for the column. */
static inline bool view_is_asked(const struct view *s, const struct tbl_column *c)
{
	return !c->asked || !s || c->asked(s);
}
/* Returns whether JSON has the column in this table. */
bool view_has_column(const struct view *s, const struct tbl_column *c, const void *table);
/* Returns whether CSV shows an object or a list. */
static inline bool view_in_csv(const struct tbl_column *c)
{
	return !c->csv || *c->csv;
}
/* Returns whether the column has rows of its own in CSV. */
bool view_has_own_row(const struct tbl_column *c);
/* Returns the heading in CSV, or NULL if CSV does not have the column. */
const char *view_csv_head(const struct view_sheet *sh, const struct tbl_column *c);

/* Returns a NUL-terminated text. It has no data if `text` is NULL. */
static inline struct view_text view_word(const char *text)
{
	return (struct view_text){text, text ? strlen(text) : 0};
}

/* account.c: the object "account" in rows of calls. */
struct view_account {
	uint64_t on_cpu_ns;
	struct mxbpf_account_sum sum;
};
struct view_account view_account_of(const struct mdl_row *r);
extern const struct tbl_column view_account_columns[];
#define VIEW_ACCOUNT_HELP "Where total_ns went, by the kernel; the four times sum up to it. Not with --no-account."
#define VIEW_CPU_HELP	  "null: unknown, which is possible with --agent"

/* view.c: if an option asked for the table, makes it and lets the output write it. 0 or -errno with s->err set. */
int view_write_sheet(struct view *s, const struct view_sheet *sh);

/* ---- reader.c: for readers of tables that know no table */

#define VIEW_SHEET_BYTES 48
/* Writes the name of a table in JSON: "gpu.idle". Returns NULL if the table has none. */
const char *view_sheet_name(const struct view_sheet *sh, char name[VIEW_SHEET_BYTES]);
const struct view_sheet *view_sheet_find(const char *name, size_t len); /* by this name; NULL: there is none */
/* Lists the names of tables that fit, with the part before a dot once: "gpu.kernels, .copies". */
void view_sheet_list(bool (*fits)(const struct view_sheet *), char *to, size_t size);
/* Returns the process of a row, or 0 if the table does not tell. */
uint32_t view_row_process(const struct view_sheet *sh, const void *row);
/* Returns whether the numbers of two windows add up, so that the number of one window is a rate. */
bool view_adds_up(const struct tbl_column *c);
/* Returns whether the session has the number of this row. */
bool view_is_known(const struct view *s, const struct tbl_column *c, const void *row);

/* Write a table for people, as JSON and as CSV. 0 or -errno with s->err set. */
int view_sheet_print(struct view *s, const struct view_sheet *sh, const void *table, const char *prefix);
int view_sheet_json(struct view *s, const struct view_sheet *sh, const void *table);
int view_sheet_csv(struct view *s, const struct view_sheet *sh, const void *table);

/* Returns whether an output shows the sheet. */
static inline bool view_shows_sheet(const struct view_ops *ops, const struct view_sheet *sh)
{
	return ops->sheet && (!ops->only || ops->only == sh);
}

/* data/schema.c: writes the whole published schema. */
void view_put_schema(struct out *o);

/*
 * For headings that say how many rows are left out: names the option that shows them; "" unless the output is short.
 */
const char *view_hint(struct view *s);
/* Writes "5 rows" or "1 row, not all of them shown". */
void view_put_rows(struct view *s, const struct view_list *t);
/* Writes a line: "5 rows", "5 rows, of which 2 are shown" or "nothing seen". */
void view_put_shown(struct view *s, const struct view_list *t, const char *row);

#endif
