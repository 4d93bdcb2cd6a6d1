/* SPDX-License-Identifier: Apache-2.0 */
/* A condition, as parse.c makes it and judge.c judges it. */
#ifndef TRIGGER_PRIV_H
#define TRIGGER_PRIV_H

#include "base/buf.h"
#include "trigger/trigger.h"
#include "view/sheet.h"

enum trg_what {
	TRG_ITERATION, /* longer than `limit` ns, or than `times` the median of the iterations before */
	TRG_OPERATOR,  /* a percentile of calls of operators that match `name` is above `limit` ns */
	TRG_MEMORY,    /* memory of the device `name` is above `limit` bytes */
	TRG_GPU_IDLE,  /* more than `share` of the time */
	TRG_FINDING,   /* the finding `name` explains more than `share` of the time */
	TRG_COLUMN,    /* `column` of a row of `sheet` that matches `name` is above `limit`, or above `share` */
	TRG_HANG,      /* a process that made iterations has made none for `limit` ns */
};

struct trg {
	enum trg_what what;
	const char *text;  /* borrowed */
	char name[128];	   /* a shell pattern */
	double percentile; /* 1: the longest call; below 0: the mean */
	double times, share;
	const struct view_sheet *sheet;
	struct tbl_column column;
	uint64_t limit;
	uint64_t for_ns; /* it must be true for so long */

	uint64_t since_ns; /* it has been true since then; 0: it is not */
	bool fired;	   /* since then */
	struct trg_slow slow;
	double busy;	  /* share of the time in which GPUs were, as the driver told last */
	uint64_t told_ns; /* when that was; 0: not yet */
	struct buf loops; /* struct trg_loop */
	uint64_t seen_ns; /* end of the last interval; 0: none */
};

/* Iterations of a thread. */
#define TRG_PAST       128
#define TRG_PAST_LEAST 16 /* that a median needs */
struct trg_loop {
	uint32_t tgid, tid;
	uint64_t n;
	uint64_t past_ns[TRG_PAST];
	/*
	 * No iteration ended in between. Where iterations are not seen all the time, the true stretch may be longer,
	 * and `unsure` is set.
	 */
	uint64_t from_ns, to_ns;
	bool unsure;
	bool still; /* the last slice met no iteration */
};

/* column.c: find a table and then a number of it, as JSON calls them. numbers: those that the table has. */
bool trg_find_table(struct trg *t, const char *table, size_t n);
bool trg_find_column(struct trg *t, const char *column, size_t n, char numbers[TRG_WHY_BYTES]);
bool trg_judge_column(const struct trg *t, const struct mdl_interval *in, char why[TRG_WHY_BYTES]);

#endif
