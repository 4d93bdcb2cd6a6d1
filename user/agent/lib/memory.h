/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the memory of PyTorch's allocators. Any thread may call these functions. */
#ifndef AGENT_LIB_MEMORY_H
#define AGENT_LIB_MEMORY_H

/*
 * Redirects to the agent the entries that mxbpf has named. Returns 0, or -EBUSY if somebody else has changed an entry
 * that the agent cannot do without.
 */
int agent_memory_start(void);
/* Redirects the entries again if a late agent_memory_stop() of another thread has restored them. */
void agent_memory_keep(void);
/* Restores the entries. */
void agent_memory_stop(void);

#endif
