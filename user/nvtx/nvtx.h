/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a launched command, or a process that runs already, an injection library for NVTX (lib/nvtx.c). */
#ifndef NVTX_NVTX_H
#define NVTX_NVTX_H

#include <stdint.h>

/*
 * The library, and its function void offer(uint64_t variable): NVTX's functions of NVIDIA's headers look into the
 * variable for a tool when a library calls them for the first time. Bit 0 is set for the tool of extensions.
 */
extern const unsigned char nvtx_image[];
extern const uint64_t nvtx_image_bytes;
#define NVTX_NAME      "mxbpf/libnvtx.so" /* of its file in memory, as in each_lib of user/adapter/nvtx.c */
#define NVTX_OFFER     "mxbpf_nvtx_offer"
#define NVTX_TOOL      "InitializeInjectionNvtx2_fnptr"
#define NVTX_EXTENSION "InitializeInjectionNvtxExtension_fnptr"
#define NVTX_STATE     "nvtxGlobals_v3" /* its first word is 0 until the library calls NVTX */

/*
 * Names the library in the environment of mxbpf, from which the command gets its own. The library is a file in memory,
 * and the command inherits its descriptor, so nothing is left behind however the command ends. Returns the descriptor,
 * or -errno: -EBUSY: another tool is named there already.
 */
int nvtx_offer(void);
/*
 * In the command's process, before the command is executed: the library gets a path that names this process. So the
 * processes that it starts find the library even if they close all descriptors, as workers of torchrun do.
 */
void nvtx_in_child(char **env);
/* After the command has been forked. fd: from nvtx_offer(), or negative. */
void nvtx_withdraw(int fd);

#endif
