/* SPDX-License-Identifier: Apache-2.0 */
/* Subcommands. Only this room prints: results on stdout, everything else on stderr. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cmd/option.h"
#include "model/model.h"
#include "model/session.h"
#include "record/record.h"
#include "session/session.h"
#include "view/view.h"

/* The measured cost of a probe hit; docs/overhead.md has the same numbers. */
#define CMD_COST_TRAP	"about 0.8 us"
#define CMD_COST_STEP	"up to 9 us"
#define CMD_COST_RECORD "about 2.4 us"

enum cmd_exit {
	CMD_OK = 0,
	CMD_FAILED = 1,
	CMD_USAGE = 2,
	CMD_NO_TARGET = 3,
	CMD_PRIVILEGE = 4,
	CMD_NOTHING_SEEN = 5,
	CMD_LIMIT_BROKEN = 10, /* diff --fail-on */
	CMD_ABORTED = 130,     /* second Ctrl-C */
};

/* Some commands have the first two, and diff has no CSV. */
enum cmd_format { CMD_UNSAID = -1, CMD_TABLE, CMD_JSON, CMD_HTML, CMD_CSV };
extern const char *const cmd_format_words[]; /* NULL behind the last */
#define CMD_LAYOUT "modern"		     /* the default of --layout */

struct cmd {
	const char *name; /* NULL: the default command, attach */
	const char *synopsis;
	const char *help; /* one line */
	const char *example;
	unsigned bit;	/* enum cmd_bit */
	unsigned needs; /* mask of enum sbx_need */
	int min_args, max_args;
	int (*run)(const struct cmd_opts *o); /* returns an exit code */
};
extern const struct cmd cmd_table[]; /* ends with run == NULL */

/* Returns the row of a command, or NULL if no command has that name. */
const struct cmd *cmd_find(const char *name);
/* "mxbpf", "mxbpf record". Returns buf. */
const char *cmd_title(const struct cmd *c, char buf[32]);

/* Parses the command line. 0, or -EINVAL with e set (ERR_USAGE). */
int cmd_parse(int argc, char **argv, const struct cmd **c, struct cmd_opts *o, struct err *e);

int cmd_attach(const struct cmd_opts *o); /* tables of a running process; also `record` */
int cmd_record(const struct cmd_opts *o);
int cmd_record_without_bpf(const struct cmd_opts *o, const char *recording); /* --no-bpf */
int cmd_report(const struct cmd_opts *o);
int cmd_export(const struct cmd_opts *o);
int cmd_diff(const struct cmd_opts *o);
int cmd_check(const struct cmd_opts *o);
int cmd_list(const struct cmd_opts *o);
int cmd_now(const struct cmd_opts *o);
int cmd_top(const struct cmd_opts *o);
int cmd_serve(const struct cmd_opts *o);
int cmd_trace(const struct cmd_opts *o);
int cmd_mcp(const struct cmd_opts *o);
int cmd_help(const struct cmd_opts *o);

/* Returns the output for tables that --layout and --format choose; NULL if there is none. Borrowed. */
const struct view_ops *cmd_table_view(const struct cmd_opts *o);
/* Checks that --by, --backward and --sort have the details or accounts of calls that they need. The error begins its
 * advice with `how` ("add"). 0, or -EINVAL with e set (ERR_USAGE). */
int cmd_check_details(const struct cmd_opts *o, unsigned details, bool account, const char *how, struct err *e);
/* Width of the terminal on stdout; 0: stdout is no terminal. */
unsigned cmd_columns(void);
/*
 * Open and close the output of tables: stdout, or -o FILE. A file gets its name when it is complete; with `series` it
 * gets its name at once. `code` is the exit code so far, and only 0 completes the file. Print errors and return exit
 * codes.
 */
int cmd_open_tables(const struct cmd_opts *o, bool series, struct out **out);
int cmd_close_tables(const struct cmd_opts *o, struct out *out, int code);
/*
 * Prints the tables. nth: their number in a series, from 1; 0: there is no series. In a series JSON takes one line
 * each, CSV has one heading, and a rule separates tables for people. Prints errors and returns an exit code.
 */
int cmd_print_tables(const struct cmd_opts *o, const struct mdl_session *s, struct mdl *m, unsigned nth,
		     struct out *out);
/* Prints the tables of a recording, and with --by event its calls. */
int cmd_print_recorded(const struct cmd_opts *o, struct rec_reader *r, struct mdl *m);
/* Returns the output that -f names, or the suffix of the file; a Chrome trace if neither does. */
const struct view_ops *cmd_trace_view(const char *form, const char *path);
/* Returns the path of the nth trace of --trace-every, from 1; owned. NULL: out of memory. */
char *cmd_trace_numbered(const char *path, unsigned nth);
/* Writes the whole trace or no file. ".gz" is compressed, "-" is stdout. 0, or -errno with e set. */
int cmd_trace_to(const struct cmd_opts *o, const char *path, struct rec_reader *r, struct mdl *m, struct err *e);
/* Calls cmd_trace_to(), prints its error, warns of records that --max-size cut off, and returns an exit code. */
int cmd_write_trace(const struct cmd_opts *o, const char *path, struct rec_reader *r, struct mdl *m);

/* Without -f, chooses the format by the suffix of -o; suffix: those of formats, by number, such as cmd_table_suffix(),
 * which are those of tables. 0, or -EINVAL with e set (ERR_USAGE). */
const char *cmd_table_suffix(unsigned i);
int cmd_settle_format(struct cmd_opts *o, const char *(*suffix)(unsigned), struct err *e);
/* Writes the name of a file that the user has not named: "mxbpf-1234-20261123T005703Z.mxd". */
#define CMD_STAMP_BYTES 32
void cmd_stamp(char stamp[CMD_STAMP_BYTES]); /* the time in UTC, for names of files: 20261126T072812Z */
#define CMD_NAME_BYTES 128
void cmd_own_name(const struct cmd_opts *o, const char *suffix, char name[CMD_NAME_BYTES]);
/* Checks that an output is known by the suffix of a file; the error lists the suffixes. */
int cmd_check_suffix(const char *option, const char *path, struct err *e);
/* Checks early whether a file can be written. An existing file is replaced only if mxbpf wrote it in the format of
 * `view` (NULL: a recording), or with `force`. 0 or -errno. */
int cmd_check_output(const char *path, const struct view_ops *view, bool force, struct err *e);
/* Checks all files that a live session writes. recording: NULL if it prints tables. */
int cmd_check_outputs(const struct cmd_opts *o, const char *recording, struct err *e);

/* Opens a recording, or several as one, and its model; the caller frees both. Warns of each recording that is cut or
 * damaged. events: all events are needed. 0, 1 if only something that is not needed is damaged, or -errno. */
int cmd_open_recordings(const struct cmd_opts *o, char *const *paths, unsigned n, bool events, struct rec_reader **r,
			struct mdl **m, struct err *e);

/*
 * Limits the system calls of mxbpf to those that the command needs, once. After a command was launched and before the
 * target is looked at. Warns if that fails; --verbose says what is limited, or why nothing is.
 */
void cmd_limit(const struct cmd_opts *o);
/* Refuses options that are read again and need more. 0, or -errno with e set. */
int cmd_limit_check(const struct cmd_opts *o, struct err *e);
bool cmd_is_session(const struct cmd *c); /* it calls cmd_limit() itself */

/* Prints "mxbpf: error: WHY" on stderr and returns the exit code of its class. */
int cmd_fail(const struct err *e);
void cmd_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
enum cmd_level { CMD_ERROR, CMD_WARNING, CMD_INFO, CMD_DEBUG };
void cmd_say(enum cmd_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* From now on each line has a time and a level, or in systemd's journal the level alone. */
void cmd_log_as_daemon(void);
bool cmd_logs_as_daemon(void);

#endif
