/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes that mxbpf knows, as constant tables with one file each. A new runtime needs a file and a line in
 * registry.c.
 */
#ifndef ADAPTER_ADAPTER_H
#define ADAPTER_ADAPTER_H

#include "plan/probe.h"

extern const struct adp adapter_mxnet, adapter_pytorch;

extern const struct adp *const adapters[]; /* NULL-terminated */

extern const char *const adp_all[]; /* adp_probe.always: every function of a row */

/* Rows that are used in addition to those of every runtime. The last one of a table has no name. */
extern const struct adp_probe adapter_openmp, adapter_cuda[], adapter_nvtx[];

/* The queues of PyTorch's process groups. The last row has no function. */
extern const struct adp_queue adapter_pytorch_queues[];

#endif
