/* SPDX-License-Identifier: Apache-2.0 */
/* How a module says why: it fills a struct err and returns -errno; only user/cmd prints. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

/* What the user can do about it; decides the exit code. */
enum err_class {
	ERR_RUNTIME = 1,   /* something failed */
	ERR_USAGE = 2,	   /* the words on the command line */
	ERR_TARGET = 3,	   /* target missing, or nothing in it to attach to */
	ERR_PRIVILEGE = 4, /* permission or kernel feature; `why` names the remedy */
};

struct err {
	int code;	    /* -errno, 0 while unset */
	enum err_class cls; /* 0 while unset; read as ERR_RUNTIME */
	char why[512];	    /* one line, no newline, no "error:" prefix */
};

/* Sets *e (NULL: nothing) unless it is set already: the innermost reason is kept. Returns code. */
int err_set(struct err *e, enum err_class cls, int code, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
