/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of calls: one row for each operator, or with --by event one for each call. */
#ifndef VIEW_CALLS_H
#define VIEW_CALLS_H

#include "base/buf.h"
#include "view/priv.h"
#include "view/sheet.h"

/* Shapes, stack, layer and range, which tell rows of one name apart. Each is there if --by asks for it. */
struct view_details {
	struct view_text shapes, types, out_shapes, out_types, stack, layer, range;
};
extern const struct tbl_column view_details_columns[];
/* Ids of the model's texts. */
struct view_detail_ids {
	uint64_t args, stack, layer, range;
};
/* `note` takes what people see of the shapes; NULL: the row is for programs. 0, -ENOMEM. */
int view_details_fill(const struct view *s, struct view_detail_ids ids, struct buf *note, struct view_details *d);

/* feature/flops/sheet.c: estimates of floating-point operations. */
struct view_flops {
	uint64_t ops, calls, ns, unknown;
	double rate;	     /* operations per ns */
	bool known, counted; /* for some calls; for some, or known to be missing for some */
};
extern const struct tbl_column view_flops_columns[];
struct view_flops view_flops_of(const struct mdl_flops *f);

/* feature/counters/sheet.c: the performance counters of a row. */
#define VIEW_RATIOS_MAX 6
struct view_counters {
	uint64_t calls, scaled, value[MXBPF_COUNTERS_MAX];
	double ratio[VIEW_RATIOS_MAX]; /* NAN if nothing was counted that it could be made of */
};
bool view_asks_counters(const struct view *s);
unsigned view_counter_columns(const struct mdl_session *ss, struct tbl_column *to);
struct view_counters view_counters_of(const struct view *s, const struct mxbpf_counter_sum *sum, bool people);

/* The calls of a row that was recorded in slices, with those between slices. */
struct view_estimate {
	uint64_t count, total_ns, self_ns, self_each_ns;
	double each;			/* calls for each iteration, or each second */
	double count_error, self_error; /* half the 95 % confidence intervals, relative */
	bool known;			/* the row is one; others have `each` and self_each_ns only */
	bool by_iteration, by_second;	/* what these two are for, if known */
};
extern const struct tbl_column view_estimate_columns[];
struct view_calls;
/* Sets the columns of a table with such rows. */
void view_estimate_columns_of(const struct view *s, struct view_calls *c);
struct view_estimate view_estimate_of(const struct view *s, const struct view_calls *c, const struct mdl_row *r);

/* One row of a table by name, layer, device, process or thread. */
struct view_call {
	struct view_text name, domain;
	uint32_t device, tgid, tid;
	uint64_t first_ns, last_ns;
	uint64_t count, total_ns, self_ns, min_ns, max_ns, avg_ns, p50_ns, p99_ns, nparts, nbulks;
	bool partial;			    /* calls are missing, because --max-overhead left out probes */
	bool single;			    /* the calls have one name, so their durations say something */
	bool spread;			    /* single, and percentiles are known */
	uint64_t raw_total_ns, raw_self_ns; /* with what watching cost; 0: total_ns and self_ns are */
	int64_t alloc_bytes, self_alloc_bytes;
	double rate, share, cpu, runq, blocked;		     /* calls per second; the others in percent */
	bool lasts, annotation, memory, counted, of_process; /* of_process: its calls are of the process tgid alone */
	struct view_details details;
	struct view_account account;
	struct view_counters counters;
	struct view_flops flops;
	struct view_estimate estimate;
	char label[VIEW_LABEL_BYTES];
};

/* One call of --by event. */
struct view_event {
	struct view_text name, domain;
	uint32_t device, tgid, tid;
	uint64_t start_ns, count, self_ns, cpu, end_cpu, on_cpu_ns, runq_ns, blocked_ns;
	struct view_event_time {
		uint64_t ns;
		bool unwound;
	} time;
	int64_t alloc_bytes, self_alloc_bytes;
	bool unwound, annotation, memory, part, bulk, has_account, counted;
	struct view_details details;
	struct view_account account;
	struct view_counters counters;
	struct view_flops flops;
};

/* The table of one class. */
struct view_calls {
	struct view_list list;
	const struct view_table *of;
	bool devices;				 /* rows differ in them */
	bool whole;				 /* no row is an estimate from slices */
	bool estimates, by_iteration, by_second; /* some row is one; people then see it per iteration, or per second */
	bool nested, flat;			 /* self time is, or is not, less than the total in some row */
	bool durations;				 /* some row has durations of single calls, as columns for people */
	bool flat_durations, nested_durations;
	bool cpu, runq, blocked;  /* as columns for people */
	bool flops, domain, rate; /* as columns for people */
	bool counters;		  /* the rows are for sheet_counters */
	bool memory;		  /* calls took or gave back memory */
	uint64_t migrated;	  /* calls whose account is less exact */
	struct mdl_flops sum;	  /* calls and unknown */
	struct buf name, note;	  /* of the row that was made last */
	struct view_call call;
	struct view_event event;
};

extern const struct view_sheet sheet_calls, sheet_events, sheet_counters, sheet_opens, sheet_machine;

/* view_sheet.row of tables that are struct view_calls of rows. */
const void *view_call_make(const struct view *s, void *table, size_t i);
/* view_ops.table of outputs that are made from sheets. */
int view_calls_table(struct view *s, const struct view_table *t);

#endif
