/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --no-bpf: a command whose GPU is recorded without probes. CUDA's driver loads the agent into each process that
 * initialises CUDA (CUDA_INJECTION64_PATH), and the agent writes a file, which becomes a part of the recording when the
 * command has ended. This needs neither BPF nor root. Operators are not recorded.
 *
 * Call gpu_only_open, gpu_only_run, gpu_only_write, gpu_only_free, once each and in this order.
 */
#ifndef GPU_ONLY_GPU_ONLY_H
#define GPU_ONLY_GPU_ONLY_H

#include "session/session.h"

struct gpu_only;

/*
 * Starts the command, which waits. The agent and its files are in a directory beside the recording. Of the options it
 * uses command, recording, cupti and max_bytes, and of ui tell(). Returns 0, or -errno with e set; *g is NULL only
 * without memory. o is borrowed until gpu_only_free().
 */
int gpu_only_open(const struct ses_opts *o, const struct ses_ui *ui, struct gpu_only **g, struct err *e);
/*
 * Lets the command run and waits for its end. Forwards signals from the signalfd. Returns its exit code, or 128 +
 * signal; if it cannot run,
 * e is set.
 */
int gpu_only_run(struct gpu_only *g, int signals, struct err *e);
/* Writes the recording and removes the agent's files. Returns 0, or -errno with e set. */
int gpu_only_write(struct gpu_only *g, struct err *e);
/* The description of the recording. Borrowed. */
const struct mdl_session *gpu_only_about(const struct gpu_only *g);
void gpu_only_free(struct gpu_only *g); /* NULL is allowed */

#endif
