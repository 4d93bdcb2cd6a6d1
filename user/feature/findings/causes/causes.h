/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causes. Each file of this folder is one cause, or a few that share their facts: make_NAME() reads the tables into its
 * struct in struct cause_facts, and rules_NAME says it (see feature/findings/findings.h). A struct that is zeroed says
 * that nothing was found. All times in ns, all shares between 0 and 1.
 */
#ifndef FEATURE_FINDINGS_CAUSES_CAUSES_H
#define FEATURE_FINDINGS_CAUSES_CAUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/findings/line.h"

struct facts;
struct mdl;

#define CAUSE_PROCESSES 64

/* collector.c: the garbage collector of a process. */
struct cause_collector {
	uint32_t tgid;
	bool rank;		  /* another one, which the session does not profile */
	double share;		  /* of the window, by looks at the interpreter's state; 0: too little to say */
	uint64_t window_ns;	  /* between the first look and the last one */
	uint64_t all, young;	  /* collections of all objects, and of the young generations */
	uint64_t longest_ns;	  /* of a collection; two without a look between them count as one */
	uint64_t slow, slow_with; /* slow iterations; of these, with a collection */
	struct fact_line line;	  /* of the main thread, in which most collections begin */
};
/* Returns in which share of the time the garbage collector of a process runs; 0: it is not known. */
double causes_collecting(const struct facts *f, uint32_t tgid);

/* paging.c: what a process had to wait for because its pages were not in memory. */
struct cause_paging {
	uint32_t tgid; /* 0: none is found */
	uint64_t over_ns;
	uint64_t majflt, read_bytes; /* in that time */
	uint64_t swapped_bytes;	     /* at its end, or in the middle, whichever is more */
	uint64_t resident_bytes;
	double waits; /* share of the looks at its thread: at lines at which it waits for a disk, again and again */
	struct fact_line line; /* where it waited */
};
/* Reads it for a process, also for a rank that the session does not profile. tid 0: its main thread. 0 or -ENOMEM. */
int cause_paging_of(const struct mdl *m, uint32_t tgid, uint32_t tid, struct cause_paging *p);
bool cause_is_swapping(const struct cause_paging *p);
/*
 * Returns how much of the loop's time a worker costs that spends this share of its own time: no more than the loop
 * waits for data. For a process that is no worker, it returns the share itself.
 */
double cause_of_worker(const struct facts *f, uint32_t tgid, double share);

/* copied.c: child processes that copy the pages that they got from their parent. */
struct cause_copied {
	uint32_t tgid; /* the one that copies the most; 0: none does */
	uint32_t processes;
	uint64_t bytes, over_ns; /* of all of them */
	struct fact_line line;
};

/* trend.c: iterations that become slower. n 0: they do not. */
struct cause_trend {
	uint64_t n;   /* iterations */
	double again; /* a node of the backward pass runs so many times for each call of its operator */
	struct fact_operator node;
	int64_t grown_bytes;	    /* of the process's memory, if it rises all the way; else 0 */
	bool slower;		    /* the time rises beyond chance; else the number of operators does */
	uint64_t first_ns, last_ns; /* one of the first third, and of the last; 0: they are not slower */
	struct fact_line line;	    /* where the time grows, in the last third; looks 0: not known */
	/* Share of the looks at it in the first third; how much more that of its function is in the last. */
	double line_before, line_more;
	double calls[2], passes[2]; /* operators of an iteration in the first third and in the last; nodes of backward
				       passes; 0: not known */
	unsigned part;		    /* enum mxbpf_step_part that grows; MXBPF_STEP_PARTS: not known */
};

/* A mode for debugging that is on (debug_modes.c). */
struct fact_mode {
	uint32_t tgid, mode;	   /* mode: enum mode */
	uint64_t seen, looked;	   /* readings that found it on, and all until then */
	double share;		   /* by which it is ranked */
	double measured;	   /* of the time, as far as samples and operators tell */
	struct fact_line line;	   /* of the program, which it works for */
	char on[FACTS_LINE_BYTES]; /* the line that turns it on; "": not known; hostile */
};
struct debug_modes {
	struct fact_mode most;
	uint32_t on; /* bits of enum mode */
};

#define HANG_PLACE_BYTES 320
#define HANG_RANKS_MAX	 64

/* hang.c: ranks of which none moves. tgid 0: there are none, or some do. */
struct hang_facts {
	uint32_t tgid;			 /* the one that the others wait for, or the first of them */
	char who[48];			 /* "rank 2 (process 123)" */
	char does[HANG_PLACE_BYTES];	 /* "is stopped at train.py(12): step"; the line is hostile */
	char waits[HANG_PLACE_BYTES];	 /* "ranks 0, 1, 3 wait for it in all_reduce at ..." */
	char each[4 * HANG_PLACE_BYTES]; /* where each of them is */
};

/* backlog.c: a queue of an asynchronous engine that grows. pushed 0: none does. */
struct cause_backlog {
	uint32_t tgid;
	bool net;	      /* a call pushes a whole net */
	uint64_t pushed, ran; /* calls that push, and those of them that have run, at most */
	struct fact_operator call;
	uint64_t busy_ns;    /* of operators, over all threads of the engine */
	double each_second;  /* by how much the queue grows */
	int64_t grown_bytes; /* memory of the process; 0: it does not grow */
	struct fact_line line;
};

/* Workers that start while the loop waits for them (epoch_start.c). */
struct epoch_start {
	uint32_t tgid; /* the process of the loop; 0: none is known */
	double share;  /* of the samples at its thread */
	uint64_t n, each_ns;
	struct fact_line at, import; /* where the loop waits; what the workers import for */
};

/* What the late rank does while the others wait for it. */
enum late_state { LATE_RUNS, LATE_DISK, LATE_COMPILES, LATE_LOADER, LATE_LOCK, LATE_SLEEPS, LATE_STATES };

struct fact_late {
	bool judged;			 /* there are enough samples of the ranks */
	uint32_t tgid;			 /* 0: no rank is late */
	uint32_t number;		 /* of the rank, plus 1; 0: not known */
	double share;			 /* of the samples: the others wait for it */
	struct fact_line line;		 /* on which they found it most */
	enum late_state state;		 /* of it there */
	bool same;			 /* the others stand there the most, too, when they do not wait */
	struct fact_line worker, holder; /* its loader's workers; another thread of its process that works */
	double waits_cpu, waits_more;	 /* of the time that it wants to run, without a CPU; beyond any other rank */
	bool bound;			 /* to fewer CPUs than any other rank */
	double throttled;		 /* by its control group, if the others are not */
	double collects; /* share of the time: its garbage collector runs, if those of the others do not */
	struct cause_paging paging;
	/* The process that takes the most of the CPU to which it is bound; cpu plus 1; 0: not bound to one. */
	uint32_t neighbour, cpu;
	double neighbour_cpus;
	char neighbour_name[16]; /* hostile */
};

/* polling.c: the thread that polls with the most CPU time; tid 0: none does. */
struct cause_polling {
	uint32_t tgid, tid;
	bool sleeps; /* between two looks */
	double rate; /* how often a second it gets a CPU */
	double cpus; /* that it uses */
	struct fact_line line;
};

/* network.c: what ranks have sent to each other and what has not arrived. looks 0: nothing is known. */
struct network_facts {
	uint64_t looks, sent, resent;
	double flight;		     /* share of the looks: much data is on its way */
	double bytes;		     /* a second, that all interfaces of the ranks' network receive */
	uint32_t from, to;	     /* the ranks between which it is the most often; 0: no process is known */
	uint32_t address;	     /* of the latter, as in struct mxbpf_network */
	double pair;		     /* share of the looks */
	unsigned from_rank, to_rank; /* 1 + number; 0: not known */
};

/* pinned.c: processes of the job that may run on one CPU alone. n 0: they have more, or do not wait for it. */
struct pinned_facts {
	uint32_t tgid;	     /* of the loop, else of the target */
	unsigned n, of, cpu; /* processes on that CPU; of so many with a loop or rank; its number */
	double share;	     /* of the time: threads of the job wait for it */
	double idle;	     /* CPUs of the machine that are idle */
};

/* gil.c: threads that wait for the interpreter lock, without iterations; at_once 0: it is not so. */
struct cause_gil {
	uint32_t tgid;
	double at_once;
	struct fact_line line; /* of those that run */
};

/* inputs.c: operators that compute with denormal values. tgid 0: there are none. */
struct cause_values {
	uint32_t tgid;
	unsigned operators;
	double share;
	uint64_t looks, of;	 /* looks at these operators that found such values, and all */
	struct fact_operator op; /* the one that takes the most time */
	char sizes[FACTS_LINE_BYTES];
	struct fact_line line;
};

/* inputs.c: an operator that is slow for inputs of these sizes. tgid 0: there is none. */
struct cause_sizes {
	uint32_t tgid;
	unsigned operators;	    /* that are slow for their sizes */
	double share, times;	    /* share: of all of them; times: as long for each element as with other sizes */
	uint64_t looks, of;	    /* looks at the operator that met the sizes, and all */
	uint64_t call_ns, other_ns; /* a call with these sizes, and one with others, on average */
	uint64_t self_ns;	    /* of calls with these sizes */
	struct fact_operator op;
	char sizes[FACTS_LINE_BYTES];
	struct fact_line line;
};

/* inputs.c: an operator that keeps what it prepares for each size of its inputs, and nearly always meets another one.
 */
struct cause_varied {
	uint32_t tgid; /* 0: there is none */
	uint64_t sizes, looks;
	struct fact_operator op;
};

#define STUCK_LINES 3

/* stuck.c: threads of a process that wait for locks in the whole window. tgid 0: there are none. */
struct cause_stuck {
	uint32_t tgid;
	unsigned n;					/* threads */
	char lines[STUCK_LINES][FACTS_LINE_BYTES + 32]; /* of the first of them; hostile */
};

struct cause_facts {
	struct cause_stuck stuck;
	struct cause_values values;
	struct cause_varied varied;
	struct cause_sizes sizes;
	struct cause_gil gil;
	struct pinned_facts pinned;
	struct network_facts network;
	/* The thread that spends the most of its time in handlers of exceptions (exceptions.c). */
	struct {
		double share; /* of its samples */
		uint32_t tgid;
		uint64_t processes; /* that do so */
		uint8_t number;	    /* exception_name() */
		bool loop, rank;    /* it is the loop's thread; another rank */
		struct fact_line line;
	} exceptions;
	struct cause_polling polling;
	struct fact_late late;
	/* Without a loop: the thread that calls the runtime the most, or computes in Python all the time (alone.c). */
	struct {
		uint32_t tgid, tid; /* 0: there is none */
		struct {
			double share; /* of the thread's samples */
			struct fact_line line;
		} own, data;  /* Python code of the program while no operator runs; in a data loader */
		bool workers; /* data.line is of other processes */
	} alone;
	struct epoch_start epoch_start;
	struct cause_backlog backlog;
	struct cause_trend trend;
	struct cause_collector collector;
	/* The share of each process, also of ranks that are not profiled; tgid 0: no more. */
	struct {
		uint32_t tgid;
		double share;
	} collecting[CAUSE_PROCESSES];
	struct cause_paging swapping, reading;
	struct cause_copied copied;
	struct debug_modes debug_modes;
	/* Code of the program that the runtime calls (inside.c). */
	struct {
		double share;	       /* of the samples at the loop's thread */
		const char *where;     /* "in a hook of the backward pass" */
		struct fact_line line; /* the program's innermost one with the most samples; of: all samples */
	} inside;
	struct hang_facts hang;
};

#endif
