// SPDX-License-Identifier: Apache-2.0
/* The tools: for each the command line that answers it, and the answer made of what that prints. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/json_read.h"
#include "mcp/priv.h"

#define SECONDS	     5 /* of a look */
#define NOTHING_SEEN 5 /* exit code of a look that saw no call, as of a job that hangs */

static const char SOURCE[] = "handle of look (r1), or path of a .mxd recording";

static bool is_error(const char *line)
{
	return !strncmp(line, "mxbpf: error: ", strlen("mxbpf: error: "));
}

/* Says what mxbpf said: the assistant reads the words that a user would, which are its errors, or else the last line.
 */
static int check_child(struct mcp_call *c, struct err *e)
{
	const int code = WIFEXITED(c->status) ? WEXITSTATUS(c->status) : -1;
	const char *line, *text = "";
	size_t len = 0;

	if (!code || code == NOTHING_SEEN)
		return 0;
	buf_put(&c->errors, "", 1);
	for (line = c->errors.data; line && *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
		if (*line != '\n' && (is_error(line) || !is_error(text))) {
			text = line;
			len = strcspn(line, "\n");
		}
	if (!len)
		return err_set(e, ERR_RUNTIME, -ECHILD, "mxbpf ended with %s %d and said nothing",
			       code < 0 ? "signal" : "code", code < 0 ? WTERMSIG(c->status) : code);
	return err_set(e, ERR_RUNTIME, -ECHILD, "%.*s", (int)len, text);
}

static cJSON *read_json(const struct buf *b, struct err *e)
{
	int err = -EBADMSG;
	cJSON *o = b->data ? json_read(b->data, b->len, &err) : NULL;

	if (!o)
		err_set(e, ERR_RUNTIME, err, "the result is no complete JSON: %s",
			b->len >= MCP_OUTPUT_BYTES ? "it is too large" : strerror(-err));
	return o;
}

static cJSON *read_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct buf b = {0};
	char chunk[65536];
	cJSON *o = NULL;
	ssize_t n = 0;

	while (fd >= 0 && b.len < MCP_OUTPUT_BYTES && (n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_put(&b, chunk, (size_t)n);
	if (fd < 0 || n < 0)
		err_set(e, ERR_RUNTIME, -errno, "cannot read the result: %s", strerror(errno));
	else
		o = read_json(&b, e);
	if (fd >= 0)
		close(fd);
	buf_fini(&b);
	return o;
}

/* Sets *path to a file behind an argument. A path is not an option, whatever it begins with: it comes behind "--". */
static int find_source(struct mcp *m, struct mcp_call *c, const char *name, const char **path, struct err *e)
{
	const char *text = mcp_text(c, name);
	struct mcp_kept *k = mcp_find_kept(m, text);

	*path = k && k->path[0] ? k->path : text;
	if (k || strchr(text, '/') || strchr(text, '.'))
		return 0;
	return err_set(e, ERR_USAGE, -ENOENT, "no result has the handle '%.60s'; the last 16 are kept. Call look again",
		       text);
}

/* Whether the text is a JSON result of `look`, which needs no child. */
static bool is_own_json(struct mcp *m, const char *text)
{
	const struct mcp_kept *k = mcp_find_kept(m, text);

	return k && strlen(k->path) > 5 && !strcmp(k->path + strlen(k->path) - 5, ".json");
}

static int report_command(struct mcp *m, struct mcp_call *c, struct err *e)
{
	const char *path, *by = mcp_text(c, "by");

	if (find_source(m, c, "of", &path, e))
		return e->code;
	if (is_own_json(m, mcp_text(c, "of")))
		return by ? err_set(e, ERR_USAGE, -EINVAL,
				    "by needs a recording: call look with record, or with the option --by=%.20s", by)
			  : 0;
	mcp_word(c, "report");
	mcp_word(c, "-f");
	mcp_word(c, "json");
	if (by)
		mcp_word(c, "--by=%s", by);
	mcp_word(c, "--");
	mcp_word(c, "%s", path);
	return 0;
}

static cJSON *report_of(struct mcp *m, struct mcp_call *c, struct err *e)
{
	const char *of = mcp_text(c, "of");

	if (is_own_json(m, of))
		return read_file(mcp_find_kept(m, of)->path, e);
	return check_child(c, e) ? NULL : read_json(&c->output, e);
}

/* ---- jobs */

static int jobs_command(struct mcp *m, struct mcp_call *c, struct err *e)
{
	mcp_word(c, "list");
	mcp_word(c, "-f");
	mcp_word(c, "json");
	return 0;
}

static int jobs_answer(struct mcp *m, struct mcp_call *c, struct buf *to, struct err *e)
{
	cJSON *list = check_child(c, e) ? NULL : read_json(&c->output, e);

	if (list)
		mcp_show_jobs(to, list);
	cJSON_Delete(list);
	return e->code;
}

/* ---- look */

static int look_command(struct mcp *m, struct mcp_call *c, struct err *e)
{
	const bool record = mcp_flag(c, "record");
	char path[PATH_MAX];

	if (mcp_make_dir(m, e))
		return e->code;
	if (record)
		mcp_word(c, "record");
	mcp_word(c, "--pid=%u", mcp_number(c, "pid", 0));
	mcp_word(c, "--duration=%us", mcp_number(c, "seconds", SECONDS));
	if (mcp_add_options(m, c, e))
		return e->code;
	c->result = mcp_keep_result(m, record ? ".mxd" : ".json", path);
	mcp_word(c, "-q");
	if (record)
		mcp_word(c, "--max-size=256M");
	mcp_word(c, "--output=%s", path);
	return 0;
}

/* A recording is read by a second child. */
static int look_report(struct mcp *m, struct mcp_call *c, const char *path, struct err *e)
{
	c->argc = 1;
	buf_fini(&c->output);
	buf_fini(&c->errors);
	c->output = c->errors = (struct buf){0};
	c->reporting = true;
	mcp_word(c, "report");
	mcp_word(c, "-f");
	mcp_word(c, "json");
	mcp_word(c, "%s", path);
	return mcp_spawn(m, c, e);
}

static int look_answer(struct mcp *m, struct mcp_call *c, struct buf *to, struct err *e)
{
	const unsigned seconds = mcp_number(c, "seconds", SECONDS);
	const struct mcp_kept *k;
	char handle[16];
	cJSON *report;

	snprintf(handle, sizeof(handle), "r%u", c->result);
	k = mcp_find_kept(m, handle);
	if (check_child(c, e))
		return e->code;
	if (!k)
		return err_set(e, ERR_RUNTIME, -ENOENT, "16 results came meanwhile, so this one is gone");
	if (mcp_flag(c, "record") && !c->reporting)
		return look_report(m, c, k->path, e);
	report = c->reporting ? read_json(&c->output, e) : read_file(k->path, e);
	if (report)
		mcp_show_result(m, to, report, handle, seconds < 60 ? 3 * seconds : 0);
	cJSON_Delete(report);
	return e->code;
}

/* ---- findings, table, operator */

static int findings_answer(struct mcp *m, struct mcp_call *c, struct buf *to, struct err *e)
{
	cJSON *report = report_of(m, c, e);

	if (report)
		mcp_show_result(m, to, report, mcp_text(c, "of"), 0);
	cJSON_Delete(report);
	return e->code;
}

static int table_answer(struct mcp *m, struct mcp_call *c, struct buf *to, struct err *e)
{
	cJSON *report = report_of(m, c, e);

	if (report && !mcp_show_table(c, to, report, mcp_text(c, "of"), e))
		mcp_show_loss(to, report);
	cJSON_Delete(report);
	return e->code;
}

static int operator_answer(struct mcp *m, struct mcp_call *c, struct buf *to, struct err *e)
{
	cJSON *report = report_of(m, c, e);

	if (report && !mcp_show_operator(c, to, report, e))
		mcp_show_loss(to, report);
	cJSON_Delete(report);
	return e->code;
}

/* ---- diff, hang, more */

static int diff_command(struct mcp *m, struct mcp_call *c, struct err *e)
{
	const char *a, *b;

	if (find_source(m, c, "a", &a, e) || find_source(m, c, "b", &b, e))
		return e->code;
	mcp_word(c, "diff");
	if (mcp_text(c, "table"))
		mcp_word(c, "--table=%s", mcp_text(c, "table"));
	mcp_word(c, "--");
	mcp_word(c, "%s", a);
	mcp_word(c, "%s", b);
	return 0;
}

static int hang_command(struct mcp *m, struct mcp_call *c, struct err *e)
{
	mcp_word(c, "now");
	mcp_word(c, "--pid=%u", mcp_number(c, "pid", 0));
	if (mcp_flag(c, "job"))
		mcp_word(c, "--job");
	mcp_word(c, "-q");
	return 0;
}

static int text_answer(struct mcp *m, struct mcp_call *c, struct buf *to, struct err *e)
{
	if (check_child(c, e))
		return e->code;
	buf_put(to, c->output.data, c->output.len);
	buf_put(to, c->errors.data, c->errors.len);
	return 0;
}

static int more_answer(struct mcp *m, struct mcp_call *c, struct buf *to, struct err *e)
{
	const char *handle = mcp_text(c, "handle");
	struct mcp_kept *k = handle[0] == 'a' ? mcp_find_kept(m, handle) : NULL;
	const unsigned offset = mcp_number(c, "offset", 0);

	if (!k)
		return err_set(e, ERR_USAGE, -ENOENT, "no answer has the handle '%.60s'; the last 16 are kept", handle);
	if (offset >= k->text.len)
		return err_set(e, ERR_USAGE, -ERANGE, "the answer %s has %zu bytes", handle, k->text.len);
	mcp_put_page(m, to, &k->text, k->nr, offset);
	return 0;
}

#define OF                                                                                                             \
	{                                                                                                              \
		"of", MCP_SOURCE, true, SOURCE                                                                         \
	}
#define PID                                                                                                            \
	{                                                                                                              \
		"pid", MCP_PID, true, NULL                                                                             \
	}
#define END                                                                                                            \
	{                                                                                                              \
		.name = NULL                                                                                           \
	}
#define LIST (const struct mcp_param[])

const struct mcp_tool mcp_tools[] = {
	{"jobs", "List running MXNet and PyTorch processes with their pid.", LIST{END}, true, jobs_command,
	 jobs_answer},
	{"look",
	 "Watch a running job for some seconds, at most 10 % slower, and say what makes it slow: findings with "
	 "evidence, "
	 "iterations, loss and cost. The result is kept under a handle.",
	 LIST{PID,
	      {"seconds", MCP_SECONDS, false, "default 5"},
	      {"options", MCP_OPTIONS, false,
	       "of mxbpf: --sched --memory --py-stacks --shapes --omp --life --job --sample=99 --by=stack"},
	      {"record", MCP_FLAG, false, "record every call, which costs the job more; for by in table"},
	      END},
	 false, look_command, look_answer},
	{"findings", "Findings of a result or a recording.", LIST{OF, END}, true, report_command, findings_answer},
	{"table", "One table of a result or a recording, largest first; without key: the names of its tables.",
	 LIST{OF,
	      {"key", MCP_TEXT, false, "name of the table, such as operator"},
	      {"sort", MCP_TEXT, false, "a column, such as self_ns"},
	      {"top", MCP_COUNT, false, "rows, default 20; 0: all"},
	      {"match", MCP_TEXT, false, "only rows with this text"},
	      {"by", MCP_TEXT, false, "group a recording by shape, stack, module, layer, rank, thread"},
	      END},
	 true, report_command, table_answer},
	{"operator", "All columns of one operator or call.",
	 LIST{OF, {"name", MCP_TEXT, true, "as in the table, such as aten::mm"}, END}, true, report_command,
	 operator_answer},
	{"diff", "Compare two results, or two recordings: what changed, and is it certain?",
	 LIST{{"a", MCP_SOURCE, true, SOURCE},
	      {"b", MCP_SOURCE, true, NULL},
	      {"table", MCP_TEXT, false, "compare this table of recordings"},
	      END},
	 true, diff_command, text_answer},
	{"hang", "Where does a job hang now: threads, open calls, stacks, locks, the collective that ranks wait in.",
	 LIST{PID, {"job", MCP_FLAG, false, "all processes of the job"}, END}, true, hang_command, text_answer},
	{"more", "The rest of an answer that was cut.",
	 LIST{{"handle", MCP_TEXT, true, NULL}, {"offset", MCP_COUNT, true, NULL}, END}, true, NULL, more_answer},
	{.name = NULL},
};
