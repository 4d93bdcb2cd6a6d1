/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bounds the job, in sentences. Facts are numbers that are computed once from the rows of a model; a rule looks at
 * facts and says a sentence if they cross its threshold. Both are pure functions of the model: live tables and reports
 * of recordings say the same.
 */
#ifndef FEATURE_FINDINGS_H
#define FEATURE_FINDINGS_H

#include "model/feature.h"
#include "mxbpf_neighbours.h"
#include "mxbpf_step.h"

extern const struct view_sheet sheet_findings;

#define FACTS_LINE_BYTES 200
#define FACTS_OTHERS_MAX 3

/* A line of Python and how many looks found a thread there; text "": none is known. */
struct fact_line {
	char text[FACTS_LINE_BYTES]; /* "train.py(12): step", hostile */
	uint64_t looks, of;	     /* of so many looks at these threads */
	uint64_t asleep;	     /* of the looks, those that found it asleep */
};

/* All times in ns, all shares between 0 and 1. */
struct facts {
	uint64_t window_ns;
	unsigned cpus; /* 0: not known */

	/* The loop with the most time; its parts are sums over its iterations. */
	struct {
		uint32_t tgid, tid;
		uint64_t n, total_ns, median_ns;
		uint64_t known_ns, part_ns[MXBPF_STEP_PARTS], busy_ns; /* of iterations whose parts are known */
	} loop;
	struct fact_line data_line;    /* workers, or the loop's own thread while it waits for data */
	bool data_workers;	       /* data_line is of other processes */
	double data_worker_busy;       /* share of the looks at workers that found them at work */
	uint32_t data_worker;	       /* process that was found there most often */
	struct fact_line wait_line;    /* the loop's thread in calls that wait for the engine */
	double slow_line_more;	       /* share of the looks at slow iterations beyond that at others */
	struct fact_line slow_line;    /* the loop's thread in iterations of the slow group */
	struct fact_line outside_line; /* the loop's thread outside the runtime */

	/* Calls of operators, without those that only contain others. */
	uint64_t op_calls, op_self_ns;
	uint64_t tiny_calls, tiny_self_ns;		 /* of rows whose calls take less than FACTS_TINY_NS each */
	uint64_t op_total_ns, op_runq_ns, op_blocked_ns; /* of the same calls, by the kernel's account */
	uint64_t faults_ns;				 /* estimate: page faults without I/O times what one takes */
	uint64_t faults;

	/* Where CPU time went. */
	uint64_t cpu_elapsed_ns, job_cpu_ns, others_cpu_ns;
	struct mxbpf_neighbour others[FACTS_OTHERS_MAX]; /* the largest; cpu_ns 0: no more */
	double throttled, stolen;			 /* shares of the window and of CPU time */
	unsigned threads;				 /* that ran operators */

	/* Memory that grows. */
	int64_t grown_bytes; /* from the first to the last iteration, if it grew all the way; else 0 */
	uint64_t grown_over; /* iterations */
	struct {
		char text[FACTS_LINE_BYTES];
		int64_t live_bytes;
	} grown_owner; /* "": not known */

	/* Iterations that take much longer than the others. */
	struct {
		uint64_t n, total_ns, median_ns, excess_ns; /* excess: beyond the median of all */
		uint64_t every;				    /* each so many iterations; 0: not regular */
		unsigned part;				    /* of which they have the most more */
	} slow;
};

#define FACTS_TINY_NS 15000

/* Part of a whole; 0 of nothing. */
static inline double facts_share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* Computes all. 0 or -ENOMEM. */
int facts_make(struct mdl *m, const struct mdl_session *s, struct facts *f);

/* facts_lines.c: the lines among the facts. 0 or -ENOMEM. */
int facts_lines(const struct mdl *m, struct facts *f);
int facts_slow_line(const struct mdl *m, struct facts *f, const struct mxbpf_iteration *it, size_t n);
bool facts_is_slow(const struct facts *f, const struct mxbpf_iteration *it);

struct finding_rule {
	const char *key;					/* "data_wait", for programs; never changes */
	double least;						/* the finding is silent below this share */
	double (*share)(const struct facts *f);			/* of the time that it explains */
	void (*say)(const struct facts *f, struct buf *b);	/* the sentence with its figures; no full stop */
	void (*evidence)(const struct facts *f, struct buf *b); /* where it was seen; NULL: nothing more */
	const char *next;					/* what to type next, behind "mxbpf"; NULL: nothing */
	const char *advice;					/* a paragraph: what it means and what helps */
};
extern const struct finding_rule finding_rules[]; /* ends with key NULL */

#define FINDINGS_MAX 7

struct finding {
	const struct finding_rule *rule;
	double share;
	struct buf text, evidence; /* owned */
};
struct findings {
	struct facts facts;
	struct finding list[FINDINGS_MAX]; /* the largest share first */
	unsigned n;
};

/* 0 or -ENOMEM; findings_fini() either way. */
int findings_make(struct mdl *m, const struct mdl_session *s, struct findings *out);
void findings_fini(struct findings *f);

#endif
