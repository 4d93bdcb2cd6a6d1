/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a launched command an injection library for NVTX (lib/nvtx.c). */
#ifndef NVTX_NVTX_H
#define NVTX_NVTX_H

/*
 * Names the library in the environment of mxbpf, from which the command gets its own. The library is a file in memory,
 * and the command inherits its descriptor, so nothing is left behind however the command ends. Returns the descriptor,
 * or -errno: -EBUSY: another tool is named there already.
 */
int nvtx_offer(void);
/* After the command has been forked. fd: from nvtx_offer(), or negative. */
void nvtx_withdraw(int fd);

#endif
