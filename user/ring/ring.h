/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer of a ring. One thread copies records from the ring into chunks, and a second one passes each chunk to a
 * callback and frees it. Formatting or writing in the first thread would lose data.
 */
#ifndef RING_RING_H
#define RING_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mxbpf_args.h"

struct ring;

/*
 * Called on the second thread with checked records. It may change them, and they are freed afterwards. A negative
 * result does not stop the ring, so the callback must remember errors.
 */
typedef void (*ring_chunk_fn)(void *ctx, void *recs, size_t bytes);

int ring_start(int ring_fd, ring_chunk_fn fn, void *ctx, struct ring **out, struct err *e);
/* Drains the ring, passes on the last chunk and joins both threads. Call it after detach. */
void ring_stop(struct ring *r);
void ring_free(struct ring *r); /* NULL is legal */

/* All records that ended before this time were passed on; UINT64_MAX after the last one. From any thread. */
uint64_t ring_until_ns(const struct ring *r);
uint64_t ring_received(const struct ring *r);  /* records copied so far; from any thread */
uint64_t ring_malformed(const struct ring *r); /* records refused by the check; not 0 only if there is a bug */

/*
 * Reads the bytes of a name from BPF's map, and the tag of the row that read them. `text` has MXBPF_NAME_BYTES_MAX
 * bytes. Returns the length or -errno.
 */
int ring_read_name(int names_fd, uint64_t id, char *text, unsigned *tag);

/*
 * ring_read_args() reads the words of an args_id from BPF's map and returns their number or -errno. ring_read_tensor()
 * reads the tensor of a word and returns 0 or -errno.
 */
int ring_read_args(int args_fd, uint64_t id, uint64_t words[MXBPF_ARG_WORDS_MAX]);
int ring_read_tensor(int tensors_fd, uint64_t word, struct mxbpf_tensor *out);

#endif
