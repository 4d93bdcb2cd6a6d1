/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef METRICS_PRIV_H
#define METRICS_PRIV_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/ratio.h"
#include "metrics/metrics.h"

#define MET_FADE	  0.99 /* an interval counts so much of the next one, in an error */
#define MET_LEAST_SHARE	  100  /* a name has series of its own if it has at least one part in so many of its kind */
#define MET_BUCKETS_MAX	  52   /* of a histogram, with the last one, which has no bound */
#define MET_PROCESSES_MAX 256  /* that are named by their number, and numbers of those that have ended */
#define MET_ABSENT	  INT64_MIN /* value of a gauge: it is not known now */
#define MET_LABELS_BYTES  1024
#define MET_LABEL_BYTES	  160 /* of a value; longer ones are cut */

enum met_type { MET_COUNTER, MET_GAUGE, MET_HISTOGRAM };
enum met_unit { MET_COUNT, MET_NS, MET_BYTES, MET_MILLIONTHS };

enum met_id {
	MET_BUILD,
	MET_TARGETS,
	MET_PROCESS,
	MET_ITERATION,
	MET_ITERATION_PART,
	MET_OPERATOR,
	MET_OPERATOR_SELF,
	MET_CALL,
	MET_CALL_SELF,
	MET_CPU,
	MET_RESIDENT,
	MET_FAULTS,
	MET_LIVE,
	MET_FINDING,
	MET_GPU_INFO,
	MET_GPU_UTILIZED,
	MET_GPU_SAMPLED,
	MET_GPU_MEMORY,
	MET_GPU_MEMORY_TOTAL,
	MET_GPU_MEMORY_FREE,
	MET_MACHINE_CPU,
	MET_PRESSURE,
	MET_CGROUP_PRESSURE,
	MET_CGROUP_CPU,
	MET_CGROUP_THROTTLED,
	MET_CGROUP_PERIODS,
	MET_CGROUP_PERIODS_THROTTLED,
	MET_CGROUP_MEMORY,
	MET_CGROUP_LIMIT_HITS,
	MET_CGROUP_OOM_KILLS,
	MET_EVENTS,
	MET_LOST,
	MET_PARTIAL,
	MET_SLICES,
	MET_SLICED,
	MET_OPERATOR_ERROR,
	MET_UNSEEN,
	MET_WATCHED,
	MET_ADDED,
	MET_LEFT_OUT,
	MET_OWN_CPU,
	MET_OWN_RESIDENT,
	MET_OWN_START,
	MET_FAMILIES,
};

/* A family of series. A counter's samples are called NAME_total. */
struct met_family {
	const char *name, *help;
	enum met_type type;
	enum met_unit unit;
	const double *bounds; /* of histograms: upper bounds in seconds */
	unsigned nbounds;
};
/* The families of enum met_id, and behind them those of columns of tables. */
const struct met_family *met_family(unsigned family);
/* Buckets of a histogram, with the last one, which has no bound. */
static inline unsigned met_buckets(unsigned family)
{
	return met_family(family)->nbounds + 1;
}

struct met_series {
	char *labels; /* owned: `job="x",rank="0"`; "": none */
	unsigned family;
	int64_t value;		       /* in the unit of the family; of a histogram: the sum of what was observed */
	uint64_t *buckets;	       /* owned, of a histogram: met_buckets() counts; else NULL */
	struct met_recorded *recorded; /* owned, of a histogram: the last one of each bucket; NULL: none */
	struct ratio *sums; /* owned, of MET_OPERATOR_ERROR, else NULL: over intervals, older ones count less */
	uint64_t news_ns;   /* when it was changed last */
	uint64_t since_ns;  /* CLOCK_REALTIME: the value was 0 then */
};

/* A process whose labels are known. */
struct met_process {
	uint32_t tgid;
	bool seen;		 /* it is alive, or had rows in this interval */
	uint64_t started;	 /* 0: not known */
	uint64_t cpu_ns, faults; /* at the last interval; 0: not known */
	bool looped;		 /* it has ended an iteration */
	bool iterates;		 /* it has, whether memory is known or not */
	bool loops;		 /* several of its threads did so in one interval */
	int64_t live_bytes;	 /* at its last iteration */
	uint64_t looped_ns;	 /* when that ended */
	uint32_t gpus;		 /* bits: it has used its device of this number */
	char *labels, *job;	 /* owned; job: the label of the job alone */
	char *group;		 /* owned: what processes of one job have in common; it is in no output */
};

struct met {
	struct hash places;	  /* (family, hash of the labels) -> 1 + place in series */
	struct buf series;	  /* struct met_series */
	struct hash names;	  /* (kind and job, name) -> 1: it has series of its own; with name 0: how many do */
	struct buf processes;	  /* struct met_process */
	struct buf groups;	  /* struct met_group */
	struct buf found;	  /* struct mdl_found of the last interval; texts are owned */
	const char *const *rules; /* borrowed: see met_name_jobs() */
	unsigned nrules;
	uint64_t now_ns;
	uint64_t taken_ns; /* CLOCK_REALTIME: end of the last interval, or of none the start */
	uint64_t left_out; /* values without a series */
};

void met_forget_found(struct met *m);

/* ---- labels.c */

struct met_labels {
	size_t len;
	char text[MET_LABELS_BYTES];
};
/* Begins with labels that are made already. */
void met_labels_begin(struct met_labels *l, const char *labels);
/* Appends labels that are made already, unless there is no room. */
void met_labels_append(struct met_labels *l, const char *labels);
/* Appends a label, unless its value is empty or there is no room. The value can have any bytes. */
void met_label(struct met_labels *l, const char *name, const char *value, size_t len);
void met_label_text(struct met_labels *l, const char *name, const char *value);
/* The labels of a process, borrowed until the next one is asked for. NULL: no memory. */
struct met_process *met_process_of(struct met *m, const struct mdl_interval *in, uint32_t tgid);
/* Before and after an interval: forgets which processes were seen, and those that were not. */
void met_processes_begin(struct met *m);
void met_processes_end(struct met *m);
void met_processes_fini(struct met *m);

/* ---- series.c. Without memory or room a value is counted in left_out. `labels` NULL: none. */
void met_add(struct met *m, unsigned family, const char *labels, uint64_t n);
void met_set(struct met *m, unsigned family, const char *labels, int64_t n);
void met_add_gauge(struct met *m, unsigned family, const char *labels, int64_t n);
void met_observe(struct met *m, unsigned family, const char *labels, uint64_t ns, uint64_t n); /* n times */
/* Adds durations that the model has counted in its own buckets; sum_ns: their sum. Each stands for `scale` ones. */
void met_observe_hist(struct met *m, unsigned family, const char *labels, const uint64_t hist[MXBPF_HIST_BUCKETS],
		      uint64_t sum_ns, double scale);
/* Sets the error of an estimate by one more interval: x in the slices of it,
 * t: how much of the process was in them. */
void met_estimate(struct met *m, unsigned family, const char *labels, double x, double t);
static inline uint64_t met_scaled(uint64_t n, double scale)
{
	return scale > 1 ? (uint64_t)((double)n * scale + 0.5) : n;
}
/* Sets a gauge of this interval unless it is more already. */
void met_raise(struct met *m, unsigned family, const char *labels, int64_t n);
/* Sets all series of a family: a gauge that nobody sets again is 0, or MET_ABSENT. */
void met_reset(struct met *m, unsigned family, int64_t to);
/* Removes old series if there are many. 0 or -ENOMEM. */
int met_make_room(struct met *m);

/* ---- write.c: all series, those of a family together. The caller frees them. NULL: no memory. */
const struct met_series **met_sorted(const struct met *m, size_t *n);

/* ---- what an interval adds; 0 or -ENOMEM. calls.c, gpus.c, tables.c, and take.c for the rest */
int met_take_calls(struct met *m, const struct mdl_interval *in);
int met_take_gpus(struct met *m, const struct mdl_interval *in);
int met_take_tables(struct met *m, const struct mdl_interval *in);

/*
 * calls.c: whether a name has series of its own, from now on or already. `kind` has MET_NAMES_MAX names of each job; a
 * name that is not `worth` it gets none.
 */
bool met_tells(struct met *m, const struct met_process *p, uint64_t kind, uint64_t name, bool worth);
/* gpus.c: fills the labels of a process and one of its GPUs. Returns false if the process is not known. */
bool met_label_device(struct met *m, const struct mdl_interval *in, uint32_t tgid, uint32_t device,
		      struct met_labels *l);
/* tables.c: family i of those that columns of tables make. */
const struct met_family *met_table_family(unsigned i);
/* Adds to the counter of a column, also what no table has. Only after met_take_tables(). */
struct tbl_metric;
void met_add_column(struct met *m, const struct tbl_metric *of, const char *labels, uint64_t n);

/* groups.c: readings of the control groups of jobs, after the processes of an interval are known. */
#define MET_GROUPS_MAX 16 /* each needs 25 descriptors and 150 KiB */
void met_take_groups(struct met *m);
/* Puts the control groups of a job into a model, in the place of those that are there. Returns 0 or -ENOMEM. */
int met_feed_groups(const struct met *m, const char *job, struct mdl *to);
void met_groups_fini(struct met *m);
/* take.c: a reading of a gauge of a control group. job: NULL: of the machine. */
void met_take_gauge(struct met *m, const char *job, const char *group, uint16_t id, uint64_t last, uint64_t difference);

#endif
