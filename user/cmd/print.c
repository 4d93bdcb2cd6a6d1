// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"

/* Escapes the text, because it may have a target's name or a path with line feeds. */
static void print_line(const char *kind, const char *text)
{
	char safe[4200];

	fmt_safe(safe, sizeof(safe), text, strlen(text));
	fprintf(stderr, "mxbpf: %s: %s\n", kind, safe);
}

int cmd_fail(const struct err *e)
{
	print_line("error", e->why[0] ? e->why : strerror(e->code ? -e->code : EIO));
	return e->cls ? (int)e->cls : CMD_FAILED;
}

void cmd_warn(const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line("warning", text);
}
