// SPDX-License-Identifier: Apache-2.0
/* Usage, --help and the completion for bash, all made from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cmd/opts.h"
#include "view/sheet.h"

#define WIDTH	    79
#define TEXT_COLUMN 24

/* Wraps a text between columns `from` and WIDTH. The cursor is at column `at`. */
static void print_wrapped(const char *text, int at, int from)
{
	int col = at, len;

	while (*text) {
		len = strcspn(text, " ");
		if (col > from && col + 1 + len > WIDTH) {
			putchar('\n');
			col = 0;
		}
		if (col < from)
			col += printf("%*s", from - col, "");
		else if (col > from)
			col += printf(" ");
		col += printf("%.*s", len, text);
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_option(const struct cmd_option *opt)
{
	char text[512], head[64];
	int len;

	len = snprintf(head, sizeof(head), opt->letter ? "  -%c, " : "      ", opt->letter);
	len += snprintf(head + len, sizeof(head) - len, "--%s%s%s", opt->name, opt->arg ? " " : "",
			opt->arg ? opt->arg : "");
	fputs(head, stdout);
	if (len > TEXT_COLUMN - 2) {
		putchar('\n');
		len = 0;
	}
	print_wrapped(cmd_option_text(opt, text), len, TEXT_COLUMN);
}

static void print_options(const struct cmd *c)
{
	const struct cmd_option *opt;
	const char *group = "";

	for (opt = cmd_options; opt->name; opt++) {
		if (!opt->group || !(opt->commands & c->bit))
			continue;
		if (strcmp(group, opt->group))
			printf("\n%s:\n", opt->group);
		group = opt->group;
		print_option(opt);
	}
}

static void print_commands(FILE *f, const struct cmd *c)
{
	char title[32];

	for (; c->run; c++)
		fprintf(f, "%s %s %s\n", c == cmd_table ? "Usage:" : "      ", cmd_title(c, title), c->synopsis);
}

void cmd_print_usage(void)
{
	print_commands(stderr, cmd_table);
	fputs("Try: mxbpf --help\n", stderr);
}

/* The part of --help that only `mxbpf --help` has. */
static void print_overview(void)
{
	const struct cmd_exit_text *x;
	const struct cmd *c;
	char head[32];

	puts("\nCommands (mxbpf COMMAND --help tells more):");
	for (c = cmd_table + 1; c->run; c++) {
		snprintf(head, sizeof(head), "  %s", c->name);
		print_wrapped(c->help, printf("%s", head), TEXT_COLUMN);
	}
	puts("\nExit status:");
	for (x = cmd_exits; x->text; x++)
		print_wrapped(x->text, printf("  %d", x->code), 8);
	puts("\nExamples:");
	for (c = cmd_table; c->run; c++)
		printf("  %s\n", c->example);
}

int cmd_print_help(const struct cmd *c)
{
	char title[32];

	if (c == cmd_table) {
		puts("mxbpf: what a running deep-learning job does: operators, C API calls, memory,\n"
		     "a timeline. The job needs no change and no restart.\n");
		print_commands(stdout, c);
	} else {
		printf("Usage: %s %s\n\n", cmd_title(c, title), c->synopsis);
		print_wrapped(c->help, 0, 0);
	}
	print_options(c);
	if (c == cmd_table)
		print_overview();
	else
		printf("\nExample:\n  %s\n", c->example);
	return CMD_OK;
}

int cmd_print_version(const struct cmd *c)
{
	puts("mxbpf " MXBPF_VERSION);
	return CMD_OK;
}

/* ---- completion */

#define FILES "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")"

/* The name of an option's value says how it is completed. */
static const struct {
	const char *arg, *shell;
} value_shell[] = {
	{"FILE", FILES},
	{"PID", "mapfile -t COMPREPLY < <(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$cur\")"},
};

static void print_value_case(const struct cmd *c, const struct cmd_option *opt)
{
	const char *name = c->name ? c->name : "";
	unsigned i;

	printf("\t%s:--%s", name, opt->name);
	if (opt->letter)
		printf("|%s:-%c", name, opt->letter);
	puts(")");
	for (i = 0; i < sizeof(value_shell) / sizeof(value_shell[0]); i++)
		if (!strcmp(value_shell[i].arg, opt->arg))
			printf("\t\t%s\n", value_shell[i].shell);
	if (opt->word && !strcmp(opt->arg, "LIST"))
		fputs("\t\t[[ $cur == *,* ]] && before=${cur%,*},\n", stdout);
	if (opt->word) {
		fputs("\t\tmapfile -t COMPREPLY < <(compgen -P \"$before\" -W '", stdout);
		for (i = 0; opt->word(i); i++)
			printf("%s%s", i ? " " : "", opt->word(i));
		puts("' -- \"${cur#\"$before\"}\")");
	}
	puts("\t\treturn ;;");
}

static void print_words_case(const struct cmd *c)
{
	const struct cmd_option *opt;
	const struct cmd *other;

	printf("\t%s) words='", c->name ? c->name : "''");
	for (opt = cmd_options; opt->name; opt++)
		if (opt->group && (opt->commands & c->bit))
			printf("--%s ", opt->name);
	if (c == cmd_table || c->run == cmd_help)
		for (other = cmd_table + 1; other->run; other++)
			printf("%s ", other->name);
	printf("'; operand=%d ;;\n", c->min_args);
}

int cmd_print_completion(const struct cmd *unused)
{
	const struct cmd_option *opt;
	const struct cmd *c;

	puts("# bash completion of mxbpf " MXBPF_VERSION ", made by mxbpf --generate completion\n"
	     "_mxbpf()\n{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd='' before='' words='' "
	     "operand=0\n"
	     "\t# bash splits --sort=to at the equals sign\n"
	     "\t[[ $prev == '=' ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
	     "\t[[ $cur == '=' ]] && cur=\n"
	     "\tCOMPREPLY=()\n"
	     "\t((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]] && cmd=${COMP_WORDS[1]}\n"
	     "\tcase \"$cmd:$prev\" in");
	for (c = cmd_table; c->run; c++)
		for (opt = cmd_options; opt->name; opt++)
			if (opt->arg && opt->group && (opt->commands & c->bit))
				print_value_case(c, opt);
	puts("\tesac\n\tcase \"$cmd\" in");
	for (c = cmd_table; c->run; c++)
		print_words_case(c);
	puts("\tesac\n"
	     "\tif [[ $operand == 1 && $cur != -* ]]; then\n"
	     "\t\t" FILES "\n"
	     "\telse\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	     "\tfi\n}\n"
	     "complete -F _mxbpf mxbpf");
	return CMD_OK;
}

int cmd_print_schema(const struct cmd *c)
{
	struct err e = {0};
	struct out *o;

	if (out_open("-", false, &o, &e))
		return CMD_FAILED;
	view_put_schema(o);
	return out_commit(o, &e) ? CMD_FAILED : CMD_OK;
}
