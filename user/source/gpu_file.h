/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the file of records that the agent writes where there is no BPF: the memory that it shares, then the batches.
 * The process may have been killed while it wrote, or the disk may have been full, so parts of the file may be zeros.
 * Nothing in the file is trusted.
 */
#ifndef SOURCE_GPU_FILE_H
#define SOURCE_GPU_FILE_H

#include "base/err.h"
#include "mxbpf_track.h"
#include "source/gpu_convert.h"

struct gpu_file;

/*
 * Reads the beginning of the file. fd is taken over, also on error. tgid: the process that wrote it. Returns 0, or
 * -errno with e set; -ENODATA: the agent was loaded, but has not started.
 */
int gpu_file_open(int fd, uint32_t tgid, struct gpu_file **f, struct err *e);
/* Tells the agent of a process that still runs to let go of CUPTI, and waits until it has, for at most `ms`. */
void gpu_file_stop(struct gpu_file *f, unsigned ms);
/* The agent's state when the file was opened or stopped. Borrowed. */
const struct mxbpf_gpu_shared *gpu_file_shared(const struct gpu_file *f);
/*
 * Converts the next part of the file. Appends to `texts` and `recs` of gpu_file_convert(), which the caller empties.
 * Returns 1, or 0 at the end of the file, when all is converted, or -errno.
 */
int gpu_file_next(struct gpu_file *f);
struct gpu_convert *gpu_file_convert(struct gpu_file *f);
/* What became of the records so far. `unsent` has those that the agent handed over and the file lacks. */
void gpu_file_account(const struct gpu_file *f, struct mxbpf_gpu_account *to);
void gpu_file_close(struct gpu_file *f); /* NULL is allowed */

#endif
