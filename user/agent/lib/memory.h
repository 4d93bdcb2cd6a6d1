/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the memory of PyTorch's CPU allocator. Any thread may call these functions. */
#ifndef AGENT_LIB_MEMORY_H
#define AGENT_LIB_MEMORY_H

/* Does nothing if mxbpf has not named the entries. Returns 0, or -EBUSY if somebody else has changed one of them. */
int agent_memory_start(void);
void agent_memory_stop(void);

#endif
