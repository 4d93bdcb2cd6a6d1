/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer: one thread that copies records from the ring into chunks, and one that hands each chunk to
 * a callback and frees it. Formatting or writing in the first would lose data.
 */
#ifndef RING_RING_H
#define RING_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mxbpf_args.h"

struct ring;

/*
 * Called on the ring's second thread with whole, checked records, which it may change; they are freed afterwards.
 * A negative return stops nothing: remember it yourself.
 */
typedef void (*ring_chunk_fn)(void *ctx, void *recs, size_t bytes);

int ring_start(int ring_fd, ring_chunk_fn fn, void *ctx, struct ring **out, struct err *e);
/* Takes what is in the ring, hands over the last chunk, joins both threads. After detach. */
void ring_stop(struct ring *r);
void ring_free(struct ring *r); /* NULL is legal */

uint64_t ring_received(const struct ring *r);  /* records copied so far; any thread */
uint64_t ring_malformed(const struct ring *r); /* records refused by the check; 0 unless there is a bug */

/* The bytes of a name from BPF's map, and the tag of the row that read them: length, or -errno. text holds
 * MXBPF_NAME_BYTES_MAX. */
int ring_read_name(int names_fd, uint64_t id, char *text, unsigned *tag);

/* The words of an args_id from BPF's map: how many, or -errno. And a tensor by its word: 0 or -errno. */
int ring_read_args(int args_fd, uint64_t id, uint64_t words[MXBPF_ARG_WORDS_MAX]);
int ring_read_tensor(int tensors_fd, uint64_t word, struct mxbpf_tensor *out);

#endif
