// SPDX-License-Identifier: Apache-2.0
/* Usage, --help and the completion for bash, all made from the tables of commands and options. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "cmd/opts.h"
#include "view/sheet.h"

#define WIDTH	     79
#define TEXT_COLUMN  24 /* of options */
#define SHORT_COLUMN 11 /* of commands and groups */
#define START_COLUMN 43 /* of the commands to start with */

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

static void print_option_text(const struct cmd_option *opt, const char *text)
{
	char head[64];
	int len;

	len = snprintf(head, sizeof(head), opt->letter ? "  -%c, " : "      ", opt->letter);
	len += snprintf(head + len, sizeof(head) - len, "--%s%s%s", opt->name, opt->arg ? " " : "",
			opt->arg ? opt->arg : "");
	fputs(head, stdout);
	if (len > TEXT_COLUMN - 2) {
		putchar('\n');
		len = 0;
	}
	print_wrapped(text, len, TEXT_COLUMN);
}

static void print_option(const struct cmd_option *opt)
{
	char text[512];

	print_option_text(opt, cmd_option_text(opt, text));
}

/* Prints only what stands before the first period, colon or semicolon of the text. */
static void print_option_short(const struct cmd_option *opt)
{
	char text[512];
	size_t len = 0;

	snprintf(text, sizeof(text), "%s", opt->help);
	while (text[len] && !(strchr(".:;", text[len]) && strchr(" ", text[len + 1])))
		len++;
	text[len] = 0;
	print_option_text(opt, text);
}

/* The text begins with the commands that take the option if `mxbpf --pid` does not. */
static void print_option_takers(const struct cmd_option *opt)
{
	char text[512], all[640];
	const struct cmd *c;
	size_t used = 0;

	for (c = cmd_table; !(opt->commands & CMD_BIT_ATTACH) && c->run && used < sizeof(all); c++)
		if (opt->commands & c->bit)
			used += snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", c->name);
	if (used < sizeof(all))
		snprintf(all + used, sizeof(all) - used, "%s%s", used ? ": " : "", cmd_option_text(opt, text));
	print_option_text(opt, all);
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

static void print_usage(FILE *f)
{
	const struct cmd *c;
	char title[32];

	for (c = cmd_table; c->run; c++)
		fprintf(f, "%s %s %s\n", c == cmd_table ? "Usage:" : "      ", cmd_title(c, title), c->synopsis);
}

void cmd_print_usage(void)
{
	print_usage(stderr);
	fputs("Try: mxbpf --help\n", stderr);
}

#define GROUP_NAME 16

static const char *group_word(unsigned i, char buf[GROUP_NAME])
{
	const char *name = i < CMD_NGROUPS ? cmd_groups[i].name : "all";
	size_t len = snprintf(buf, GROUP_NAME, "%s", name);

	while (len--)
		buf[len] = tolower((unsigned char)buf[len]);
	return buf;
}

static void print_group(unsigned i)
{
	const struct cmd_option *opt;

	printf("%s (%s):\n", cmd_groups[i].name, cmd_groups[i].help);
	for (opt = cmd_options; opt->name; opt++)
		if (opt->group && !strcmp(opt->group, cmd_groups[i].name))
			print_option_takers(opt);
}

static void print_exits(void)
{
	const struct cmd_exit_text *x;

	puts("\nExit status:");
	for (x = cmd_exits; x->text; x++)
		print_wrapped(x->text, printf("  %d", x->code), 8);
}

/* Everything that the tables know: `mxbpf help all`. */
static void print_all(void)
{
	const struct cmd *c;
	unsigned i;

	print_usage(stdout);
	for (i = 0; i < CMD_NGROUPS; i++) {
		putchar('\n');
		print_group(i);
	}
	print_exits();
	puts("\nExamples:");
	for (c = cmd_table; c->run; c++)
		printf("  %s\n", c->example);
}

/* Commands and options of the first page, which has at most 60 lines. */
static const struct {
	const char *command, *help;
} start[] = {
	{"sudo mxbpf --pid 1234", "profile a job until Ctrl-C, at most 10 % slower"},
	{"sudo mxbpf -- python train.py", "run a job and profile it"},
	{"sudo mxbpf record --pid 1234 -o job.mxd", "write a recording"},
	{"mxbpf report job.mxd", "print its tables, without root"},
	{"sudo mxbpf now --pid 1234", "show where a job hangs"},
	{"sudo mxbpf list", "list processes to profile"},
};
static const char *const common[] = {"duration",  "iterations", "by",	 "sort",  "top",   "shapes",
				     "py-stacks", "memory",	"sched", "trace", "output"};

static void print_first_page(void)
{
	const struct cmd_option *opt;
	const struct cmd *c;
	char word[GROUP_NAME];
	unsigned i;

	puts("mxbpf: what a running deep-learning job (MXNet, PyTorch) does: operators, C API\n"
	     "calls, memory, a timeline. The job needs no change and no restart.\n\nStart with:");
	for (i = 0; i < sizeof(start) / sizeof(start[0]); i++)
		print_wrapped(start[i].help, printf("  %s", start[i].command), START_COLUMN);
	puts("\nCommands (mxbpf help COMMAND tells more):");
	for (c = cmd_table + 1; c->run; c++)
		print_wrapped(c->help, printf("  %s", c->name), SHORT_COLUMN);
	puts("\nOptions used most:");
	for (i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		for (opt = cmd_options; opt->name; opt++)
			if (!strcmp(opt->name, common[i]) && (opt->commands & CMD_BIT_ATTACH))
				print_option_short(opt);
	puts("\nAll options, by group (mxbpf help GROUP):");
	for (i = 0; i <= CMD_NGROUPS; i++)
		print_wrapped(i < CMD_NGROUPS ? cmd_groups[i].help : "every option, exit status, examples",
			      printf("  %s", group_word(i, word)), SHORT_COLUMN);
	puts("\nMore: man mxbpf; README.md and docs/ of the source");
}

int cmd_print_help(const struct cmd *c)
{
	char title[32];

	if (c == cmd_table) {
		print_first_page();
		return CMD_OK;
	}
	printf("Usage: %s %s\n\n", cmd_title(c, title), c->synopsis);
	print_wrapped(c->help, 0, 0);
	print_options(c);
	printf("\nExample:\n  %s\n", c->example);
	return CMD_OK;
}

/* Lists the words that `help` takes, and the one that was probably meant. */
static int fail_topic(const char *topic)
{
	char commands[200] = "", words[100] = "", hint[NEAR_HINT_BYTES], names[CMD_NGROUPS + 1][GROUP_NAME];
	struct near n = {0};
	struct err e = {0};
	const struct cmd *c;
	size_t len = 0;
	unsigned i;

	for (c = cmd_table + 1; c->run && len < sizeof(commands); c++) {
		near_try(&n, topic, c->name);
		len += snprintf(commands + len, sizeof(commands) - len, "%s%s", len ? ", " : "", c->name);
	}
	for (i = len = 0; i <= CMD_NGROUPS && len < sizeof(words); i++) {
		near_try(&n, topic, group_word(i, names[i]));
		len += snprintf(words + len, sizeof(words) - len, "%s%s", len ? ", " : "", names[i]);
	}
	err_set(&e, ERR_USAGE, -EINVAL, "'%.60s' is not a command (%s) or a group of options (%s)%s", topic, commands,
		words, near_hint(&n, "", hint));
	return cmd_fail(&e);
}

int cmd_help(const struct cmd_opts *o)
{
	const char *topic = o->nargs ? o->args[0] : NULL;
	char word[GROUP_NAME];
	const struct cmd *c;
	unsigned i;

	c = topic ? cmd_find(topic) : cmd_table;
	if (c)
		return cmd_print_help(c);
	for (i = 0; i <= CMD_NGROUPS && strcmp(topic, group_word(i, word)); i++)
		;
	if (i > CMD_NGROUPS)
		return fail_topic(topic);
	if (i == CMD_NGROUPS)
		print_all();
	else
		print_group(i);
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
	char word[GROUP_NAME];
	unsigned i;

	printf("\t%s) words='", c->name ? c->name : "''");
	for (opt = cmd_options; opt->name; opt++)
		if (opt->group && (opt->commands & c->bit))
			printf("--%s ", opt->name);
	if (c == cmd_table || c->run == cmd_help)
		for (other = cmd_table + 1; other->run; other++)
			printf("%s ", other->name);
	for (i = 0; c->run == cmd_help && i <= CMD_NGROUPS; i++)
		printf("%s ", group_word(i, word));
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
