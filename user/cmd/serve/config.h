/* SPDX-License-Identifier: Apache-2.0 */
/* A file of options: on each line "name" or "name = value", as on the command line without the dashes; # begins a
 * comment. */
#ifndef CMD_SERVE_CONFIG_H
#define CMD_SERVE_CONFIG_H

#include "cmd/option.h"

/* A command line: that of the file, and then what was given. The options borrow its texts. */
struct config {
	struct buf text, argv; /* argv: char *, with a NULL at its end */
};

/*
 * Reads a file that belongs to root or to the caller, and that nobody else can write. Fills o from it and from what was
 * given on the command line, which counts more. 0, or -errno with e set; call config_fini() in both cases, and not
 * before o is done with.
 */
int config_read(struct config *f, const struct cmd_opts *given, const char *path, struct cmd_opts *o, struct err *e);
void config_fini(struct config *f);

#endif
