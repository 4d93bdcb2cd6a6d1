/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent knows of CUPTI's binary interface. Records have grown with every release, but only at their end: these
 * offsets hold from CUDA 11.0 on. tests/gpu/abi.txt has the offsets of every release, and test_cupti_abi compares.
 */
#ifndef AGENT_LIB_CUPTI_ABI_H
#define AGENT_LIB_CUPTI_ABI_H

#define CUPTI_VERSION_MIN     13 /* CUDA 11.0: the first with these offsets */
#define CUPTI_VERSION_GRAPHS  14 /* CUDA 11.1: records of copies and sets have a graph */
#define CUPTI_VERSION_MEMORY  17 /* CUDA 11.6: MEMORY2 has CUpti_ActivityMemory3 */
#define CUPTI_VERSION_NULL_OK 27 /* CUDA 12.9: earlier versions crash if they get no buffer */

/* CUptiResult. */
enum {
	CUPTI_OK = 0,
	CUPTI_MAX_LIMIT_REACHED = 12,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

/* CUpti_ActivityKind. */
enum {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_KERNEL = 10, /* CONCURRENT_KERNEL */
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22,
	CUPTI_KIND_SYNC = 38,
	CUPTI_KIND_MEMORY2 = 49,
};

/* CUpti_CallbackDomain. */
enum { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2, CUPTI_DOMAIN_RESOURCE = 3 };

/* CUpti_CallbackIdResource, and CUgraphNodeType, which are those of CUDA 11.0 and later. */
enum { CUPTI_GRAPHNODE_CREATED = 13, CUPTI_GRAPHNODE_CLONED = 20 };
enum { CUDA_NODE_KERNEL = 0, CUDA_NODE_COPY = 1, CUDA_NODE_SET = 2 };

/* CUpti_GraphData and CUpti_ResourceData. */
struct cupti_graph {
	const void *graph, *original_graph, *node, *original_node;
	unsigned type;
	const void *dependency, *exec;
};
struct cupti_resource {
	const void *context, *handle;
	const struct cupti_graph *graph;
};

enum { CUPTI_THREAD_ID_DEFAULT = 0, CUPTI_THREAD_ID_SYSTEM = 1 }; /* CUpti_ActivityThreadIdType */
enum { CUPTI_FLUSH_FORCED = 1 };				  /* CUpti_ActivityFlag */

/* Offsets in CUpti_ActivityKernel5 and later. */
enum {
	CUPTI_KERNEL_REGISTERS = 6, /* 16 bits */
	CUPTI_KERNEL_START = 16,
	CUPTI_KERNEL_END = 24,
	CUPTI_KERNEL_DEVICE = 40,
	CUPTI_KERNEL_CONTEXT = 44,
	CUPTI_KERNEL_STREAM = 48,
	CUPTI_KERNEL_GRID = 52,	 /* 3 numbers of 32 bits */
	CUPTI_KERNEL_BLOCK = 64, /* 3 numbers of 32 bits */
	CUPTI_KERNEL_STATIC_SHARED = 76,
	CUPTI_KERNEL_DYNAMIC_SHARED = 80,
	CUPTI_KERNEL_CORRELATION = 92,
	CUPTI_KERNEL_NAME = 104,
	CUPTI_KERNEL_GRAPH_NODE = 144,
	CUPTI_KERNEL_GRAPH = 156,
};

/* CUpti_ActivityMemcpy4 and later. */
enum {
	CUPTI_MEMCPY_COPY = 4, /* 8 bits each */
	CUPTI_MEMCPY_FROM = 5,
	CUPTI_MEMCPY_TO = 6,
	CUPTI_MEMCPY_BYTES = 8,
	CUPTI_MEMCPY_START = 16,
	CUPTI_MEMCPY_END = 24,
	CUPTI_MEMCPY_DEVICE = 32,
	CUPTI_MEMCPY_CONTEXT = 36,
	CUPTI_MEMCPY_STREAM = 40,
	CUPTI_MEMCPY_CORRELATION = 44,
	CUPTI_MEMCPY_GRAPH_NODE = 64,
	CUPTI_MEMCPY_GRAPH = 72,
};

/* CUpti_ActivityMemcpyPtoP2 and later: between devices. The first fields are those of MEMCPY. */
enum {
	CUPTI_PTOP_CORRELATION = 60,
	CUPTI_PTOP_GRAPH_NODE = 72,
	CUPTI_PTOP_GRAPH = 80,
};

/* CUpti_ActivityMemset3 and later. */
enum {
	CUPTI_MEMSET_BYTES = 8,
	CUPTI_MEMSET_START = 16,
	CUPTI_MEMSET_END = 24,
	CUPTI_MEMSET_DEVICE = 32,
	CUPTI_MEMSET_CONTEXT = 36,
	CUPTI_MEMSET_STREAM = 40,
	CUPTI_MEMSET_CORRELATION = 44,
	CUPTI_MEMSET_TO = 50, /* 16 bits */
	CUPTI_MEMSET_GRAPH_NODE = 64,
	CUPTI_MEMSET_GRAPH = 72,
};

/* CUpti_ActivityMemory3 and later. */
enum {
	CUPTI_MEMORY_OPERATION = 4,
	CUPTI_MEMORY_KIND = 8,
	CUPTI_MEMORY_CORRELATION = 12,
	CUPTI_MEMORY_ADDRESS = 16,
	CUPTI_MEMORY_BYTES = 24,
	CUPTI_MEMORY_TIME = 32,
	CUPTI_MEMORY_DEVICE = 52,
	CUPTI_MEMORY_CONTEXT = 56,
	CUPTI_MEMORY_STREAM = 60,
	CUPTI_MEMORY_POOL = 80,
	CUPTI_MEMORY_POOL_SIZE = 104,
	CUPTI_MEMORY_POOL_USED = 112,
};
enum { CUPTI_MEMORY_ALLOCATION = 1, CUPTI_MEMORY_RELEASE = 2 }; /* CUpti_ActivityMemoryOperationType */
enum { CUPTI_POOL_LOCAL = 1 };					/* CUpti_ActivityMemoryPoolType */

/* CUpti_ActivityAPI. */
enum {
	CUPTI_API_CBID = 4,
	CUPTI_API_START = 8,
	CUPTI_API_END = 16,
	CUPTI_API_PID = 24,
	CUPTI_API_TID = 28,
	CUPTI_API_CORRELATION = 32,
	CUPTI_API_RESULT = 36,
};

/* CUpti_ActivitySynchronization. */
enum {
	CUPTI_SYNC_TYPE = 4,
	CUPTI_SYNC_START = 8,
	CUPTI_SYNC_END = 16,
	CUPTI_SYNC_CORRELATION = 24,
	CUPTI_SYNC_CONTEXT = 28,
	CUPTI_SYNC_STREAM = 32,
};

/* CUpti_ActivityOverhead. */
enum {
	CUPTI_OVERHEAD_TYPE = 4,
	CUPTI_OVERHEAD_START = 24,
	CUPTI_OVERHEAD_END = 32,
};

/* CUdevice_attribute, for cuDeviceGetAttribute(). */
enum {
	CUDA_WARP_SIZE = 10,
	CUDA_CLOCK_RATE = 13,
	CUDA_MULTIPROCESSORS = 16,
	CUDA_PCI_BUS = 33,
	CUDA_PCI_DEVICE = 34,
	CUDA_MEMORY_CLOCK = 36,
	CUDA_MEMORY_BUS = 37,
	CUDA_THREADS_PER_MP = 39,
	CUDA_PCI_DOMAIN = 50,
	CUDA_MAJOR = 75,
	CUDA_MINOR = 76,
	CUDA_SHARED_PER_MP = 81,
	CUDA_REGISTERS_PER_MP = 82,
	CUDA_BLOCKS_PER_MP = 106,
	CUDA_MPS_ENABLED = 133, /* CUDA 12.3 and later */
};

/* CUpti_SubscriberParams of CUDA 13.0 and later. */
struct cupti_subscriber_params {
	unsigned long struct_size;
	const char *name;
	char *old_name;
	unsigned long old_name_size;
	unsigned char allow_multiple, pad[7];
};

#endif
