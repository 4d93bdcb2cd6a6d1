/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MCP_PRIV_H
#define MCP_PRIV_H

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "mcp/mcp.h"

/*
 * An answer has at most 2,000 tokens. Tables of numbers take about 2.5 bytes a token, so this and the line at the end
 * are below it.
 */
#define MCP_ANSWER_BYTES 4800
#define MCP_LINE_BYTES	 (4u << 20)  /* of a request */
#define MCP_OUTPUT_BYTES (64u << 20) /* of a child, and of a file */
#define MCP_CALLS	 8	     /* that run at the same time */
#define MCP_KEPT	 16	     /* results of `look` and answers that are kept; the oldest one goes */
#define MCP_ARGS	 32	     /* words of a command line */

#define MCP_MODERN "2026-07-28" /* the revision without a handshake */

/* What is behind a handle: r1 is a file that `look` made, a1 is the rest of an answer. */
struct mcp_kept {
	unsigned nr; /* 0: none */
	char path[PATH_MAX];
	struct buf text;
};

struct mcp;
struct mcp_call;

struct mcp_tool {
	const char *name, *help;
	const struct mcp_param *params; /* ends with name == NULL */
	bool reads_only;		/* it looks at no process */
	/* Adds to the command line. 0, or -EINVAL with e set, whose words the assistant sees. NULL: no child is needed.
	 */
	int (*command)(struct mcp *m, struct mcp_call *c, struct err *e);
	/* Writes the answer, from what the child has printed. The same. */
	int (*answer)(struct mcp *m, struct mcp_call *c, struct buf *to, struct err *e);
};
extern const struct mcp_tool mcp_tools[]; /* ends with name == NULL */

struct mcp_call {
	const struct mcp_tool *tool; /* NULL: this place is free */
	cJSON *id, *args, *token;    /* owned; token: of progress, or NULL */
	bool modern;		     /* the request was of the revision without a handshake */
	bool cancelled;
	const char *argv[MCP_ARGS + 2];
	unsigned argc;
	cJSON *words; /* owned: texts that argv borrows */
	pid_t pid;    /* of the child; 0: none */
	int out, err; /* pipes from it; -1: closed */
	struct buf output, errors;
	int status;	  /* of waitpid() */
	uint64_t started; /* CLOCK_MONOTONIC */
	unsigned beats;	  /* notifications of progress */
	unsigned result;  /* of `look`: the number of its handle */
	bool reporting;	  /* of `look`: the second child, which reads the recording */
};

struct mcp {
	const struct mcp_opts *o;
	struct mcp_call calls[MCP_CALLS];
	struct mcp_kept results[MCP_KEPT], answers[MCP_KEPT];
	unsigned nresults, nanswers;
	char dir[PATH_MAX]; /* private; "": not made yet */
	struct buf in;	    /* what came of the next line */
	bool skipping;	    /* the line is too long */
	bool greeted;	    /* a client of the older revisions has said `initialize` */
	bool quit;
	int signals;
};

/* rpc.c */
void mcp_take_line(struct mcp *m, const char *line, size_t len);
void mcp_error(const cJSON *id, int code, const char *why, cJSON *data);
/* Sends the answer of a call, frees the call. */
void mcp_finish(struct mcp *m, struct mcp_call *c);
void mcp_say_progress(struct mcp_call *c, uint64_t now_ns);

/* child.c */
uint64_t mcp_now(void);
int mcp_spawn(struct mcp *m, struct mcp_call *c, struct err *e);
void mcp_call_free(struct mcp_call *c);

/* kept.c: handles. */
int mcp_make_dir(struct mcp *m, struct err *e);
/* Makes place for a result. Returns its number, and its path in the private folder. */
unsigned mcp_keep_result(struct mcp *m, const char *suffix, char path[PATH_MAX]);
/* Puts at most MCP_ANSWER_BYTES of a text behind `from`, and a line that says how to get the rest. */
void mcp_put_page(struct mcp *m, struct buf *to, struct buf *text, unsigned nr, size_t from);
struct mcp_kept *mcp_find_kept(struct mcp *m, const char *handle);
void mcp_forget_all(struct mcp *m);

/* args.c: descriptions of arguments, and the command line made of them. */
enum mcp_kind { MCP_PID, MCP_SECONDS, MCP_COUNT, MCP_TEXT, MCP_SOURCE, MCP_FLAG, MCP_OPTIONS };
struct mcp_param {
	const char *name;
	enum mcp_kind kind;
	bool required;
	const char *help; /* NULL: the name says it */
};
cJSON *mcp_schema(const struct mcp *m, const struct mcp_tool *t);
/* Checks the arguments of a call against the schema. */
int mcp_check_args(const struct mcp *m, const struct mcp_tool *t, const cJSON *args, struct err *e);
const char *mcp_text(const struct mcp_call *c, const char *name); /* NULL: not given */
unsigned mcp_number(const struct mcp_call *c, const char *name, unsigned otherwise);
bool mcp_flag(const struct mcp_call *c, const char *name);
void mcp_word(struct mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int mcp_add_options(const struct mcp *m, struct mcp_call *c, struct err *e);
/* Writes a hint of mxbpf, such as "--pid PID --sched", as a call of a tool. */
void mcp_put_next(const struct mcp *m, struct buf *to, const char *next, int pid);

/* show.c: answers made of JSON results. */
/* again: how long a new look may be if this one has found nothing, in seconds; 0: the job may be gone. */
void mcp_show_result(const struct mcp *m, struct buf *to, const cJSON *report, const char *handle, unsigned again);
void mcp_show_loss(struct buf *to, const cJSON *report);
int mcp_show_table(struct mcp_call *c, struct buf *to, const cJSON *report, const char *handle, struct err *e);
int mcp_show_operator(struct mcp_call *c, struct buf *to, const cJSON *report, struct err *e);
void mcp_show_jobs(struct buf *to, const cJSON *list);

#endif
