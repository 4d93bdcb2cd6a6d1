// SPDX-License-Identifier: Apache-2.0
#include "cmd/opts.h"

#include <stdio.h>
#include <string.h>

#include "sandbox/sandbox.h"

#define SESSION (SBX_LOOK | SBX_MAPS | SBX_LOAD)

const struct cmd cmd_table[] = {
	{
		.synopsis = "--pid PID [options] | [options] -- COMMAND [ARG...]",
		.help = "attach, or run a command; print the tables at Ctrl-C, after -d, or when the target ends",
		.example = "sudo mxbpf --pid 1234 -d 10s --trace step.json.gz",
		.bit = CMD_BIT_ATTACH,
		.needs = SESSION,
		.run = cmd_attach,
	},
	{
		.name = "record",
		.synopsis = "--pid PID [options] | [options] -- COMMAND [ARG...]",
		.help = "attach, or run a command, and write a recording for report and export",
		.example = "sudo mxbpf record --pid 1234 -d 1m -o job.mxd",
		.bit = CMD_BIT_RECORD,
		.needs = SESSION,
		.run = cmd_record,
	},
	{
		.name = "report",
		.synopsis = "FILE... [options]",
		.help = "print the tables of a recording, or of the hosts of a job as one",
		.example = "mxbpf report job.mxd --sort p99 --top 20",
		.bit = CMD_BIT_REPORT,
		.min_args = 1,
		.max_args = MDL_HOSTS_MAX,
		.run = cmd_report,
	},
	{
		.name = "export",
		.synopsis = "FILE... [options]",
		.help = "convert recordings into another format, such as a trace for Perfetto",
		.example = "mxbpf export job.mxd -f chrome -o job.json.gz",
		.bit = CMD_BIT_EXPORT,
		.min_args = 1,
		.max_args = MDL_HOSTS_MAX,
		.run = cmd_export,
	},
	{
		.name = "diff",
		.synopsis = "A.mxd B.mxd [options] | --base A.mxd... B.mxd... [options]",
		.help = "compare recordings: is B faster than A, where, and is it certain?",
		.example = "mxbpf diff before.mxd after.mxd --fail-on 'iteration > +5%'",
		.bit = CMD_BIT_DIFF,
		.min_args = 1,
		.max_args = CMD_BASE_MAX,
		.run = cmd_diff,
	},
	{
		.name = "now",
		.synopsis = "--pid PID [-d TIME]",
		.help = "show what each thread does at this moment, for a job that hangs",
		.example = "sudo mxbpf now --pid 1234",
		.bit = CMD_BIT_NOW,
		.needs = SESSION,
		.run = cmd_now,
	},
	{
		.name = "top",
		.synopsis = "--pid PID [options]",
		.help = "watch a job live: iterations per second, what bounds it, its operators",
		.example = "sudo mxbpf top --pid 1234",
		.bit = CMD_BIT_TOP,
		.needs = SESSION,
		.run = cmd_top,
	},
	{
		.name = "serve",
		.synopsis = "[--pid PID] [options]",
		.help = "watch jobs for months, and keep metrics of them for Prometheus",
		.example = "sudo mxbpf serve --textfile /var/lib/node_exporter/mxbpf.prom",
		.bit = CMD_BIT_SERVE,
		.needs = SESSION | SBX_NET | SBX_SELF,
		.run = cmd_serve,
	},
	{
		.name = "trace",
		.synopsis = "--via kineto --pid PID [options]",
		.help = "ask PyTorch's profiler of a job with KINETO_USE_DAEMON for a trace",
		.example = "sudo mxbpf trace --via kineto --pid 1234 --with shapes,stacks -o job.json",
		.bit = CMD_BIT_TRACE,
		.needs = SBX_LOOK | SBX_ENTER,
		.run = cmd_trace,
	},
	{
		.name = "check",
		.synopsis = "[--pid PID]",
		.help = "show what the kernel supports, where each probe is, and why others are refused",
		.example = "sudo mxbpf check --pid 1234",
		.bit = CMD_BIT_CHECK,
		.needs = SESSION,
		.run = cmd_check,
	},
	{
		.name = "list",
		.synopsis = "[--format FORMAT]",
		.help = "list processes that can be profiled, and say why others cannot",
		.example = "sudo mxbpf list",
		.bit = CMD_BIT_LIST,
		.needs = SESSION,
		.run = cmd_list,
	},
	{
		.name = "mcp",
		.synopsis = "[--allow-agent]",
		.help = "answer assistants on stdin and stdout (Model Context Protocol)",
		.example = "sudo mxbpf mcp",
		.bit = CMD_BIT_MCP,
		.needs = SBX_SELF,
		.run = cmd_mcp,
	},
	{
		.name = "help",
		.synopsis = "[COMMAND | GROUP]",
		.help = "print the help of a command or of a group of options",
		.example = "mxbpf help record",
		.bit = CMD_BIT_HELP,
		.max_args = 1,
		.run = cmd_help,
	},
	{.run = NULL},
};

const struct cmd_group cmd_groups[CMD_NGROUPS] = {
	{"Target", "which processes to profile"},
	{"Probes", "which calls to record, and how"},
	{"Measure", "what to read with each call"},
	{"Window", "when to begin and to stop"},
	{"Tables", "format, order and rows of the tables"},
	{"Files", "recordings, traces and other outputs"},
	{"Metrics", "where serve writes and sends them"},
	{"Recordings", "what serve records, and when"},
	{"Requests", "what to ask a profiler in the process for"},
	{"General", "progress, buffers, backends"},
};

const struct cmd_exit_text cmd_exits[] = {
	{CMD_OK, "success, also after Ctrl-C, TERM or HUP; all files are complete"},
	{CMD_FAILED, "failure: a file, a full disk, a closed stdout, a damaged recording"},
	{CMD_USAGE, "the command line is wrong; the message says where"},
	{CMD_NO_TARGET, "no such target, or nothing in it to attach to"},
	{CMD_PRIVILEGE, "a permission or a kernel feature is missing; the message says which"},
	{CMD_NOTHING_SEEN, "no event was recorded"},
	{CMD_LIMIT_BROKEN, "diff --fail-on: a limit is broken; the message says which"},
	{CMD_ABORTED, "a second Ctrl-C interrupted the writing of results; the message names the file"},
	{.text = NULL},
};

const struct cmd *cmd_find(const char *name)
{
	const struct cmd *c;

	for (c = cmd_table; c->run; c++)
		if (c->name && !strcmp(c->name, name))
			return c;
	return NULL;
}

const char *cmd_title(const struct cmd *c, char buf[32])
{
	snprintf(buf, 32, "mxbpf%s%s", c->name ? " " : "", c->name ? c->name : "");
	return buf;
}
