/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines for a program that reads along, such as a log shipper: into a file that grows, a FIFO, or stdout. A thread
 * writes them, so a reader that does not read, or a disk that does not answer, never holds the session up. What waits
 * is bounded: further lines are left out and counted.
 */
#ifndef CMD_SERVE_STREAM_H
#define CMD_SERVE_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define STREAM_BYTES (4u << 20) /* that wait at most; as many are being written */

struct stream;

/* "-" is stdout. A file of the caller is continued; a new one has mode 0600. 0, or -errno with e set. */
int stream_open(const char *path, struct stream **to, struct err *e);
/* How many lines were left out since the last line that said so. */
uint64_t stream_left_out(struct stream *s);
/* Hands over a line with its line feed, which says that `told` lines were left out before it. Never waits. */
void stream_put(struct stream *s, const char *line, size_t len, uint64_t told);
void stream_skip(struct stream *s); /* a line could not be made */
/* Writes what waits, if the reader takes it within a second. NULL is legal. */
void stream_close(struct stream *s);

#endif
