// SPDX-License-Identifier: Apache-2.0
/* Lines for people on stderr. Those of a daemon have a time and a level, so that a log can be searched by both. */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fmt.h"
#include "base/shell.h"

static enum { PLAIN, TIMED, JOURNAL } form;

/* The number is that of syslog and of sd-daemon(3). */
static const struct {
	const char *word;
	int number;
	const char *plain; /* what stands before the text of a command that is no daemon */
} levels[] = {
	[CMD_ERROR] = {"error", 3, "mxbpf: error: "},
	[CMD_WARNING] = {"warning", 4, "mxbpf: warning: "},
	[CMD_INFO] = {"info", 6, ""},
	[CMD_DEBUG] = {"debug", 7, "mxbpf: "},
};

/* systemd says which file the journal reads; stderr may be another one by now. The journal has its own times. */
static bool is_journal(const char *stream)
{
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 && !fstat(STDERR_FILENO, &st) &&
	       st.st_dev == dev && st.st_ino == ino;
}

void cmd_log_as_daemon(void)
{
	form = is_journal(getenv("JOURNAL_STREAM")) ? JOURNAL : TIMED;
}

bool cmd_logs_as_daemon(void)
{
	return form != PLAIN;
}

static void put_head(enum cmd_level level, char *head, size_t size)
{
	const time_t now = time(NULL);
	struct tm tm;
	size_t n;

	if (form == PLAIN) {
		snprintf(head, size, "%s", levels[level].plain);
	} else if (form == JOURNAL) {
		snprintf(head, size, "<%d>", levels[level].number);
	} else {
		n = strftime(head, size, "%Y-%m-%dT%H:%M:%SZ ", gmtime_r(&now, &tm));
		snprintf(head + n, size - n, "%s: ", levels[level].word);
	}
}

/* Escapes the text, because it may have a target's name or a path with line feeds. */
static void print_line(enum cmd_level level, const char *text)
{
	char safe[4200], head[64];

	put_head(level, head, sizeof(head));
	fmt_safe(safe, sizeof(safe), text, strlen(text));
	fprintf(stderr, "%s%s\n", head, safe);
}

int cmd_fail(const struct err *e)
{
	char path[1024];
	struct buf hint = {0};

	print_line(CMD_ERROR, e->why[0] ? e->why : strerror(e->code ? -e->code : EIO));
	if (e->cls == ERR_PRIVILEGE && geteuid() && shell_hidden_from_sudo(path, sizeof(path))) {
		buf_printf(&hint, "sudo does not look into the folder of mxbpf; use sudo ");
		shell_put_quoted(&hint, path);
		buf_put(&hint, "", 1);
		print_line(CMD_WARNING, hint.data ? hint.data : "");
		buf_fini(&hint);
	}
	return e->cls ? (int)e->cls : CMD_FAILED;
}

#define PRINT(level, fmt)                                                                                              \
	do {                                                                                                           \
		char text[4096];                                                                                       \
		va_list ap;                                                                                            \
                                                                                                                       \
		va_start(ap, fmt);                                                                                     \
		vsnprintf(text, sizeof(text), fmt, ap);                                                                \
		va_end(ap);                                                                                            \
		print_line(level, text);                                                                               \
	} while (0)

void cmd_warn(const char *fmt, ...)
{
	PRINT(CMD_WARNING, fmt);
}

void cmd_say(enum cmd_level level, const char *fmt, ...)
{
	PRINT(level, fmt);
}
