/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything about a session that is not a record: who was looked at, with which probes, when, what was
 * lost. Filled by cmd/ live, by record/ from a recording's metadata; sinks print it. All strings owned, never NULL
 * unless said; hostile bytes possible in those of the target.
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
	char *runtime;	/* "MXNet 1.9.1"; "" if not a runtime's library */
};

struct mdl_probe {
	char *name;   /* "operator.start" */
	char *group;  /* "op" */
	char *symbol; /* as resolved; "" if not */
	char *status; /* "attached", "refused" or "off" */
	char *reason; /* "" if attached */
};

/* A function whose calls were found to end elsewhere than planned: from then on each lasts until the next event. */
struct mdl_fallback {
	char *name;	/* as in the tables, or of its probe */
	uint64_t at_ns; /* into the window */
	uint64_t spans; /* that had ended by then, with times that are not to be trusted */
};

struct mdl_device {
	uint16_t type;
	bool numbered;
	char *name;
};

/* Recordings of several hosts that were merged: the number of a host, of all but the first, stands above its pids. */
#define MDL_PID_BITS  22 /* the kernel's PID_MAX_LIMIT */
#define MDL_PID_MASK  ((1u << MDL_PID_BITS) - 1)
#define MDL_HOSTS_MAX 512

/* A process of a distributed job. */
struct mdl_process {
	uint32_t pid;	   /* as records have it */
	char *role;	   /* "worker"; "" where all are the same */
	uint32_t rank, of; /* of its role; of 0: the job does not say of how many */
	bool by_order;	   /* its rank is not known: they are numbered as they came */
	char *hostname;
};

/* A process that ran for a time, while events were taken, before its probes were active. */
struct mdl_gap {
	uint32_t pid; /* as records have it */
	uint64_t gap_ns;
};

/* What an option left out of the numbers: no reader shall take them for the whole. */
struct mdl_note {
	char *name; /* "ops" */
	char *text; /* "conv*: 23 of 3,101 functions are probed" */
};

/* One of the perf events that spans bear, struct mxbpf_span.counters, in their order. */
struct mdl_perf_event {
	char *name; /* perf's: "page-faults" */
};

/* Where records came from, and what was lost of them. */
struct mdl_source {
	char *name; /* "probes", "scheduler", "samples" */
	struct mxbpf_loss loss;
	uint64_t late; /* records that came after later ones had been handed on: in every sum, perhaps not in order */
};

struct mdl_session {
	char *mxbpf_version;
	uint32_t pid; /* the first process with a runtime */
	/* Of --pid, or the command that was launched, where that is another process; 0 and "" or NULL where it is not.
	 */
	uint32_t given_pid;
	char *given_comm, *given_cmdline;
	uint32_t details;   /* enum mxbpf_detail that were asked for */
	uint32_t features;  /* bits of struct mdl_feature_option, of those that were asked for */
	uint32_t sample_hz; /* --sample; 0: none */
	char *comm, *cmdline, *hostname;
	char *agent_route; /* by which the agent came into it; NULL: none did */
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
	struct mdl_perf_event *counters;
	size_t ncounters;		    /* from a file it may be anything: struct mdl_row has MXBPF_COUNTERS_MAX */
	char *class_title[MXBPF_CLASS_MAX]; /* table titles by enum mxbpf_class; NULL: class not in use */
	char *mem_title;		    /* of the allocation table; NULL: not in use */
	char *trace_form;		    /* of its timelines, named by the adapter; empty or NULL: the general one */
	uint32_t rank, world_size;	    /* in a distributed job; world_size 0: not known */
	char *job_backend;		    /* what that communicates by; NULL: not known */
	char *boot_id, *host_clock;	    /* of the kernel that ran; how its clock is kept: a word, "" not known */
	char *shown_role;		    /* whose rows a table is of ("": of none's); NULL: all; never stored */
	uint64_t start_unix_ns;		    /* window start */
	uint64_t start_mono_ns;		    /* the same moment on the records' clock */
	uint64_t duration_ns;		    /* of the window, pauses not; 0 while unknown (incomplete recording) */
	uint64_t paused_ns;		    /* between its start and its end */
	uint32_t fault_ns;		    /* what a page fault may take there, without I/O; 0: not known */
	uint64_t hits;			    /* probe hits in the kernel */
	uint64_t left_out;		    /* events of operators that --ops does not show */
	uint64_t iterations;		    /* --iterations: that ended since its start; else 0 */
	uint64_t sampled_iterations;	    /* of these, those that were seen: duration_ns is theirs */
	uint64_t open_spans;		    /* still open when the window ended */
	uint64_t followed;		    /* processes that joined after the first */
	uint64_t unfollowed;		    /* that should have: ended before, or hindered */
	uint64_t late_libs;		    /* libraries that came while it ran, and were probed; once a process */
	uint64_t late_refused;		    /* that were not */
	uint64_t follow_lag_ns;		    /* the longest of all gaps */
	struct mdl_gap *gaps;
	size_t ngaps;
	uint64_t stranger_hits; /* probe hits in processes that map the library and are not followed */
	uint64_t stranger_ns;	/* that these took, a lower bound */
	uint64_t cut_records;	/* records overwritten by --max-size: missing from traces, not from tables */
	bool account;		/* spans bear MXBPF_SPAN_ACCOUNT: rows say where their time went */
	bool no_faults;		/* with account: but not how many page faults they met */
	bool sched;		/* --sched: threads off the CPU were seen */
	bool life;		/* --life: operators were seen from being pushed on, and what waits are for */
	bool stats;		/* added up in the kernel: no events, hence no trace and no concurrency */
	bool held;		/* --memory: allocations say who made them */
	uint32_t team_cpus;	/* --omp: CPUs that the target may use; 0: parallel regions are not looked at */
	bool incomplete;	/* the recording was cut: totals cover what is left of it */
	struct mxbpf_loss loss; /* the sum of all sources */
	struct mdl_source *sources;
	size_t nsources; /* 0: a recording that is incomplete, or of an older version, has the sum alone */
};

void mdl_session_fini(struct mdl_session *s);
/* Of a shallow copy: sources of its own. 0 or -ENOMEM; fini in any case. */
int mdl_sources_copy(struct mdl_session *to, const struct mdl_session *from);
void mdl_sources_fini(struct mdl_session *s);

/* The process that the user named. Texts are borrowed. */
struct mdl_target {
	uint32_t pid;
	const char *comm, *cmdline;
};
struct mdl_target mdl_target_of(const struct mdl_session *s);

/* NULL: it is of no job. */
const struct mdl_process *mdl_process_of(const struct mdl_session *s, uint32_t pid);

/* Whether it is of shown_role. */
bool mdl_shows(const struct mdl_session *s, uint32_t pid);

/* "cpu/0", "cpu pinned/", "-" for no device, "dev7/1" for a type without a name. Returns buf. */
const char *mdl_device_name(const struct mdl_session *s, uint32_t device, char buf[48]);

#endif
