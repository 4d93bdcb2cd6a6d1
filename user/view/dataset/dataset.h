/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data set: a directory of Arrow files, partitioned by host, rank and day as engines of data expect it
 * (TABLE/host=a/rank=3/day=2026-11-26/RECORDING.arrow). A recording has its own files in it, whose names follow from
 * the recording, so recordings of many hosts and days can be in one data set, and exporting one again replaces its
 * files. docs/dataset.md says what is in it.
 */
#ifndef VIEW_DATASET_H
#define VIEW_DATASET_H

#include "base/buf.h"
#include "base/hash.h"
#include "view/dataset/arrow.h"
#include "view/priv.h"
#include "view/sheet.h"
#include "mxbpf_track.h"

/* Hosts and ranks of one recording: processes with the same are in the same files. */
struct dataset_part {
	char *path; /* owned: "host=a/rank=3/day=2026-11-26" */
};

/* The row of the columns that each table begins with. */
struct dataset_lead {
	uint64_t recording, start_ns;
	uint32_t tgid;
	struct view_text job, runtime, version, category, of;
};

struct dataset;

#define DATASET_COLUMNS_MAX 128
#define DATASET_NAME_BYTES  64

struct dataset_column {
	struct tbl_column c; /* c.at and c.has count from the start of the row */
	char name[DATASET_NAME_BYTES];
	bool lead; /* a column of struct dataset_lead */
	bool off;  /* nothing is known of it in this recording */
	/* The object that it is a member of, if it is null as a whole; else NULL. */
	const struct tbl_column *of;
	uint16_t of_at; /* place of the row that the object is in */
};

/* A table of the data set, while its rows are written. Zero-initialise it. */
struct dataset_table {
	struct dataset *d;
	const char *name;
	struct dataset_column columns[DATASET_COLUMNS_MAX];
	unsigned n;
	struct arrow_file **files; /* owned; one for each part, NULL until it has a row */
	size_t from, to;	   /* only rows of these parts are written */
	struct tbl_column pid;	   /* the process of a row; bytes 0: the table does not tell processes apart */
	struct dataset_lead lead;  /* of the row that is written */
};

struct dataset {
	struct view s;
	uint64_t recording;   /* its id, below 2^63 */
	char day[16];	      /* "2026-11-26": on which the window began, in UTC */
	struct hash at;	      /* tgid -> 1 + index of its part */
	struct hash of_paths; /* hash of a path -> 1 + index of the part */
	struct buf parts;     /* struct dataset_part */
	/* The tables of the calls of all classes. Their d is NULL until they have begun. */
	struct dataset_table calls, counters;
	/* While they are written. */
	struct dataset_table spans, activities, launches, table;
};

/* parts.c */
int dataset_parts_init(struct dataset *d); /* 0 or -ENOMEM */
void dataset_parts_fini(struct dataset *d);
/* The part that has the rows of a process; 0: the rows are of no single process. */
size_t dataset_part_of(const struct dataset *d, uint32_t tgid);
static inline size_t dataset_nparts(const struct dataset *d)
{
	return buf_count(&d->parts, struct dataset_part);
}

/* table.c. int: 0, or -errno with the error of the view set. */

int dataset_table_begin(struct dataset_table *t, struct dataset *d, const char *name);
/* Adds columns. table: of their sheet; NULL: there is none. */
void dataset_table_columns(struct dataset_table *t, const struct tbl_column *columns, const void *table);
/* Adds columns of struct dataset_lead: those of each table, the category of calls, the row that has a list. */
void dataset_table_lead(struct dataset_table *t, const struct tbl_column *columns);
extern const struct tbl_column dataset_lead_columns[], dataset_category_column[], dataset_of_column[];
/* Adds a row to the file of its process: the one that it names, or this one. */
int dataset_table_row(struct dataset_table *t, const void *row);
int dataset_table_row_of(struct dataset_table *t, uint32_t tgid, const void *row);
/* Completes all files if err is 0, else discards them. Frees what the table owns. Returns the first error. */
int dataset_table_end(struct dataset_table *t, int err);

/* spans.c: writes the tables of single records: "spans", "activities" and "launches". */
int dataset_records(struct dataset *d);
/* activities.c: the tables of GPUs. Write a row. */
extern const struct tbl_column dataset_activity_columns[], dataset_launch_columns[];
int dataset_activity(struct dataset *d, const struct mxbpf_rec *r);
int dataset_launch(struct dataset *d, const struct mxbpf_rec *r);
/* about.c: writes the tables "recordings", "processes" and "sources". */
int dataset_about(struct dataset *d);

#endif
