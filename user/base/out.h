/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file that root can be trusted to write: nobody's symlink is followed, a half-written file never
 * bears the final name, the owner is who called sudo, and a full disk is reported (also by fsync and close).
 */
#ifndef BASE_OUT_H
#define BASE_OUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct out;

/*
 * Whether out_open() (and the recorder) could write there: parent exists, is writable, the name is free or a plain
 * file, no symlink. To be called before anything is attached. "-" is stdout, which must not be closed.
 */
int out_check(const char *path, struct err *e);

/*
 * path "-": stdout. Else an unnamed (O_TMPFILE) or temporary file beside path, mode 0600, that out_commit() renames
 * onto it. A character device or FIFO is written directly. gzip: the bytes are compressed on the way. SIGPIPE and
 * SIGXFSZ are to be ignored by the program, or they come before the error does.
 */
int out_open(const char *path, bool gzip, struct out **o, struct err *e);
/* The same for results that come one after another: a file is made anew under its own name at once, and grows. */
int out_open_growing(const char *path, bool gzip, struct out **o, struct err *e);

/* Buffered. After an error further writes are ignored; the error is out_error() and what out_commit() returns. */
void out_write(struct out *o, const void *data, size_t n);
void out_puts(struct out *o, const char *text);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* n contiguous bytes of buffer to fill directly (n <= 4096), then out_filled() with how many were used. */
char *out_reserve(struct out *o, size_t n);
void out_filled(struct out *o, size_t used);
/* While on, line breaks and the blanks behind them are left out: JSON that is laid out in lines becomes one. */
void out_join_lines(struct out *o, bool on);
/* Hands on what was written so far, to whoever reads the output while it grows. 0 or -errno with e set. */
int out_flush(struct out *o, struct err *e);
int out_error(const struct out *o);	 /* 0 or -errno */
uint64_t out_bytes(const struct out *o); /* written so far, before compression */

/* Flush, sync, chown to SUDO_UID/SUDO_GID, rename. Frees o. 0 or -errno with e set ("cannot write PATH: No space left
 * on device"). */
int out_commit(struct out *o, struct err *e);
/* Leaves nothing behind. Frees o; NULL is legal. */
void out_abort(struct out *o);

/* Beginning and end of a file, decompressed if it is compressed. */
#define OUT_PART_BYTES (64u << 10)
struct out_parts {
	size_t head_len, tail_len;
	char head[OUT_PART_BYTES], tail[2 * OUT_PART_BYTES];
};
/* Whether there is a plain file with something in it that an output of this path would replace. */
bool out_read_existing(const char *path, struct out_parts *p);

/* Creates path anew for read and write: an existing plain file is unlinked first, O_EXCL|O_NOFOLLOW, 0600, chowned to
 * SUDO_UID. fd or -errno. */
int out_create(const char *path, struct err *e);
/* An unnamed file for scratch data in the directory of path ("-" or NULL: TMPDIR, else /tmp). fd or -errno. */
int out_scratch(const char *path, struct err *e);

#endif
