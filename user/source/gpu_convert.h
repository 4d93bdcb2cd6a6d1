/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the agent's records of CUPTI into records of mxbpf: times become CLOCK_MONOTONIC, calls of CUDA become spans
 * and launches, kernels and copies become activities. Records come in any order, so some wait for others: all for the
 * next reading of the clock, and calls of the driver for the runtime's call around them.
 */
#ifndef SOURCE_GPU_CONVERT_H
#define SOURCE_GPU_CONVERT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_agent.h"
#include "mxbpf_track.h"

/* Where the records come from. */
struct gpu_from {
	void (*name)(void *ctx, uint32_t name,
		     char to[MXBPF_GPU_NAME_BYTES]); /* text of a name in a record; once for each */
	uint32_t (*thread)(void *ctx, uint32_t its); /* our id of a thread, 0: the process has no such thread */
	void *ctx;
};

/* A reading of both clocks. */
struct gpu_clock {
	uint64_t gpu_ns, ns;
};

struct gpu_convert {
	struct gpu_from from;
	uint32_t tgid;
	bool foreign_tids;  /* set by the user: thread numbers mean nothing, so no launch has a thread */
	bool graphs_wrong;  /* set by the user: work of graphs has numbers of other launches, see gpu_graphs_wrong() */
	bool has_memory;    /* set by the user: memory that calls allocate and free has records */
	bool has_calls;	    /* set by the user: all calls that wait have records, see gpu_has_calls() */
	uint64_t since_ns;  /* set by the user: what began before is left out */
	uint64_t until_ns;  /* set by the user: what begins later is left out, too; 0: no limit */
	struct buf clocks;  /* struct gpu_clock, rising */
	struct buf waiting; /* struct mxbpf_gpu_rec without CLOCK */
	struct hash names;  /* number of a name -> its id */
	struct hash starts; /* numbers of names of calls that start work of a device */
	struct hash asks;   /* numbers of names of calls that query and do not wait */
	struct hash called; /* (correlation, asks) of calls -> start in ns; the older half is in `before` */
	struct hash before;
	struct hash contexts;	/* context -> device */
	struct hash allocs;	/* numbers of names of calls that allocate or free memory -> enum gpu_alloc_kind */
	struct hash allocating; /* correlation of such a call -> 1 + index in alloc_calls */
	struct buf alloc_calls; /* struct gpu_alloc_call: the last ones */
	struct hash measured; /* correlations of launches whose counters were measured: their kernels have no record */
	struct buf texts;     /* out: names, to be delivered before the records */
	struct buf recs;      /* out: records */
	/* Sums since the beginning. */
	uint64_t stored; /* records in recs so far */
	uint64_t lost;	 /* records for which there was no memory */
	uint64_t taken;	 /* records without CLOCK */
	uint64_t activities, calls;
	uint64_t outside;  /* what did not begin in the window, or whose launch did not */
	uint64_t nested;   /* calls of the driver inside a call of the runtime: no record */
	uint64_t unjoined; /* activities that have no launch because of graphs_wrong */
	uint64_t memory;   /* records of memory that was allocated or freed */
	uint64_t queries;  /* records of waits that were queries, or whose call is not known: no record */
	uint64_t unmeasured, early, threadless, unnamed, overheads;
	int err; /* -ENOMEM: some records are lost */
};

/* Returns true if the call of CUDA or HIP starts work of a device, by its name. */
bool gpu_launches(const char *call);
/*
 * Returns true if CUPTI gives work of graphs wrong correlation ids: below CUDA 13.1 U1, in all sessions of a process
 * but the first.
 */
bool gpu_graphs_wrong(const struct mxbpf_gpu_shared *g);
/* Returns true if a record of a wait without a call is a query's. */
bool gpu_has_calls(const struct mxbpf_gpu_shared *g);
/* Takes n records. */
void gpu_take(struct gpu_convert *c, const struct mxbpf_gpu_rec *recs, unsigned n);
/*
 * Converts what is known by now, or with `all` everything. The output is appended to texts and recs, which the caller
 * empties.
 */
void gpu_convert(struct gpu_convert *c, bool all);
/* gpu_memory.c. Whether the call of this name allocates or frees memory. */
enum gpu_alloc_kind {
	GPU_ALLOC_NOT = 0,
	GPU_ALLOC_PLAIN,
	GPU_ALLOC_MAPS, /* gives memory to addresses, or takes it away: CUPTI may have no record of the memory */
	GPU_ALLOC_UNMAPS,
};
enum gpu_alloc_kind gpu_allocates(const char *call);
/* Remembers such a call, or if it has failed, or needs no record of memory, appends its record. */
void gpu_alloc_called(struct gpu_convert *c, const struct mxbpf_gpu_rec *r, uint64_t name_id, uint32_t tid,
		      enum gpu_alloc_kind kind);
/* The call of this record of memory may still come. */
bool gpu_alloc_waits(const struct gpu_convert *c, const struct mxbpf_gpu_rec *r);
void gpu_put_alloc(struct gpu_convert *c, const struct mxbpf_gpu_rec *r);
/* Appends the record of a device. */
void gpu_put_device(struct gpu_convert *c, uint32_t device, const struct mxbpf_gpu_about *about);
void gpu_convert_fini(struct gpu_convert *c);
/* Converts a time of CUPTI by the readings around it. */
uint64_t gpu_time(const struct gpu_convert *c, uint64_t gpu_ns);

#endif
