/* SPDX-License-Identifier: Apache-2.0 */
/* The option table, from which --help, the manual and the completion are made. */
#ifndef CMD_OPTS_H
#define CMD_OPTS_H

#include "cmd/cmd.h"
#include "cmd/option.h"

extern struct cmd_option cmd_options[]; /* ends with name == NULL */
/* Fills the table from opts.c and from the features. main() calls it before it parses anything. */
void cmd_init_options(void);

/* "help; ARG: word, word (default x)". Returns buf. */
const char *cmd_option_text(const struct cmd_option *opt, char buf[512]);

struct cmd_exit_text {
	enum cmd_exit code;
	const char *text;
};
extern const struct cmd_exit_text cmd_exits[]; /* ends with text == NULL */

/* --help, --version and --generate print on stdout and return an exit code. */
int cmd_print_help(const struct cmd *c);
int cmd_print_version(const struct cmd *c);
int cmd_print_man(const struct cmd *c);
int cmd_print_completion(const struct cmd *c);
int cmd_print_schema(const struct cmd *c);
/* Prints the synopses on stderr. */
void cmd_print_usage(void);

#endif
