// SPDX-License-Identifier: Apache-2.0
/*
 * The command that watches the same process by the agent, for the message that probes slow it down. It has the user's
 * options as far as they can be used with --agent: each one, and then all together, go through the parser.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cmd/opts.h"

#define WORD_BYTES 512	/* a longer value is left out with its option */
#define LINE_BYTES 1024 /* longer options are all left out */

/* Puts a word so that a shell reads it as it is. */
static void put_quoted(struct buf *b, const char *word)
{
	if (word[0] &&
	    !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")]) {
		buf_printf(b, "%s", word);
		return;
	}
	buf_printf(b, "'");
	for (; *word; word++)
		if (*word == '\'')
			buf_printf(b, "'\\''");
		else
			buf_printf(b, "%c", *word);
	buf_printf(b, "'");
}

/* Parses the command with the options that `take` has and --agent or not. Returns true if that is refused. */
static bool refused(const struct cmd_opts *o, bool recording, const bool *take, bool agent)
{
	static char words[CMD_GIVEN_MAX][WORD_BYTES + 64];
	char *argv[CMD_GIVEN_MAX + 8], program[] = "mxbpf", record[] = "record", pid[] = "--pid=1", with[] = "--agent",
				       end[] = "--", name[] = "true";
	const struct cmd *c;
	struct cmd_opts parsed;
	struct err e = {0};
	bool named = false; /* the options say which processes */
	int argc = 0;
	unsigned i;

	argv[argc++] = program;
	if (recording)
		argv[argc++] = record;
	for (i = 0; i < o->ngiven; i++) {
		if (!take[i])
			continue;
		named |= !strcmp(o->given[i].opt->name, "comm") || !strcmp(o->given[i].opt->name, "cgroup");
		snprintf(words[i], sizeof(words[i]), "--%s%s%s", o->given[i].opt->name, o->given[i].value ? "=" : "",
			 o->given[i].value ? o->given[i].value : "");
		argv[argc++] = words[i];
	}
	if (agent)
		argv[argc++] = with;
	if (o->ses.command) {
		argv[argc++] = end;
		argv[argc++] = name;
	} else if (!named) {
		argv[argc++] = pid;
	}
	argv[argc] = NULL;
	return cmd_parse(argc, argv, &c, &parsed, &e);
}

/* Leaves out one more option without which the rest can be used, such as --by shape without --shapes; else all. */
static void leave_one(const struct cmd_opts *o, bool recording, bool take[CMD_GIVEN_MAX])
{
	unsigned i;

	for (i = 0; i < o->ngiven; i++) {
		if (!take[i])
			continue;
		take[i] = false;
		if (!refused(o, recording, take, true))
			return;
		take[i] = true;
	}
	memset(take, 0, CMD_GIVEN_MAX * sizeof(*take));
}

/* Chooses the options that the command keeps. */
static void choose(const struct cmd_opts *o, bool recording, bool take[CMD_GIVEN_MAX])
{
	bool one[CMD_GIVEN_MAX] = {0};
	unsigned i;

	for (i = 0; i < o->ngiven; i++) {
		const struct cmd_given *g = &o->given[i];

		take[i] = false;
		if (!strcmp(g->opt->name, "pid") || (g->value && strlen(g->value) >= WORD_BYTES))
			continue;
		one[i] = true;
		take[i] = !refused(o, recording, one, true) || refused(o, recording, one, false);
		one[i] = false;
	}
	if (refused(o, recording, take, true))
		leave_one(o, recording, take);
}

static void put_options(struct buf *b, const struct cmd_opts *o, const bool *take)
{
	unsigned i;

	for (i = 0; i < o->ngiven; i++) {
		const struct cmd_given *g = &o->given[i];

		if (!take[i])
			continue;
		buf_printf(b, " --%s", g->opt->name);
		if (!g->value)
			continue;
		buf_printf(b, g->opt->arg[0] == '[' ? "=" : " ");
		put_quoted(b, g->value);
	}
	buf_printf(b, " --agent");
}

static void put_command(struct buf *b, char *const *command)
{
	buf_printf(b, " --");
	for (; command && *command; command++) {
		buf_printf(b, " ");
		put_quoted(b, *command);
	}
}

/* Names the options that the command lacks. */
static void put_lost(struct buf *b, const struct cmd_opts *o, const bool *take)
{
	unsigned i, n = 0;

	for (i = 0; i < o->ngiven; i++)
		if (!take[i] && strcmp(o->given[i].opt->name, "pid"))
			buf_printf(b, "%s--%s", n++ ? ", " : "", o->given[i].opt->name);
}

/* Takes the text out of a buffer. NULL: there was no memory. */
static char *text_of(struct buf *b)
{
	char *text = b->len ? strndup(b->data, b->len) : strdup("");

	buf_fini(b);
	return text;
}

void cmd_remedy(const struct cmd_opts *o, bool recording, struct ses_remedy *r)
{
	bool take[CMD_GIVEN_MAX] = {0};
	struct buf head = {0}, tail = {0}, lost = {0};

	*r = (struct ses_remedy){0};
	if (o->ses.agent)
		return;
	choose(o, recording, take);
	put_options(&tail, o, take);
	if (tail.len > LINE_BYTES) {
		tail.len = 0;
		memset(take, 0, sizeof(take));
		put_options(&tail, o, take);
	}
	if (o->ses.command)
		put_command(&tail, o->ses.command);
	buf_printf(&head, "%s", getenv("SUDO_UID") ? "sudo " : "");
	put_quoted(&head, program_invocation_name);
	buf_printf(&head, "%s", recording ? " record" : "");
	put_lost(&lost, o, take);
	r->head = text_of(&head);
	r->tail = text_of(&tail);
	r->lost = text_of(&lost);
}
