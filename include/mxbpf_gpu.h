/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the agent that is a client of CUPTI, and mxbpf outside: what they share, and the records that the agent
 * hands over. See mxbpf_agent.h for the bell, the batches and the shared memory.
 *
 * The agent copies fields of CUPTI's records. Everything else is done outside: mxbpf converts the times, joins calls
 * and activities, and counts what does not join.
 */
#ifndef MXBPF_GPU_H
#define MXBPF_GPU_H

#include "mxbpf_event.h"

#define MXBPF_GPU_NAMES	     16384	/* different names; a power of two */
#define MXBPF_GPU_TEXTS	     (8u << 20) /* bytes of all names */
#define MXBPF_GPU_NAME_BYTES 4096	/* bytes of one name with its NUL; longer names are cut */
#define MXBPF_GPU_DEVICES    32

/* mxbpf tells the agent by a mask of these bits what it has to record. 0: the agent must not hold CUPTI. */
enum mxbpf_gpu_want {
	MXBPF_GPU_WANT_KERNELS = 1 << 0, /* kernels, copies, sets, waits */
	MXBPF_GPU_WANT_CALLS = 1 << 1,	 /* calls of the runtime */
	MXBPF_GPU_WANT_DRIVER = 1 << 2,	 /* calls of the driver */
	MXBPF_GPU_WANT_MEMORY = 1 << 3,	 /* memory that calls allocate and free, and the driver's calls that do it */
	MXBPF_GPU_WANT_METRICS = 1 << 4, /* hardware counters of chosen kernels, see struct mxbpf_gpu_metrics */
};

enum mxbpf_gpu_state {
	MXBPF_GPU_OFF = 0,	   /* CUPTI is not held, as mxbpf wants */
	MXBPF_GPU_NO_CUDA = 1,	   /* waits for the process to initialise CUDA */
	MXBPF_GPU_SUBSCRIBING = 2, /* may take 15 s */
	MXBPF_GPU_ON = 3,	   /* CUPTI delivers records */
	MXBPF_GPU_BUSY = 4,	   /* another client holds CUPTI; the agent asks again every few seconds */
	MXBPF_GPU_YIELDED = 5,	   /* the agent has let go because the process wanted CUPTI itself; asks again, too */
	MXBPF_GPU_FAILED = 6,	   /* see `failed` and `result`; the agent does not try again */
};

/* Where the agent failed. The values of `result` are a CUptiResult, or those of CUDA for GPU_AT_DRIVER. */
enum mxbpf_gpu_at {
	MXBPF_GPU_AT_NONE = 0,
	MXBPF_GPU_AT_LIBRARY = 1, /* there is no libcupti, or it cannot be loaded */
	MXBPF_GPU_AT_SYMBOL = 2,  /* it lacks a function that is needed */
	MXBPF_GPU_AT_VERSION = 3, /* cuptiGetVersion failed, or the version is too old */
	MXBPF_GPU_AT_SUBSCRIBE = 4,
	MXBPF_GPU_AT_REGISTER = 5,   /* cuptiActivityRegisterCallbacks */
	MXBPF_GPU_AT_ENABLE = 6,     /* no kind of record could be enabled */
	MXBPF_GPU_AT_CLOCK = 7,	     /* cuptiGetTimestamp */
	MXBPF_GPU_AT_DRIVER = 8,     /* libcuda */
	MXBPF_GPU_AT_THREAD = 9,     /* the agent could not start its thread; result is an errno */
	MXBPF_GPU_AT_ELSEWHERE = 10, /* another client uses another libcupti */
};

/* Kind of a record. The first four are enum mxbpf_activity_class. */
enum mxbpf_gpu_kind {
	MXBPF_GPU_KERNEL = 1,
	MXBPF_GPU_COPY = 2,
	MXBPF_GPU_SET = 3,
	MXBPF_GPU_SYNC = 4,
	MXBPF_GPU_CALL = 5,	/* of the runtime */
	MXBPF_GPU_DRIVER = 6,	/* call of the driver */
	MXBPF_GPU_OVERHEAD = 7, /* CUPTI's own work */
	MXBPF_GPU_CLOCK = 8,	/* start_ns is CUPTI's time; clock.before_ns and after_ns enclose it */
	/*
	 * A node of a CUDA graph was made: start_ns is CLOCK_MONOTONIC, call.tid the thread. bytes: the node that it is
	 * a copy of; 0: none, it was captured.
	 */
	MXBPF_GPU_NODE = 9,
	MXBPF_GPU_MEMORY = 10, /* MEMORY2: a call allocated or freed memory; start_ns and end_ns are when */
	/*
	 * A hardware counter of a launch that was measured: start_ns and end_ns enclose the launch with the
	 * measurement, in CLOCK_MONOTONIC. bytes: the bits of a double; name: of the kernel.
	 */
	MXBPF_GPU_METRIC = 11,
};

#define MXBPF_GPU_METRICS 12 /* counters that the agent can measure; metrics_names[] in agent/cupti/cupti_metrics.c */

/* The state of the measurement of chosen kernels. */
enum mxbpf_gpu_metrics_state {
	MXBPF_GPU_METRICS_OFF = 0,     /* not wanted, or CUPTI is not held */
	MXBPF_GPU_METRICS_WAITING = 1, /* no kernel with such a name was launched yet */
	MXBPF_GPU_METRICS_ON = 2,
	MXBPF_GPU_METRICS_DONE = 3,   /* as many launches were measured as mxbpf wants in all */
	MXBPF_GPU_METRICS_SLOW = 4,   /* a launch took so long that no other one is measured */
	MXBPF_GPU_METRICS_FAILED = 5, /* see `step` and `result`; no other launch is measured */
};

/* The step that failed. `result` is a CUptiResult. */
enum mxbpf_gpu_metrics_step {
	MXBPF_GPU_STEP_NONE = 0,
	MXBPF_GPU_STEP_SYMBOLS = 1,  /* this CUPTI has no range profiler: it is older than CUDA 12.6 */
	MXBPF_GPU_STEP_CALLBACK = 2, /* cuptiEnableCallback */
	MXBPF_GPU_STEP_INIT = 3,     /* cuptiProfilerInitialize */
	MXBPF_GPU_STEP_SUPPORT = 4,  /* cuptiProfilerDeviceSupported; result: 1000 + the first field that refuses */
	MXBPF_GPU_STEP_CHIP = 5,     /* cuptiDeviceGetChipName */
	MXBPF_GPU_STEP_HOST = 6,     /* cuptiProfilerHostInitialize, which loads libnvperf_host.so */
	MXBPF_GPU_STEP_METRICS = 7,  /* no counter is known for this chip */
	MXBPF_GPU_STEP_IMAGE = 8,    /* cuptiProfilerHostGetConfigImage */
	MXBPF_GPU_STEP_ENABLE = 9,   /* cuptiRangeProfilerEnable */
	MXBPF_GPU_STEP_DATA = 10,    /* cuptiRangeProfilerCounterDataImageInitialize and those around it */
	MXBPF_GPU_STEP_CONFIG = 11,  /* cuptiRangeProfilerSetConfig */
	MXBPF_GPU_STEP_START = 12,   /* cuptiRangeProfilerStart */
	MXBPF_GPU_STEP_STOP = 13,    /* cuptiRangeProfilerStop */
	MXBPF_GPU_STEP_DECODE = 14,  /* cuptiRangeProfilerDecodeData */
	MXBPF_GPU_STEP_VALUES = 15,  /* cuptiProfilerHostEvaluateToGpuValues */
	MXBPF_GPU_STEP_MEMORY = 16,  /* no memory for the images */
	MXBPF_GPU_STEP_RECORDS = 17, /* cuptiActivityDisable or cuptiActivityEnable of records of kernels */
};

/* Why a launch of a chosen kernel was not measured. */
enum mxbpf_gpu_metrics_refused {
	MXBPF_GPU_REFUSED_COOPERATIVE = 0,  /* its blocks wait for each other */
	MXBPF_GPU_REFUSED_COMMUNICATES = 1, /* by its name it waits for another kernel, GPU or process */
	MXBPF_GPU_REFUSED_CAPTURED = 2,	    /* it is captured for a graph, or its stream cannot be asked */
	MXBPF_GPU_REFUSED_CONTEXT = 3,	    /* it is on another GPU than the first measured one of the process */
	MXBPF_GPU_REFUSED_BUSY = 4,	    /* another thread was launching just then */
	MXBPF_GPU_REFUSED_MIXED = 5,	    /* CUPTI has measured no launch, or several */
	MXBPF_GPU_REFUSED_LIMIT = 6,	    /* too many names */
	MXBPF_GPU_REFUSALS = 7,
};

#define MXBPF_GPU_PATTERN_BYTES 256

struct mxbpf_gpu_metrics {
	/* Set by mxbpf before MXBPF_GPU_WANT_METRICS. */
	char pattern[MXBPF_GPU_PATTERN_BYTES]; /* parts of names, separated by commas */
	__u32 each;			       /* measure so many launches of each name */
	__u32 all;			       /* and so many in all */
	__u32 replay;	/* 1: also counters for which a kernel is executed several times, 0: one pass only */
	__u32 limit_ms; /* a launch that takes longer is the last one */
	__u32 active;	/* 1: a window is open. mxbpf changes it at any time */
	/* Set by the agent. */
	__u32 state;  /* enum mxbpf_gpu_metrics_state */
	__u32 step;   /* enum mxbpf_gpu_metrics_step */
	__u32 result; /* CUptiResult */
	__u32 passes; /* in which a kernel is executed */
	__u32 mask;   /* of the counters that this chip has */
	__u32 measured;
	__u32 refused[MXBPF_GPU_REFUSALS];
	__u64 setup_ns;	  /* the first measured launch was held up by this, too */
	__u64 held_ns;	  /* by which all measured launches were held up, with the kernels themselves */
	__u64 longest_ns; /* of them */
	char chip[32];
};

/* Does CUPTI call the agent back when a thread makes a node of a CUDA graph? */
enum mxbpf_gpu_graphs {
	MXBPF_GPU_GRAPHS_UNKNOWN = 0, /* CUPTI was not held yet */
	MXBPF_GPU_GRAPHS_ON = 1,
	MXBPF_GPU_GRAPHS_REFUSED = 2, /* it lacks the functions, or has refused */
};

struct mxbpf_gpu_rec {
	__u64 start_ns, end_ns; /* in CUPTI's clock. Both 0: CUPTI did not measure it */
	__u64 bytes;		/* COPY, SET, MEMORY */
	__u64 graph_node;	/* MEMORY: the address */
	__u32 name;		/* KERNEL, CALL, DRIVER: offset in gpu_names.texts; 0: no room */
	__u32 correlation;	/* joins calls and activities */
	__u32 device, context, stream;
	__u32 graph; /* 0: none */
	union {
		struct {
			__u32 grid[3], static_shared, dynamic_shared;
			__u16 block[3], registers;
		} kernel;
		struct {
			__u8 copy, from, to; /* enum mxbpf_copy, mxbpf_memory_kind; SET: only `to` */
		} copy;
		struct {
			__u32 pid, tid, cbid, result; /* as the target numbers them */
		} call;
		struct {
			__u32 type; /* SYNC: enum mxbpf_sync_type; OVERHEAD: CUpti_ActivityOverheadKind */
		} sync;
		struct {
			__u8 freed, kind, pool, pad; /* kind: enum mxbpf_memory_kind; pool: 1: of a pool of CUDA */
			__u32 size_high, size_low, used_high, used_low; /* of the pool, if it is the process's own */
		} memory;
		struct {
			__u32 number, first, passes, tid; /* number: below MXBPF_GPU_METRICS; first: 1: of the launch */
		} metric;
		struct {
			__u32 before_high, before_low, after_high, after_low; /* CLOCK_MONOTONIC in ns */
		} clock;
	};
	__u8 kind; /* enum mxbpf_gpu_kind */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_rec) == 88);

/* Attributes of a device, from libcuda. */
struct mxbpf_gpu_about {
	char name[64];
	__u64 memory_bytes;
	__u32 multiprocessors, major, minor, threads_per_mp, blocks_per_mp, registers_per_mp, shared_per_mp, warp,
		clock_khz, pci_domain, pci_bus, pci_device, memory_clock_khz, memory_bus_bits;
	/* cuDeviceGetUuid_v2() and cuDeviceGetUuid(). They differ if the device is an instance of MIG. 0: not known */
	__u8 uuid[16], whole_uuid[16];
	__u32 mps; /* 1: contexts on the device are shared by MPS */
	__u32 pad;
};

struct mxbpf_gpu_shared {
	/* Set by mxbpf. The agent's thread sleeps on `want`, so mxbpf wakes it (FUTEX_WAKE) after a change. */
	__u32 want;	   /* mask of enum mxbpf_gpu_want */
	__u32 flush_ms;	   /* interval of flushes; 0: 100 */
	__u32 again_ms;	   /* interval between requests while another client holds CUPTI; 0: 5000 */
	__u32 buffers_max; /* most buffers of 256 KiB that CUPTI has at one time; 0: 256 */
	__u64 records_max; /* the agent subscribes anew after so many records; 0: 20 million */
	char library[256]; /* libcupti to load if the process has mapped none; "": the agent looks for one */
	/* Set by the agent. */
	__u32 thread; /* 1: the agent's thread runs */
	__u32 state;  /* enum mxbpf_gpu_state */
	__u32 failed; /* enum mxbpf_gpu_at; also the reason of BUSY */
	__u32 result;
	__u32 version;	    /* cuptiGetVersion() */
	__u32 driver;	    /* cuDriverGetVersion() */
	__u32 enabled;	    /* mask of enum mxbpf_gpu_kind that CUPTI delivers: 1 << kind */
	__u32 unhooked;	    /* 1: calls of CUPTI by others are not seen, see `result` for the errno */
	__u32 others;	    /* calls of CUPTI by others that were seen */
	__u32 foreign_tids; /* 1: cuptiSetThreadIdType failed, so thread numbers mean nothing */
	char path[256];	    /* libcupti that is used */
	char holder[64];    /* BUSY: name that the holder of CUPTI gave itself; "": unknown */
	__u64 subscribe_ns, enable_ns, stop_ns; /* duration of the last of each */
	__u64 subscriptions, held_ns;
	/* Sums since the agent was started. A record is in one of: handed over, scrapped, unreadable, unknown. */
	__u64 records;	  /* handed over through the bell; without CLOCK and NODE records */
	__u64 batches;	  /* bells; the seq of the next batch */
	__u64 dropped;	  /* cuptiActivityGetNumDroppedRecords */
	__u64 scrapped;	  /* in the last-resort buffer */
	__u64 unreadable; /* behind an incomplete or invalid record in a buffer, with that one; an estimate */
	__u64 flushes;	  /* of CUPTI's buffers: what changes while the agent waits for work that has not ended */
	__u64 unknown;	  /* of a kind that the agent did not enable */
	__u64 no_name;	  /* names without room */
	__u64 buffers;	  /* buffers of the pool that exist */
	__u64 oldest_ns;  /* when CUPTI asked for the oldest buffer that it held back at the last flush; 0: none */
	__u32 ndevices;
	__u32 texts_len;
	__u32 graphs; /* enum mxbpf_gpu_graphs */
	__u32 pad;
	struct mxbpf_gpu_about devices[MXBPF_GPU_DEVICES];
	struct mxbpf_gpu_metrics metrics;
};

/* The names in records. */
struct mxbpf_gpu_names {
	__u32 names[MXBPF_GPU_NAMES]; /* offsets of texts by the hash of the text; 0: free */
	char texts[MXBPF_GPU_TEXTS];  /* NUL-terminated names; the first byte is not used */
};

#endif
