/* SPDX-License-Identifier: Apache-2.0 */
/* The option table, for those that print it: --help, man page, completion. */
#ifndef CMD_OPTS_H
#define CMD_OPTS_H

#include "cmd/cmd.h"

enum cmd_bit {
	CMD_BIT_ATTACH = 1 << 0,
	CMD_BIT_RECORD = 1 << 1,
	CMD_BIT_REPORT = 1 << 2,
	CMD_BIT_EXPORT = 1 << 3,
	CMD_BIT_CHECK = 1 << 4,
	CMD_BIT_LIST = 1 << 5,
	CMD_BIT_NOW = 1 << 6,
	CMD_BIT_HELP = 1 << 7, /* the last */
};

/* An option as one command or several mean it; a name may have a second row for others. */
struct cmd_option {
	const char *name;
	char letter;	   /* 0: none */
	const char *arg;   /* what its value is called; NULL: takes none */
	const char *group; /* heading in --help; NULL: hidden */
	unsigned commands; /* that take it, mask of enum cmd_bit */
	unsigned required; /* of these, the ones that need it */
	bool of_events;	   /* means nothing where none are kept */
	const char *help;
	const char *def; /* the default in words; NULL: not worth saying */
	int (*set)(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
	size_t field; /* offset in struct cmd_opts that set() fills */
	uint64_t min, max;
	const char *(*word)(unsigned i);      /* values it takes, NULL behind the last; NULL: no fixed ones */
	const char *(*word_help)(unsigned i); /* what each of them means; NULL: they speak for themselves */
};
extern struct cmd_option cmd_options[]; /* ends with name == NULL */
void cmd_init_options(void);		/* fills it; the first thing that main() does */

/* "help; ARG: word, word (default x)". Returns buf. */
const char *cmd_option_text(const struct cmd_option *opt, char buf[512]);

struct cmd_exit_text {
	enum cmd_exit code;
	const char *text;
};
extern const struct cmd_exit_text cmd_exits[]; /* ends with text == NULL */

/* --help, --version and --generate: print on stdout, return an exit code. */
int cmd_print_help(const struct cmd *c);
int cmd_print_version(const struct cmd *c);
int cmd_print_man(const struct cmd *c);
int cmd_print_completion(const struct cmd *c);
int cmd_print_schema(const struct cmd *c);
/* The synopses, on stderr. */
void cmd_print_usage(void);

#endif
