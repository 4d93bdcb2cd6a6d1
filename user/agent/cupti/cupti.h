/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI inside the target. gpu.c decides when it is held. cupti.c holds it, gives way to other clients, and lets go.
 * cupti_records.c turns its buffers into batches.
 */
#ifndef AGENT_LIB_CUPTI_H
#define AGENT_LIB_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_abi.h"
#include "dso.h"
#include "mxbpf_agent.h"

typedef void (*cupti_requested_fn)(uint8_t **buffer, size_t *bytes, size_t *records_max);
typedef void (*cupti_completed_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

/* Functions of the libcupti in use. Those that a version lacks are NULL; cupti_open() refuses one that is needed. */
struct cupti {
	int (*get_version)(uint32_t *version);
	int (*get_timestamp)(uint64_t *ns);
	int (*get_callback_name)(uint32_t domain, uint32_t cbid, const char **name);
	int (*subscribe)(void **subscriber, void *callback, void *data);
	int (*subscribe_v2)(void **subscriber, void *callback, void *data, struct cupti_subscriber_params *params);
	int (*unsubscribe)(void *subscriber);
	int (*enable_callback)(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid);
	int (*get_node_id)(const void *node, uint64_t *id);
	int (*register_callbacks)(cupti_requested_fn requested, cupti_completed_fn completed);
	int (*enable)(uint32_t kind);
	int (*disable)(uint32_t kind);
	int (*enable_driver_api)(uint32_t cbid, uint8_t enable);
	int (*enable_runtime_api)(uint32_t cbid, uint8_t enable);
	int (*enable_all_syncs)(uint8_t enable);
	int (*flush_all)(uint32_t flag);
	int (*get_next_record)(uint8_t *buffer, size_t valid, uint8_t **record);
	int (*get_dropped)(void *context, uint32_t stream, size_t *dropped);
	int (*set_thread_id_type)(uint32_t type);
	int (*get_thread_id_type)(uint32_t *type);
};
extern struct cupti cupti;

/* What other clients of CUPTI in this process did since the agent saw them first. */
struct cupti_others {
	bool seen;	  /* a client other than the agent has called CUPTI */
	bool ended;	  /* the last call that was seen ends a trace */
	bool elsewhere;	  /* one has functions of another libcupti, whose calls are not seen */
	uint64_t last_ns; /* CLOCK_MONOTONIC of their last call */
};
extern struct cupti_others cupti_others;

#define CUPTI_CALLS_MAX 1024 /* more than the driver or the runtime have functions */

/*
 * cupti_others.c: the other clients enable or disable a kind, or a single function of the kinds DRIVER and RUNTIME.
 * cupti_others_record() returns true while something is enabled. cupti_others_end(): CUPTI is finalised.
 */
void cupti_others_enable(uint32_t kind, bool enable);
void cupti_others_enable_function(uint32_t kind, uint32_t cbid, bool enable);
void cupti_others_end(void);
bool cupti_others_record(void);

/* Returns true if the process has initialised CUDA; then the devices are in the shared memory. It calls only libcuda.
 */
bool cupti_has_cuda(struct mxbpf_gpu_shared *g);
/*
 * cupti_find.c: loads `library`, or without that the libcupti of the process's version of CUDA. Returns false if there
 * is none; then `path` is the libcudart beside which it was looked for.
 */
bool cupti_load(struct mxbpf_gpu_shared *g);
/* Finds libcupti, or loads it. Returns 0, or -1 with `failed` and `result` set. It calls CUPTI only for the version. */
int cupti_open(struct mxbpf_gpu_shared *g);
/*
 * Subscribes and enables the kinds that mxbpf wants. Returns 0, or -1 with the state set: BUSY, YIELDED or FAILED. It
 * may take 15 s. cupti_release() flushes, unsubscribes and sets the state; it waits so long if another thread uses
 * CUPTI for the agent just now.
 */
int cupti_hold(struct mxbpf_gpu_shared *g);
void cupti_release(struct mxbpf_gpu_shared *g, enum mxbpf_gpu_state state, uint64_t limit_ns);
bool cupti_is_held(void);
/* Returns true if callbacks of another object are registered with CUPTI; then `holder` has its name. */
bool cupti_is_registered(char *holder, size_t bytes);
/* cupti_driver.c: returns true if an object of the process launches work by calls of the driver. */
bool cupti_driver_used(void);
/*
 * While CUPTI is held: looks for new objects that call CUPTI, and delivers the records that are complete, and a reading
 * of the clock. tick: also looks for new libraries that call the driver.
 */
void cupti_flush(struct mxbpf_gpu_shared *g, bool tick);
/* In a forked child: forgets what the parent holds. */
void cupti_forget(void);
void cupti_forget_buffers(void);
/* Records that CUPTI has delivered so far. */
uint64_t cupti_delivered(void);

/*
 * cupti_graphs.c: while the agent holds CUPTI, it hears of each node of a CUDA graph that is captured or copied.
 * cupti_graphs_watch() begins or ends that, cupti_graphs_send() hands over what was heard.
 */
void cupti_on_callback(void *unused, uint32_t domain, uint32_t cbid, const void *info);
void cupti_graphs_watch(struct mxbpf_gpu_shared *g, void *subscriber, bool on);
void cupti_graphs_send(struct mxbpf_gpu_shared *g);
/* Returns when a node was captured last, or made by a copy that was not reported yet; 0: none. */
uint64_t cupti_graphs_last(void);
void cupti_graphs_forget(void);

/* cupti_records.c */
/* Hands a batch over and empties it. */
void cupti_send_batch(struct mxbpf_gpu_shared *g, struct mxbpf_agent_batch *b);
void cupti_on_requested(uint8_t **buffer, size_t *bytes, size_t *records_max);
void cupti_on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
/* Hands one record over at once. */
void cupti_send(struct mxbpf_gpu_shared *g, const struct mxbpf_gpu_rec *r);
/* Returns the offset of the name of a kernel in the texts, or 0 if there is no room. */
uint32_t cupti_name(const char *text);
/* Returns true if CUPTI has a buffer, or has completed one that is being read. */
bool cupti_has_buffers(void);
/* Returns when CUPTI asked for the oldest buffer that it has, or 0. */
uint64_t cupti_oldest_buffer(void);
/* Gives the memory of unused buffers back. */
void cupti_trim(void);

#endif
