/* SPDX-License-Identifier: Apache-2.0 */
/* Subcommands. Only this layer prints: results on stdout, everything else on stderr. */
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

/* What a probe costs its process, as measured: README.md says it in the same words. */
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
	CMD_ABORTED = 130, /* second Ctrl-C */
};

enum cmd_format { CMD_UNSAID = -1, CMD_TABLE, CMD_JSON, CMD_CSV };
extern const char *const cmd_format_words[]; /* NULL behind the last */

struct cmd {
	const char *name; /* NULL name: the default command, attach */
	const char *synopsis;
	const char *help; /* one line */
	const char *example;
	unsigned bit; /* of this command in cmd_option.commands */
	int min_args, max_args;
	int (*run)(const struct cmd_opts *o); /* an exit code */
};
extern const struct cmd cmd_table[]; /* ends with run == NULL */

/* The row of a command; NULL if there is none of that name. */
const struct cmd *cmd_find(const char *name);
/* "mxbpf", "mxbpf record". Returns buf. */
const char *cmd_title(const struct cmd *c, char buf[32]);

/* Words -> command and options. 0, or -EINVAL with e set (ERR_USAGE). */
int cmd_parse(int argc, char **argv, const struct cmd **c, struct cmd_opts *o, struct err *e);

int cmd_attach(const struct cmd_opts *o); /* tables of a running process; also `record` */
int cmd_record(const struct cmd_opts *o);
int cmd_report(const struct cmd_opts *o);
int cmd_export(const struct cmd_opts *o);
int cmd_check(const struct cmd_opts *o);
int cmd_list(const struct cmd_opts *o);
int cmd_now(const struct cmd_opts *o);
int cmd_help(const struct cmd_opts *o);

/* What stdout gets under --layout and --format; tables take no records. Borrowed. */
const struct view_ops *cmd_table_sink(const struct cmd_opts *o);
/* What --by, --backward and --sort need among the details of calls and of their accounts: 0, or ERR_USAGE, for details
 * with `how` ("add") to ask for what is missing. */
int cmd_check_details(const struct cmd_opts *o, unsigned details, bool account, const char *how, struct err *e);
/* Of the terminal on stdout; 0 if it is none. */
unsigned cmd_columns(void);
/*
 * Where tables go: stdout, or -o FILE, which has its name when it is complete, or at once if a series of tables comes.
 * Exit codes; errors are printed. cmd_close_tables: `code` is what became of the tables; only 0 completes a file.
 */
int cmd_open_tables(const struct cmd_opts *o, bool series, struct out **out);
int cmd_close_tables(const struct cmd_opts *o, struct out *out, int code);
/*
 * The tables, as wide as a terminal on stdout. nth: of a series, 0 if it is alone; then JSON is one line, CSV has one
 * heading, and a line stands between tables. An exit code; errors are printed.
 */
int cmd_print_tables(const struct cmd_opts *o, const struct mdl_session *s, struct mdl *m, unsigned nth,
		     struct out *out);
/* The same of a recording, event by event too. */
int cmd_print_recorded(const struct cmd_opts *o, struct rec_reader *r, struct mdl *m);
/* -f names it, else the file's suffix, else a Chrome trace. */
const struct view_ops *cmd_trace_sink(const char *form, const char *path);
/* The trace, complete or not at all; ".gz" is compressed, "-" is stdout. An exit code; errors are printed. */
int cmd_write_trace(const struct cmd_opts *o, const char *path, struct rec_reader *r, struct mdl *m);

/* outputs.c. The format of tables that -f does not name: by the suffix of -o. 0 or ERR_USAGE. */
int cmd_settle_format(struct cmd_opts *o, struct err *e);
/* Whether a file's suffix says what to write from records. 0 or ERR_USAGE, which lists the suffixes. */
int cmd_check_suffix(const char *option, const char *path, struct err *e);
/* Whether a file can be written, before anything else is done: a file that exists is only replaced if the sink (NULL:
 * the recorder) wrote it, or by force. 0 or -errno. */
int cmd_check_output(const char *path, const struct view_ops *sink, bool force, struct err *e);
/* The same of all that a live session writes. recording: NULL if it makes tables. */
int cmd_check_outputs(const struct cmd_opts *o, const char *recording, struct err *e);

/* A recording, or several as one, and its model, both for the caller to free. Warns on stderr of each that is cut or
 * damaged. events: all are needed. 0, 1 if something is damaged that is not needed, or -errno. */
int cmd_open_recordings(char *const *paths, unsigned n, bool events, struct rec_reader **r, struct mdl **m,
			struct err *e);

/* Prints "mxbpf: error: WHY" on stderr and returns the exit code of its class. */
int cmd_fail(const struct err *e);
void cmd_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
