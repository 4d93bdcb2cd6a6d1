/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * --memory: the owners of a device's memory. Memory allocated before the window is not known. Live and peak bytes
 * are therefore relative to the window's start, and are negative if more of the older memory was freed. The live
 * bytes of all owners add up to the device's live bytes, and their bytes at the peak add up to the device's peak.
 */
#ifndef MXBPF_MEMORY_H
#define MXBPF_MEMORY_H

#include "mxbpf_event.h"

enum mxbpf_mem_owner_flag {
	MXBPF_MEM_OWNER_BEFORE = 1 << 0, /* memory allocated before the window: only frees are known */
	MXBPF_MEM_OWNER_MORE = 1 << 1,	 /* all owners that did not fit, as one */
};

/* Allocations of one owner. Their frees count here, whichever code frees them. */
struct mxbpf_mem_owner {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;	    /* innermost open operator or call; none if cls is 0 */
	__u64 layer_id;
	__u64 scope_id, label_id; /* the runtime's names for the allocation; 0: none */
	__u64 allocs, frees;
	__u64 alloc_bytes, free_bytes;
	__s64 live_bytes; /* live at the end of the window */
	__s64 peak_bytes; /* live at the device's peak */
	__u64 live_blocks;
	__u32 device;
	__u8 cls;   /* enum mxbpf_class */
	__u8 flags; /* enum mxbpf_mem_owner_flag */
	__u8 pad[2];
	__u64 stack_id; /* Python stack that allocated, see struct mxbpf_alloc; old recordings lack this member */
	/* By how much live_bytes grew all the way, and in which time; 0: they did not. Old recordings lack these. */
	__s64 grown_bytes;
	__u64 grown_ns;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_mem_owner) == 136);
#define MXBPF_MEM_OWNER_BYTES_MIN 112

/* Memory of a device over time. It comes before its owners. */
struct mxbpf_mem_time {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__s64 live_bytes;   /* live at the end of the window */
	__s64 peak_bytes;
	__u64 peak_ns; /* time of the peak; 0: never more than at the start */
	__u64 last_ns; /* last event; area_*: bytes * ns until then, signed, 128 bits */
	__u64 area_low;
	__s64 area_high;
	__u64 missed;	       /* allocations whose free was missed: the address was used again */
	__u64 untracked;       /* allocations that did not fit or have no address: their frees are unknown */
	__u64 unsized;	       /* frees of older memory of unknown size */
	__u64 pool_bytes;      /* pooled memory only: bytes reserved by the pool at the last allocation */
	__u64 pool_peak_bytes; /* peak of pool_bytes */
	__u64 pool_used_bytes; /* bytes of the window's allocations that were live at that peak */
	__u32 device;
	__u32 counted; /* 1: the allocator counts itself, and what follows is known. Old recordings lack what follows */
	/* Bytes that the allocator says it has allocated, also before the window: at its last report, at their peak. */
	__u64 total_bytes, total_peak_bytes;
	__s64 before_bytes;	 /* of them, live when the window began: those of the first report less its own */
	__u64 pool_total_bytes;	 /* most that were allocated while pool_peak_bytes were reserved */
	__u64 unused_peak_bytes; /* most bytes that were reserved and not allocated */
	__u64 unused_peak_ns;	 /* when; 0: never any */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_mem_time) == 168);
#define MXBPF_MEM_TIME_BYTES_MIN 120

/* Kinds of records, which continue enum mxbpf_kind. */
#define MXBPF_MEM_FAILED ((enum mxbpf_kind)60) /* user: an allocation that failed, struct mxbpf_mem_failed */
#define MXBPF_MEM_HOLDER ((enum mxbpf_kind)61) /* user: who held memory then, struct mxbpf_mem_holder */

/* An allocation for which there was no memory. Its holders follow it, the one with the most first. */
struct mxbpf_mem_failed {
	struct mxbpf_rec h; /* ts_ns: when it failed */
	__u64 wanted_bytes; /* asked for */
	__u64 total_bytes;  /* allocated then, as the allocator says; 0 if MXBPF_ALLOC_UNCOUNTED is set */
	__u64 pool_bytes;   /* reserved then */
	__s64 live_bytes;   /* of total_bytes, allocated in the window */
	__u64 name_id;	    /* innermost open operator or call; none if cls is 0 */
	__u64 layer_id;
	__u64 stack_id; /* of Python; 0: unknown */
	__u64 nr;	/* number of this failure in its window, from 1; some in the middle have no record */
	__u32 device, tid;
	__u8 cls;   /* enum mxbpf_class */
	__u8 flags; /* MXBPF_ALLOC_UNCOUNTED */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_mem_failed) == 96);

/* An owner with memory when an allocation failed. */
struct mxbpf_mem_holder {
	struct mxbpf_rec h; /* ts_ns: when the allocation failed */
	__u64 name_id, layer_id, stack_id;
	__s64 bytes;
	__u64 blocks;
	__u32 device, tid; /* of the allocation that failed */
	__u8 cls;	   /* enum mxbpf_class */
	__u8 flags;	   /* enum mxbpf_mem_owner_flag */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_mem_holder) == 72);

#define MXBPF_GPU_ALLOC ((enum mxbpf_kind)64) /* agent: a call allocated or freed memory, struct mxbpf_gpu_alloc */

enum mxbpf_gpu_alloc_flag {
	MXBPF_GPU_ALLOC_FREED = 1 << 0,
	MXBPF_GPU_ALLOC_FAILED = 1 << 1, /* the call returned an error: no memory was allocated or freed */
	MXBPF_GPU_ALLOC_POOL = 1 << 2,	 /* memory of a pool of CUDA (cudaMallocAsync) */
	MXBPF_GPU_ALLOC_MORE = 1 << 3,	 /* the memory of a call that has a record of its own already */
};

/* A call of CUDA that allocates or frees memory, with what CUPTI says of it (--gpu with --memory). Since 2.2. */
struct mxbpf_gpu_alloc {
	struct mxbpf_rec h; /* ts_ns: start of the call */
	__u64 dur_ns;	    /* of the call, with its waits; 0: the call has no record */
	__u64 name_id;	    /* "cudaMalloc"; 0: the call has no record */
	__u64 addr, bytes;
	__u64 pool_bytes, pool_used_bytes; /* of the pool after this; 0: not known */
	__u32 tid;			   /* 0: not known */
	__u32 device;			   /* ordinal in the process */
	__u32 result;			   /* of the call: CUDA's error, 2 if there is no memory */
	__u8 flags;			   /* enum mxbpf_gpu_alloc_flag */
	__u8 kind;			   /* enum mxbpf_memory_kind */
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_alloc) == 80);

#define MXBPF_GPU_USED ((enum mxbpf_kind)71) /* user: what the driver says, struct mxbpf_gpu_used */

enum mxbpf_gpu_used_flag {
	MXBPF_GPU_USED_DIVIDED = 1 << 0, /* MIG divides the GPU: the rest is not set */
};
#define MXBPF_GPU_USED_UNKNOWN (~0ull)

/*
 * The memory of a GPU at one moment, as NVIDIA's driver counts it (NVML). total_bytes is the sum of driver_bytes,
 * used_bytes and the free memory. Since 2.2.
 */
struct mxbpf_gpu_used {
	struct mxbpf_rec h; /* ts_ns: when it was asked; tgid: the process of own_bytes; 0: none is looked for */
	__u64 total_bytes;  /* of the GPU; 0: not known */
	__u64 driver_bytes; /* kept by the driver for itself; 0: none, or they are in used_bytes */
	__u64 used_bytes;   /* in use by processes, or by what the driver does not list */
	__u64 own_bytes;    /* of used_bytes, of the process; MXBPF_GPU_USED_UNKNOWN: the driver does not say */
	__u64 others_bytes; /* of used_bytes, of other processes that the driver lists */
	__u32 others;	    /* number of these processes */
	__u32 gpu;	    /* as nvidia-smi numbers it */
	__u32 pci_domain, pci_bus, pci_device;
	__u32 flags; /* enum mxbpf_gpu_used_flag */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_used) == 80);

#define MXBPF_GPU_INSIDE	 ((enum mxbpf_kind)72) /* user: what a device's memory is made of, struct mxbpf_gpu_inside */
#define MXBPF_GPU_INSIDE_UNKNOWN (~0ull)

/* Memory that calls of CUDA have allocated in the window, on a device of the runtime. Since 2.2. */
struct mxbpf_gpu_inside {
	struct mxbpf_rec h;	  /* ts_ns: 0 */
	__u64 calls_bytes;	  /* not freed, besides segments of the allocator */
	__u64 largest_free_bytes; /* largest free piece of the allocator's segments */
	__u32 device;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_inside) == 40);

#endif
