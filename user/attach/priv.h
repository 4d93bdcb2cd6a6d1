/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of this room. */
#ifndef ATTACH_PRIV_H
#define ATTACH_PRIV_H

#include <bpf/libbpf.h>

#include "attach/attach.h"
#include "attach/counters.h"
#include "base/buf.h"
#include "mxbpf_cost.h"
#include "mxbpf_config.h" /* the skeleton has variables of these types */
#include "mxbpf_stack.h"
#include "mxbpf.skel.h"

#define ATT_CUT_CHECKS_BYTES (MXBPF_FUNCS_MAX * sizeof(struct mxbpf_cut_check))

/* A program for all probes whose rows are equal. */
struct variant {
	const struct mxbpf_row *row;
	int prog_fd; /* owned; -1: not loaded yet */
	bool late;   /* for libraries that are loaded later; the program is loaded with the first of them */
};

#define ATT_SHARED 0 /* stands for a process: every process that maps the file */

struct att_link {
	pid_t tgid; /* a process, or ATT_SHARED */
	int fd;
	bool iteration_ends; /* the probe sees iterations end */
	bool sliced;	     /* it is a part of the slice that is under way */
	bool late;   /* of a library that was mapped later: these are few, and stay attached between iterations */
	int prog_fd; /* its program; dev and ino: the library that is probed */
	uint64_t dev, ino;
	bool returns; /* return probes */
};

/* Sites of a plan that are left out. */
struct att_left_out {
	const struct plan *plan;
	const bool *sites; /* borrowed */
	bool only_counts;  /* what ends iterations counts them, and records only while a slice is open */
};

struct att {
	struct mxbpf_bpf *skel;
	const struct att_backend *backend;
	struct variant variants[MXBPF_ROWS_MAX];
	unsigned nvariants;
	struct rows *rows;    /* see rows.c */
	struct buf links;     /* of struct att_link */
	uint64_t slice_links; /* backend_handed() after the links of the last slice were given to it */
	struct buf left_out;  /* of struct att_left_out */
	bool shared;	      /* new processes use shared links: att_share() */
	uint64_t trap_hit_ns; /* see trap.h; 0: not known */
	uint64_t trap_trials; /* hits of mxbpf itself */
	bool trap_measured;   /* here, or in another object of the session */
	struct costs {
		bool opened;
		int stats_fd; /* the kernel measures programs while this is open; -1: not now */
		uint64_t trap_ns;
		int beat_nr;	    /* the beat that was chosen; -1: none */
		uint64_t second_ip; /* another place of its thread, which is hit second_ratio times as often; 0: none */
		double second_ratio;
	} costs;	/* see costs.c */
	bool less;	/* only probes for ends of iterations are attached */
	uint8_t window; /* att_forget() has removed the entries of all earlier windows */
	struct ring_buffer *windows;
	struct bpf_link *exit_link, *exec_link;
	struct mxbpf_thread *threads;	    /* the map, mapped into memory */
	size_t nslots;			    /* number of elements of `threads` */
	struct mxbpf_cut_check *cut_checks; /* the map, mapped into memory, indexed by function */
	bool sees_raises;		    /* the plan has a probe that sees exceptions */
	uint32_t ring_bytes, samples_bytes;
	bool few_calls;
	struct counters counters;
	bool sched, samples;
	struct mxbpf_sched_thread *sched_threads; /* the map, mapped into memory; NULL: not requested */
	struct bpf_link *switch_link, *waking_link;
	struct buf clocks; /* struct clock, one for each possible CPU: att_clocks_start() */
	unsigned clock_hz;
};

/*
 * Returns frame k of a thread (k < MXBPF_FRAMES_MAX). It is in the thread's own slot or in one that the thread
 * borrowed.
 */
const struct mxbpf_frame *att_frame(const struct att *a, const struct mxbpf_thread *t, unsigned k);
static inline const struct plan_site *sites_of(const struct plan *p, size_t *n)
{
	*n = buf_count(&p->sites, struct plan_site);
	return (const struct plan_site *)p->sites.data;
}

void att_clocks_stop(struct att *a);
/*
 * Attaches the sites of a process for which done[] is false, by links whose cookies have these bits. Sets done[].
 * Returns 0 or -errno with e set.
 */
int att_attach_wanted(struct att *a, const struct plan *p, pid_t tgid, bool *done, uint64_t bits, struct err *e);

/* Returns the program of a row, or NULL if it has none. */
struct variant *att_variant_of(struct att *a, const struct mxbpf_row *row);
/* Chooses the program of a row. Call it before loading. */
int att_choose_program(struct att *a, const struct mxbpf_row *row, bool late, struct err *e);
/*
 * Functions of rows.c, which copies one program per action for each row. Call rows_register() before the object is
 * opened and rows_choose() for each row that will be attached. rows_load() loads the object and the copies.
 * rows_load_late() loads the copies that were chosen as late, unless it has done so before. All return 0 or -errno.
 */
int rows_register(void);
int rows_choose(struct att *a, const struct mxbpf_row *row, bool late);
int rows_load(struct att *a, bool verbose);
int rows_load_late(struct att *a);
void rows_close(struct att *a);

/* Stores the names of the plan's functions in BPF's map. Returns 0 or -errno. */
int att_fill_names(struct att *a, const struct plan *p);

#endif
