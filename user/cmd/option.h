/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the option table. Features define rows of their own in user/feature/NAME/options.c. */
#ifndef CMD_OPTION_H
#define CMD_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "plan/ability.h"
#include "session/session.h"

struct cmd;

#define CMD_GIVEN_MAX 64
#define CMD_BASE_MAX  32 /* --base */
#define CMD_FAIL_MAX  32 /* --fail-on */
#define CMD_ON_MAX    16 /* --on */

struct cmd_option;

/* An option as the user gave it. */
struct cmd_given {
	const struct cmd_option *opt;
	const char *value; /* borrowed from argv; NULL: none */
};

/* The values of all options. The comment of a field names its option where the field does not. */
struct cmd_opts {
	struct ses_opts ses;		   /* options of a session; `recording` and `command_to_stderr` are set later */
	const char *output;		   /* -o; NULL: tables go to stdout */
	const char *html;		   /* --html: the page is written to this file, too; NULL: it is not */
	bool batch;			   /* --batch: top prints text */
	const struct view_sheet *table;	   /* --table; NULL: none */
	const char *config;		   /* --config of serve; NULL: none */
	const char *textfile;		   /* --textfile of serve; NULL: none */
	const char *otlp;		   /* --otlp of serve; NULL: what the environment says */
	const char *push_profile;	   /* --push-profile of serve; NULL: none */
	const char *stream;		   /* --stream of serve; NULL: none */
	const char *listen;		   /* --listen of serve; NULL: the default */
	const char *trigger;		   /* --allow-trigger: file with a token; NULL: nobody may */
	uint64_t flight_ns;		   /* --flight-record; 0: it was not given */
	const char *trace_dir;		   /* --trace-dir; NULL: the current folder */
	const char *on[CMD_ON_MAX];	   /* --on, which trg_parse() accepts; borrowed from argv */
	const char *job_names[CMD_ON_MAX]; /* --job-name; borrowed from argv */
	unsigned non, njob_names;
	unsigned needs;	      /* of the command: mask of enum sbx_need */
	bool no_seccomp;      /* --no-seccomp */
	const char *drop;     /* --drop-privileges: the user, "": the default; NULL: it was not given */
	bool allow_agent;     /* --allow-agent */
	bool open;	      /* --open: only the page is written, and its path printed */
	bool force;	      /* --force */
	int format;	      /* --format: enum cmd_format; of diff: cmp_form_nr; the default: by the suffix of -o */
	const char *form;     /* --format of `export`: name of a view; NULL: the default follows from the suffix */
	const char *layout;   /* --layout: one of view_layout_name() */
	int sort;	      /* --sort: enum view_sort */
	int by;		      /* --by: enum view_by */
	unsigned stack_depth; /* --stack-depth; 0: the default */
	bool ascending;
	bool backward;			/* --backward; ses.details has MXBPF_DETAIL_SEQ then */
	unsigned top;			/* --top; 0: all rows */
	bool all;			/* --all, or --top 0 */
	bool advice;			/* --advice */
	bool raw;			/* --raw */
	unsigned keep;			/* --keep: traces; 0: all */
	bool sorted;			/* --sort was given */
	bool quiet;			/* -q: no progress on stderr */
	uint64_t max_memory;		/* --max-memory, bytes */
	const char *base[CMD_BASE_MAX]; /* --base; borrowed from argv */
	unsigned nbase;
	const char *fail_on[CMD_FAIL_MAX]; /* --fail-on, which cmp_limit_parse() accepts; borrowed from argv */
	unsigned nfail_on;
	const char *via;		       /* --via */
	unsigned with;			       /* --with: mask of kin_with_word() */
	unsigned steps;			       /* --steps; 0: --duration counts */
	struct cmd_given given[CMD_GIVEN_MAX]; /* the first of them */
	unsigned ngiven;
	char **args; /* operands; borrowed from argv */
	int nargs;
	int (*instead)(const struct cmd *c); /* --help and the like: runs in place of the command; NULL: not given */
};

enum cmd_bit {
	CMD_BIT_ATTACH = 1 << 0,
	CMD_BIT_RECORD = 1 << 1,
	CMD_BIT_REPORT = 1 << 2,
	CMD_BIT_EXPORT = 1 << 3,
	CMD_BIT_CHECK = 1 << 4,
	CMD_BIT_LIST = 1 << 5,
	CMD_BIT_NOW = 1 << 6,
	CMD_BIT_DIFF = 1 << 7,
	CMD_BIT_TOP = 1 << 8,
	CMD_BIT_SERVE = 1 << 9,
	CMD_BIT_TRACE = 1 << 10,
	CMD_BIT_MCP = 1 << 11,
	CMD_BIT_HELP = 1 << 12, /* the last one */
};
#define CMD_LIVE   (CMD_BIT_ATTACH | CMD_BIT_RECORD)
#define CMD_WATCH  (CMD_BIT_TOP | CMD_BIT_SERVE)
#define CMD_TABLES (CMD_BIT_ATTACH | CMD_BIT_REPORT)

/* Something that an option cannot be used with. */
struct cmd_conflict {
	bool (*broken)(const struct cmd_opts *o);
	const char *why; /* the whole message */
};

/*
 * Whether an option can be used with --agent. Each option of a live session must say so, or no command runs. NEITHER:
 * `supports` says it, because no runtime with an agent has the option; a session refuses it, with --agent or without.
 */
enum cmd_agent { CMD_AGENT_UNSAID, CMD_AGENT_NO, CMD_AGENT_YES, CMD_AGENT_NEITHER };

/* One meaning of an option, for one command or several. An option that other commands understand differently has
 * another row of the same name. */
struct cmd_option {
	const char *name;
	char letter;	   /* 0: none */
	const char *arg;   /* what --help calls the value; "[HOW]": it is optional; NULL: the option takes none */
	const char *group; /* heading in --help; NULL: hidden */
	unsigned commands; /* that take it: mask of enum cmd_bit */
	unsigned required; /* that do not work without it: mask of enum cmd_bit */
	bool sees_gpu;	   /* can be used with --no-bpf, which records nothing but the GPU */
	enum cmd_agent agent;
	const char *agent_why; /* NO: why it cannot be used; YES: what is different then, NULL: nothing. A clause */
	bool whole_api;	       /* its result needs every call of the C API, so it makes --api all the default */
	bool every_call;       /* its result needs every call, so calls are not recorded in slices: see --exact */
	const char *help; /* an imperative sentence without a full stop; cmd_option_text() adds values and runtimes */
	bool (*supports)(const struct adp *a); /* whether the option works with a runtime; NULL: with all */
	const char *def;		       /* the default, in words; NULL: --help does not mention it */
	int (*set)(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
	size_t field;			      /* offset in struct cmd_opts of the field that set() fills */
	uint64_t min, max;		      /* smallest and largest value; some setters use min for the bits to set */
	const char *(*word)(unsigned i);      /* values it takes; NULL behind the last; NULL: any */
	const char *(*word_help)(unsigned i); /* what each value means; NULL: not explained */

	/* Rows of features. */
	const char *after;		      /* --help shows the option behind the one of this name */
	const struct view_sheet *sheet;	      /* a layout without this sheet refuses the option; NULL: none does */
	const struct cmd_conflict *conflicts; /* ends with broken == NULL; NULL: none */
};
#define CMD_FIELD(f)   .field = offsetof(struct cmd_opts, f)
#define AGENT_YES      .agent = CMD_AGENT_YES
#define AGENT_BUT(how) .agent = CMD_AGENT_YES, .agent_why = how
#define AGENT_NO(why)  .agent = CMD_AGENT_NO, .agent_why = why

/* Setters: each fills the option's field from its value. 0, or -EINVAL with e set (ERR_USAGE). */
int cmd_set_flag(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_number(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
/* Names joined by commas: bit i of the field is opt->word(i). */
int cmd_set_mask(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
/* A feature without a field in struct ses_opts: sets the bits opt->min in ses_opts.features. */
int cmd_set_feature(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);

#endif
