/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bounds the job, in sentences. Facts are numbers that are computed once from the rows of a model; a rule looks at
 * facts and says a sentence if they cross its threshold. Both are pure functions of the model: live tables and reports
 * of recordings say the same.
 */
#ifndef FEATURE_FINDINGS_H
#define FEATURE_FINDINGS_H

#include <stddef.h>

#include "feature/findings/causes/causes.h"
#include "feature/findings/line.h"
#include "model/feature.h"
#include "mxbpf_lines.h"
#include "mxbpf_loss.h"
#include "mxbpf_neighbours.h"
#include "mxbpf_step.h"
#include "mxbpf_track.h"

extern const struct view_sheet sheet_findings;

#define FACTS_OTHERS_MAX 3
#define FACTS_WHO_BYTES	 64
#define FACTS_LOOPS_MAX	 64 /* threads that run a loop; others are not judged */

/* What a session has measured, so that nobody is told to measure it next. */
enum facts_have {
	FACTS_HAVE_STACKS = 1 << 0,	/* --py-stacks */
	FACTS_HAVE_SCHED = 1 << 1,	/* --sched */
	FACTS_HAVE_SAMPLES = 1 << 2,	/* --sample */
	FACTS_HAVE_MEMORY = 1 << 3,	/* --memory */
	FACTS_HAVE_SHAPES = 1 << 4,	/* --shapes */
	FACTS_HAVE_ITERATIONS = 1 << 5, /* --iterations */
	FACTS_HAVE_RANKS = 1 << 6,	/* several ranks of a job */
};

/* All times in ns, all shares between 0 and 1. */
struct facts {
	unsigned have;	       /* enum facts_have */
	bool in_job;	       /* the loop's process is a rank of a distributed job with others */
	double stopped;	       /* share of the looks at main threads that found them stopped */
	uint32_t stopped_tgid; /* the process that was stopped the most; 0: none */
	unsigned cpus;	       /* of the machine; 0: not known */
	unsigned allowed_cpus; /* of these, the job may use so many */
	bool python;	       /* the program is in Python */
	bool unprobed;	       /* calls of the C API are not probed, and their time counts as outside the runtime */
	bool partial;	       /* so it is with operators, because of --max-overhead */
	bool sliced;	       /* all calls were recorded, but in slices, so few samples know in which call they are */
	bool foreign;	       /* another profiler recorded them, which does not look at lines */

	/* The loop with the most time, see choose_loop(); its parts are sums over its iterations. */
	struct {
		uint32_t tgid, tid;
		uint32_t beside; /* other loops of its process */
		uint64_t n, total_ns, median_ns;
		uint64_t complete; /* of n: no records of their time are lost */
		uint64_t about;	   /* n, and an estimate of those that are missing because their ends are lost */
		uint64_t first_ns, last_ns, raw_ns; /* their extent, and the sum of their times with the cost */
		uint64_t known_ns, part_ns[MXBPF_STEP_PARTS], busy_ns; /* of iterations whose parts are known */
		double covers; /* the part of the window that the iterations take; 1 if that is most of it, or not known
				*/
		bool waits_known; /* waits for other processes are in their part, not in that of the program */
	} loop;
	/* All threads that run a loop, also of other processes; tid 0: no more. */
	struct {
		uint32_t tgid, tid;
		uint64_t n;
		uint64_t total_ns, exchange_ns; /* exchange: operators that exchange data with other ranks */
	} loops[FACTS_LOOPS_MAX];
	uint64_t exchange_ns; /* of the loop's process; exchanges that run at once add up */
	uint32_t late_tgid;   /* last_rank, or else collective.late.tgid; 0: no rank is late */
	uint32_t last_rank;   /* process that spends the least in them, so that the others wait for it; 0: none */
	const struct mdl_labels *last_labels; /* borrowed; NULL: not known */
	/* The operator in which it spends the most more than the median of the other ranks, and how much more. */
	struct fact_operator last_more;
	bool last_unprobed; /* the session does not profile last_rank, whose lines and CPU time are known alone */
	double last_cpus;   /* that last_rank used; below 0: not known */

	struct fact_line data_line;	/* workers, or the loop's own thread while it waits for data */
	bool data_workers;		/* data_line is of other processes or threads */
	struct fact_line wait_line;	/* the loop's thread in calls that wait for the engine */
	struct fact_line api_line;	/* the loop's thread in other calls of the runtime */
	struct fact_line slow_line;	/* the loop's thread in iterations of the slow group */
	struct fact_line last_line;	/* the main thread of last_rank, or of collective.late */
	struct fact_line exchange_line; /* the loop's thread asleep for another thread, as it is in an exchange */
	struct fact_line any_line;	/* the loop's thread whatever it does; without a loop all main threads */
	double slow_line_more;		/* share of the looks at slow iterations beyond that at others */
	struct fact_line own_line;	/* the loop's thread in the program's own code */
	struct fact_line other_line;	/* other threads of its process that do not wait for work */
	/* Shares of the looks at the loop's thread, all outside calls of the runtime. */
	double loader_share; /* in a loader that works in the program itself, or waiting for a queue */
	double lock_share;   /* asleep in a lock of the interpreter, while another thread ran Python */
	double own_share;    /* in lines of the program that do not call the runtime */
	double launch_share; /* in lines that do; 1: no lines are known; in slices an estimate */
	/* The share of all looks at the line of wait_line, waiting or not, without those in operators. */
	double wait_line_share;

	uint64_t waits; /* calls of the loop's process that wait for results, also if they were there */

	/* What watching costs, by how much it slows the job down, and an iteration with and without it; 0: not known.
	 */
	double watching;
	uint64_t watched_ns, unwatched_ns;
	bool agent_helps; /* the agent would make it less */

	/* What the source that lost the largest share lost; see facts_lost(). */
	struct {
		double share;
		const char *source; /* "" if it is not known; borrowed */
		struct mxbpf_loss of;
		bool memory; /* memory was recorded */
	} lost;

	/* Calls of operators, without those that only contain others. */
	uint64_t op_calls, op_self_ns;
	uint64_t loop_self_ns; /* of op_self_ns, in the loop's process */
	uint64_t tiny_calls,
		tiny_self_ns; /* of rows whose calls take less than FACTS_TINY_NS each, run-queue wait aside */
	struct fact_operator tiny[FACTS_OPERATORS_MAX];	  /* those with the most calls */
	struct fact_operator faulty[FACTS_OPERATORS_MAX]; /* those with the most page faults */
	uint64_t op_runq_ns;				  /* of the same calls, by the kernel's account */
	/* Estimate: what page faults without I/O take that would be saved if freed memory was kept. */
	uint64_t faults_ns;
	uint64_t faults, faults_kept; /* kept: of them, about so many in memory that is still alive */

	/* Where CPU time went. */
	uint64_t cpu_elapsed_ns, job_cpu_ns, others_cpu_ns;
	unsigned ranks; /* of the job, which the session does not profile; they are no others */
	uint64_t ranks_cpu_ns;
	uint64_t job_runq_ns;				 /* all threads of the job, runnable without running */
	struct mxbpf_neighbour others[FACTS_OTHERS_MAX]; /* the largest; cpu_ns 0: no more */
	double throttled, stolen;			 /* shares of the window and of CPU time */
	char throttled_by[FACTS_LINE_BYTES];		 /* control group, hostile */

	/* Memory that grows. */
	int64_t grown_bytes; /* from the first to the last iteration, if it grew all the way; else 0 */
	uint64_t grown_over; /* iterations */
	int64_t grown_all;   /* from the end of the first iteration to that of the last one, however it went */
	struct fact_owner {
		char text[2 * FACTS_LINE_BYTES]; /* "operator", or "operator at train.py(12): step"; hostile */
		int64_t live_bytes;
	} grown_owner; /* "": not known */
	/* Where the process that grows touched the pages that it has kept: `looks` of `of` pages, estimates. */
	struct fact_line grown_line;

	/*
	 * Without iterations: what the program does again and again. n calls of an annotation, with their time in
	 * `much`; else (much 0) about n equal passes over operators. calls, op_ns: of the operators.
	 */
	struct {
		uint64_t n, calls, op_ns;
		struct fact_operator annotation;
	} passes;

	/* Resident memory of the process that grows the most; tgid 0: none grows all the way. */
	struct {
		uint32_t tgid;
		int64_t grown_bytes;
		uint64_t over_ns, bytes; /* in which time; at its end */
		int64_t runtime_bytes;	 /* of grown_bytes, that the runtime has allocated and not freed */
	} resident;

	/* Threads that wait for a lock of the program (facts_locked.c). */
	struct {
		uint32_t tgid;
		double share;		       /* of the time: some thread waits, and another one has the lock */
		double at_once;		       /* threads that wait then */
		struct fact_line waits, holds; /* where they wait; where the other one is */
	} locked;

	/* A compiler that runs in the loop's thread, without a loop in any thread (facts_compile.c). */
	struct {
		uint32_t tgid;
		double share; /* of the window */
		const char *compiler;
		struct fact_line line; /* of the program, which calls it */
		/* What was compiled anew the most, and why; "": not known, or all was compiled for the first time.
		 * Hostile. */
		char what[FACTS_LINE_BYTES], guard[FACTS_LINE_BYTES];
		uint64_t anew; /* different reasons that were seen, each of which is a compilation */
	} compiling;
	/* The loop's thread outside its iterations. */
	struct {
		double compiles; /* share of the samples: in a compiler */
		const char *compiler;
		struct fact_line line;
	} rest;

	/* The last allocation for which there was no memory. */
	struct {
		uint64_t n;	/* all of them in the window; 0: none, and the rest is not set */
		bool uncounted; /* the allocator does not count, so total_bytes is what the window has allocated */
		uint64_t wanted_bytes, total_bytes, pool_bytes; /* asked for; allocated and reserved then */
		uint64_t others_bytes, others;			/* other processes on the GPU then; 0: not known */
		char device[48], text[2 * FACTS_LINE_BYTES];	/* who asked, as in fact_owner; hostile */
		struct fact_owner held[FACTS_OPERATORS_MAX];	/* the largest; live_bytes 0: no more */
	} failed;

	/* GPUs that had work, of all processes. */
	struct {
		bool known; /* there is one, and it is known how long it was watched */
		unsigned n;
		uint64_t seen_ns, busy_ns, compute_ns; /* sums over the GPUs; compute: without copies */
		double busy;			       /* busy_ns of seen_ns */
		uint64_t kernels, kernel_ns;
		struct fact_operator longest[FACTS_OPERATORS_MAX];   /* kernels with the most time */
		struct fact_operator launching[FACTS_OPERATORS_MAX]; /* operators that launch the most kernels */
		uint64_t launches, latency_p50_ns;		/* from the launch to the begin of its first activity */
		uint64_t pageable, pageable_ns, pageable_bytes; /* copies from or to pageable memory */
		uint64_t cause_ns[MXBPF_IDLE_CAUSES]; /* why nothing ran between the first and the last work */
		uint64_t unused_ns; /* of kernels, the part of multiprocessors that their grids leave without work */
		struct fact_operator small[FACTS_OPERATORS_MAX]; /* kernels with the most of it */
		uint64_t waits, wait_ns; /* calls of CUDA in which the loop's thread waited for a GPU */
	} gpu;

	/* Collectives of all processes that are profiled together (facts_collective.c). */
	struct {
		double extent_ns; /* from the first collective to the last one */
		/* The process that is late the most in its group. */
		struct {
			uint64_t n, of, by_ns; /* times that it was last, of so many; how late it was then */
			double share;	       /* of the extent: the others wait for it */
			uint32_t tgid;
			char who[FACTS_WHO_BYTES];   /* "rank 2"; the role is hostile */
			char group[FACTS_WHO_BYTES]; /* "ranks 0-3" */
			const char *op;		     /* in which it is late the most */
		} late;
		/* The group whose bandwidth is the least in comparison with others of its size. */
		struct {
			double share;	   /* of the extent: what it takes longer than the others */
			double bus, usual; /* bytes per second */
			uint64_t bytes;
			const char *op;
			char group[FACTS_WHO_BYTES];
		} slow;
		/* NCCL's kernels: sums over all GPUs that ran some. */
		struct {
			uint64_t ns, exposed_ns, seen_ns; /* exposed: no other kernel ran; seen: of these GPUs */
			double wait;			  /* share of their time that is the wait for the last rank */
			uint64_t gpus;
		} gpu;
	} collective;

	/* Iterations that take much longer than the others. */
	struct {
		uint64_t n, median_ns, excess_ns; /* excess: beyond the median of all */
		uint64_t every;			  /* each so many iterations; 0: not regular */
		uint64_t period, phase;		  /* numbers with that rest are the group; 0: all slow ones are */
		unsigned part;			  /* of which they have the most more */
		bool evenly;			  /* every part is longer in about the same proportion */
	} slow;

	struct cause_facts cause; /* what the causes in user/feature/findings/causes/ have found */
};

#define FACTS_TINY_NS	    15000
#define FACTS_COVERED_LEAST 0.5
#define FACTS_LOST_LEAST    0.05 /* lost records are a finding */
#define FACTS_LOST_MOST	    0.01 /* lost records explain no more than this, so no finding of what is not there */

/* Part of a whole; 0 of nothing. */
static inline double facts_share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

#define FACTS_GPU_FULL 0.9 /* busy time of GPUs that is as much as a job can have */

static inline double facts_least(double a, double b)
{
	return a < b ? a : b;
}

static inline bool facts_is_gpu_full(const struct facts *f)
{
	return f->gpu.known && f->gpu.busy >= FACTS_GPU_FULL;
}

/* Computes all. 0 or -ENOMEM. */
int facts_make(struct mdl *m, const struct mdl_session *s, struct facts *f);

/* facts_loss.c: the largest share of its records that a source lost; *which: NULL if it is not known. */
double facts_lost(const struct mdl_session *s, const struct mdl_source **which);
void facts_loss(struct mdl *m, const struct mdl_session *s, struct facts *f);

/* Counts samples by line. Zeroed is empty. */
struct facts_tally {
	struct hash index; /* hash of the line, 0 -> 1 + place in lines */
	struct buf lines;  /* struct fact_line */
	uint64_t of;
};
int facts_tally_add(struct facts_tally *t, const char *text, size_t len, const struct mxbpf_agg_line *l);
struct fact_line facts_tally_top(const struct facts_tally *t); /* the line with the most samples */
const struct fact_line *facts_tally_find(const struct facts_tally *t, const char *text); /* NULL: it has none */
uint64_t facts_tally_at(const struct facts_tally *t, const char *text);			 /* the samples at a line */
/*
 * Returns the samples at all lines, without those that `calls` has in FACTS_CALLS_PART of theirs or more: such a line
 * is there to call the runtime. *best becomes the line with the most of them. calls: NULL: no line is left out.
 */
uint64_t facts_tally_without(const struct facts_tally *t, const struct facts_tally *calls, struct fact_line *best);
#define FACTS_CALLS_PART 4
/* Writes a line without its number, "/app/train.py: step"; a line without one as it is. Returns the length. */
size_t facts_function(const char *line, size_t len, char to[FACTS_LINE_BYTES]);
#define FACTS_PAGE_BYTES 4096
bool facts_starts_with(const char *name, size_t len, const char *with);
bool facts_is_runtime(const char *line, size_t len); /* a line of a stack: Python code of a runtime's library */
void facts_tally_fini(struct facts_tally *t);

/* facts_compile.c. 0 or -ENOMEM. rest: the iterations are those of the loop, in order of time. */
int facts_compiling(const struct mdl *m, const struct mdl_session *s, struct facts *f);
int facts_rest(const struct mdl *m, struct facts *f, const struct mxbpf_iteration *it, size_t n);
/* facts_locked.c. 0 or -ENOMEM. */
int facts_locked(const struct mdl *m, struct facts *f);
/* facts_growth.c: by how much memory grew all the way, in readings at equal distances; 0: it did not. */
int64_t facts_grown(const int64_t *bytes, size_t n);
int facts_touched(const struct mdl *m, uint32_t tgid, struct fact_line *line); /* 0 or -ENOMEM */
int facts_resident(struct mdl *m, struct facts *f);			       /* 0 or -ENOMEM */
/* facts_passes.c. 0 or -ENOMEM. */
int facts_passes(struct mdl *m, struct facts *f);
/* facts_lines.c: the lines among the facts. 0 or -ENOMEM. */
int facts_lines(struct mdl *m, struct facts *f);
/* Whether a look found the thread in a data loader; in Python code of the runtime's library. */
bool facts_is_in_loader(const struct mdl *m, const struct mxbpf_agg_line *l);
bool facts_waits_for_queue(const struct mdl *m, const struct mxbpf_agg_line *l); /* of the program, in no loader */
bool facts_in_library(const struct mdl *m, const struct mxbpf_agg_line *l);
bool facts_is_outside(struct mdl *m, const struct mxbpf_agg_line *l); /* the thread was in no operator */
/* A worker between two requests, or handing over a batch; a thread whose innermost frame waits for others. */
bool facts_waits_for_work(const struct mdl *m, const struct mxbpf_agg_line *l);
bool facts_is_idle(const struct mdl *m, const struct mxbpf_agg_line *l);
int facts_slow_line(const struct mdl *m, struct facts *f, const struct mxbpf_iteration *it, size_t n);
/* The function of the C API waits for results. */
bool facts_is_wait(const char *name, size_t len);

/* facts_slow.c: iterations in order of time, of one loop. 0 or -ENOMEM. */
int facts_slow_group(struct facts *f, const struct mxbpf_iteration *it, size_t n);
bool facts_is_slow(const struct facts *f, const struct mxbpf_iteration *it);
/* It belongs to the group that was found. */
bool facts_in_group(const struct facts *f, const struct mxbpf_iteration *it);
/* Sorts them; 0 of none. */
uint64_t facts_median(uint64_t *ns, size_t n);

/* Keeps the largest, the largest first. An operator can have several rows, for example one for each shape. */
void facts_keep_operator(struct fact_operator list[FACTS_OPERATORS_MAX], const struct mdl *m, uint64_t name_id,
			 uint64_t much);
/* facts_gpu.c: what GPUs did. It needs the loop. 0 or -ENOMEM. */
int facts_gpu(struct mdl *m, const struct mdl_session *s, struct facts *f);
/* facts_grids.c: kernels with few blocks. */
void facts_grids(struct mdl *m, struct facts *f);
/* facts_ranks.c: the rank that lags, of those that are profiled. It needs the loops. */
void facts_ranks(struct mdl *m, struct facts *f);
/* facts_collective.c: who is late, which group is slow, what nothing overlaps. It needs the ranks. 0 or -ENOMEM. */
int facts_collective(const struct mdl *m, const struct mdl_session *s, struct facts *f);
/* facts_memory.c: who holds the memory that grows. 0 or -ENOMEM. */
int facts_owner(const struct mdl *m, struct facts *f, uint32_t tgid);
/* The last allocation that failed, and who held the memory then. */
void facts_failed(const struct mdl *m, const struct mdl_session *s, struct facts *f);

struct finding_rule {
	const char *key; /* "data_wait", for programs; never changes */
	bool full_gpu;	 /* also if GPUs are busy nearly all the time, so that little on the CPU holds the job up */
	bool other_time; /* its share is not of the loop's time or the window, but of operators, CPU time or none */
	bool of_loop;	 /* its share is of the loop's time, which may be a small part of the window */
	bool last;	 /* only if no other rule has a half of its share, of the loop's time or the window */
	/*
	 * Keys of rules, separated by spaces, whose findings are symptoms of this cause: they are left out if it has a
	 * half of their share or more.
	 */
	const char *explains;
	double least;						/* the finding is silent below this share */
	double (*share)(const struct facts *f);			/* of the time that it explains */
	void (*say)(const struct facts *f, struct buf *b);	/* the sentence with its figures; no full stop */
	void (*evidence)(const struct facts *f, struct buf *b); /* where it was seen; NULL: nothing more */
	/*
	 * What to type next, behind "sudo mxbpf", with PID for the process that it is about. Once the session has
	 * `taken`, nothing is left to look at, and people read the advice.
	 */
	const char *next;
	unsigned taken;				       /* enum facts_have; 0: never */
	const char *(*next_of)(const struct facts *f); /* instead of both; NULL: it does not depend */
	size_t pid_at;	/* where the process that it is about stands in struct facts; 0: that of the loop */
	unsigned first; /* stands before those with a smaller number, whatever their shares */
	/*
	 * It compares sums over all records with each other or with times, or says that nothing was there. It is silent
	 * if more than FACTS_LOST_MOST are lost. Other rules look at iterations that are complete.
	 */
	bool all_records;
	const char *advice; /* a paragraph: what it means and what helps */
};
/*
 * Rules and what they need beside the other facts. make() is called when these are known; it returns 0 or -ENOMEM, and
 * is NULL if the rules need nothing more.
 */
struct finding_cause {
	int (*make)(struct mdl *m, const struct mdl_session *s, struct facts *f);
	const struct finding_rule *rules; /* ends with key NULL */
};
extern const struct finding_cause finding_causes[]; /* ends with rules NULL */
int make_hang(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_network(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_pinned(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_hang[], rules_network[], rules_pinned[];
const struct finding_rule *finding_rule_of(const char *key); /* NULL: there is none */

#define FINDINGS_MAX	   7 /* that are said */
#define FINDINGS_FOUND_MAX 64

struct finding {
	const struct finding_rule *rule;
	double share;
	uint32_t pid;	 /* the process that it is about; 0: the one that the session was asked for */
	struct buf next; /* as in the rule, with what the session had; empty: nothing is left to look at. Owned. */
	struct buf text, evidence; /* owned */
};
struct findings {
	struct facts facts;
	struct finding list[FINDINGS_FOUND_MAX]; /* the largest share first */
	unsigned n;
};

/* 0 or -ENOMEM; findings_fini() either way. */
int findings_make(struct mdl *m, const struct mdl_session *s, struct findings *out);
void findings_fini(struct findings *f);

#endif
