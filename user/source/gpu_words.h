/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's numbers of copies, kinds of memory and waits as words, and names of activities as PyTorch's profiler has
 * them. */
#ifndef SOURCE_GPU_WORDS_H
#define SOURCE_GPU_WORDS_H

#include <stdint.h>

/* By number, up to NULL; 0 is unknown. */
extern const char *const gpu_memories[], *const gpu_copies[], *const gpu_syncs[];

/* A number that has a word, or 0: a newer CUPTI may have numbers that are unknown here. */
unsigned gpu_known(const char *const *words, uint64_t number);

/* "Memcpy HtoD (Pinned -> Device)", "Memset (Device)", from known numbers. */
#define GPU_NAME_BYTES 96
void gpu_copy_name(char name[GPU_NAME_BYTES], unsigned copy, unsigned from, unsigned to);
void gpu_set_name(char name[GPU_NAME_BYTES], unsigned to);

#endif
