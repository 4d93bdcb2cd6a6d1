/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the memory of PyTorch's allocators. Any thread may call these functions. */
#ifndef AGENT_LIB_MEMORY_H
#define AGENT_LIB_MEMORY_H

/*
 * Makes the entries that mxbpf has named lead to the agent. Returns 0, or -EBUSY if somebody else has changed one that
 * it cannot do without.
 */
int agent_memory_start(void);
/* Makes them lead there again if a late agent_memory_stop() of another thread has restored them. */
void agent_memory_keep(void);
/* Restores them. */
void agent_memory_stop(void);

#endif
