/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device behind libcuda.so.1: streams, events, graphs, memory. */
#ifndef DOUBLE_DEVICE_H
#define DOUBLE_DEVICE_H

#include "double.h"

#include <stdbool.h>

#define DEVICES	       8
#define DEFAULT_STREAM 7 /* number of the default stream, as CUDA has it */

struct event {
	uint64_t at; /* when the work before the event ends */
	uint32_t id;
};

struct graph {
	struct double_op *nodes;
	struct double_node **handles; /* owned */
	uint64_t *ns;
	size_t n, room;
	uint32_t id;
};

struct stream {
	struct stream *next;
	uint64_t free_at; /* when the last operation ends */
	struct graph *capture;
	uint32_t id, context, device;
};

extern const struct double_hooks *device_hooks;

/* The device of the calling thread. */
extern __thread uint32_t device_current;

/* Returns the device's default stream for NULL and CUDA's special values 1 and 2. */
struct stream *device_stream(void *handle);
struct stream *device_stream_new(void);
void device_stream_free(struct stream *s);
/* Queues an operation, or adds it to the graph that the stream captures. */
void device_run(struct stream *s, struct double_op *op, uint64_t ns);
/* Returns when the device of the calling thread has done all that was queued. */
uint64_t device_free_at(void);
void device_sleep_until(uint64_t at);
void device_graph_free(struct graph *g);
/* Returns a copy that can be executed: it and its nodes have ids of their own. */
struct graph *device_graph_copy(const struct graph *g);
void device_graph_run(struct stream *s, const struct graph *g);

#define CUDA_OUT_OF_MEMORY 2

/* memory.c: memory of the calling thread's device. 0 or CUDA_OUT_OF_MEMORY; the bytes that were freed; 0: none. */
int memory_alloc(void **p, size_t bytes, bool async);
uint64_t memory_free(void *p, bool async);
/* Memory without an address: CUPTI has no record of it. */
int memory_create(uint64_t *handle, size_t bytes);
void memory_release(uint64_t handle);
uint64_t memory_all(void);
uint64_t memory_free_bytes(uint32_t device);

/* Kinds of memory by address. */
void *device_alloc(size_t bytes);
void *device_alloc_pinned(size_t bytes);
void device_free_pinned(void *p);
unsigned device_memory_kind(const void *p);

void device_count(uint64_t *counter, uint64_t n);
uint64_t device_called(void); /* start of the calling thread's outermost call; now, if it is in none */

#endif
