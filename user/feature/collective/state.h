/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the feature, and the functions that work on its parts. */
#ifndef FEATURE_COLLECTIVE_STATE_H
#define FEATURE_COLLECTIVE_STATE_H

#include "feature/collective/collective.h"
#include "window/window.h"

struct event {
	struct mxbpf_collective c;
	uint64_t edge_id;     /* of a kernel: its launch */
	uint64_t launched_ns; /* 0: not known */
	uint16_t domain;
	bool said; /* the ranges around its launch were asked */
};

/* A call of NCCL's backend. It ends when its kernel is launched. */
struct call {
	uint64_t start_ns, end_ns, bytes;
	uint32_t tgid, tid;
	uint8_t op;
};

/* fold_said.c: a range of NVTX in the domain of NCCL. */
struct said {
	uint64_t start_ns, end_ns;
	uint64_t bytes; /* MXBPF_COLLECTIVE_UNSIZED */
	uint64_t comm;	/* 0: not said */
	uint32_t tgid, tid, root;
	uint8_t what; /* enum said_what */
	uint8_t op, reduction, flags;
};

/* fold_overlap.c: devices, and how much of their kernels of communication others overlapped. */
struct overlaps {
	struct hash index;  /* (tgid, device) -> 1 + index in devices */
	struct buf devices; /* struct device */
};

struct state {
	struct hash names; /* (name_id, is it a kernel) -> 1 + what it is, see named() */
	struct buf events; /* struct event */
	struct buf calls;  /* struct call */
	struct buf said;   /* struct said */
	struct hash comms; /* (communicator, 0) -> number of its ranks */
	size_t joined;	   /* events before this one have looked for their launch */
	struct hash index; /* key of a row -> 1 + index in rows */
	struct buf rows;   /* struct mxbpf_agg_collective: collectives that are no events any more */
	struct overlaps overlaps;
};

/* fold_said.c: what a range with this name says, to be kept with the name; 0: nothing. */
unsigned said_named(const char *name, size_t len);
/* Takes the span of a range that says `named`. 0 or -ENOMEM. */
int said_take(const struct mdl *m, struct state *t, const struct mxbpf_span *s, unsigned named);
/* Gives kernels whose launches are known what the ranges around these say. 0 or -ENOMEM. */
int said_resolve(const struct state *t, struct buf *events);

/* Takes kernels in the order of their starts. moves: a kernel of communication. */
int overlaps_take(struct overlaps *o, const struct win_work *w, bool moves);
int overlaps_fold(struct overlaps *o, const struct mxbpf_agg_overlap *r);
/* Counts the time until the last end, and appends the devices that had kernels of communication. */
int overlaps_finish(struct overlaps *o, struct buf *out);
int overlaps_copy(struct overlaps *to, const struct overlaps *from);
void overlaps_fini(struct overlaps *o);

/* fold_match.c: finds the parts of each collective. The n parts have their `c`. Returns 0 or -ENOMEM. */
int match_parts(struct collective_part *parts, size_t n);

/* A part with the times by the clock of one host. */
struct item {
	uint64_t start_ns, end_ns;
	uint64_t bytes;
	uint64_t who;  /* process and device */
	uint64_t lane; /* as in struct mxbpf_collective */
	uint64_t tag;  /* communicator that a source says; 0: none */
	uint32_t comm; /* number of the communicator */
	uint32_t at;   /* index in parts */
	uint16_t what; /* backend and operation */
};
/* Parts that belong together, or one part alone: items from..from + n, in the order of `who`. */
struct set {
	uint64_t group;	 /* hash of the processes */
	uint64_t end_ns; /* last end */
	size_t from;
	uint32_t n;
	bool partial; /* parts are missing, because their processes were not recorded then */
};

/* fold_lanes.c: numbers the communicators of items from..n, by how often lanes meet in the sets. */
int lanes_find(struct item *items, size_t from, size_t n, const struct set *sets, size_t nsets);
/* fold_align.c: changes the times of all hosts to those of the first one. Returns 0 or -ENOMEM. */
int align_hosts(struct item *items, size_t n, bool *several);

#endif
