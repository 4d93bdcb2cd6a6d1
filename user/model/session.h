/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of a session: the target process, the probes, the time window, and the loss. A live session fills it,
 * or record/ does from the metadata of a recording. Outputs print it. Strings are owned, and never NULL unless a
 * comment says so. Strings of the target process can contain any bytes.
 */
#ifndef MODEL_SESSION_H
#define MODEL_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_event.h"
#include "mxbpf_loss.h"

struct mdl_lib {
	char *path;
	char *build_id; /* hex, "" if none */
	char *runtime;	/* title and version; "" if not a runtime's library */
};

struct mdl_probe {
	char *name;    /* "operator.start" */
	char *group;   /* "op" */
	char *symbol;  /* as resolved; "" if not */
	char *status;  /* "attached", "refused" or "off" */
	char *reason;  /* "" if attached */
	char *runtime; /* title of the runtime; "" or NULL: that of the first process */
};

/*
 * A function whose calls did not end where the plan expected it. From then on, a call lasts until the next event of its
 * thread, which is an upper bound.
 */
struct mdl_fallback {
	char *name;	/* as in the tables, or of its probe */
	uint64_t at_ns; /* since the start of the window */
	uint64_t spans; /* spans that had ended before, with wrong times */
};

struct mdl_device {
	uint16_t type;
	bool numbered;
	char *name;
};

/* In merged recordings of several hosts, a pid has the number of its host above these bits; the first host has 0. */
#define MDL_PID_BITS  22 /* the kernel's PID_MAX_LIMIT */
#define MDL_PID_MASK  ((1u << MDL_PID_BITS) - 1)
#define MDL_HOSTS_MAX 512

/* A process of a distributed job. */
struct mdl_process {
	uint32_t pid;	   /* as in records */
	char *role;	   /* "worker"; "" if the job has no roles */
	uint32_t rank, of; /* rank, and number of processes of the role; 0: the number is not known */
	bool by_order;	   /* the rank is not known: processes are numbered in the order in which they joined */
	char *hostname;
};

/*
 * Labels of a process: what it is, and its place in a job. A number that is not known is MDL_NO_NUMBER, and a text that
 * is not known is empty.
 */
enum mdl_label_number { MDL_RANK, MDL_LOCAL_RANK, MDL_WORLD_SIZE, MDL_GROUP_RANK, MDL_LABEL_NUMBERS };
enum mdl_label_text {
	MDL_ROLE,
	MDL_CONTAINER,
	MDL_POD_UID,
	MDL_POD_NAME,
	MDL_POD_NAMESPACE,
	MDL_CONTAINER_NAME,
	MDL_OWN_HOSTNAME, /* as the process calls its host */
	MDL_SLURM_JOB,
	MDL_USER,
	MDL_JOB,     /* equal for the processes of a job */
	MDL_RUNTIME, /* title and version of the runtime that it runs, and the build if there are several */
	MDL_LABEL_TEXTS,
};
#define MDL_NO_NUMBER  UINT32_MAX
#define MDL_LABELS_MAX 4096 /* processes that have labels */
struct mdl_labels {
	uint32_t pid; /* as in records */
	uint32_t numbers[MDL_LABEL_NUMBERS];
	char *texts[MDL_LABEL_TEXTS];
	char *hostname;
	char *comm;	/* its name when it was found; NULL: not known. It is in no output. */
	char *job_name; /* that its job keeps when it is started again; NULL: not known. In metrics alone. */
};
/* Names of the labels in outputs. */
extern const char *const mdl_label_number_words[MDL_LABEL_NUMBERS];
extern const char *const mdl_label_text_words[MDL_LABEL_TEXTS];

/* A process that ran for some time of the window before its probes were active. */
struct mdl_gap {
	uint32_t pid; /* as in records */
	uint64_t gap_ns;
};

/* A note about data that an option excludes. Every output shows it, so that nobody takes the numbers for complete. */
struct mdl_note {
	char *name; /* "ops" */
	char *text; /* "conv*: 23 of 3,101 functions are probed" */
};

/* A perf event in struct mxbpf_span.counters, in the order of that array. */
struct mdl_perf_event {
	char *name; /* as perf calls it: "page-faults" */
};

/*
 * What watching costs the job. Rows and iterations have estimates of their costs; these times `scale` are the measured
 * costs.
 */
struct mdl_cost {
	uint32_t scale;	 /* in permille of the estimates; 0: the cost is not known and is not taken out */
	uint32_t shrink; /* permille by which iterations are shorter without watching; 0: not measured */
	uint32_t thread; /* thread whose iterations were measured, for shrink; 0: not known, as in older recordings */
	uint32_t uncertain; /* permille of the cost by which it may be higher or lower */
	uint64_t added_ns;  /* CPU time that was added to the job in the window, on all threads */
	uint64_t thread_ns; /* largest part of it on one thread */
	uint64_t trap_ns;   /* of one hit without its program */
	bool agent_helps;   /* the runtime's agent can record operators instead of probes, and does not */
	/* Times between two hits of one place on average, while it was watched and not; beats 0: not compared. */
	uint64_t beats, beat_watched_ns, beat_unwatched_ns;
};

/* Returns `permille` of ns. */
static inline uint64_t mdl_permille(uint64_t ns, uint32_t permille)
{
	return (uint64_t)((double)ns * permille / 1000);
}

/* A source of records, and its loss. */
struct mdl_source {
	char *name; /* "probes", "scheduler", "samples" */
	struct mxbpf_loss loss;
	uint64_t late; /* records that arrived after later ones were folded: sums have them, orders may be wrong */
};

struct mdl_session {
	char *mxbpf_version;
	uint32_t pid; /* the first process with a runtime */
	/* The process of --pid or the launched command, if it is not `pid`. Otherwise 0, and "" or NULL. */
	uint32_t given_pid;
	char *given_comm, *given_cmdline;
	uint32_t details;   /* enum mxbpf_detail that the user requested */
	uint32_t features;  /* mdl_feature.bit of each feature that the user requested */
	uint32_t sample_hz; /* --sample: samples per second; 0: none */
	char *comm, *cmdline, *hostname;
	char *profiler;	   /* that made the trace of which this was made: "torch.profiler"; NULL: mxbpf recorded */
	char *agent_route; /* how the agent was loaded; NULL: there is no agent */
	struct mdl_lib *libs;
	size_t nlibs;
	struct mdl_probe *probes;
	size_t nprobes;
	struct mdl_device *devices; /* the runtime's device types */
	size_t ndevices;
	struct mdl_fallback *fallbacks;
	size_t nfallbacks;
	struct mdl_note *notes;
	size_t nnotes;
	struct mdl_process *processes;
	size_t nprocesses;
	struct mdl_labels *labels; /* of each process, in the order in which they joined */
	size_t nlabels;
	uint64_t unlabelled; /* processes beyond MDL_LABELS_MAX */
	struct mdl_perf_event *counters;
	size_t ncounters;		    /* a file can have more than the MXBPF_COUNTERS_MAX of struct mdl_row */
	char *class_title[MXBPF_CLASS_MAX]; /* titles of tables by enum mxbpf_class; NULL: the runtime does not use the
					       class */
	char *mem_title;		    /* title of the allocation table; NULL: there is none */
	char *trace_form;	    /* form of timelines, as the adapter names it; empty or NULL: the general form */
	uint32_t rank, world_size;  /* of a distributed job; world_size 0: not known */
	char *job_backend;	    /* how the job communicates; NULL: not known */
	char *boot_id, *host_clock; /* of the running kernel; a word for its clock source, "" if not known */
	char *cpu_model, *kernel;   /* "AMD EPYC 9755", "6.8.0-41"; "" or NULL: not known, as in older recordings */
	char *python;		    /* version of the interpreter, "3.11.4" or "3.8"; "" or NULL: none, or not known */
	char *shown_role;	/* role whose rows are shown, "" for processes without one; NULL: all; never stored */
	char *shown_runtime;	/* runtime whose rows are shown; NULL: all; never stored */
	uint64_t start_unix_ns; /* start of the window */
	uint64_t start_mono_ns; /* start of the window, CLOCK_MONOTONIC */
	uint64_t duration_ns;	/* of the window without pauses; 0: not known, the recording is incomplete */
	uint64_t paused_ns;	/* pauses in the window */
	uint32_t fault_ns;	/* upper bound of the time of a page fault without I/O on this machine; 0: not known */
	uint32_t fault_own_ns;	/* mean time of one if no host has to provide the page; 0: not known */
	uint64_t hits;		/* probe hits in the kernel */
	uint64_t left_out;	/* events of operators that --ops excludes */
	uint32_t api_probed;	/* --api work: functions of the C API that are probed; else 0 */
	uint32_t api_left;	/* --api work: functions of the C API that are not probed; else 0 */
	uint64_t iterations;	/* --iterations: iterations since the start of the window; else 0 */
	uint64_t sampled_iterations; /* iterations that were recorded; duration_ns is their time */
	uint64_t open_spans;	     /* spans that were open when the window ended */
	uint64_t followed;	     /* processes that were followed after the first */
	uint64_t unfollowed;	     /* processes that could not be followed, or that ended before */
	uint64_t late_libs;	/* libraries that were loaded during the window and probed; counted once per process */
	uint64_t late_refused;	/* libraries that were loaded during the window and not probed */
	uint64_t follow_lag_ns; /* the longest gap */
	struct mdl_gap *gaps;
	size_t ngaps;
	uint64_t stranger_hits; /* probe hits in processes that are not followed, but map the library */
	uint64_t stranger_ns;	/* time of those hits, a lower bound */
	struct mdl_cost cost;	/* what watching cost the job */
	uint64_t over_ns;	/* so much of the sum of all self times counts twice, because nested calls overlap */
	uint64_t cut_records;	/* records that --max-size overwrote: traces lack them, tables do not */
	bool account;		/* spans have MXBPF_SPAN_ACCOUNT */
	bool no_faults;		/* accounts have no numbers of page faults */
	bool sched;		/* --sched */
	bool life;		/* --life */
	bool stats;		/* recordings of earlier versions: sums without events, hence without concurrency */
	bool held;		/* --memory: allocations have owners */
	uint32_t team_cpus;	/* --omp: number of CPUs that the target process may use; 0: --omp was not given */
	bool incomplete;	/* the recording was cut: totals cover the part before the cut */
	struct mxbpf_loss loss; /* the sum of all sources */
	struct mdl_source *sources;
	size_t nsources; /* 0: the recording is incomplete or of an older version, and has only the sum */
};

void mdl_session_fini(struct mdl_session *s);
/*
 * Gives a shallow copy sources of its own. Returns 0 or -ENOMEM. Call mdl_sources_fini() on the copy in both cases.
 */
int mdl_sources_copy(struct mdl_session *to, const struct mdl_session *from);
void mdl_sources_fini(struct mdl_session *s);

/* The process that the user named. The texts are borrowed. */
struct mdl_target {
	uint32_t pid;
	const char *comm, *cmdline;
};
struct mdl_target mdl_target_of(const struct mdl_session *s);

/* Returns a process of the distributed job, or NULL. */
const struct mdl_process *mdl_process_of(const struct mdl_session *s, uint32_t pid);

/*
 * Copies the labels of a process, with another pid and hostname; a text that is NULL is not known. They replace those
 * of an earlier process with this pid. Returns 0 or -ENOMEM.
 */
int mdl_labels_add(struct mdl_session *s, const struct mdl_labels *from, uint32_t pid, const char *hostname);
/* Forgets the labels of processes that are not to be kept. */
void mdl_labels_keep(struct mdl_session *s, bool (*keep)(void *ctx, uint32_t pid), void *ctx);
/* Returns the labels of a process, or NULL. */
const struct mdl_labels *mdl_labels_of(const struct mdl_session *s, uint32_t pid);
/* Frees what labels own. */
void mdl_labels_fini(struct mdl_labels *l);

/* The runtime of a process, "" if it is not known. */
const char *mdl_runtime_of(const struct mdl_session *s, uint32_t pid);
/* Finds the runtimes of all processes, each once, in the order in which they joined. Returns their number, at most max.
 */
#define MDL_RUNTIMES_MAX 16
unsigned mdl_runtimes(const struct mdl_session *s, const char *runtimes[MDL_RUNTIMES_MAX]);
/* Returns whether a process has shown_role and shown_runtime. */
bool mdl_shows(const struct mdl_session *s, uint32_t pid);

/* Returns buf: "cpu/0", "cpu pinned/", "-" for no device, "dev7/1" for a type without a name. */
const char *mdl_device_name(const struct mdl_session *s, uint32_t device, char buf[48]);

/* Returns true if the program is written in Python. True also for old recordings, which do not say it. */
static inline bool mdl_in_python(const struct mdl_session *s)
{
	return !s->python || s->python[0];
}

#endif
