/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: a module fills a struct err and returns -errno. Only user/cmd prints it. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

/* What the user can do about the error. It decides the exit code. */
enum err_class {
	ERR_RUNTIME = 1,   /* something failed */
	ERR_USAGE = 2,	   /* wrong command line */
	ERR_TARGET = 3,	   /* no target process, or nothing in it to attach to */
	ERR_PRIVILEGE = 4, /* missing permission or kernel feature; `why` says how to get it */
};

struct err {
	int code;	    /* -errno; 0 while unset */
	enum err_class cls; /* 0 while unset, which means ERR_RUNTIME */
	char why[512];	    /* one line without a newline or an "error:" prefix */
};

/* Sets *e unless it is set already, so that the innermost reason stays. e may be NULL. Returns code. */
int err_set(struct err *e, enum err_class cls, int code, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
