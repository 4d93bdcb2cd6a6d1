// SPDX-License-Identifier: Apache-2.0
/* The lists of the manual that are made from the tables, in Markdown. share/man.awk inserts them in the page. */
#include <stdio.h>
#include <string.h>

#include "adapter/adapter.h"
#include "cmd/opts.h"
#include "mxbpf_thread.h"
#include "view/sheet.h"

/* Escapes what has a meaning in Markdown. */
static void lists_put_text(const char *text)
{
	for (; *text; text++) {
		if (strchr("*`\\", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void lists_put_line(const char *before, const char *text, const char *after)
{
	fputs(before, stdout);
	lists_put_text(text);
	puts(after);
}

static void print_synopsis(void)
{
	const struct cmd *c;
	char title[32];

	for (c = cmd_table; c->run; c++) {
		printf("**%s** ", cmd_title(c, title));
		lists_put_line("", c->synopsis, c[1].run ? "\\" : "");
	}
}

static void print_runtimes(void)
{
	const struct adp *const *a;

	fputs("This version knows these runtimes:", stdout);
	for (a = adapters; *a; a++)
		printf("%s %s", a == adapters ? "" : ",", (*a)->title);
	puts(".");
}

static void print_commands(void)
{
	const struct cmd *c;
	char title[32];

	for (c = cmd_table; c->run; c++) {
		lists_put_line("**", cmd_title(c, title), "**");
		lists_put_line(": ", c->help, c->help[strlen(c->help) - 1] == '.' ? "" : ".");
	}
}

static void print_takers(const struct cmd_option *opt)
{
	const struct cmd *c;
	const char *sep = " ";

	fputs(" Taken by", stdout);
	for (c = cmd_table; c->run; c++) {
		if (!(opt->commands & c->bit))
			continue;
		printf("%s**%s**", sep, c->name ? c->name : "mxbpf --pid");
		sep = ", ";
	}
	puts(".");
}

static void print_options_of(const struct cmd_group *group)
{
	const struct cmd_option *opt;
	char text[512];

	for (opt = cmd_options; opt->name; opt++) {
		if (!opt->group || strcmp(opt->group, group->name))
			continue;
		if (opt->letter)
			printf("**-%c**, ", opt->letter);
		printf("**--%s**", opt->name);
		printf(opt->arg ? " *%s*\n: " : "\n: ", opt->arg);
		lists_put_text(cmd_option_text(opt, text));
		if (text[strlen(text) - 1] != '.')
			putchar('.');
		print_takers(opt);
	}
}

static void print_options(void)
{
	unsigned i;

	for (i = 0; i < CMD_NGROUPS; i++) {
		printf("### %s: %s\n\n", cmd_groups[i].name, cmd_groups[i].help);
		print_options_of(&cmd_groups[i]);
		putchar('\n');
	}
}

/* Puts the value of an option behind its name: its words, or what --help calls it. */
static void print_value(const struct cmd_option *opt)
{
	char words[200];

	if (opt->word)
		printf(" %s", cmd_join_words(opt->word, words));
	else if (opt->arg)
		printf(" *%s*", opt->arg);
}

/* What --agent does with each option: a table for docs/pytorch.md. Options that differ in nothing share a row. */
int cmd_print_agent(const struct cmd *c)
{
	const struct cmd_option *opt;
	char why[CMD_WHY_BYTES];
	const char *sep = "| ", *last = "";
	enum cmd_agent with;

	puts("| option | with `--agent` | |\n|---|---|---|");
	for (opt = cmd_options; opt->name; opt++) {
		if (!opt->group || !(opt->commands & CMD_LIVE) || !strcmp(opt->name, "agent"))
			continue;
		with = cmd_with_agent(opt, why);
		if (with == CMD_AGENT_YES && !why[0])
			continue;
		printf("| `--%s`", opt->name);
		print_value(opt);
		printf(" | %s | %s |\n", with == CMD_AGENT_YES ? "yes" : "no", why);
	}
	for (opt = cmd_options; opt->name; opt++) {
		if (!opt->group || !(opt->commands & CMD_LIVE) || !strcmp(opt->name, "agent") ||
		    !strcmp(opt->name, last) || cmd_with_agent(opt, why) != CMD_AGENT_YES || why[0])
			continue;
		printf("%s`--%s`", sep, opt->name);
		sep = ", ";
		last = opt->name;
	}
	puts(" | yes | |");
	return CMD_OK;
}

/* The options that --agent refuses, for the manual. */
static void print_refused(void)
{
	const struct cmd_option *opt;
	char why[CMD_WHY_BYTES];

	for (opt = cmd_options; opt->name; opt++)
		if (opt->group && opt->commands & CMD_LIVE && cmd_with_agent(opt, why) == CMD_AGENT_NO) {
			printf("**--%s**\n", opt->name);
			lists_put_line(": ", why, ".");
		}
}

static void print_caps(void)
{
	printf("At most %d threads at a time, and %d nested spans a thread. All threads share room for %d spans beyond "
	       "the first %d of each, with **--agent** a quarter of it. What goes beyond these limits counts as "
	       "dropped.\n",
	       MXBPF_THREADS_MAX - 1 /* slot 0 belongs to no thread */, MXBPF_FRAMES_MAX,
	       MXBPF_SLOTS_DEEP * MXBPF_SLOT_FRAMES, MXBPF_SLOT_FRAMES);
	printf("Names are kept up to %d bytes; longer ones are cut and counted as truncated.\n", MXBPF_NAME_BYTES_MAX);
}

static void print_exits(void)
{
	const struct cmd_exit_text *x;

	for (x = cmd_exits; x->text; x++) {
		printf("**%d**\n", x->code);
		lists_put_line(": ", x->text, "");
	}
}

static void print_cost(void)
{
	puts("A probe costs its process a trap each time it is hit: " CMD_COST_TRAP
	     " where the kernel can emulate the probed "
	     "instruction, and " CMD_COST_STEP
	     " on a virtual machine where the kernel must single-step it. With the BPF "
	     "program behind the traps, a record costs " CMD_COST_RECORD ".");
}

/* A column: its names in the outputs, its unit, its meaning. */
static void print_column(const struct view_sheet *sh, const struct tbl_column *c)
{
	static const char *const units[TBL_NTYPES] = {
		[TBL_NS] = "duration",	 [TBL_BYTES] = "size",	  [TBL_RATE] = "bytes a second",
		[TBL_MOMENT] = "moment", [TBL_SHARE] = "percent",
	};
	const char *csv = view_csv_head(sh, c), *names[][2] = {{"", c->head}, {"JSON ", c->key}, {"CSV ", csv}};
	const struct tbl_column *of;
	const char *sep = "";
	unsigned i;

	if (c->type == TBL_PART) {
		for (of = c->columns; of->bytes; of++)
			print_column(sh, of);
		return;
	}
	if (!c->key && !c->head && !csv)
		return;
	for (i = 0; i < 3; i++)
		if (names[i][1]) {
			printf("%s%s**%s**", sep, names[i][0], names[i][1]);
			sep = ", ";
		}
	if (view_has_own_row(c))
		printf(", CSV has rows **%s**", c->csv);
	printf(units[c->type] ? " (%s)\n: " : "\n: ", units[c->type]);
	if (c->help)
		lists_put_text(c->help);
	for (of = c->columns; of && of->bytes; of++)
		printf("%s**%s**%s", of == c->columns ? " Its members: " : ", ", of->key, of[1].bytes ? "" : ".");
	putchar('\n');
}

static void print_sheets(void)
{
	const struct view_sheet *const *sh;
	const struct tbl_column *c;

	for (sh = view_sheets; *sh; sh++) {
		lists_put_line("### ", (*sh)->title, "");
		putchar('\n');
		lists_put_line("", (*sh)->help, "\n");
		for (c = (*sh)->totals; c && c->bytes; c++)
			print_column(*sh, c);
		for (c = (*sh)->columns; c->bytes; c++)
			print_column(*sh, c);
	}
}

static void print_examples(void)
{
	const struct cmd *c;

	puts("```");
	for (c = cmd_table; c->run; c++)
		puts(c->example);
	puts("```");
}

/* The lists of the manual, in the order of the page. docs/man/mxbpf.1.md inserts each by its name. */
static const struct {
	const char *name;
	void (*print)(void);
} lists[] = {
	{"synopsis", print_synopsis}, {"runtimes", print_runtimes}, {"commands", print_commands},
	{"options", print_options},   {"columns", print_sheets},    {"cost", print_cost},
	{"limits", print_caps},	      {"exits", print_exits},	    {"examples", print_examples},
	{"refused", print_refused},
};

int cmd_print_lists(const struct cmd *c)
{
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		printf("<!-- list %s -->\n", lists[i].name);
		lists[i].print();
		putchar('\n');
	}
	return CMD_OK;
}

/* ---- --generate */

static const struct {
	const char *what;
	int (*print)(const struct cmd *c);
} generators[] = {
	{"lists", cmd_print_lists}, {"completion", cmd_print_completion}, {"schema", cmd_print_schema},
	{"agent", cmd_print_agent}, {"seccomp", cmd_print_seccomp},	  {NULL, NULL},
};

const char *cmd_generated(unsigned i)
{
	return generators[i].what;
}

int cmd_set_generate(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	int i = cmd_find_word(opt, text, e);

	if (i < 0)
		return i;
	o->instead = generators[i].print;
	return 0;
}
