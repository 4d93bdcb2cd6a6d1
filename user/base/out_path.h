/* SPDX-License-Identifier: Apache-2.0 */
/* Where an output goes: the part of out.h that deals with paths. Private to user/base. */
#ifndef BASE_OUT_PATH_H
#define BASE_OUT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* What out_place_find() found at the path. */
enum out_what {
	OUT_NOTHING, /* free: a file can be made there */
	OUT_FILE,    /* a plain file, to be replaced */
	OUT_STREAM,  /* a character device or FIFO: written directly */
	OUT_STDOUT,
};

/* A destination, held by its directory so that nobody can exchange that one afterwards. */
struct out_place {
	enum out_what what;
	int dirfd;	   /* owned, O_PATH; -1 for OUT_STDOUT */
	bool link;	   /* OUT_STREAM behind one of the system's own links (/dev/fd/63) */
	char base[256];	   /* name in the directory */
	const char *shown; /* borrowed: the path as given, for messages */
};

/* 0, or -errno with e set and nothing held. */
int out_place_find(const char *path, struct out_place *p, struct err *e);
void out_place_fini(struct out_place *p);

/* An unnamed file in the directory, 0600: O_TMPFILE, else a temporary file, whose name is put into tmp (else ""). fd or
 * -errno. */
int out_place_unnamed(int dirfd, int flags, char tmp[64]);
/* Whether stdout can be written to: 0 or -errno. */
int out_place_stdout(void);
/* ".mxbpf-" and 16 random digits. */
void out_place_tmp(char tmp[64]);
/* Under sudo the file belongs to who called it. 0 or -errno. */
int out_place_chown(int fd);

/* "cannot write PATH: reason" */
int out_place_err(struct err *e, const char *path, int code);

#endif
