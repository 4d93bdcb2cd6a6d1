/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that databases of Nsight Systems and of nvprof have in common: tables of CUPTI's records, and ranges of
 * NVTX.
 */
#ifndef IMPORT_CUPTI_H
#define IMPORT_CUPTI_H

#include "base/buf.h"
#include "base/hash.h"
#include "import/sink.h"
#include "import/sqlite.h"
#include "mxbpf_range.h"

struct cupti {
	struct sink *s;
	struct db *db;
	int64_t base_ns;      /* what is added to times of the file */
	bool nsys;	      /* kinds of memory and ids of processes are those of Nsight Systems */
	bool shapes, numbers; /* some operator has them */
	bool operators;	      /* there are ranges of operators */
	struct hash kernels;  /* id of a text -> name_id of the readable name */
	struct buf text;
	uint64_t events;  /* rows that became records */
	uint64_t untimed; /* rows without a start, or with an end before it */
};

/* Takes kernels, copies, sets and waits. */
int cupti_activities(struct cupti *c, struct err *e);

/* A time of the file in ns. Returns false if there is none. */
bool cupti_time(const struct cupti *c, const struct db_row *row, unsigned column, uint64_t *ns);
/* The start and the duration. Counts rows that have none. */
bool cupti_times(struct cupti *c, const struct db_row *row, unsigned start, unsigned end, uint64_t *ns,
		 uint64_t *dur_ns);
/* The text of a cell, or of the id in it. */
const char *cupti_text(struct cupti *c, const struct db_row *row, unsigned column, size_t *len);
/* Process and thread in an id of Nsight Systems. */
uint32_t cupti_pid(uint64_t id);
uint32_t cupti_tid(uint64_t id);

/* A call of the runtime or the driver. "cudaLaunchKernel_v7000" is "cudaLaunchKernel". */
int cupti_call(struct cupti *c, struct mxbpf_span *call, const char *name, size_t len, uint64_t correlation);

/* A range of NVTX. */
struct cupti_range {
	uint32_t tgid, tid;
	uint64_t start_ns, dur_ns;
	const char *text;
	size_t len;
	bool apart;	    /* it need not be nested */
	bool is_operator;   /* it is one, whatever its name says */
	bool whole;	    /* its name stays whole */
	const char *domain; /* NULL: none */
	size_t domain_len;
	uint64_t category_id;
	struct mxbpf_range_data data;
};
/*
 * Ranges of PyTorch's emit_nvtx() are operators, whose sequence numbers and sizes are read from their names
 * ("aten::mm, seq = 12, op_id = 7, sizes = [[2, 3]]"). All others are user annotations.
 */
int cupti_range(struct cupti *c, const struct cupti_range *r);
int cupti_mark(struct cupti *c, const struct cupti_range *r);

/* Describes the session when all was read. Returns 0 or -ENOMEM. */
int cupti_describe(struct cupti *c);
void cupti_fini(struct cupti *c);

#endif
