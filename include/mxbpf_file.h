/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording, which `mxbpf record` writes and `report` and `export` read. Little-endian.
 *
 * [file header][meta chunk][pad to slot_bytes][slot 0][slot 1]...[slot n-1][end chunks]
 *
 * A slot holds whole chunks one after another, padded with zeros. It needs no other slot, because it has the names
 * that its records use, before their first use. So a file that is cut at any byte is readable, and so is one whose
 * oldest slots were overwritten (--max-size). Every header and chunk has a CRC-32 (zlib). The end chunks
 * (aggregates, and meta again with the final window and loss) are written when the session ends normally, and
 * header.flags says so. Without them the reader folds the spans and reports an incomplete file.
 */
#ifndef MXBPF_FILE_H
#define MXBPF_FILE_H

#include "mxbpf_event.h"
#include "mxbpf_loss.h"

#define MXBPF_FILE_MAGIC "MXBPFREC"
/*
 * Version of the format. A reader refuses a newer major version. A minor version adds kinds of records, or fields
 * at the end of a record. A reader skips kinds and fields that it does not know, and takes fields that an older
 * recording lacks as 0. So every reader reads every minor version, and all versions before its own.
 * 1.0: the first version
 * 1.1: activities of devices and their edges: MXBPF_ACTIVITY, MXBPF_LAUNCH, MXBPF_AGG_ACTIVITY (mxbpf_track.h)
 * 1.2: calls that an exception left: MXBPF_AGG_RAISED (mxbpf_raised.h)
 * 1.3: lines of Python: MXBPF_AGG_LINE (mxbpf_lines.h); CPU time of processes: MXBPF_NEIGHBOUR (mxbpf_neighbours.h)
 * 1.4: single looks at threads: MXBPF_LOOK (mxbpf_lines.h); mxbpf_neighbour.runq_ns and .cpus;
 *      Python stacks of allocations and of owners of memory: stack_id of MXBPF_ALLOC and MXBPF_MEM_OWNER
 * 1.5: more members of MXBPF_ACTIVITY and MXBPF_LAUNCH, waits for devices, MXBPF_GPU_DEVICE, MXBPF_GPU_ACCOUNT
 *      (mxbpf_track.h), their rows, and what iterations launch on GPUs; calls of CUDA: MXBPF_CLASS_CUDA
 * 2.0: what watching costs: MXBPF_AGG_COST (mxbpf_cost.h), and the cost behind spans and in iterations. A reader of 1.x
 *      would take the cost behind a short span for its first detail, and times with the cost for those without.
 *      calls that are seen in a part of the window: MXBPF_PARTIAL, and that part: MXBPF_SLICE (mxbpf_cost.h)
 * 2.1: why GPUs ran nothing: MXBPF_AGG_GPU_IDLE (mxbpf_track.h)
 * 2.2: launches, queues and types of work, critical paths: MXBPF_AGG_GPU_LAUNCH, MXBPF_AGG_GPU_TYPES, MXBPF_GPU_PATH,
 *      MXBPF_GPU_SEQUENCE (mxbpf_queue.h)
 *      when GPUs ran nothing, and why in each iteration: MXBPF_GPU_IDLE, MXBPF_GPU_STEP (mxbpf_track.h), and times of
 *      threads off the CPU for that: MXBPF_OFF_CPU (mxbpf_sched.h)
 *      which operators captured CUDA graphs: MXBPF_GRAPH_NODE, MXBPF_AGG_GPU_GRAPH (mxbpf_graph.h)
 *      operators by shapes on GPUs: MXBPF_AGG_GPU_ROOF, MXBPF_GPU_LIMITS (mxbpf_roofline.h)
 *      hardware counters of kernels: MXBPF_KERNEL_METRIC, MXBPF_AGG_KERNEL_METRICS (mxbpf_kernels.h)
 *      more members of MXBPF_GPU_DEVICE
 *      collectives: MXBPF_COLLECTIVE, MXBPF_AGG_COLLECTIVE, MXBPF_AGG_OVERLAP (mxbpf_collective.h)
 *      starts of ranges, and kernels by range: MXBPF_RANGE, MXBPF_AGG_RANGE (mxbpf_range.h); range_id of MXBPF_GROUP
 *      when records were lost: MXBPF_LOST (mxbpf_loss.h), and iterations of that time: MXBPF_ITERATION_LOST
 *      memory of devices: MXBPF_GPU_ALLOC, MXBPF_GPU_USED, MXBPF_GPU_INSIDE, and memory that was out: MXBPF_MEM_FAILED,
 *      MXBPF_MEM_HOLDER (mxbpf_memory.h)
 * 2.3: what threads do at single looks: mxbpf_look.flags; memory of processes: MXBPF_RESIDENT (mxbpf_lines.h)
 * 3.0: tables that say what their columns are: MXBPF_TABLE (mxbpf_table.h). Earlier readers would show those that are
 *      written so as empty: OpenMP teams, samples, calls that an exception left, backward times, kernels by range,
 *      times off the CPU, lines, instants, user counters, waits for operators, rates of GPUs, operators by shapes on
 *      GPUs and counters of kernels. Their rows in earlier recordings are still read (user/records/old.c).
 * 3.1: more tables that are written so: waits for GPUs, launches of processes, lives of operators, calls of parameter
 *      stores, and calls of CUDA for memory. No release wrote 3.0, whose readers would show these as empty.
 * 3.2: looks at Python's garbage collector, pages that were touched, connections of ranks: MXBPF_COLLECTOR,
 *      MXBPF_TOUCHED, MXBPF_NETWORK; modes for debugging, as a table; more members of MXBPF_RESIDENT, MXBPF_LOOK,
 *      MXBPF_AGG_LINE and MXBPF_NEIGHBOUR
 */
#define MXBPF_FILE_MAJOR  3
#define MXBPF_FILE_MINOR  2
#define MXBPF_SLOT_BYTES  (256u << 10)
#define MXBPF_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */

enum mxbpf_file_flag {
	MXBPF_FILE_COMPLETE = 1 << 0, /* end chunks were written and synced */
};

struct mxbpf_file_header {
	char magic[8];
	__u16 major, minor;
	__u32 header_bytes; /* size of this header */
	__u64 flags;
	__u64 slots_off; /* offset of slot 0, a multiple of slot_bytes */
	__u64 slot_bytes;
	__u64 end_off; /* offset of the end chunks; 0: incomplete */
	__u64 reserved;
	__u32 pad;
	__u32 crc; /* CRC of the bytes before this member */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_file_header) == 64);

enum mxbpf_chunk_kind {
	MXBPF_CHUNK_META = 1, /* JSON text, schema in user/record/meta.c */
	MXBPF_CHUNK_DATA = 2, /* records in no particular order */
	MXBPF_CHUNK_AGG = 3,  /* names and sums of the whole window, made by mdl_emit() */
	MXBPF_CHUNK_END = 4,  /* empty last chunk */
};

struct mxbpf_chunk {
	__u32 magic;
	__u16 kind;
	__u16 pad;
	__u32 payload_bytes;	/* bytes after this header; a multiple of 8, META is padded with NUL */
	__u32 crc;		/* CRC of this header with crc = 0, then of the payload */
	__u64 seq;		/* number of the chunk in the session */
	__u64 dropped;		/* records in slots overwritten so far (--max-size) */
	struct mxbpf_loss loss; /* loss known when the chunk was written */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_chunk) == 80);

#endif
