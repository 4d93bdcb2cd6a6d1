/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sheet describes one table once: its columns, and where its rows come from. The table for people, JSON, CSV, the
 * published schema and the manual are made from it. docs/internals.md says how to add a column or a sheet.
 */
#ifndef VIEW_SHEET_H
#define VIEW_SHEET_H

#include <string.h>

#include "mxbpf_memory.h"
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

/* Type of a cell. Integers can have 1, 2, 4 or 8 bytes. */
enum view_type {
	VIEW_TEXT,   /* struct view_text */
	VIEW_KEY,    /* struct view_key */
	VIEW_NOTE,   /* struct view_text: people see it below the row */
	VIEW_LINES,  /* struct view_text of lines: people see them below the row, JSON has a list, CSV joins them by ';'
		      */
	VIEW_RAW,    /* struct view_text that is JSON already: people see it below the row */
	VIEW_WORD,   /* index into the column's words */
	VIEW_COUNT,  /* number */
	VIEW_NS,     /* duration */
	VIEW_BYTES,  /* size */
	VIEW_RATE,   /* bytes per second */
	VIEW_MOMENT, /* CLOCK_MONOTONIC in ns. Programs get Unix time, people get seconds since the window began. */
	VIEW_SHARE,  /* double, in percent for people */
	VIEW_RATIO,  /* double; NAN if it is not known */
	VIEW_BOOL,
	VIEW_DEVICE,
	VIEW_PID,    /* JSON has it only if several processes were seen */
	VIEW_PART,   /* a struct in the row, whose columns are columns of the row in each output */
	VIEW_OBJECT, /* a struct in the row, which is an object in JSON */
	VIEW_LIST,   /* struct view_list in the row, with columns of its own; people do not see it */
	VIEW_NTYPES,
};

enum view_column_flag {
	VIEW_SIGNED = 1 << 0, /* the integer can be below 0 */
	/* A text without data, or a number that is VIEW_UNKNOWN, is null in JSON, empty in CSV and "-" for people. */
	VIEW_NULL = 1 << 1,
	/* JSON has no member for 0, false, a text without data, or an object that holds nothing else. With VIEW_NULL,
	 * JSON has a member for the number 0, and none for VIEW_UNKNOWN. */
	VIEW_OMIT = 1 << 2,
	VIEW_DASH = 1 << 3,	   /* people see 0 as "-" */
	VIEW_TIGHT = 1 << 4,	   /* people see no blank between number and unit */
	VIEW_OWN_ROW = 1 << 5,	   /* CSV has a row for it: of the table `csv`, with its key as the name */
	VIEW_BELOW = 1 << 6,	   /* people see the text below the row */
	VIEW_SIGNIFICANT = 1 << 7, /* data_digits counts all significant digits, not decimal places */
	VIEW_KEEP = 1 << 8,	   /* JSON has the member even if `has` is false */
	VIEW_BEGINS = 1 << 9,	   /* of the first column: people see the beginning of a long name */
};
#define VIEW_UNKNOWN UINT64_MAX

/* First member of each table. */
struct view_list {
	const char *title; /* if the runtime names the table, else NULL */
	void *rows;	   /* owned; NULL: view_sheet.row makes each one */
	size_t n, all;	   /* rows to show (opts.top), all rows */
	bool empty_too;	   /* JSON and CSV get the table even without rows */
	bool people;	   /* the table is for people; set before `make` runs */
};

#define VIEW_CELL_BYTES 64
struct view_column {
	const char *key; /* in JSON; NULL: not there */
	/* Heading in CSV; NULL: as in JSON; "": not there. Of a list, an object and VIEW_OWN_ROW: first cell of their
	 * own rows, which also have the name, the device and the pid of the row that they belong to. */
	const char *csv;
	const char *head; /* heading for people; NULL: not there */
	enum view_type type;
	uint16_t at, bytes; /* offset and size of the value in the row; 0 bytes end the columns */
	uint16_t flags;
	uint16_t when;		  /* offset in the table of a bool: the table has the column; 0: always */
	uint16_t shown;		  /* offset in the table of a bool: people see the column; 0: always */
	uint16_t has;		  /* offset in the row of a bool: JSON and CSV have the value; 0: always */
	uint8_t name_min;	  /* as in struct view_grid_col */
	uint8_t digits;		  /* decimal places for people, of VIEW_SHARE, VIEW_RATIO and VIEW_MOMENT */
	uint8_t data_digits;	  /* decimal places in JSON and CSV, of VIEW_RATIO */
	uint8_t place;		  /* people see columns with a place after the others, sorted by place */
	const char *const *words; /* of VIEW_WORD: nwords texts; the schema lists them */
	uint16_t nwords;
	uint16_t item_bytes;		   /* of VIEW_LIST */
	const struct view_column *columns; /* of VIEW_PART, VIEW_OBJECT and VIEW_LIST */
	/* Instead of columns: writes the columns that this session names, at most VIEW_MADE_MAX. Returns their number.
	 */
	unsigned (*generate)(const struct mdl_session *ss, struct view_column *to);
	/* Whether a session has the column in any output; NULL: every session. */
	bool (*asked)(const struct view *s);
	/* The text for people if its type does not say enough. */
	void (*cell)(const void *value, char cell[VIEW_CELL_BYTES]);
	const char *def;  /* one of the $defs in share/report.schema.in.json, which is its schema; NULL: by its type */
	const char *help; /* for the schema and the manual; NULL: the names say it */
};
/* The place of a member of ROW, which the file of the sheet defines as the type of its rows. */
#define AT(member)   .at = offsetof(ROW, member), .bytes = sizeof(((ROW *)0)->member)
#define WORDS(array) .words = (array), .nwords = sizeof(array) / sizeof((array)[0])
#define PID_COLUMN(tgid, ...)                                                                                          \
	{                                                                                                              \
		"pid", NULL, NULL, VIEW_PID, AT(tgid),                                                                 \
			.help = "only if several processes were recorded: each has rows of its own", ##__VA_ARGS__     \
	}

struct view_sheet {
	const char *title; /* in the manual */
	const char *help;  /* what the table shows; for the schema and the manual */
	/* In JSON {"member": {"list": [...]}}, without list {"member": [...]}. The lists of sheets that follow one
	 * another and have one member stand in one object. */
	const char *member, *list;
	const char *def; /* instead of a member: it is one of the "tables" of JSON, with such $defs of the schema */
	/* First cell of its rows; "": only columns with rows of their own are in CSV; NULL: nothing is. */
	const char *csv;
	const struct view_column *columns;
	const struct view_column *totals; /* values of the whole table: members next to the list; NULL: none */
	const char *row_help, *list_help; /* for the schema; NULL: help says it */
	size_t row_bytes, table_bytes;
	unsigned people_max; /* rows that people see without --top; 0: all */
	bool whole;	     /* --top does not shorten it, except for people if people_max is set */
	bool brief_first;    /* they do so in a short output */
	bool first;	     /* people read it before the tables of calls */
	bool if_any;	     /* shown only if it has rows; else whenever an option asked for it */
	bool at_end;	     /* outputs write it last, see view_write_sheet(); JSON indents it deeper */
	bool of_class;	     /* calls.c makes one for each class of calls; make is NULL */
	/* Returns whether an option asked for the table; CSV then has its columns. The same in all windows of a
	 * session. */
	bool (*when)(const struct view *s);
	/* Fills a zeroed table. Returns 0 or -ENOMEM; fini is called in both cases. */
	int (*make)(const struct view *s, void *table);
	/* For tables without list.rows: makes row i, valid until the next call. Returns NULL if memory is out. */
	const void *(*row)(const struct view *s, void *table, size_t i);
	void (*fini)(void *table); /* NULL: the table owns only its rows */
	/* For people: write the line above the table and the lines below it, each with the prefix. People do not get a
	 * table of view_sheets[] without `above`. */
	void (*above)(struct view *s, const void *table, const char *prefix);
	void (*below)(struct view *s, const void *table, const char *prefix);
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
	struct view_column columns[VIEW_MADE_MAX + 1];
};
/* Returns the columns of a part, an object or a list, or NULL. `made` stores columns that the session names. */
const struct view_column *view_members(const struct view *s, const struct view_column *c, struct view_made *made);

/* Lists the columns of the session and replaces parts and objects by their columns. s NULL: of any session. */
#define VIEW_COLUMNS_MAX 96
struct view_flat {
	struct view_column columns[VIEW_COLUMNS_MAX + 1];
	unsigned n;
};
void view_flatten(const struct view *s, struct view_flat *flat, const struct view_column *columns, uint16_t at);

/* Lists the columns that people see in this table, in their order. */
void view_people_columns(const struct view *s, struct view_flat *flat, const struct view_column *columns,
			 const void *table);
/* The text of a cell for people. It is in cell or borrowed from the row, and untrusted. */
struct view_text view_people_text(const struct view *s, const struct view_column *c, const void *row,
				  char cell[VIEW_CELL_BYTES]);
bool view_is_below(const struct view_column *c); /* people see the column below the row */
bool view_is_text(const struct view_column *c);
bool view_is_double(const struct view_column *c);
/* Returns false for values that VIEW_OMIT leaves out. */
bool view_is_there(const struct view_column *c, const void *row);
/* Returns whether JSON and CSV have the value of this row. */
bool view_has_value(const struct view_column *c, const void *row);
/* Return values of a row. */
uint64_t view_cell_number(const struct view_column *c, const void *row);
double view_cell_double(const struct view_column *c, const void *row);
struct view_text view_cell_text(const struct view_column *c, const void *row);
/* Returns whether the session asked for the column. */
static inline bool view_is_asked(const struct view *s, const struct view_column *c)
{
	return !c->asked || !s || c->asked(s);
}
/* Returns whether JSON has the column in this table. */
bool view_has_column(const struct view *s, const struct view_column *c, const void *table);
/* Returns whether CSV shows an object or a list. */
static inline bool view_in_csv(const struct view_column *c)
{
	return !c->csv || *c->csv;
}
/* Returns whether the column has rows of its own in CSV. */
bool view_has_own_row(const struct view_column *c);
/* Returns the heading in CSV, or NULL if CSV does not have the column. */
const char *view_csv_head(const struct view_sheet *sh, const struct view_column *c);

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
extern const struct view_column view_account_columns[];
#define VIEW_ACCOUNT_HELP "Where total_ns went, by the kernel; the four times sum up to it. Not with --no-account."
#define VIEW_CPU_HELP	  "null: unknown, which is possible with --agent"

/* view.c: if an option asked for the table, makes it and lets the output write it. 0 or -errno with s->err set. */
int view_write_sheet(struct view *s, const struct view_sheet *sh);

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
