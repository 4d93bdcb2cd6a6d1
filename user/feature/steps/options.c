// SPDX-License-Identifier: Apache-2.0
/* The option --iterations. */
#include "cmd/option.h"
#include "feature/steps/steps.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int steps_set(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	unsigned n = 0, period = 0;
	bool some = strchr(text, '/');
	int used = 0;

	if (isdigit((unsigned char)text[0]) && some)
		sscanf(text, "%7u/%7u%n", &n, &period, &used);
	else if (isdigit((unsigned char)text[0]))
		sscanf(text, "%7u%n", &n, &used);
	if (!used || text[used] || !n || (some && n >= period))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--%s: '%.60s' is neither N (20) nor N/M with N less than M (5/100)", opt->name, text);
	o->ses.iterations = n;
	o->ses.period = period;
	return 0;
}

static bool with_follow_app(const struct cmd_opts *o)
{
	return o->ses.iterations && o->ses.follow_app;
}

static const struct cmd_conflict conflicts[] = {
	{with_follow_app, "--follow-app and --iterations both open and close the window; remove one of them"},
	{0},
};

const struct cmd_option steps_option = {
	.name = "iterations",
	.arg = "N[/M]",
	.group = "Window",
	.commands = CMD_LIVE,
	AGENT_BUT("the agent records all the time, and mxbpf leaves out calls outside of the windows"),
	.help = "Record N training iterations and stop: 20. Or record N of every M, and detach in between: 5/100",
	.set = steps_set,
	.after = "follow-app",
	.conflicts = conflicts,
};
