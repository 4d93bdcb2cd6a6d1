/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef ATTACH_PRIV_H
#define ATTACH_PRIV_H

#include <bpf/libbpf.h>

#include "attach/attach.h"
#include "attach/counters.h"
#include "attach/stats.h"
#include "base/buf.h"
#include "mxbpf_config.h" /* of which the skeleton has variables */
#include "mxbpf_stack.h"
#include "mxbpf.skel.h"

#define ATT_CUT_CHECKS_BYTES (MXBPF_FUNCS_MAX * sizeof(struct mxbpf_cut_check))

/* A program variant: all sites whose rows are equal. */
struct variant {
	const struct mxbpf_row *row;
	int prog_fd; /* owned; -1: not loaded yet */
	bool late;   /* of late libraries: it is loaded when the first of them comes */
};

#define ATT_SHARED 0 /* in place of a process: every process that maps the file */

struct att_link {
	pid_t tgid; /* or ATT_SHARED */
	int fd;
	bool iteration_ends; /* of ends of iterations */
	int prog_fd;	     /* of its variant, and the file it is in */
	uint64_t dev, ino;
};

struct att {
	struct mxbpf_bpf *skel;
	const struct att_backend *backend;
	struct variant variants[MXBPF_ROWS_MAX];
	unsigned nvariants;
	struct rows *rows; /* rows.c */
	struct buf links;  /* of struct att_link */
	bool shared;	   /* processes that are attached to from now on share links: att_share() */
	uint64_t stranger_hit_ns, stranger_trials; /* strangers.c */
	bool less;				   /* but for ends of iterations nothing is attached now */
	uint8_t window;				   /* whose predecessors att_forget() has dealt with */
	struct ring_buffer *windows;
	struct bpf_link *exit_link, *exec_link;
	struct mxbpf_thread *threads;	    /* the map, shared with the kernel */
	size_t nslots;			    /* of it */
	struct mxbpf_cut_check *cut_checks; /* likewise, by function */
	bool sees_raises;		    /* exceptions are among what is probed */
	uint32_t ring_bytes;
	struct stats stats;
	struct counters counters;
	bool sched, samples;
	struct mxbpf_sched_thread *sched_threads; /* likewise shared; NULL: not asked for */
	struct bpf_link *switch_link, *waking_link;
	struct buf clocks; /* struct bpf_link *, owned: att_clocks_start() */
};

/* Frame k of a thread, k < MXBPF_FRAMES_MAX: in its own slot or one that it has taken. */
const struct mxbpf_frame *att_frame(const struct att *a, const struct mxbpf_thread *t, unsigned k);
static inline const struct plan_site *sites_of(const struct plan *p, size_t *n)
{
	*n = buf_count(&p->sites, struct plan_site);
	return (const struct plan_site *)p->sites.data;
}

void att_clocks_stop(struct att *a);

/* The program of a row; NULL: it has none. */
struct variant *att_variant_of(struct att *a, const struct mxbpf_row *row);
/* Gives it one, before loading. */
int att_choose_program(struct att *a, const struct mxbpf_row *row, bool late, struct err *e);
/*
 * rows.c: programs, copies of one for each action. rows_register() before the object is opened, rows_choose() for
 * each row that will be attached, rows_load() loads the object and them. rows_load_late() loads those that were chosen
 * as late, unless they are loaded. 0 or -errno.
 */
int rows_register(void);
int rows_choose(struct att *a, const struct mxbpf_row *row, bool late);
int rows_load(struct att *a, bool verbose);
int rows_load_late(struct att *a);
void rows_close(struct att *a);

/* The names of its functions, for BPF. 0 or -errno. */
int att_fill_names(struct att *a, const struct plan *p);

#endif
