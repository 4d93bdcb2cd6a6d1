/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file that root can write safely: it follows no symlink of another user, an incomplete file never has the
 * final name, the file belongs to the caller of sudo, and a full disk is reported (by fsync() and close(), too).
 */
#ifndef BASE_OUT_H
#define BASE_OUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

struct out;

/*
 * Checks that out_open() and the recorder can write to path: the directory exists and is writable, and the name is free
 * or a plain file, but no symlink. Call it before probes are attached. "-" is stdout, which must be open.
 */
int out_check(const char *path, struct err *e);

/*
 * Opens an output. "-" is stdout. Otherwise it makes an unnamed (O_TMPFILE) or temporary file next to path with mode
 * 0600, and out_commit() renames it to path. A character device or FIFO is written directly. gzip compresses the bytes.
 * The program must ignore SIGPIPE and SIGXFSZ, because they would arrive before the error.
 */
int out_open(const char *path, bool gzip, struct out **o, struct err *e);
/* Opens an output for results that come one after another: the file gets its own name at once and grows. */
int out_open_growing(const char *path, bool gzip, struct out **o, struct err *e);

/*
 * The output is for programs of other users: anybody may read the file. It is not synced, because the next one replaces
 * it soon, and after a crash of the machine nobody misses it.
 */
void out_share(struct out *o);

/* Opens an output whose bytes go to a function. out_flush() hands over the rest, and out_abort() ends it. */
typedef void (*out_take)(void *ctx, const char *data, size_t n);
int out_open_take(out_take take, void *ctx, struct out **o);

/* Writes to a buffer. After an error further writes are ignored, and out_error() and out_commit() return the error. */
void out_write(struct out *o, const void *data, size_t n);
void out_puts(struct out *o, const char *text);
/* Writes text that a function like fmt_json() makes safe. */
typedef size_t (*out_escape)(char *dst, size_t cap, const char *src, size_t len);
void out_escaped(struct out *o, out_escape escape, const char *text, size_t len);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Returns n contiguous bytes of the buffer to fill (n <= 4096). Then call out_filled() with the number of bytes used.
 */
char *out_reserve(struct out *o, size_t n);
void out_filled(struct out *o, size_t used);
/* While on, line breaks and the blanks after them are left out, so that JSON becomes one line. */
void out_join_lines(struct out *o, bool on);
/* While a filter is on, characters of what is written are replaced. */
enum out_filter {
	OUT_AS_IS,
	OUT_HTML,   /* < > & " ' become entities, so the text can stand anywhere between tags or in an attribute */
	OUT_SCRIPT, /* JSON that can stand in an element <script>: < becomes \u003c */
};
void out_filter(struct out *o, enum out_filter filter);
/* Writes the buffer, for readers of a growing output. Returns 0, or -errno with e set. */
int out_flush(struct out *o, struct err *e);
int out_error(const struct out *o);	 /* 0 or -errno */
void out_fail(struct out *o, int err);	 /* as if a write had failed with -errno: what was to be written is not known */
uint64_t out_bytes(const struct out *o); /* bytes written so far, before compression */

/*
 * Flushes, syncs, changes the owner to SUDO_UID/SUDO_GID, and renames. Frees o. Returns 0, or -errno with e set
 * ("cannot write PATH: No space left on device").
 */
int out_commit(struct out *o, struct err *e);
/* Discards the output. Frees o; NULL is legal. */
void out_abort(struct out *o);

/*
 * A directory with output files. What root writes in it is as safe as a single output: no folder in it is reached
 * through a symlink, and new folders have mode 0700 and belong to the caller of sudo. A file `mark` says that mxbpf has
 * made the directory.
 */
struct out_dir;
/* Checks that out_dir_open() can make the directory, or that it is one with the mark, or empty. 0, or -errno with e
 * set. */
int out_dir_check(const char *path, const char *mark, struct err *e);
/* `text`: content of the mark of a new directory. */
int out_dir_open(const char *path, const char *mark, const char *text, struct out_dir **d, struct err *e);
/*
 * Opens an output in it like out_open(); `at` is "folder/folder/name". Makes the folders that are missing. The output
 * can be committed after out_dir_close().
 */
int out_dir_file(const struct out_dir *d, const char *at, struct out **o, struct err *e);
void out_dir_close(struct out_dir *d); /* NULL is legal */

/* The start and the end of a file after decompression. */
#define OUT_PART_BYTES (64u << 10)
struct out_parts {
	size_t head_len, tail_len;
	char head[OUT_PART_BYTES], tail[2 * OUT_PART_BYTES];
};
/*
 * Reads the parts of a plain, non-empty file that an output to this path would replace. Returns false if there is none.
 */
bool out_read_existing(const char *path, struct out_parts *p);

/* Deletes the plain file at path. Returns 0, or -errno with e set. */
int out_remove(const char *path, struct err *e);

/*
 * Creates path for read and write with O_EXCL|O_NOFOLLOW and mode 0600, owned by SUDO_UID. Unlinks an existing plain
 * file first. Returns an fd or -errno.
 */
int out_create(const char *path, struct err *e);
/* Like out_create() in this directory, where the last part of path is the name. Nothing is replaced: -EEXIST. */
int out_create_new(int dirfd, const char *path, struct err *e);
uid_t out_owner(void); /* who owns the files that are written */
/*
 * Opens the directory of path with the checks of out_open(), and writes the name in it to base. Returns an O_PATH fd,
 * or -errno with e set.
 */
int out_open_dir(const char *path, char base[256], struct err *e);
/* Makes the directory at path unless that name is there. Returns 0, or -errno with e set. */
int out_dir_make(const char *path, struct err *e);
/*
 * Makes a new directory beside path. Its name, which nobody has, goes to name, and the directory around it to *parent.
 * Refuses if the files would be root's and another user could exchange them. Returns an fd, or -errno with e set. The
 * caller owns both descriptors.
 */
#define OUT_BESIDE_BYTES 13 /* the length of the name */
int out_dir_beside(const char *path, char name[64], int *parent, struct err *e);
/* Who owns a pipe decides how long root waits for a reader, and who reads. */
bool out_foreign_pipe(const struct stat *st);
/*
 * Makes an unnamed scratch file in the directory of path. "-" or NULL means TMPDIR or else /tmp. Returns an fd or
 * -errno.
 */
int out_scratch(const char *path, struct err *e);

#endif
