/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the mock of CUPTI: records, buffers, the state of its clients. */
#ifndef DOUBLE_COLLECT_H
#define DOUBLE_COLLECT_H

#include "double.h"

#include <stdbool.h>

/* CUptiResult */
enum {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_MAX_LIMIT_REACHED = 12,
	CUPTI_NOT_COMPATIBLE = 14,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_INVALID_KIND = 21,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

typedef void (*requested_fn)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*completed_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef uint64_t (*timestamp_fn)(void);

/* What MXBPF_DOUBLE asks for. An interval of 0 is never. */
struct options {
	uint64_t drop, zero, early, no_name, lose, lose_calls; /* every Nth record */
	uint64_t spoil;					       /* after N records of a subscription */
	double drift_ppm;
	int64_t step_ns;
	uint64_t step_after_ns;
	uint64_t base_ns; /* is added to times of kernels */
	bool late, at_exit, lost_at_exit, reuse_names, lock_order;
};
extern struct options options;
extern struct double_account *account; /* of libcuda */
extern uint32_t version;	       /* as cuptiGetVersion() returns it */

/* records.c */
/* Returns the size of a record of this kind in bytes, or 0 if the mock does not make such records. */
size_t record_bytes(uint32_t kind, uint32_t api_version);
void record_op(uint8_t *r, const struct double_op *op, const char *name, uint64_t start, uint64_t end);
void record_call(uint8_t *r, const struct double_call *call, uint32_t pid, uint32_t tid, uint64_t start, uint64_t end);
void record_overhead(uint8_t *r, uint32_t overhead, uint32_t pid, uint64_t start, uint64_t end);
void record_device(uint8_t *r, uint32_t device);

/* clock.c */
void clock_start(void);
uint64_t clock_of(uint64_t mono); /* CUPTI's time at this time of CLOCK_MONOTONIC */
uint64_t clock_now(void);
void clock_replace(timestamp_fn f);

/* names.c: with reuse-names, the names in a buffer lie in an arena that is overwritten after the buffer's completion.
 */
struct arena;
struct arena *arena_take(void);
void arena_reuse(struct arena *a);
/* Returns the copy of a name in the arena, or NULL if there is no room. */
const char *arena_name(struct arena *a, const char *name);

/* enabled.c */
void enabled_set_kind(uint32_t kind, bool on);
/*
 * Enables a single function of the runtime or the driver: CUPTI counts how often, and is called back until each has
 * been undone by the same function. Disabling the kind ends only the records.
 */
void enabled_set_call(uint32_t domain, uint32_t cbid, bool on);
uint64_t enabled_kinds(void);
bool enabled_callback(uint32_t domain, uint32_t cbid); /* CUPTI is called back at this function */
bool enabled_call(uint32_t domain, uint32_t cbid);     /* and makes a record */
uint64_t enabled_calls(void);			       /* single functions, each as often as it was enabled */
void enabled_nothing(void);

/* ranges.c: something was launched. Returns true if it is measured. */
bool ranges_op(const struct double_op *op);

/* collect.c */
void collect_register(requested_fn requested, completed_fn completed);
void collect_enable(uint32_t kind, bool on);
void collect_graph_level(void);
void collect_flush(bool forced);
/* Throws all records away, as cuptiFinalize() does. */
void collect_reset(void);
void collect_exit(void);
void collect_forked(void);
void collect_call(const struct double_call *call);
void collect_op(const struct double_op *op);
/* Records a record that somebody else has made, if its kind is enabled. */
void collect_raw(uint32_t kind, const uint8_t *record);
void collect_devices(void);
void collect_corrupt(uint64_t records);
void collect_subscribed(void);
size_t collect_take_dropped(void);
extern bool system_tids, all_syncs;

#endif
