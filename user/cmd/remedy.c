// SPDX-License-Identifier: Apache-2.0
/*
 * The command that watches the same process by the agent, for the message that probes slow it down: the user's own,
 * with
 * --agent and without the options that cannot be used with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/shell.h"
#include "cmd/opts.h"

#define COMMAND_BYTES 1400 /* a longer command has no room in the message */

static void put_option(struct buf *b, const struct cmd_given *g)
{
	buf_printf(b, " --%s", g->opt->name);
	if (!g->value)
		return;
	buf_printf(b, g->opt->arg[0] == '[' ? "=" : " ");
	shell_put_quoted(b, g->value);
}

/* Takes the text out of a buffer. NULL: there was no memory. */
static char *remedy_text_of(struct buf *b)
{
	char *text = b->len ? strndup(b->data, b->len) : strdup("");

	buf_fini(b);
	return text;
}

void cmd_remedy(const struct cmd_opts *o, bool recording, struct ses_remedy *r)
{
	struct buf command = {0}, lost = {0};
	char why[CMD_WHY_BYTES], *const *word;
	unsigned i;

	*r = (struct ses_remedy){0};
	buf_printf(&command, "%s", getenv("SUDO_UID") ? "sudo " : "");
	shell_put_quoted(&command, program_invocation_name);
	buf_printf(&command, "%s", recording ? " record" : "");
	for (i = 0; i < o->ngiven; i++)
		if (cmd_with_agent(o->given[i].opt, why) == CMD_AGENT_NO)
			buf_printf(&lost, "%s--%s", lost.len ? ", " : "", o->given[i].opt->name);
		else
			put_option(&command, &o->given[i]);
	buf_printf(&command, " --agent%s", o->ses.command ? " --" : "");
	for (word = o->ses.command; word && *word; word++) {
		buf_printf(&command, " ");
		shell_put_quoted(&command, *word);
	}
	if (o->ngiven == CMD_GIVEN_MAX || command.len + lost.len > COMMAND_BYTES || !(o->ses.probes & PROBE_OP))
		buf_fini(&command);
	else
		r->command = remedy_text_of(&command);
	r->lost = remedy_text_of(&lost);
}
