// SPDX-License-Identifier: Apache-2.0
/* Tests what can be combined with --agent: every option with it, and every pair of options with it. */
#include "cmd/opts.h"

#include "unit.h"
#include "view/view.h"

#define ITEMS_MAX 400
#define WORDS_MAX 10

/* An option with one of its values. */
struct item {
	const struct cmd_option *opt;
	char name[40], value[60]; /* value "": none */
};

static struct item items[ITEMS_MAX];
static unsigned nitems;

/* Values of options that take any. */
static const struct {
	const char *option, *value;
} values[] = {
	{"pid", "1"},
	{"ops", "aten::*"},
	{"max-overhead", "5%"},
	{"cupti", "/lib/x.so"},
	{"gpu-jobs", "train*,123"},
	{"kernel-metrics", "gemm"},
	{"kernel-metrics", "gemm,relu:3:replay"},
	{"duration", "1s"},
	{"delay", "1s"},
	{"drop-privileges", "nobody"},
	{"interval", "1s"},
	{"trace-every", "5s"},
	{"keep", "12"},
	{"table", "threads"},
	{"top", "3"},
	{"row-limit", "3"},
	{"stack-depth", "2"},
	{"output", "o"},
	{"max-size", "1G"},
	{"ring-size", "1M"},
	{"max-memory", "1G"},
	{"sample", "99"},
	{"iterations", "5"},
	{"iterations", "5/100"},
	{"html", "page.html"},
	{"trace", "t.json"},
	{"trace", "t.json.gz"},
	{"trace", "t.folded"},
	{"trace", "t.pb.gz"},
	{"trace", "t.memory.csv"},
};

static void add(const struct cmd_option *opt, const char *value)
{
	struct item *i = &items[nitems++];

	if (nitems > ITEMS_MAX)
		abort();
	i->opt = opt;
	snprintf(i->name, sizeof(i->name), "--%s", opt->name);
	snprintf(i->value, sizeof(i->value), "%s", value);
}

/* Returns the first row that a command takes under the name of this one. */
static bool is_of(const struct cmd_option *opt, unsigned bit)
{
	const struct cmd_option *o = cmd_options;

	while (!(o->commands & bit) || strcmp(o->name, opt->name))
		o++;
	return opt == o;
}

/* Adds each value of an option. The words of --probes come with "op", which --agent requires. */
static void add_all(const struct cmd_option *opt)
{
	const bool list = !strcmp(opt->name, "probes");
	unsigned i, before = nitems;
	char text[60];

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (!strcmp(values[i].option, opt->name))
			add(opt, values[i].value);
	for (i = 0; opt->word && opt->word(i); i++) {
		snprintf(text, sizeof(text), "%s%s", list ? "op," : "", opt->word(i));
		add(opt, text);
	}
	if (!opt->arg)
		add(opt, "");
	CHECK(nitems > before); /* a new option needs a value in the table above */
}

/* Each command line below has --pid already. */
static bool names_others(const char *option)
{
	return !strcmp(option, "pid") || !strcmp(option, "comm") || !strcmp(option, "cgroup") ||
	       !strcmp(option, "host");
}

static void add_options(unsigned bit)
{
	const struct cmd_option *opt;

	nitems = 0;
	for (opt = cmd_options; opt->name; opt++)
		if (opt->commands & bit && opt->group && is_of(opt, bit) && !names_others(opt->name) &&
		    strcmp(opt->name, "help") && strcmp(opt->name, "version"))
			add_all(opt);
}

/* Parses a command with up to two options. Returns true if it is refused; e says why. */
static bool refused(const char *command, bool agent, const struct item *a, const struct item *b, struct err *e)
{
	const struct item *both[] = {a, b};
	char words[WORDS_MAX][120];
	char *argv[WORDS_MAX + 1];
	const struct cmd *c;
	struct cmd_opts o;
	int argc = 0, i;

	snprintf(words[argc++], sizeof(words[0]), "mxbpf");
	if (command)
		snprintf(words[argc++], sizeof(words[0]), "%s", command);
	snprintf(words[argc++], sizeof(words[0]), "--pid=1");
	if (agent)
		snprintf(words[argc++], sizeof(words[0]), "--agent");
	for (i = 0; i < 2; i++) {
		if (!both[i])
			continue;
		snprintf(words[argc++], sizeof(words[0]), "%s", both[i]->name);
		if (both[i]->value[0] && both[i]->opt->arg[0] == '[')
			snprintf(words[argc - 1], sizeof(words[0]), "%s=%s", both[i]->name, both[i]->value);
		else if (both[i]->value[0])
			snprintf(words[argc++], sizeof(words[0]), "%s", both[i]->value);
	}
	for (i = 0; i < argc; i++)
		argv[i] = words[i];
	argv[argc] = NULL;
	*e = (struct err){0};
	return cmd_parse(argc, argv, &c, &o, e);
}

static bool agent_refuses(const struct item *i)
{
	char why[CMD_WHY_BYTES];

	return cmd_with_agent(i->opt, why) == CMD_AGENT_NO;
}

static void test_singles(const char *command)
{
	char why[CMD_WHY_BYTES];
	struct err e;
	unsigned i;

	for (i = 0; i < nitems; i++) {
		if (agent_refuses(&items[i])) {
			CHECK(refused(command, true, &items[i], NULL, &e) && e.cls == ERR_USAGE);
			cmd_with_agent(items[i].opt, why);
			CHECK(why[0] && strstr(e.why, items[i].opt->name));
			CHECK(strstr(e.why, why) || !strcmp(items[i].opt->name, "no-bpf"));
		}
	}
}

static void test_pairs(const char *command)
{
	bool expected, got;
	struct err with, without;
	unsigned i, k;

	for (i = 0; i < nitems; i++)
		for (k = i; k < nitems; k++) {
			if (items[i].opt == items[k].opt)
				continue;
			expected = agent_refuses(&items[i]) || agent_refuses(&items[k]) ||
				   refused(command, false, &items[i], &items[k], &without);
			got = refused(command, true, &items[i], &items[k], &with);
			if (got == expected)
				continue;
			printf("# %s %s %s %s with --agent: %s\n", items[i].name, items[i].value, items[k].name,
			       items[k].value, got ? with.why : "not refused");
			CHECK(got == expected);
		}
}

int main(void)
{
	const struct item without_op = {.opt = cmd_options, .name = "--probes", .value = "mem"};
	struct err e;

	cmd_init_options();
	TEST("Each option says whether it can be used with --agent, and one that cannot is refused with its reason")
	{
		add_options(CMD_BIT_ATTACH);
		test_singles(NULL);
		add_options(CMD_BIT_RECORD);
		test_singles("record");
	}
	TEST("A pair of options is refused with --agent if one of them is, or the pair without --agent, and else not")
	{
		add_options(CMD_BIT_ATTACH);
		CHECK(nitems > 80);
		test_pairs(NULL);
		add_options(CMD_BIT_RECORD);
		test_pairs("record");
	}
	TEST("--agent needs op among the probes")
	{
		CHECK(refused(NULL, true, &without_op, NULL, &e) && strstr(e.why, "add op to --probes"));
		CHECK(!refused(NULL, false, &without_op, NULL, &e));
	}
	UNIT_MAIN_END;
}
