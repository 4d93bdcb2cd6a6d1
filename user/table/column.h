/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A column of a table. It is described once: how it is stored and added up, its unit, and its names in each output.
 * Tables whose rows are stored (table.h) and tables that view/ makes for an output have the same columns.
 */
#ifndef TABLE_COLUMN_H
#define TABLE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mdl_session; /* model/session.h */
struct view;	    /* view/priv.h */

/* Type of a cell. Integers can have 1, 2, 4 or 8 bytes. */
enum tbl_type {
	TBL_TEXT,   /* struct view_text */
	TBL_KEY,    /* struct view_key */
	TBL_NOTE,   /* struct view_text: people see it below the row */
	TBL_LINES,  /* struct view_text of lines: people see them below the row, JSON has a list, CSV joins them by ';'
		     */
	TBL_RAW,    /* struct view_text that is JSON already: people see it below the row */
	TBL_WORD,   /* index into the column's words */
	TBL_COUNT,  /* number */
	TBL_NS,	    /* duration */
	TBL_BYTES,  /* size */
	TBL_RATE,   /* bytes per second */
	TBL_MOMENT, /* CLOCK_MONOTONIC in ns. Programs get Unix time, people get seconds since the window began. */
	TBL_SHARE,  /* double, in percent for people */
	TBL_RATIO,  /* double; NAN if it is not known */
	TBL_BOOL,
	TBL_DEVICE,
	TBL_PID,    /* JSON has it only if several processes were seen */
	TBL_PART,   /* a struct in the row, whose columns are columns of the row in each output */
	TBL_OBJECT, /* a struct in the row, which is an object in JSON */
	TBL_LIST,   /* struct view_list in the row, with columns of its own; people do not see it */
	TBL_NAME,   /* id of a name; no output shows it */
	TBL_NTYPES,
};

/*
 * How the values of two rows with equal keys become one. Sums stop at the largest value instead of wrapping. Tables
 * that are not stored are joined by `mxbpf diff` alone: it compares sums, and the largest sizes; texts are keys unless
 * they are TBL_LAST.
 */
enum tbl_merge {
	TBL_MADE, /* the value is not stored: an output makes it of the others */
	/* Of tables that are not stored, TBL_SUM says that the numbers of two windows add up. */
	TBL_IS_KEY,
	TBL_SUM, /* with TBL_SIGNED: of signed numbers. More than 8 bytes: an array of 64-bit numbers */
	TBL_MAX,
	TBL_MIN,
	TBL_OR,
	TBL_LAST, /* the later one that is not 0 */
	/*
	 * The value of the later one of two rows. Columns with TBL_ORDER decide which row is later: the first of these
	 * columns, and the next one only if both rows have the same value there.
	 */
	TBL_ORDER,
	TBL_OF_LATEST,
};

enum tbl_column_flag {
	TBL_SIGNED = 1 << 0, /* the integer can be below 0 */
	/* A text without data, or a number that is TBL_UNKNOWN, is null in JSON, empty in CSV and "-" for people. */
	TBL_NULL = 1 << 1,
	/* JSON has no member for 0, false, a text without data, or an object that holds nothing else. With TBL_NULL,
	 * JSON has a member for the number 0, and none for TBL_UNKNOWN. */
	TBL_OMIT = 1 << 2,
	TBL_DASH = 1 << 3,	  /* people see 0 as "-" */
	TBL_TIGHT = 1 << 4,	  /* people see no blank between number and unit */
	TBL_OWN_ROW = 1 << 5,	  /* CSV has a row for it: of the table `csv`, with its key as the name */
	TBL_BELOW = 1 << 6,	  /* people see the text below the row */
	TBL_SIGNIFICANT = 1 << 7, /* data_digits counts all significant digits, not decimal places */
	TBL_KEEP = 1 << 8,	  /* JSON has the member even if `has` is false */
	TBL_DETAIL = 1 << 12,	  /* a key that is 0 in further rows of a table that is full */
	TBL_BY_COUNT = 1 << 10,	  /* --sort count and */
	TBL_BY_TIME = 1 << 11,	  /* --sort total sort by it */
	TBL_MANY = 1 << 13,	  /* metrics have its largest texts as labels, and further ones as "other" */
	TBL_SPARSE = 1 << 14,	  /* an array that is mostly 0, such as a histogram; a record then has one row */
	TBL_BEGINS = 1 << 9,	  /* of the first column: people see the beginning of a long name */
};
#define TBL_UNKNOWN UINT64_MAX

/*
 * A counter of metrics: the sum of a column over all rows of a process that have the same labels. Columns can share
 * one.
 */
struct tbl_metric {
	const char *name; /* mxbpf_..._seconds or _bytes by the column's type, without _total */
	const char *help;
	bool of_calls; /* not counted while even iterations are recorded in slices alone */
	bool nameless; /* without the labels that are texts */
};

#define TBL_CELL_BYTES 64
struct tbl_column {
	const char *key; /* in JSON; NULL: not there */
	/* Heading in CSV; NULL: as in JSON; "": not there. Of a list, an object and TBL_OWN_ROW: first cell of their
	 * own rows, which also have the name, the device and the pid of the row that they belong to. */
	const char *csv;
	const char *head; /* heading for people; NULL: not there */
	enum tbl_type type;
	enum tbl_merge merge;
	uint16_t at, bytes; /* offset and size of the value in the row; 0 bytes end the columns */
	uint16_t flags;
	uint16_t when;		  /* offset in the table of a bool: the table has the column; 0: always */
	uint16_t shown;		  /* offset in the table of a bool: people see the column; 0: always */
	uint16_t has;		  /* offset in the row of a bool: JSON and CSV have the value; 0: always */
	uint8_t name_min;	  /* as in struct view_grid_col */
	uint8_t digits;		  /* decimal places for people, of TBL_SHARE, TBL_RATIO and TBL_MOMENT */
	uint8_t data_digits;	  /* decimal places in JSON and CSV, of TBL_RATIO */
	uint8_t place;		  /* people see columns with a place after the others, sorted by place */
	const char *const *words; /* of TBL_WORD: nwords texts; the schema lists them */
	uint16_t nwords;
	uint16_t item_bytes;		  /* of TBL_LIST */
	const struct tbl_column *columns; /* of TBL_PART, TBL_OBJECT and TBL_LIST */
	/* Instead of columns: writes the columns that this session names, at most VIEW_MADE_MAX. Returns their number.
	 */
	unsigned (*generate)(const struct mdl_session *ss, struct tbl_column *to);
	/* Returns true if the session has the column, in any output. NULL: every session has it. */
	bool (*asked)(const struct view *s);
	/* The text for people if its type does not say enough. */
	void (*cell)(const void *value, char cell[TBL_CELL_BYTES]);
	/* Name of a stored column in recordings, if it has no key for JSON. */
	const char *stored;
	/* The largest value that a recording may have in a stored column. A larger one is read as 0. 0: no limit. */
	uint16_t limit;
	uint8_t name_kind;		 /* of TBL_NAME: enum mxbpf_name_kind */
	const struct tbl_metric *metric; /* that the column adds to; NULL: none */
	/*
	 * The name of a label in the metrics of this table. A text is the value of the label. A number is that of a GPU
	 * of the process, and the metrics get all labels of this GPU. NULL: no label.
	 */
	const char *label;
	const char *def;  /* one of the $defs in share/report.schema.in.json, which is its schema; NULL: by its type */
	const char *help; /* for the schema and the manual; NULL: the names say it */
};
/* The place of a member of ROW, which the file of the sheet defines as the type of its rows. */
#define AT(member) .at = offsetof(ROW, member), .bytes = sizeof(((ROW *)0)->member)
/* The same of a stored column, and how it is added up. */
#define KEY_AT(member)		    .merge = TBL_IS_KEY, AT(member)
#define HIST_AT(member)		    .flags = TBL_SPARSE, SUM_AT(member)
#define SUM_AT(member)		    .merge = TBL_SUM, AT(member)
#define MAX_AT(member)		    .merge = TBL_MAX, AT(member)
#define MIN_AT(member)		    .merge = TBL_MIN, AT(member)
#define OR_AT(member)		    .merge = TBL_OR, AT(member)
#define LAST_AT(member)		    .merge = TBL_LAST, AT(member)
#define METRIC_OF_CALLS(name, help) (&(const struct tbl_metric){name, help, true, false})
#define METRIC(name, help)	    (&(const struct tbl_metric){name, help, false, false})
#define METRIC_NAMELESS(name, help) (&(const struct tbl_metric){name, help, false, true})
#define ORDER_AT(member)	    .merge = TBL_ORDER, AT(member)
#define LATEST_AT(member)	    .merge = TBL_OF_LATEST, AT(member)
#define WORDS(array)		    .words = (array), .nwords = sizeof(array) / sizeof((array)[0])
#define PID_COLUMN(tgid, ...)                                                                                          \
	{                                                                                                              \
		"pid", NULL, NULL, TBL_PID, AT(tgid),                                                                  \
			.help = "only if several processes were recorded: each has rows of its own", ##__VA_ARGS__     \
	}

#endif
