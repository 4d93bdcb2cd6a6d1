// SPDX-License-Identifier: Apache-2.0
/* Checks a command line that was parsed: whether something is missing, and what cannot be used together. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter/adapter.h"
#include "base/fmt.h"
#include "cmd/opts.h"
#include "cmd/serve/otel.h"
#include "cmd/serve/push_profile.h"
#include "plan/plan.h"
#include "view/sheet.h"

enum cmd_agent cmd_with_agent(const struct cmd_option *opt, char why[CMD_WHY_BYTES])
{
	bool shared = false;
	size_t len = 0;
	unsigned i;

	snprintf(why, CMD_WHY_BYTES, "%s", opt->agent_why ? opt->agent_why : "");
	if (opt->agent || !opt->supports)
		return opt->agent;
	for (i = 0; adapters[i]; i++) {
		if (!plan_has_agent(adapters[i]) || len >= CMD_WHY_BYTES)
			continue;
		shared |= opt->supports(adapters[i]);
		len += snprintf(why + len, CMD_WHY_BYTES - len, "%s%s", len ? ", " : "not supported with ",
				adapters[i]->title);
	}
	return shared ? CMD_AGENT_UNSAID : CMD_AGENT_NEITHER;
}

#define GONE_STATS                                                                                                     \
	"mxbpf now records calls in slices if all of them would cost the job too much, and --exact records every call"

/* Options of earlier versions, and what their users do now. */
static const struct {
	const char *name, *successor;
} gone[] = {
	{"--stats", GONE_STATS},
	{"--stats-check", GONE_STATS},
};

int cmd_check_gone(const char *word, struct err *e)
{
	size_t i;

	for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		if (!strcmp(word, gone[i].name))
			return err_set(e, ERR_USAGE, -EINVAL, "%s no longer exists: %s", word, gone[i].successor);
	return 0;
}

/* Returns true if processes are chosen by what they are. */
static bool chooses(const struct job_choice *c)
{
	return c->host || c->comm || c->cgroup;
}

static bool is_url(const char *text)
{
	return !strncmp(text, "http://", 7) || !strncmp(text, "https://", 8);
}

/* Returns true if something else than --pid says what to profile. */
static bool names_target(const struct cmd_opts *o)
{
	return o->ses.command || chooses(&o->ses.choice);
}

int cmd_check_given(const struct cmd *c, const struct cmd_opts *o, const bool *seen, struct err *e)
{
	const struct cmd_option *opt;
	char title[32], why[CMD_WHY_BYTES];
	bool given;

	cmd_title(c, title);
	if (o->nargs > c->max_args && !c->max_args)
		return err_set(e, ERR_USAGE, -EINVAL,
			       "unexpected '%.60s': name a process with --pid PID, put a command of mxbpf first and a "
			       "command to run after --; see: %s --help",
			       o->args[0], title);
	if (o->nargs < c->min_args || o->nargs > c->max_args)
		return err_set(e, ERR_USAGE, -EINVAL, "%s takes %s%d argument%s, not %d; usage: %s %s", title,
			       c->min_args == c->max_args ? ""
			       : o->nargs < c->min_args	  ? "at least "
							  : "at most ",
			       o->nargs < c->min_args ? c->min_args : c->max_args,
			       (o->nargs < c->min_args ? c->min_args : c->max_args) == 1 ? "" : "s", o->nargs, title,
			       c->synopsis);
	for (opt = cmd_options; opt->name; opt++) {
		given = seen[opt - cmd_options];
		if ((opt->required & c->bit) && !names_target(o) && !given)
			return err_set(e, ERR_USAGE, -EINVAL, "--%s %s is missing%s; usage: %s %s", opt->name, opt->arg,
				       strcmp(opt->name, "pid") ? "" : "; mxbpf list shows the processes", title,
				       c->synopsis);
		if (given && o->ses.agent && cmd_with_agent(opt, why) == CMD_AGENT_NO)
			return err_set(e, ERR_USAGE, -EINVAL,
				       "--%s cannot be used with --agent: %s; remove one of them", opt->name, why);
		if (!opt->sees_gpu && o->ses.no_bpf && o->ses.command && given)
			return err_set(e, ERR_USAGE, -EINVAL,
				       "--%s needs probes, and --no-bpf uses none; remove one of them", opt->name);
	}
	return 0;
}

int cmd_check_layout(const struct cmd_opts *o, const bool *seen, struct err *e)
{
	const struct view_ops *view = cmd_table_view(o);
	const struct cmd_option *opt;

	if (!view)
		return err_set(e, ERR_USAGE, -EINVAL, "--layout %s does not support --format %s; remove one of them",
			       o->layout, cmd_format_words[o->format]);
	if (o->by != VIEW_BY_NAME && !view->details)
		return err_set(e, ERR_USAGE, -EINVAL, "--layout %s does not support --by %s; remove one of them",
			       o->layout, view_by_words[o->by]);
	for (opt = cmd_options; opt->name; opt++)
		if (opt->sheet && seen[opt - cmd_options] && !view_shows_sheet(view, opt->sheet))
			return err_set(e, ERR_USAGE, -EINVAL, "--layout %s has no table for --%s; remove one of them",
				       o->layout, opt->name);
	return 0;
}

static bool lacks_room(const struct cmd_opts *o)
{
	return o->max_memory && 4 * o->ses.ring_bytes > o->max_memory;
}

const struct cmd_conflict cmd_ring_conflicts[] = {
	{lacks_room, "--max-memory must be at least four times --ring-size, because a ring takes twice its size"}, {0}};

static bool has_outlet(const struct cmd_opts *o)
{
	return o->textfile || o->stream || o->push_profile || otel_asks(o->otlp) || !o->listen ||
	       strcmp(o->listen, "none");
}

/* The rules below are those of options that no feature has. */
int cmd_check_whole(const struct cmd *c, const struct cmd_opts *o, struct err *e)
{
	const bool attach = c->bit & CMD_BIT_ATTACH, check = c->bit & CMD_BIT_CHECK, event = o->by == VIEW_BY_EVENT;
	const struct view_ops *trace = o->ses.trace ? view_find_suffix(o->ses.trace) : NULL;
	const bool agent = o->ses.agent, pid = o->ses.choice.npids;
	const struct {
		bool broken;
		const char *why;
	} rules[] = {
		{attach && event,
		 "--by event shows single calls, which only recordings have: run mxbpf record, then mxbpf "
		 "report --by event"},
		{o->sort == VIEW_SORT_START && !event, "--sort start needs --by event"},
		{o->stack_depth && o->by != VIEW_BY_STACK && !event, "--stack-depth needs --by stack or --by event"},
		{o->ses.api != SES_API_USUAL && !(o->ses.probes & PROBE_API),
		 "--api needs the probes of the C API, which --probes leaves out; add api to --probes"},
		{o->ses.ops && !(o->ses.probes & PROBE_OP),
		 "--ops needs the probes of operators, which --probes leaves out; add op to --probes"},
		{o->ses.ops && check && !o->ses.choice.npids, "--ops needs a process; add --pid PID"},
		{o->ses.reset && !o->ses.interval_ns, "--reset needs --interval TIME"},
		{o->ses.follow_app && !(o->ses.probes & PROBE_MARK),
		 "--follow-app needs the probes of the program's profiler, which --probes leaves out; add mark to "
		 "--probes"},
		{pid && o->ses.command, "--pid PID and -- COMMAND cannot be used together; remove one of them"},
		{chooses(&o->ses.choice) && (pid || o->ses.command),
		 "--host, --comm and --cgroup choose processes themselves; remove them, or --pid PID and -- COMMAND"},
		{o->ses.choice.host && (o->ses.choice.comm || o->ses.choice.cgroup),
		 "--host chooses all processes that run a runtime; remove it, or --comm and --cgroup"},
		{c->bit & CMD_BIT_SERVE && !has_outlet(o), "serve has nowhere to put its metrics; add --textfile "
							   "FILE.prom, --otlp URL or --stream FILE, or remove "
							   "--listen none"},
		{!o->flight_ns && !o->config && (o->non || o->ses.flight_bytes),
		 "--on and --flight-size need --flight-record TIME"},
		{!o->flight_ns && !o->config && !o->trigger && (o->trace_dir || (o->keep && c->bit & CMD_BIT_SERVE)),
		 "--trace-dir and --keep need something that writes recordings: --flight-record or --allow-trigger"},
		{o->otlp && strcmp(o->otlp, "none") && !is_url(o->otlp),
		 "--otlp: the URL begins with http:// or https://; mxbpf speaks OTLP over HTTP"},
		{o->push_profile && (!is_url(o->push_profile) || push_profile_form(o->push_profile) < 0),
		 "--push-profile: the URL begins with http:// or https://, and its path ends in /ingest (Pyroscope), "
		 ".ProfileStoreService/WriteRaw or /profiles/writeraw (Parca)"},
		{o->textfile && !fmt_ends_with(o->textfile, ".prom"),
		 "--textfile: node_exporter reads only names that end in .prom; rename it"},
		{o->ses.choice.job && !pid, "--job needs a process of the job; add --pid PID"},
		{o->ses.wait && o->ses.command,
		 "--wait needs running processes: mxbpf always waits for a command that it launches; remove --wait"},
		{trace && trace->of_samples && !o->ses.sample_hz,
		 "--trace: a file with this suffix contains samples; add --sample HZ"},
		{trace && trace->of_memory && !o->ses.memory,
		 "--trace: a file with this suffix contains memory attribution; add --memory"},
		{o->ses.trace_part_ns && !o->ses.trace, "--trace-every needs --trace FILE"},
		{o->ses.trace_part_ns && !trace,
		 "--trace-every writes several files; give --trace a name with a suffix, such as trace.pftrace"},
		{o->keep && attach && !o->ses.trace_part_ns, "--keep needs --trace-every TIME"},
		{o->output && o->ses.trace && !strcmp(o->output, o->ses.trace),
		 "--output and --trace name the same file; rename one of them"},
		{o->html && o->ses.interval_ns,
		 "--html is one window, and --interval makes several; remove one of them"},
		{o->html && o->output && !strcmp(o->html, o->output),
		 "--html and --output name the same file; rename one of them"},
		{o->html && o->open, "--open writes the page itself; remove --html, or name the page with --output"},
		{o->ses.cupti && !o->ses.gpu, "--cupti needs --gpu"},
		{o->ses.no_bpf && !o->ses.gpu, "--no-bpf needs --gpu, because only the GPU is seen without probes"},
		{o->ses.no_bpf && !o->ses.command,
		 "--no-bpf needs -- COMMAND, because only probes can be attached to a running process"},
		{agent && !(o->ses.probes & PROBE_OP),
		 "--agent records operators, which --probes leaves out; add op to --probes, or remove --agent"},
	};
	const struct cmd_conflict *conflict;
	const struct cmd_option *opt;
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].broken)
			return err_set(e, ERR_USAGE, -EINVAL, "%s", rules[i].why);
	for (opt = cmd_options; opt->name; opt++)
		for (conflict = opt->conflicts; conflict && conflict->broken; conflict++)
			if (conflict->broken(o))
				return err_set(e, ERR_USAGE, -EINVAL, "%s", conflict->why);
	return attach ? cmd_check_details(o, o->ses.details, !o->ses.no_account, "add", e) : 0;
}
