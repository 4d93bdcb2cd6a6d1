/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sheet describes one table once: its columns, and where its rows come from. The table for people, JSON, CSV, the
 * published schema and the manual are made from it. docs/internals.md says how to add a column or a sheet.
 */
#ifndef SINK_SHEET_H
#define SINK_SHEET_H

#include <string.h>

#include "sink/sink.h"

/* Borrowed from the model, hostile, not NUL-terminated. data is NULL where there is no text. */
struct snk_text {
	const char *data;
	size_t len;
};

/* A name, or the digits of a number, which is one in JSON. */
struct snk_key {
	struct snk_text text;
	bool number;
};

/* What a cell holds. Integers may have any size. */
enum snk_type {
	SNK_TEXT,   /* struct snk_text */
	SNK_KEY,    /* struct snk_key */
	SNK_NOTE,   /* struct snk_text: for people lines below the row, for programs a text */
	SNK_WORD,   /* index into the column's words */
	SNK_COUNT,  /* number */
	SNK_NS,	    /* duration */
	SNK_BYTES,  /* size */
	SNK_RATE,   /* bytes per second */
	SNK_MOMENT, /* CLOCK_MONOTONIC in ns. Programs get Unix time, people get seconds since the window began. */
	SNK_SHARE,  /* double, in percent for people */
	SNK_RATIO,  /* double */
	SNK_BOOL,
	SNK_DEVICE,
	SNK_PID,    /* only where several processes were seen */
	SNK_OBJECT, /* a struct in the row, with columns of its own */
	SNK_LIST,   /* struct snk_list in the row, with columns of its own; people do not see it */
	SNK_NTYPES,
};

enum snk_column_flag {
	SNK_SIGNED = 1 << 0, /* the integer can be below 0 */
	/* A text without data, or a number that is SNK_UNKNOWN, is null in JSON, empty in CSV and "-" for people. */
	SNK_NULL = 1 << 1,
	/* What is 0, false, without text, or an object of such, has no member in JSON. Of a number that is SNK_NULL as
	 * well, SNK_UNKNOWN has none, and 0 has one. */
	SNK_OMIT = 1 << 2,
	SNK_DASH = 1 << 3,    /* people see 0 as "-" */
	SNK_TIGHT = 1 << 4,   /* people see no blank between number and unit */
	SNK_OWN_ROW = 1 << 5, /* CSV has a row for it: of the table `csv`, with its key as the name */
};
#define SNK_UNKNOWN UINT64_MAX

/* First member of each table. */
struct snk_list {
	const char *title; /* where the runtime names the table; else NULL */
	void *rows;	   /* owned */
	size_t n, all;	   /* the first that are to be shown (opts.top), all */
	bool empty_too;	   /* programs get it even without rows */
	bool faults;	   /* accounts have page faults; set by who calls `make` */
};

struct snk_column {
	const char *key; /* in JSON; NULL: not there */
	/* Heading in CSV; NULL: as in JSON; "": not there. Of a list, an object and SNK_OWN_ROW: first cell of their
	 * own rows, which also have the name, the device and the pid of the row that they are of. */
	const char *csv;
	const char *head; /* heading for people; NULL: not there */
	enum snk_type type;
	uint16_t at, bytes; /* of the value in the row; no bytes: behind the last column */
	uint16_t flags;
	uint16_t when;		  /* offset in the table of a bool that says whether it has this column; 0: always */
	uint16_t shown;		  /* the same for the table that people see */
	uint8_t name_min;	  /* as in struct snk_grid_col */
	uint8_t digits;		  /* behind the point: of SNK_SHARE, SNK_RATIO, SNK_MOMENT */
	const char *const *words; /* of SNK_WORD: nwords texts; the schema has those that are there */
	uint16_t nwords;
	const struct snk_column *columns; /* of SNK_OBJECT and SNK_LIST */
	uint16_t item_bytes;		  /* of SNK_LIST */
	const char *help;		  /* for the schema and the manual; NULL: the names say it */
};
/* The place of a member of ROW, which the file of the sheet defines as the type of its rows. */
#define AT(member)   .at = offsetof(ROW, member), .bytes = sizeof(((ROW *)0)->member)
#define WORDS(array) .words = (array), .nwords = sizeof(array) / sizeof((array)[0])
#define PID_COLUMN(tgid)                                                                                               \
	{                                                                                                              \
		"pid", NULL, NULL, SNK_PID, AT(tgid),                                                                  \
			.help = "only where several processes were seen: each has rows of its own"                     \
	}

struct snk_sheet {
	const char *title; /* in the manual */
	const char *help;  /* what it is; for the schema and the manual */
	/* In JSON {"member": {"list": [...]}}, without list {"member": [...]}. The lists of sheets that follow one
	 * another and have one member stand in one object. */
	const char *member, *list;
	const char *def; /* instead of a member: it is one of the "tables" of JSON, with such $defs of the schema */
	/* First cell of its rows; "": only columns with rows of their own are in CSV; NULL: nothing is. */
	const char *csv;
	const struct snk_column *columns;
	const struct snk_column *totals;  /* of the table as a whole: members beside the list; NULL: none */
	const char *row_help, *list_help; /* for the schema; NULL: help says it */
	size_t row_bytes, table_bytes;
	unsigned people_max; /* rows that people see unless --top says otherwise; 0: all */
	bool whole;	     /* --top does not cut it */
	bool if_any;	     /* not shown without rows; else whenever it was asked for */
	/* Whether it was asked for: then CSV has its columns. The same for all windows of a session. */
	bool (*when)(const struct snk *s);
	/* Fills a zeroed table: rows, all, and what else it has. 0, -ENOMEM; fini is called either way. */
	int (*make)(const struct snk *s, void *table);
	void (*fini)(void *table); /* NULL: nothing but rows is owned */
	/* For people, who do not get it without `above`: the line above, and the lines below. Each line begins with
	 * prefix. */
	void (*above)(struct snk *s, const void *table, const char *prefix);
	void (*below)(struct snk *s, const void *table, const char *prefix);
};
extern const struct snk_sheet
	*const snk_sheets[]; /* user/feature/registry.c: in the order of the outputs, NULL-terminated */
extern const struct snk_sheet snk_sheet_joins, snk_sheet_kvs, snk_sheet_activities, snk_sheet_teams, snk_sheet_samples,
	snk_sheet_values, snk_sheet_instants, snk_sheet_lives, snk_sheet_waits, snk_sheet_slow, snk_sheet_scheds,
	snk_sheet_held, snk_sheet_held_devices, snk_sheet_mem, snk_sheet_loops, snk_sheet_slowest;

static inline const void *snk_row(const struct snk_sheet *sh, const void *table, size_t i)
{
	return (const char *)((const struct snk_list *)table)->rows + i * sh->row_bytes;
}

/* The columns with those of objects in their place. */
#define SNK_COLUMNS_MAX 64
struct snk_flat {
	struct snk_column columns[SNK_COLUMNS_MAX + 1];
	unsigned n;
};
void snk_flatten(struct snk_flat *flat, const struct snk_column *columns, uint16_t at);

bool snk_is_text(const struct snk_column *c);
/* Whether it is not what SNK_OMIT leaves out. */
bool snk_is_there(const struct snk_column *c, const void *row);
/* Values of a row. */
uint64_t snk_cell_number(const struct snk_column *c, const void *row);
struct snk_text snk_cell_text(const struct snk_column *c, const void *row);
/* Whether the table has the column, for programs. */
bool snk_has_column(const struct snk_column *c, const void *table);
/* Whether CSV has anything of an object or a list. */
static inline bool snk_in_csv(const struct snk_column *c)
{
	return !c->csv || *c->csv;
}
/* Whether CSV has rows for it. */
bool snk_has_own_row(const struct snk_column *c);
/* In CSV; NULL: not there. */
const char *snk_csv_head(const struct snk_sheet *sh, const struct snk_column *c);

/* A text that ends with NUL; without data if it is NULL. */
static inline struct snk_text snk_word(const char *text)
{
	return (struct snk_text){text, text ? strlen(text) : 0};
}

/* held.c, --memory: what one kind of allocations holds, for timelines as well. */
struct snk_holder {
	struct snk_text name, category, layer, scope, label; /* but for name without data where there is none */
	struct mxbpf_holder h;
	int64_t start_bytes; /* that it held when the window began: with --reset */
};
struct snk_held {
	struct snk_list list;		/* struct snk_holder, by device, the most at its peak first */
	struct mxbpf_mem_time *devices; /* owned, by device */
	size_t ndevices;
	bool layers, scopes; /* any row has one */
	bool carried, fresh; /* something, or nothing, was held at the start */
	bool several;	     /* devices */
};
/* The same of a sheet; rows and devices are to be freed either way. */
int snk_held_make(const struct snk *s, void *table);
void snk_held_fini(void *table); /* devices */

/* account.c: the object "account" of rows of calls. */
struct snk_account {
	uint64_t on_cpu_ns;
	struct mxbpf_account_sum sum;
};
struct snk_account snk_account_of(const struct mdl_row *r);
extern const struct snk_column snk_account_columns[];
#define SNK_ACCOUNT_HELP "Where total_ns went, by the kernel; the four times sum up to it. Not with --no-account."
#define SNK_CPU_HELP	 "null: not known, which is possible with --agent"

/* The three forms. 0 or -errno with s->err set. */
int snk_sheet_print(struct snk *s, const struct snk_sheet *sh, const void *table, const char *prefix);
int snk_sheet_json(struct snk *s, const struct snk_sheet *sh, const void *table);
int snk_sheet_csv(struct snk *s, const struct snk_sheet *sh, const void *table);

/* Whether an output shows it. */
static inline bool snk_shows_sheet(const struct snk_ops *ops, const struct snk_sheet *sh)
{
	return ops->sheet && (!ops->only || ops->only == sh);
}

/* schema.c: the whole published schema. */
void snk_put_schema(struct out *o);

/* "5 rows", "1 row, not all of them shown" */
void snk_put_rows(struct snk *s, const struct snk_list *t);
/* "5 rows", "5 rows, of which 2 are shown", "nothing seen", and the end of the line. */
void snk_put_shown(struct snk *s, const struct snk_list *t, const char *row);

#endif
