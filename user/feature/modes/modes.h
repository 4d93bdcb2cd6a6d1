/* SPDX-License-Identifier: Apache-2.0 */
/* Modes for debugging that are on in the processes of a session: by their environment, by flags in their memory. */
#ifndef FEATURE_MODES_H
#define FEATURE_MODES_H

#include "model/feature.h"

/* The numbers are stored in recordings. */
enum mode {
	MODE_ANOMALY,		  /* of autograd */
	MODE_DETERMINISTIC,	  /* algorithms of PyTorch */
	MODE_DETERMINISTIC_CUDNN, /* of cuDNN alone */
	MODE_SETTRACE,		  /* the interpreter calls a function for each line */
	MODE_SETPROFILE,	  /* for each call */
	MODE_COVERAGE,
	MODE_CPROFILE,
	MODE_TORCH_PROFILER,
	MODE_TRACEMALLOC,
	MODE_LAUNCH_BLOCKING, /* from here on by the environment */
	MODE_NAIVE_ENGINE,
	MODE_NO_CACHING,
	MODE_MXNET_PROFILER,
	MODE_MALLOC,
	MODE_DEVELOPMENT,
	MODE_NCCL_WAIT,
	MODE_DISTRIBUTED_DEBUG,
	MODE_VERBOSE,
	MODES
};

struct mode_row {
	uint32_t tgid;
	uint32_t mode;	 /* enum mode */
	uint64_t seen;	 /* readings that found it on */
	uint64_t looked; /* readings of the process until then */
	uint64_t line;	 /* that turns it on: a name of kind MXBPF_NAME_STACK; 0: not known */
};

extern const struct mdl_feature feature_modes;
extern const struct ses_feature modes_session;
extern const struct tbl_def modes_table; /* of struct mode_row */

#endif
