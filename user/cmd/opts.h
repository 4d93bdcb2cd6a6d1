/* SPDX-License-Identifier: Apache-2.0 */
/* The option table, from which --help, the manual and the completion are made. */
#ifndef CMD_OPTS_H
#define CMD_OPTS_H

#include "cmd/cmd.h"
#include "cmd/option.h"

/* The groups of options, in the order of the help's pages. `mxbpf help` takes their names in lower case. */
struct cmd_group {
	const char *name; /* an option's `group` is one of these */
	const char *help;
};
#define CMD_NGROUPS 10
extern const struct cmd_group cmd_groups[CMD_NGROUPS];

extern struct cmd_option cmd_options[]; /* ends with name == NULL */
/* Fills the table from opts.c and from the features. main() calls it before it parses anything. */
void cmd_init_options(void);

/* Setters that only opts.c uses; option.h says what a setter does, and has those that features use as well. */
int cmd_set_pids(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_percent(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_duration(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_bytes(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_ring(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_text(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_path(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_file(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_word(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_index(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_follow(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_table(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_top(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_sort(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_by(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_patterns(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_detail(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_help(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_version(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_base(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_limit(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_condition(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_job_name(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
/* Index of a value among those of an option, or -EINVAL with e set. */
int cmd_find_word(const struct cmd_option *opt, const char *text, struct err *e);

/* "one, two, three". Returns buf. */
const char *cmd_join_words(const char *(*word)(unsigned), char buf[200]);
/* "help; ARG: word, word (default x)". Returns buf. */
const char *cmd_option_text(const struct cmd_option *opt, char buf[512]);

/*
 * Says whether an option of a live session can be used with --agent. why: the reason or the difference, "" if there
 * is none.
 */
#define CMD_WHY_BYTES 256
enum cmd_agent cmd_with_agent(const struct cmd_option *opt, char why[CMD_WHY_BYTES]);

/*
 * opts_check.c: 0, or -EINVAL with e set. seen: which rows of the table were given. cmd_check_given: operands, and what
 * the rows require or exclude. cmd_check_layout: whether the layout can show what was asked for; for commands that
 * print tables. cmd_check_whole: options against each other. cmd_check_gone: whether the word is an option of an
 * earlier version, which has a successor.
 */
int cmd_check_gone(const char *word, struct err *e);
int cmd_check_given(const struct cmd *c, const struct cmd_opts *o, const bool *seen, struct err *e);
int cmd_check_layout(const struct cmd_opts *o, const bool *seen, struct err *e);
int cmd_check_whole(const struct cmd *c, const struct cmd_opts *o, struct err *e);

/* remedy.c: fills r, whose texts the caller frees. */
void cmd_remedy(const struct cmd_opts *o, bool recording, struct ses_remedy *r);

struct cmd_exit_text {
	enum cmd_exit code;
	const char *text;
};
extern const struct cmd_exit_text cmd_exits[]; /* ends with text == NULL */

/* drop.c */
extern const struct cmd_conflict cmd_drop_conflicts[], cmd_ring_conflicts[];
int cmd_set_drop(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);

/* --generate: what it can print, and its setter. */
const char *cmd_generated(unsigned i);
int cmd_set_generate(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);

/* --help, --version and --generate print on stdout and return an exit code. */
int cmd_print_help(const struct cmd *c);
int cmd_print_version(const struct cmd *c);
int cmd_print_lists(const struct cmd *c);
int cmd_print_agent(const struct cmd *c);
int cmd_print_seccomp(const struct cmd *c); /* limit.c */
int cmd_print_completion(const struct cmd *c);
int cmd_print_schema(const struct cmd *c);
/* Prints the synopses on stderr. */
void cmd_print_usage(void);

#endif
