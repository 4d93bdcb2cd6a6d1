/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the mock share this header: a simulated device and its driver (libcuda.so.1), the runtime
 * (libcudart), CUPTI (libcupti), Kineto (libkineto_double.so) and an operator library (libgpuops.so).
 * Times are CLOCK_MONOTONIC in ns. Only libcupti converts them to another clock.
 */
#ifndef DOUBLE_H
#define DOUBLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DOUBLE_EXPORT __attribute__((visibility("default")))

/* CUpti_CallbackDomain */
enum { DOUBLE_DRIVER = 1, DOUBLE_RUNTIME = 2 };

/* CUpti_ActivityKind */
enum double_kind {
	KIND_COPY = 1,
	KIND_SET = 2,
	KIND_DRIVER = 4,
	KIND_RUNTIME = 5,
	KIND_DEVICE = 8,
	KIND_KERNEL = 10,
	KIND_OVERHEAD = 17,
	KIND_PEER = 22,
	KIND_SYNC = 38,
	KIND_MEMORY = 49, /* MEMORY2 */
	KIND_GRAPH = 51,
	KINDS = 64,
};

/* CUpti_ActivityMemoryKind */
enum { MEMORY_PAGEABLE = 1, MEMORY_PINNED = 2, MEMORY_DEVICE = 3 };

/* CUpti_ActivityMemcpyKind */
enum { COPY_HTOD = 1, COPY_DTOH = 2, COPY_DTOD = 8, COPY_HTOH = 9, COPY_PTOP = 10 };

/* CUpti_ActivitySynchronizationType */
enum { SYNC_EVENT = 1, SYNC_WAIT = 2, SYNC_STREAM = 3, SYNC_CONTEXT = 4 };

struct double_function {
	uint64_t magic;
	char *name;
	uint64_t ns; /* duration of a launch */
	const void *stub;
	struct double_function *next, *next_stub;
	uint32_t registers, shared;
};
#define DOUBLE_FUNCTION_MAGIC 0x6e6f6974636e7566ull

/* Something that a device has done, or a wait for it. */
struct double_op {
	uint64_t start, end, called; /* called: start of the launching call */
	uint64_t bytes, node;
	const char *name;
	uint32_t kind, correlation, device, context, stream, graph;
	uint32_t grid[3], block[3], shared, dynamic, registers, value;
	uint32_t type, event, to_device;
	uint8_t copy, from, to, async, unready; /* unready: a query of what has not ended */
};

/* A node of a graph. In the copy that is executed each node is a new one. */
struct double_node {
	uint64_t id;
	uint32_t graph, type; /* type: CUgraphNodeType */
};

struct double_call {
	uint64_t start, end;
	uint32_t domain, cbid, correlation;
	int32_t result;
	int depth; /* 1: outermost */
	/* For callbacks. */
	const char *symbol; /* of a launch: the name of the kernel */
	const void *params;
	uint32_t device;
	uint64_t data; /* CUPTI's clients keep it from the begin of the call to its end */
};

/* The mock of CUPTI gets these calls from the driver. */
struct double_hooks {
	void (*enter)(const struct double_call *call);
	void (*leave)(const struct double_call *call);
	void (*op)(const struct double_op *op); /* at launch; the times may be in the future */
	void (*forked)(void);
	/* A node was made; original: the one that it is a copy of, or NULL. */
	void (*node)(const struct double_node *node, const struct double_node *original);
};

/* Counts of this process, by enum double_kind. */
struct double_account {
	uint64_t launched[KINDS];  /* operations of the device; with or without CUPTI */
	uint64_t made[KINDS];	   /* records that CUPTI owed its client */
	uint64_t delivered[KINDS]; /* records in buffers that were handed over */
	uint64_t dropped[KINDS];   /* reported by cuptiActivityGetNumDroppedRecords */
	uint64_t lost[KINDS];	   /* never handed over nor reported: reset by cuptiFinalize, or left at the end */
	uint64_t unreadable;	   /* of lost: incomplete when they were handed over, or behind such a record */
	uint64_t kernel_ns;	   /* sum of durations of the kernels that were delivered */
	uint64_t launched_ns;	   /* sum of durations of all kernels */
	uint64_t buffers_requested, buffers_completed, null_buffers;
	uint64_t corrupted, zero_times, early; /* records that the mock made wrong on purpose */
	uint64_t subscriptions, refused, unsubscriptions, finalized;
	uint64_t mixed_clocks; /* timestamp callbacks registered while kinds were enabled: their records have two clocks
				*/
	uint64_t timestamp_registrations, callback_registrations, mixed_versions, graph_level;
	uint64_t left_enabled;	 /* kinds that were enabled when the last subscriber left: they go on to cost time */
	uint64_t left_functions; /* and single functions of the driver and the runtime, each as often as it was enabled
				  */
	uint64_t idle_callbacks; /* calls of CUDA at which CUPTI ran although nobody used it */
	uint64_t calls_runtime, calls_driver; /* calls that CUDA got */
	uint64_t node_callbacks;	      /* of CUPTI, for nodes of graphs */
	uint64_t ranges, ranges_mixed; /* kernels that the range profiler measured, and measurements of several */
	uint64_t executed;	       /* how often the device executed them for it */
};

/* Functions of libcuda.so.1 that the real one does not have. */
extern struct double_function *double_function(const char *name);
extern struct double_function *double_function_of_stub(const void *stub);
extern void double_register_stub(const void *stub, const char *name);
extern void double_next_ns(uint64_t ns);
extern uint64_t double_free_at(void);
extern void double_set_device(uint32_t device);
extern void double_call_begin(uint32_t domain, uint32_t cbid);
extern int double_call_end(int result);
extern int double_initialised(void);
extern int double_attach(const struct double_hooks *hooks);
extern struct double_account *double_account(void);
extern void double_write_account(void);
extern uint64_t double_corr(void);

static inline uint64_t double_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t double_now(void)
{
	return double_clock(CLOCK_MONOTONIC);
}

/*
 * Looks for a word in MXBPF_DOUBLE=word,word=value,... Returns NULL if it is not there, and otherwise its value, which
 * ends at a comma or at the end and is "" without `=`.
 */
static inline const char *double_option(const char *word)
{
	const char *at = getenv("MXBPF_DOUBLE");
	size_t n = strlen(word);

	for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (strncmp(at, word, n))
			continue;
		if (at[n] == '=')
			return at + n + 1;
		if (!at[n] || at[n] == ',')
			return "";
	}
	return NULL;
}

/* Returns the number behind a word, `bare` if the word stands alone, and `without` if it is not there. */
static inline double double_number(const char *word, double bare, double without)
{
	const char *value = double_option(word);

	return !value ? without : *value && *value != ',' ? atof(value) : bare;
}

/* Ends the process, because the program under test has broken a rule. */
static inline void __attribute__((noreturn, format(printf, 2, 3)))
double_abort(const char *rule, const char *format, ...)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "GPU mock: rule broken: %s: ", rule);
	__builtin_va_list args;

	__builtin_va_start(args, format);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
	__builtin_va_end(args);
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	if (write(2, text, (size_t)n) < 0)
		abort();
	abort();
}

#endif
