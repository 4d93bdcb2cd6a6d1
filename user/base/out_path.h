/* SPDX-License-Identifier: Apache-2.0 */
/* Private to user/base: the part of out.h that handles paths. */
#ifndef BASE_OUT_PATH_H
#define BASE_OUT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* The kind of thing that out_place_find() found at a path. */
enum out_what {
	OUT_NOTHING, /* nothing: a file can be created there */
	OUT_FILE,    /* a plain file that will be replaced */
	OUT_STREAM,  /* a character device or FIFO, which is written directly */
	OUT_STDOUT,
};

/* A destination. It holds the directory open, so that nobody can exchange it later. */
struct out_place {
	enum out_what what;
	int dirfd;	   /* owned, O_PATH; -1 for OUT_STDOUT */
	bool guarded;	   /* no other user can exchange a directory of the path, or what is in the last one */
	bool link;	   /* an OUT_STREAM behind a link of the system (/dev/fd/63) */
	char base[256];	   /* name in the directory */
	const char *shown; /* borrowed: the path as given, for messages */
};

/* Returns 0, or -errno with e set and nothing to free. */
int out_place_find(const char *path, struct out_place *p, struct err *e);
/* The place of the last component of path, in this directory. */
int out_place_in(int dirfd, const char *path, struct out_place *p, struct err *e);
/* Finds the directory and the name, whatever the name stands for; `what` is not set. Returns like out_place_find(). */
int out_place_reach(const char *path, struct out_place *p, struct err *e);
/* Opens an OUT_STREAM. Checks it again, because the name may have changed meanwhile. Returns an fd or -errno. */
int out_place_open_stream(const struct out_place *p);
void out_place_fini(struct out_place *p);
/* Returns whether another user may have made this in a directory where anybody may create names. */
bool out_place_planted(int dirfd, const struct stat *st);

/* out.c: opens an output like out_open(). Its name is the last component of path, and it is in this directory. */
struct out;
int out_open_in(int dirfd, const char *path, struct out **o, struct err *e);

/*
 * Creates an unnamed file in the directory with mode 0600: O_TMPFILE, or a temporary file whose name goes to tmp
 * (otherwise ""). Returns an fd or -errno.
 */
int out_place_unnamed(int dirfd, int flags, char tmp[64]);
/* Returns 0 if stdout is writable, or -errno. */
int out_place_stdout(void);
/*
 * Deletes temporary files of this user that are older than a minute and that nobody writes: mxbpf was killed before it
 * could give them their last name.
 */
void out_place_sweep(int dirfd);
/* Writes ".mxbpf-" and 16 random hexadecimal digits. */
void out_place_tmp(char tmp[64]);
/* Under sudo, gives the file to the calling user. Returns 0 or -errno. */
int out_place_chown(int fd);

/* Sets e to "cannot write PATH: reason". */
int out_place_err(struct err *e, const char *path, int code);

#endif
