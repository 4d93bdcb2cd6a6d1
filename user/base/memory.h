/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One limit for the memory of this process. What a target makes grow (tables, names, queues) takes its memory through
 * these functions: buffers and hashes do so by themselves. Beyond the limit there is none, as if malloc() had failed,
 * and the caller counts what it could not keep. All functions may be called from any thread.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_LIMIT_DEFAULT (512ull << 20) /* bytes */
#define MEM_LIMIT_MIN	  (128ull << 20)

/* Sets the limit of the whole process, in bytes. 0: no limit, which is the state at the start. */
void mem_limit(uint64_t bytes);
uint64_t mem_limit_bytes(void);
/*
 * Changes the limit by as much as a recording takes on the disk, while it is open: its size has a limit of its own
 * (--max-size), and an output of all events needs less memory than they take there. Without a limit nothing changes.
 */
void mem_allow(int64_t bytes);
/* Returns freed memory to the kernel. The C library keeps it otherwise: 44 MB after attaching to PyTorch. */
void mem_trim(void);
/*
 * Measures what the process holds besides memory that was taken here (code, libraries, rings), which counts against the
 * limit too. collecting: keep an eighth of the limit free for the outputs, which come after the last record. Otherwise
 * they have that eighth, even if the process holds more than the limit by then.
 */
void mem_measure(bool collecting);
/* While on, the calling thread may go beyond the limit: for the few bytes that say what was lost. */
void mem_insist(bool on);
uint64_t mem_used(void);    /* bytes that are taken now */
uint64_t mem_refused(void); /* how often there was not enough left */

/* These replace malloc(), calloc(), realloc() and free(). Free memory of the first three by mem_free() only. */
void *mem_alloc(size_t bytes);
void *mem_zalloc(size_t bytes);
void *mem_resize(void *at, size_t bytes); /* at NULL is legal; if it returns NULL, the memory at `at` stays as it was */
void mem_free(void *at);		  /* NULL is legal */

#endif
