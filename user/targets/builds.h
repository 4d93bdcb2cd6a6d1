/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session has one build for each build of a runtime that its processes run: two versions of PyTorch are two builds,
 * and so are MXNet and PyTorch. A build owns the BPF object with the probes that its processes share, and what finds
 * the names behind the ids of that object. The first build is there from the start; further ones come with the first
 * process that needs them, and stay until the end of the session.
 */
#ifndef TARGETS_BUILDS_H
#define TARGETS_BUILDS_H

#include <stdbool.h>

#include "attach/attach.h"
#include "base/err.h"
#include "base/hash.h"
#include "plan/plan.h"
#include "source/source.h"
#include "symbols/symbols.h"
#include "target/target.h"

struct session;
struct ses_target;

/* A library that a process maps while it runs; a row with each_lib probes it. */
struct late_lib {
	struct tgt_lib lib; /* a copy: the process that mapped it first may end */
	const struct adp_probe *row;
	struct plan plan; /* without sites the library is not probed */
};

/* Which of them are probed between slices, see attach/slice.h; LATE_ALWAYS: those whose rows are adp_probe.always. */
enum late_kept { LATE_ALL, LATE_ALWAYS, LATE_NONE };

struct late {
	struct late_lib **libs; /* owned */
	unsigned nlibs, nattached;
	bool looked; /* libraries have been looked for */
	bool counts; /* launches of CUDA are counted, and its calls have no spans */
	enum late_kept kept;
	uint32_t nfuncs;    /* functions of all of them, whose numbers come after those of the plan */
	struct hash beyond; /* (inode, device) of libraries beyond the limit */
};

struct ses_build {
	struct session *ses;
	unsigned number;
	const struct ses_target *of;  /* the first process that has it; borrowed */
	char *title;		      /* "PyTorch 2.13.0" */
	unsigned details;	      /* mask of enum mxbpf_detail, of its spans */
	struct att *att;	      /* NULL: not loaded yet */
	struct sym *symbols;	      /* finds the names of its records */
	struct src *rings[ATT_RINGS]; /* NULL: not requested */
	char *ring_names[ATT_RINGS];  /* NULL: those of the first build */
	struct late late;
};

#define SES_BUILDS_MAX 4

/*
 * Adds a build while the session runs: loads its BPF object and opens its sources. of: the first process that has it;
 * nothing is attached yet. Returns NULL with e set if an option cannot be had of it, or if there are too many.
 */
struct ses_build *ses_build_add(struct session *ses, struct ses_target *of, struct err *e);
/* Fills in what the first build and further ones have in common, once they are planned. 0 or -errno with e set. */
int ses_build_title(struct ses_build *b); /* 0 or -ENOMEM */
int ses_build_symbols(struct ses_build *b, struct err *e);
int ses_build_load(struct ses_build *b, struct err *e);
int ses_build_sources(struct ses_build *b, struct err *e);
void ses_builds_free(struct session *ses);
/*
 * The build of a process, the first one if it is not known. The session's threads call this with the lock, the main
 * thread may do so without.
 */
struct ses_build *ses_build_of(const struct session *ses, uint32_t tgid);
struct ses_build *ses_build_of_plan(const struct plan *p); /* p belongs to a struct ses_target */
/* The build whose ring is this source of the hub. NULL: it is another source. */
struct ses_build *ses_build_of_source(const struct session *ses, unsigned number);

/* Iterates over the builds. Any thread may do so. */
#define SES_EACH_BUILD(ses, b)                                                                                         \
	for ((b) = (struct ses_build *)(ses)->builds;                                                                  \
	     (b) < (ses)->builds + __atomic_load_n(&(ses)->nbuilds, __ATOMIC_ACQUIRE); (b)++)

/* These call the functions of attach.h with the same names for all builds. */
uint64_t ses_hits(const struct session *ses);
void ses_activate(struct session *ses, bool on);
void ses_detach(struct session *ses);
void ses_forget(struct session *ses);
unsigned ses_open_count(const struct session *ses);

#endif
