// SPDX-License-Identifier: Apache-2.0
#include "cmd/opts.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "base/memory.h"
#include "base/near.h"
#include "compare/show.h"
#include "kineto/kineto.h"
#include "model/feature.h"
#include "mxbpf_file.h"
#include "mxbpf_gpu.h"
#include "plan/early.h"
#include "plan/plan.h"
#include "serve/serve.h"
#include "view/sheet.h"

#define EVERY (CMD_BIT_HELP * 2 - 1)

#define SORT_UNSAID -1

/* ---- the values that options take */

static const char *word_sort(unsigned i)
{
	return i < VIEW_SORT_NKEYS ? view_sort_keys[i].name : NULL;
}

/* In the order of enum ses_follow. */
static const char *word_follow(unsigned i)
{
	static const char *const words[] = {"auto", "shared", "filtered", NULL};

	return words[i];
}

/* The last word is another name of the first. */
static const char *word_by(unsigned i)
{
	return i == VIEW_BY_NWORDS ? "operator" : i > VIEW_BY_NWORDS ? NULL : view_by_words[i];
}

static const char *word_format(unsigned i)
{
	return cmd_format_words[i];
}

static const char *word_list(unsigned i)
{
	return i <= CMD_JSON ? cmd_format_words[i] : NULL;
}

/* In the order of the bits of enum probe_group. Groups that users cannot choose come last and have no help. */
static const char *word_probes(unsigned i)
{
	return plan_groups[i].help ? plan_groups[i].name : NULL;
}
static const char *help_probes(unsigned i)
{
	return plan_groups[i].help;
}
#define PROBES_ALL                                                                                                     \
	(PROBE_OP | PROBE_API | PROBE_MEM | PROBE_WAIT | PROBE_INSIDE | PROBE_CUSTOM | PROBE_MARK | PROBE_DATA |       \
	 PROBE_KV | PROBE_CUDA)

static const char *word_api(unsigned i)
{
	static const char *const words[] = {[SES_API_ALL] = "all", [SES_API_WORK] = "work", NULL};

	return words[i];
}

static const char *word_backend(unsigned i)
{
	return att_backends[i] ? att_backends[i]->name : NULL;
}

static const char *word_via(unsigned i)
{
	return i ? NULL : "kineto";
}

/* ---- the table */

/* --max-overhead was given, and is not "none". */
static bool has_limit(const struct cmd_opts *o)
{
	return o->ses.max_overhead && o->ses.max_overhead != SES_NO_LIMIT;
}

static bool limits_windows(const struct cmd_opts *o)
{
	return has_limit(o) && (o->ses.iterations || o->ses.follow_app);
}

static bool limits_exact(const struct cmd_opts *o)
{
	return has_limit(o) && o->ses.exact;
}

static const struct cmd_conflict limit_conflicts[] = {
	{limits_windows,
	 "--max-overhead cannot be used with --iterations or --follow-app, which choose themselves what "
	 "is probed"},
	{limits_exact, "--max-overhead and --exact cannot be used together; remove one of them"},
	{0},
};

static bool lacks_gpu(const struct cmd_opts *o)
{
	return o->ses.gpu_jobs && !o->ses.gpu;
}

static const struct cmd_conflict gpu_jobs_conflicts[] = {{lacks_gpu, "--gpu-jobs needs --gpu"}, {0}};

#define YEAR_NS (366ull * 24 * 3600 * 1000000000) /* far below what 64 bits hold */

/* The table has these defaults in words. */
MXBPF_STATIC_ASSERT(MXBPF_RING_BYTES == 8u << 20);
MXBPF_STATIC_ASSERT(REC_MAX_BYTES_DEFAULT == 2ull << 30);

/* clang-format off */
static const struct cmd_option fixed[] = {
	{.name = "pid", .letter = 'p', .arg = "PID", .group = "Target", .commands = CMD_LIVE, .required = CMD_LIVE,
	 .help = "Profile this running process, or several, joined by commas; mxbpf does not change or restart them. To launch a process instead, use -- COMMAND",
	 .set = cmd_set_pids, CMD_FIELD(ses.choice), .max = JOB_PIDS_MAX,
	 AGENT_YES},
	{.name = "job", .group = "Target", .commands = CMD_LIVE | CMD_BIT_NOW | CMD_WATCH,
	 .help = "With --pid, profile all processes of the same job, now and later: those of its container, pod or job of Slurm; else those that meet at the same address; else those of the same command line of a shell",
	 .set = cmd_set_flag, CMD_FIELD(ses.choice.job),
	 AGENT_YES},
	{.name = "comm", .arg = "GLOB", .group = "Target", .commands = CMD_LIVE | CMD_BIT_NOW | CMD_WATCH,
	 .help = "Profile all processes with a name that matches, now and later; until Ctrl-C, or with --duration",
	 .set = cmd_set_text, CMD_FIELD(ses.choice.comm),
	 AGENT_YES},
	{.name = "cgroup", .arg = "PATH", .group = "Target", .commands = CMD_LIVE | CMD_BIT_NOW | CMD_WATCH,
	 .help = "Profile all processes of this control group, now and later: its path, or a glob of one part of the path, such as *4f5c2e81*; until Ctrl-C, or with --duration",
	 .set = cmd_set_text, CMD_FIELD(ses.choice.cgroup),
	 AGENT_YES},
	{.name = "host", .group = "Target", .commands = CMD_LIVE | CMD_BIT_NOW | CMD_WATCH,
	 .help = "Profile all processes of this machine that run MXNet or PyTorch, now and later; until Ctrl-C, or with --duration",
	 .set = cmd_set_flag, CMD_FIELD(ses.choice.host),
	 AGENT_YES},
	{.name = "pid", .letter = 'p', .arg = "PID", .group = "Target", .commands = CMD_BIT_CHECK,
	 .help = "Check the probes of this process; mxbpf does not change it",
	 .set = cmd_set_pids, CMD_FIELD(ses.choice), .max = 1},
	{.name = "pid", .letter = 'p', .arg = "PID", .group = "Target", .commands = CMD_BIT_SERVE,
	 .help = "Watch these processes, joined by commas, until they end", .def = "all of --host",
	 .set = cmd_set_pids, CMD_FIELD(ses.choice), .max = JOB_PIDS_MAX},
	{.name = "pid", .letter = 'p', .arg = "PID", .group = "Target", .commands = CMD_BIT_NOW | CMD_BIT_TOP,
	 .required = CMD_BIT_NOW | CMD_BIT_TOP, .help = "Show this process, or several, joined by commas; mxbpf neither changes them nor stops their threads",
	 .set = cmd_set_pids, CMD_FIELD(ses.choice), .max = JOB_PIDS_MAX},
	{.name = "runtime", .arg = "NAME", .group = "Target", .commands = CMD_LIVE | CMD_BIT_CHECK | CMD_BIT_NOW | CMD_WATCH,
	 .help = "Profile this runtime if the process has several", .def = "the one that is mapped", .set = cmd_set_word,
	 CMD_FIELD(ses.runtime), .word = plan_runtime_name,
	 AGENT_YES},
	{.name = "role", .arg = "ROLE", .group = "Target", .commands = CMD_LIVE | CMD_BIT_REPORT,
	 .help = "Include only processes that have this role in a distributed job; mxbpf reads the role from their environment", .def = "all",
	 .set = cmd_set_word, CMD_FIELD(ses.role), .word = plan_role_name, .supports = plan_has_roles},
	{.name = "wait", .group = "Target", .commands = CMD_LIVE | CMD_BIT_TOP,
	 .help = "If no process that was chosen has a runtime yet, wait until one loads it", .set = cmd_set_flag, CMD_FIELD(ses.wait),
	 AGENT_BUT("the agent enters when the process calls operators, however late")},
	{.name = "follow", .arg = "[HOW]", .group = "Target", .commands = CMD_LIVE | CMD_WATCH,
	 .help = "Follow child processes. shared: probe all processes that load the library, so that children are seen from their first instruction; mxbpf measures what this costs other processes. filtered: probe each child separately, shortly after it starts. auto: like shared; if other processes use the library, switch to shared when the target forks", .def = "auto",
	 .set = cmd_set_follow, CMD_FIELD(ses.follow), .word = word_follow,
	 AGENT_YES},
	{.name = "no-follow", .group = "Target", .commands = CMD_LIVE | CMD_WATCH, .help = "Do not follow child processes",
	 .set = cmd_set_flag, CMD_FIELD(ses.no_follow),
	 AGENT_YES},
	{.name = "probes", .arg = "LIST", .group = "Probes", .commands = CMD_LIVE | CMD_WATCH,
	 .help = "Probe only these kinds of calls, joined by commas", .def = "all",
	 .set = cmd_set_mask, CMD_FIELD(ses.probes), .word = word_probes, .word_help = help_probes,
	 AGENT_BUT("the list must have op")},
	{.name = "api", .arg = "WHICH", .group = "Probes", .commands = CMD_LIVE,
	 .help = "Probe these calls of the C API; work leaves out calls that neither work nor wait, which costs much less",
	 .def = "work for tables; all with record, --trace, --memory, --raised and a --layout of another profiler",
	 .set = cmd_set_index, CMD_FIELD(ses.api), .word = word_api, .supports = plan_has_api,
	 AGENT_BUT("PyTorch has no C API: all changes nothing, and work is refused, with --agent or without")},
	{.name = "ops", .arg = "LIST", .group = "Probes", .commands = CMD_LIVE | CMD_BIT_CHECK,
	 .help = "Record only operators whose names match one of these shell patterns, joined by commas: 'conv*,mm'. Other operators that have a function of their own are not probed", .def = "all", .set = cmd_set_patterns, CMD_FIELD(ses.ops),
	 AGENT_BUT("the agent records all operators, and mxbpf leaves the others out")},
	{.name = "max-overhead", .arg = "PERCENT", .group = "Probes", .commands = CMD_LIVE | CMD_WATCH,
	 .help = "Record calls in slices of a few iterations if all calls would cost more; none: never",
	 .def = "10%; 1% with serve; none where every call is needed",
	 .set = cmd_set_percent, CMD_FIELD(ses.max_overhead), .min = 1, .max = 1000, .conflicts = limit_conflicts,
	 AGENT_NO("the agent records all calls or none; --iterations N/M with --agent makes profiling cost less")},
	{.name = "exact", .group = "Probes", .commands = CMD_LIVE | CMD_WATCH,
	 .help = "Record every call; the same as --max-overhead none",
	 .set = cmd_set_flag, CMD_FIELD(ses.exact),
	 AGENT_YES},
	{.name = "agent", .group = "Probes", .commands = CMD_LIVE | CMD_WATCH,
	 .help = "Load a small library into the process. It records operators at a tenth of the cost of probes; when mxbpf ends, it stops recording and stays loaded. Options that need probes are refused",
	 .set = cmd_set_flag, CMD_FIELD(ses.agent), .supports = plan_has_agent,
	 AGENT_YES},
	{.name = "gpu", .sees_gpu = true, .group = "Probes", .commands = CMD_LIVE | CMD_WATCH,
	 .help = "Record kernels and copies of the GPU, joined to operators. A small library is loaded into the process; it is a client of CUPTI while a window is open, gives way to the program's own profiler, and stays loaded",
	 .set = cmd_set_flag, CMD_FIELD(ses.gpu),
	 AGENT_YES},
	{.name = "gpu-jobs", .sees_gpu = true, .arg = "LIST", .group = "Probes", .commands = CMD_WATCH,
	 .help = "With --gpu: only if the name, pod, job of Slurm or container matches a pattern",
	 .set = cmd_set_patterns, CMD_FIELD(ses.gpu_jobs), .conflicts = gpu_jobs_conflicts,
	 AGENT_NO("with it, operators of other processes would not be recorded; choose processes by --comm, --cgroup or --pid")},
	{.name = "cupti", .sees_gpu = true, .arg = "PATH", .group = "Probes", .commands = CMD_LIVE | CMD_WATCH,
	 .help = "With --gpu: the libcupti to load if the process has none, as the process sees the path",
	 .def = "that of the process, else the one beside its libcudart",
	 .set = cmd_set_path, CMD_FIELD(ses.cupti), .max = sizeof(((struct mxbpf_gpu_shared *)0)->library) - 1,
	 AGENT_YES},
	{.name = "no-bpf", .sees_gpu = true, .group = "Probes", .commands = CMD_BIT_RECORD,
	 .help = "With --gpu and a command: use no probes, which needs neither BPF nor root. CUDA's driver loads the library into each process that uses CUDA, also into children. Kernels, copies and calls of CUDA are recorded, but no operators",
	 .set = cmd_set_flag, CMD_FIELD(ses.no_bpf),
	 AGENT_NO("the agent hands its calls over by a probe")},
	{.name = "py-stacks", .group = "Measure", .commands = CMD_LIVE,
	 .help = "Read the Python stack at the start of each operator or call; it gives source lines and modules",
	 .set = cmd_set_detail, .min = MXBPF_DETAIL_STACK,
	 AGENT_YES},
	{.name = "shapes", .group = "Measure", .commands = CMD_LIVE,
	 .help = "Read tensor shapes and types, for --by shape, traces and recordings. Some runtimes add strides, the "
		 "shapes of results, and GFLOP/s of convolutions and matrix products", .set = cmd_set_detail, .min = MXBPF_DETAIL_ARGS,
	 AGENT_YES},
	{.name = "layers", .group = "Measure", .commands = CMD_LIVE,
	 .help = "Read the model layer of each operator, for --by layer, traces and recordings",
	 .set = cmd_set_detail, .min = MXBPF_DETAIL_LAYER, .supports = plan_has_layers},
	{.name = "no-account", .group = "Measure", .commands = CMD_LIVE,
	 .help = "Do not record on-CPU, run-queue and blocked time and page faults of each call",
	 .set = cmd_set_flag, CMD_FIELD(ses.no_account),
	 AGENT_YES},
	{.name = "duration", .letter = 'd', .arg = "TIME", .group = "Window", .commands = CMD_LIVE,
	 .help = "Stop after TIME: 10s, 500ms, 2m, 1.5h; a bare number is seconds",
	 .def = "until Ctrl-C or the target's end", .set = cmd_set_duration, CMD_FIELD(ses.duration_ns), .min = 1,
	 .max = YEAR_NS,
	 AGENT_YES},
	{.name = "batch", .group = "General", .commands = CMD_BIT_TOP,
	 .help = "Print each second as text instead of taking over the terminal, for scripts",
	 .set = cmd_set_flag, CMD_FIELD(batch)},
	{.name = "table", .arg = "TABLE", .group = "General", .commands = CMD_BIT_TOP,
	 .help = "Show this table, by its name in JSON, such as gpu.idle or threads: counts and bytes in a second, times as a share of it", .set = cmd_set_table, CMD_FIELD(table)},
	{.name = "duration", .letter = 'd', .arg = "TIME", .group = "Window", .commands = CMD_BIT_TOP,
	 .help = "Leave after this time", .def = "at q, Ctrl-C, or when the target ends", .set = cmd_set_duration, CMD_FIELD(ses.duration_ns), .max = YEAR_NS},
	{.name = "duration", .letter = 'd', .arg = "TIME", .group = "Window", .commands = CMD_BIT_SERVE,
	 .help = "End after this time", .def = "at Ctrl-C or TERM", .set = cmd_set_duration, CMD_FIELD(ses.duration_ns), .min = 1, .max = YEAR_NS},
	{.name = "interval", .arg = "TIME", .group = "Window", .commands = CMD_BIT_SERVE,
	 .help = "Add up what happened every TIME; metrics are so old at most", .def = "10s", .set = cmd_set_duration,
	 CMD_FIELD(ses.interval_ns), .min = 100000000, .max = 3600 * 1000000000ull},
	{.name = "config", .arg = "FILE", .group = "Metrics", .commands = CMD_BIT_SERVE,
	 .help = "Read options from FILE, a line each: name = value. Options of the command line take precedence, and SIGHUP reads the file again",
	 .set = cmd_set_path, CMD_FIELD(config)},
	{.name = "listen", .arg = "ADDRESS", .group = "Metrics", .commands = CMD_BIT_SERVE,
	 .help = "Answer HTTP here: 127.0.0.1:9464, :9464 (all addresses), unix:/run/mxbpf.sock, or none. /metrics, /healthz, /report.json and the page / are of the last interval",
	 .def = SRV_LISTEN_DEFAULT, .set = cmd_set_text, CMD_FIELD(listen)},
	{.name = "allow-trigger", .arg = "FILE", .group = "Recordings", .commands = CMD_BIT_SERVE,
	 .help = "Who sends the token in FILE may POST /trace?duration=5s, which records the next seconds into --trace-dir",
	 .set = cmd_set_path, CMD_FIELD(trigger)},
	{.name = "flight-record", .arg = "TIME", .group = "Recordings", .commands = CMD_BIT_SERVE,
	 .help = "Keep the events of the last TIME in memory, and write them as a recording at SIGUSR1 or when a condition of --on becomes true",
	 .set = cmd_set_duration, CMD_FIELD(flight_ns), .min = 1000000000, .max = 3600 * 1000000000ull},
	{.name = "flight-size", .arg = "SIZE", .group = "Recordings", .commands = CMD_BIT_SERVE,
	 .help = "With --flight-record: use at most SIZE of memory for these events; if more come, the time becomes shorter", .def = "32M",
	 .set = cmd_set_bytes, CMD_FIELD(ses.flight_bytes), .min = 4 * MXBPF_SLOT_BYTES, .max = 1ull << 34},
	{.name = "on", .arg = "CONDITION", .group = "Recordings", .commands = CMD_BIT_SERVE,
	 .help = "With --flight-record: write the last seconds when this becomes true; repeat it for several conditions: 'iteration > 3 * median', 'operator.p99(Convolution) > 50ms', 'memory.live(cpu/0) > 14GiB', 'gpu.idle > 50% for 60s', 'finding(data_wait) > 30%', 'hang 60s', or a column of a table of JSON: 'gpu.idle.max_ns(waits*) > 50ms'",
	 .set = cmd_set_condition},
	{.name = "trace-dir", .arg = "DIR", .group = "Recordings", .commands = CMD_BIT_SERVE,
	 .help = "Write recordings into this folder", .def = "the current one", .set = cmd_set_path, CMD_FIELD(trace_dir)},
	{.name = "keep", .arg = "N", .group = "Recordings", .commands = CMD_BIT_SERVE,
	 .help = "Keep the N newest recordings of the folder, and delete older ones that mxbpf wrote", .def = "20",
	 .set = cmd_set_number, CMD_FIELD(keep), .min = 1, .max = 100000},
	{.name = "max-size", .arg = "SIZE", .group = "Recordings", .commands = CMD_BIT_SERVE,
	 .help = "Keep at most SIZE of recordings in the folder, the newest in any case", .def = "2G", .set = cmd_set_bytes,
	 CMD_FIELD(ses.max_bytes), .min = 1 << 20, .max = 1ull << 44},
	{.name = "textfile", .arg = "FILE", .group = "Metrics", .commands = CMD_BIT_SERVE,
	 .help = "Write the metrics to FILE after each interval, for the textfile collector of node_exporter; the name ends in .prom, the file is replaced at once, and anybody may read it",
	 .set = cmd_set_path, CMD_FIELD(textfile)},
	{.name = "otlp", .arg = "URL", .group = "Metrics", .commands = CMD_BIT_SERVE,
	 .help = "Send the metrics after each interval to a collector of OpenTelemetry by OTLP over HTTP: http://HOST:4318, to which /v1/metrics is added, or none",
	 .def = "OTEL_EXPORTER_OTLP_ENDPOINT of the environment, else none", .set = cmd_set_text, CMD_FIELD(otlp)},
	{.name = "push-profile", .arg = "URL", .group = "Metrics", .commands = CMD_BIT_SERVE,
	 .help = "Send a profile of the Python stacks of each job after each interval: to Pyroscope (http://HOST:4040/ingest) or to the profilestore of Parca, whose URLs docs/serve.md has",
	 .set = cmd_set_text, CMD_FIELD(push_profile)},
	{.name = "allow-agent", .group = "General", .commands = CMD_BIT_MCP, .set = cmd_set_flag, CMD_FIELD(allow_agent), .help = "Let the assistant use --agent and --gpu, which load a library into the process; without this option they are refused"},
	{.name = "stream", .arg = "FILE", .group = "Metrics", .commands = CMD_BIT_SERVE,
	 .help = "Write the tables of each interval to FILE as one line of JSON, for a log shipper; - is stdout; a file grows; lines that the reader does not take in time are left out and counted",
	 .set = cmd_set_path, CMD_FIELD(stream)},
	{.name = "job-name", .arg = "GLOB=NAME", .group = "Metrics", .commands = CMD_BIT_SERVE,
	 .help = "Call jobs NAME in the label job_name if their name, or that of a process, matches; repeat it for several rules", .set = cmd_set_job_name},
	{.name = "duration", .letter = 'd', .arg = "TIME", .group = "Window", .commands = CMD_BIT_NOW,
	 .help = "Record calls for TIME, then show what each thread does", .def = "1s", .set = cmd_set_duration, CMD_FIELD(ses.duration_ns),
	 .min = 1, .max = YEAR_NS},
	{.name = "delay", .arg = "TIME", .group = "Window", .commands = CMD_LIVE,
	 .help = "Wait for TIME before recording", .def = "0", .set = cmd_set_duration, CMD_FIELD(ses.delay_ns),
	 .max = YEAR_NS,
	 AGENT_YES},
	{.name = "follow-app", .group = "Window", .commands = CMD_LIVE,
	 .help = "Record only while the program runs its runtime's own profiler: from set_state('run') or resume() to "
		 "set_state('stop') or pause()", .set = cmd_set_flag, CMD_FIELD(ses.follow_app), .supports = plan_has_profiler},
	{.name = "interval", .arg = "TIME", .group = "Tables", .commands = CMD_BIT_ATTACH,
	 .help = "Print the tables every TIME; each covers the time from the start until then. JSON has one line for each print, CSV is one table",
	 .set = cmd_set_duration, CMD_FIELD(ses.interval_ns), .min = 100000000, .max = YEAR_NS,
	 AGENT_YES},
	{.name = "reset", .group = "Tables", .commands = CMD_BIT_ATTACH,
	 .help = "With --interval, print only what is new", .set = cmd_set_flag, CMD_FIELD(ses.reset),
	 AGENT_YES},
	{.name = "format", .letter = 'f', .arg = "FORMAT", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Print the tables in this format", .def = "by the suffix of -o, else table", .set = cmd_set_index,
	 CMD_FIELD(format), .word = word_format,
	 AGENT_BUT("every format")},
	{.name = "format", .letter = 'f', .arg = "FORMAT", .group = "Files", .commands = CMD_BIT_EXPORT,
	 .help = "Write this format", .def = "by the suffix of -o, else chrome", .set = cmd_set_word, CMD_FIELD(form), .word = view_export_name},
	{.name = "base", .arg = "FILE", .group = "Files", .commands = CMD_BIT_DIFF,
	 .help = "Take this recording as one of A, and all operands as B; with several recordings of each side, differences between recordings are known",
	 .set = cmd_set_base},
	{.name = "fail-on", .arg = "LIMIT", .group = "Files", .commands = CMD_BIT_DIFF,
	 .help = "Exit with 10 if a certain change breaks LIMIT, such as 'iteration > +5%', 'memory.peak > +10%', 'operator(aten::mm) > 3%', 'data > 20%'; can be given several times",
	 .set = cmd_set_limit},
	{.name = "table", .arg = "TABLE", .group = "General", .commands = CMD_BIT_DIFF,
	 .help = "Compare the rows of this table instead, such as gpu.idle, threads or memory.holders, as JSON names it; a wrong name lists all", .set = cmd_set_table, CMD_FIELD(table)},
	{.name = "format", .letter = 'f', .arg = "FORMAT", .group = "Tables", .commands = CMD_BIT_LIST | CMD_BIT_NOW,
	 .help = "Print this format", .def = "table", .set = cmd_set_index, CMD_FIELD(format), .word = word_list},
	{.name = "format", .letter = 'f', .arg = "FORMAT", .group = "Files", .commands = CMD_BIT_DIFF,
	 .help = "Print this format", .def = "by the suffix of -o, else table", .set = cmd_set_index, CMD_FIELD(format), .word = cmp_form_name},
	{.name = "layout", .arg = "NAME", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Print tables and JSON in this layout", .def = CMD_LAYOUT,
	 .set = cmd_set_word, CMD_FIELD(layout), .word = view_layout_name, .word_help = view_layout_help,
	 AGENT_BUT("every layout")},
	{.name = "sort", .arg = "KEY", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Sort rows by KEY, largest first; the keys of the runtimes' own profilers work, too", .def = "self; total with --all and in data; start with --by event",
	 .set = cmd_set_sort, CMD_FIELD(sort), .word = word_sort,
	 AGENT_YES},
	{.name = "ascending", .group = "Tables", .commands = CMD_TABLES, .help = "Sort the smallest value first",
	 .set = cmd_set_flag, CMD_FIELD(ascending), AGENT_YES},
	{.name = "top", .arg = "N", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Print at most N rows per table; 0: all", .def = "10; 262144 with --by event", .set = cmd_set_top,
	 CMD_FIELD(top), .max = 1000000000,
	 AGENT_YES},
	{.name = "top", .arg = "N", .group = "Files", .commands = CMD_BIT_DIFF,
	 .help = "Print at most N rows; 0: all", .def = "10; all in JSON", .set = cmd_set_top,
	 CMD_FIELD(top), .max = 1000000000},
	{.name = "row-limit", .arg = "N", .group = "Tables", .commands = CMD_TABLES, .help = "The same as --top",
	 .set = cmd_set_top, CMD_FIELD(top), .max = 1000000000, AGENT_YES},
	{.name = "all", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Print every table with all rows. Without it, tables for people are short and name what they leave out; data, "
		 "--by event and other layouts are whole", .set = cmd_set_flag, CMD_FIELD(all),
	 AGENT_YES},
	{.name = "advice", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Explain each finding, and say what helps", .set = cmd_set_flag, CMD_FIELD(advice),
	 AGENT_YES},
	{.name = "raw", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Print times with profiling overhead",
	 .set = cmd_set_flag, CMD_FIELD(raw),
	 AGENT_YES},
	{.name = "by", .arg = "KEY", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Group rows by KEY; shape needs --shapes, stack and module need --py-stacks, layer needs --layers, "
		 "event (each call) needs a recording", .def = "name", .set = cmd_set_by, CMD_FIELD(by), .word = word_by,
	 AGENT_BUT("every key; event after record")},
	{.name = "stack-depth", .arg = "N", .group = "Tables", .commands = CMD_TABLES,
	 .help = "Group by N lines with --by stack, and print N lines with --by event", .def = "5; all with --by event", .set = cmd_set_number, CMD_FIELD(stack_depth), .min = 1,
	 .max = 128,
	 AGENT_YES},
	{.name = "trace", .whole_api = true, .every_call = true, .arg = "FILE", .group = "Files", .commands = CMD_LIVE,
	 .help = "Write a timeline for Perfetto at the end: .json, or the smaller .pftrace; a further .gz compresses",
	 .set = cmd_set_file, CMD_FIELD(ses.trace),
	 AGENT_BUT("every suffix")},
	{.name = "trace-every", .arg = "TIME", .group = "Files", .commands = CMD_BIT_ATTACH,
	 .help = "With --trace, write a numbered file for each TIME",
	 .set = cmd_set_duration, CMD_FIELD(ses.trace_part_ns), .min = 1000000000, .max = YEAR_NS,
	 AGENT_YES},
	{.name = "keep", .arg = "N", .group = "Files", .commands = CMD_BIT_ATTACH,
	 .help = "With --trace-every, keep the last N files", .def = "all",
	 .set = cmd_set_number, CMD_FIELD(keep), .min = 1, .max = 1000000,
	 AGENT_YES},
	{.name = "output", .letter = 'o', .arg = "FILE", .group = "Files", .commands = CMD_TABLES,
	 .help = "Write the tables to FILE. Without -f its suffix sets the format: .txt, .json, .csv or .html; a further .gz compresses",
	 .def = "stdout", .set = cmd_set_path, CMD_FIELD(output),
	 AGENT_YES},
	{.name = "html", .arg = "FILE", .group = "Files", .commands = CMD_TABLES | CMD_BIT_DIFF,
	 .help = "Also write a page for a browser to FILE: findings, plots, flame graphs and all tables in one file",
	 .set = cmd_set_file, CMD_FIELD(html),
	 AGENT_YES},
	{.name = "open", .group = "Files", .commands = CMD_BIT_REPORT,
	 .help = "Write only the page, beside the recording unless --output names it, and print its path",
	 .set = cmd_set_flag, CMD_FIELD(open)},
	{.name = "output", .letter = 'o', .arg = "FILE", .group = "Files", .commands = CMD_BIT_DIFF,
	 .help = "Write the result to FILE: .txt, .json, .html or .md, each also with .gz", .def = "stdout", .set = cmd_set_path, CMD_FIELD(output)},
	{.name = "output", .letter = 'o', .sees_gpu = true, .arg = "FILE", .group = "Files", .commands = CMD_BIT_RECORD,
	 .help = "Write the recording to FILE", .def = "mxbpf-PID-UTC.mxd in this directory", .set = cmd_set_file, CMD_FIELD(output),
	 AGENT_YES},
	{.name = "output", .letter = 'o', .arg = "FILE", .group = "Files", .commands = CMD_BIT_EXPORT,
	 .help = "Write to FILE; .gz compresses, - is stdout. In a directory (DIR/), write one trace per recording, named by rank. DIR.arrow is a data set of tables and calls", .def = "stdout, unless it is a terminal",
	 .set = cmd_set_path, CMD_FIELD(output)},
	{.name = "force", .sees_gpu = true, .group = "Files", .commands = CMD_LIVE | CMD_BIT_REPORT | CMD_BIT_EXPORT | CMD_BIT_DIFF | CMD_BIT_TRACE,
	 .help = "Replace any existing file; without this option, only files that mxbpf wrote in the same format",
	 .set = cmd_set_flag, CMD_FIELD(force),
	 AGENT_YES},
	{.name = "max-size", .sees_gpu = true, .arg = "SIZE", .group = "Files", .commands = CMD_LIVE,
	 .help = "Keep at most SIZE of records; mxbpf deletes the oldest records, counts them, and keeps them in the tables", .def = "2G",
	 .set = cmd_set_bytes, CMD_FIELD(ses.max_bytes), .min = 4 * MXBPF_SLOT_BYTES, .max = 1ull << 40,
	 AGENT_YES},
	{.name = "via", .arg = "PROFILER", .group = "Requests", .commands = CMD_BIT_TRACE, .required = CMD_BIT_TRACE,
	 .help = "Ask this profiler, which is in the process, for the trace", .set = cmd_set_word, CMD_FIELD(via), .word = word_via},
	{.name = "pid", .letter = 'p', .arg = "PID", .group = "Requests", .commands = CMD_BIT_TRACE, .required = CMD_BIT_TRACE,
	 .help = "Trace this process, which was started with KINETO_USE_DAEMON=1", .set = cmd_set_pids, CMD_FIELD(ses.choice), .max = 1},
	{.name = "job", .group = "Requests", .commands = CMD_BIT_TRACE,
	 .help = "Trace all descendants of the process, too, each into a file of its own", .set = cmd_set_flag, CMD_FIELD(ses.choice.job)},
	{.name = "with", .arg = "LIST", .group = "Requests", .commands = CMD_BIT_TRACE,
	 .help = "Let the profiler record these as well, joined by commas; each makes the trace cost more",
	 .def = "operators and annotations only", .set = cmd_set_mask, CMD_FIELD(with), .word = kin_with_word, .word_help = kin_with_help},
	{.name = "duration", .letter = 'd', .arg = "TIME", .group = "Requests", .commands = CMD_BIT_TRACE,
	 .help = "Trace for TIME; the profiler keeps all of it in the memory of the process", .def = "1s", .set = cmd_set_duration, CMD_FIELD(ses.duration_ns),
	 .min = 1000000, .max = 600ull * 1000000000},
	{.name = "steps", .arg = "N", .group = "Requests", .commands = CMD_BIT_TRACE,
	 .help = "Trace N steps of the optimizer instead of a time", .set = cmd_set_number, CMD_FIELD(steps), .min = 1, .max = 10000},
	{.name = "output", .letter = 'o', .arg = "FILE", .group = "Requests", .commands = CMD_BIT_TRACE,
	 .help = "Write the trace to FILE (.json, .json.gz), - is stdout; several processes have their numbers in the names of their files",
	 .def = "mxbpf-PID-UTC.json in this directory", .set = cmd_set_path, CMD_FIELD(output)},
	{.name = "ring-size", .arg = "SIZE", .group = "General", .commands = CMD_LIVE,
	 .help = "Use ring buffers of SIZE, a power of two, for probes and for samples; increase it if events are dropped", .def = "8M; 4M for probes with --agent",
	 .set = cmd_set_ring, CMD_FIELD(ses.ring_bytes), .min = 1 << 16, .max = 1 << 30,
	 .conflicts = cmd_ring_conflicts, AGENT_YES},
	{.name = "max-memory", .sees_gpu = true, .arg = "SIZE", .group = "General", .commands = CMD_LIVE | CMD_BIT_REPORT | CMD_BIT_EXPORT | CMD_BIT_DIFF | CMD_BIT_NOW | CMD_WATCH,
	 .help = "Use at most SIZE of memory in mxbpf itself; what finds no room is counted as dropped", .def = "512M, and twice what --ring-size says",
	 .set = cmd_set_bytes, CMD_FIELD(max_memory), .min = MEM_LIMIT_MIN, .max = 1ull << 40,
	 AGENT_YES},
	{.name = "backend", .arg = "NAME", .group = "General", .commands = CMD_LIVE | CMD_BIT_NOW | CMD_WATCH,
	 .help = "Attach probes by this kernel interface", .def = "the first that the kernel supports",
	 .set = cmd_set_word, CMD_FIELD(ses.backend), .word = word_backend,
	 AGENT_YES},
	{.name = "quiet", .letter = 'q', .sees_gpu = true, .group = "General", .commands = CMD_LIVE | CMD_BIT_REPORT | CMD_BIT_EXPORT | CMD_BIT_DIFF | CMD_BIT_NOW | CMD_BIT_SERVE | CMD_BIT_TRACE,
	 .help = "Print no progress on stderr", .set = cmd_set_flag, CMD_FIELD(quiet),
	 AGENT_YES},
	{.name = "verbose", .letter = 'v', .sees_gpu = true, .group = "General", .commands = CMD_LIVE | CMD_BIT_NOW | CMD_BIT_SERVE,
	 .help = "Print more detail on stderr", .set = cmd_set_flag, CMD_FIELD(ses.verbose),
	 AGENT_YES},
	{.name = "no-seccomp", .sees_gpu = true, .group = "General", .commands = EVERY & ~CMD_BIT_HELP,
	 .help = "Do not limit the system calls of mxbpf itself", .set = cmd_set_flag, CMD_FIELD(no_seccomp),
	 AGENT_YES},
	{.name = "drop-privileges", .arg = "[USER]", .group = "General", .commands = CMD_LIVE,
	 .help = "Give up all privileges when the probes are attached, and go on as USER; children and libraries that are loaded later are not profiled",
	 .def = "the user of the process; nobody for root's", .set = cmd_set_drop, .conflicts = cmd_drop_conflicts,
	 AGENT_NO("the agent is taken out with privileges, when the window ends")},
	{.name = "help", .letter = 'h', .group = "General", .commands = EVERY,
	 .help = "Print this help", .set = cmd_set_help, AGENT_YES},
	{.name = "version", .letter = 'V', .group = "General", .commands = EVERY,
	 .help = "Print the version", .set = cmd_set_version, AGENT_YES},
	{.name = "generate", .arg = "WHAT", .commands = CMD_BIT_ATTACH,
	 .help = "Print the lists of the manual, the bash completion, the JSON schema, a table of what can be used with --agent, or one of the system calls of mxbpf",
	 .set = cmd_set_generate, .word = cmd_generated, AGENT_YES},
	{.name = NULL},
};
/* clang-format on */

const char *cmd_option_text(const struct cmd_option *opt, char buf[512])
{
	size_t len = snprintf(buf, 512, "%s", opt->help);
	char words[200];
	bool some = false;
	unsigned i;

	for (i = 0; opt->word_help && opt->word(i); i++)
		len += snprintf(buf + len, 512 - len, "%s %s (%s)", i ? "," : ":", opt->word(i), opt->word_help(i));
	if (opt->word && !opt->word_help)
		len += snprintf(buf + len, 512 - len, "; %s: %s", opt->arg, cmd_join_words(opt->word, words));
	for (i = 0; opt->supports && adapters[i]; i++)
		if (opt->supports(adapters[i])) {
			len += snprintf(buf + len, 512 - len, "%s%s", some ? " or " : "; requires ",
					adapters[i]->title);
			some = true;
		}
	if (opt->def)
		snprintf(buf + len, 512 - len, " (default %s)", opt->def);
	return buf;
}

/* ---- parsing */

#define NFIXED (sizeof(fixed) / sizeof(fixed[0]) - 1) /* without the row that ends them */
struct cmd_option cmd_options[NFIXED + MDL_FEATURES_MAX + 1];
static size_t noptions;

/* First row of a name among the commands of a mask, before `end`; NULL: none. */
static const struct cmd_option *find_option(const char *name, unsigned commands, const struct cmd_option *end)
{
	const struct cmd_option *opt;

	for (opt = cmd_options; opt->name && opt != end; opt++)
		if (!strcmp(opt->name, name) && (opt->commands & commands))
			return opt;
	return NULL;
}

/* Puts a feature's row behind the last row of the option that it names. False: there is no such option yet. */
static bool insert(const struct cmd_option *row)
{
	size_t i = noptions;

	while (i && strcmp(cmd_options[i - 1].name, row->after))
		i--;
	if (!i)
		return false;
	memmove(&cmd_options[i + 1], &cmd_options[i], (noptions++ - i) * sizeof(*row));
	cmd_options[i] = *row;
	return true;
}

/* A feature's row may stand behind that of a feature that is registered later, so this needs several rounds. */
void cmd_init_options(void)
{
	const struct mdl_feature *const *f;
	char why[CMD_WHY_BYTES];
	unsigned left;
	size_t before, i;

	memcpy(cmd_options, fixed, NFIXED * sizeof(fixed[0]));
	noptions = NFIXED;
	do {
		before = noptions;
		left = 0;
		for (f = mdl_features; *f; f++)
			if ((*f)->option && !find_option((*f)->option->name, EVERY, NULL))
				left += !insert((*f)->option);
	} while (noptions > before);
	for (i = 0; i < noptions; i++)
		left += cmd_options[i].commands & CMD_LIVE && cmd_options[i].set &&
			cmd_with_agent(&cmd_options[i], why) == CMD_AGENT_UNSAID;
	if (left) /* a mistake in the tables, which every run finds */
		abort();
}

#define LONG_VAL 256 /* what getopt returns for row i: LONG_VAL + i, above every letter */

#define NOPTIONS (sizeof(cmd_options) / sizeof(cmd_options[0]))

struct getopt_rows {
	struct option longs[NOPTIONS];
	char shorts[2 * NOPTIONS + 3];
};

/* Includes options that the command does not take, for a better error than "unknown option". */
static void getopt_fill(struct getopt_rows *g, bool in_order)
{
	const struct cmd_option *opt;
	char *s = g->shorts;
	size_t n = 0;

	memset(g, 0, sizeof(*g));
	if (in_order) /* stop at the first operand, so that "--" marks where a command begins */
		*s++ = '+';
	*s++ = ':'; /* makes getopt return ':' for a missing value */
	for (opt = cmd_options; opt->name; opt++) {
		if (find_option(opt->name, EVERY, opt))
			continue;
		g->longs[n++] = (struct option){opt->name,
						!opt->arg	     ? no_argument
						: opt->arg[0] == '[' ? optional_argument
								     : required_argument,
						NULL, LONG_VAL + (int)(opt - cmd_options)};
		if (!opt->letter)
			continue;
		*s++ = opt->letter;
		if (opt->arg)
			*s++ = ':';
	}
}

/* Returns the row of a letter or of a LONG_VAL. */
static const struct cmd_option *option_of(int val)
{
	const struct cmd_option *opt;

	if (val >= LONG_VAL)
		return &cmd_options[val - LONG_VAL];
	for (opt = cmd_options; opt->name; opt++)
		if (opt->letter == val)
			return opt;
	return NULL;
}

static int fail_unknown(const struct cmd *c, const char *word, struct err *e)
{
	size_t len = strcspn(word, "="), used = 0;
	const struct cmd_option *opt;
	struct near n = {0};
	char text[64], hint[NEAR_HINT_BYTES], title[32], fits[200] = "";

	snprintf(text, sizeof(text), "%.*s", (int)len, word);
	if (cmd_check_gone(text, e))
		return e->code;
	for (opt = cmd_options; opt->name; opt++) {
		if (!opt->group || !(opt->commands & c->bit))
			continue;
		near_try(&n, text + 2, opt->name);
		if (!strncmp(opt->name, text + 2, len - 2) && used < sizeof(fits))
			used += snprintf(fits + used, sizeof(fits) - used, "%s--%s", used ? ", " : "", opt->name);
	}
	cmd_title(c, title);
	if (fits[0])
		return err_set(e, ERR_USAGE, -EINVAL, "option '%s' is ambiguous: %s", text, fits);
	return err_set(e, ERR_USAGE, -EINVAL, "unknown option '%s'; see: %s --help%s", text, title,
		       near_hint(&n, "--", hint));
}

/* Names the commands that take the option. */
static int fail_foreign(const struct cmd *c, const char *name, struct err *e)
{
	char title[32], of[200] = "";
	const struct cmd *other;
	size_t len = 0;

	for (other = cmd_table; other->run; other++)
		if (find_option(name, other->bit, NULL) && len < sizeof(of))
			len += snprintf(of + len, sizeof(of) - len, "%s%s", len ? ", " : "",
					other->name ? other->name : "mxbpf --pid");
	return err_set(e, ERR_USAGE, -EINVAL, "%s does not take --%s (taken by: %s)", cmd_title(c, title), name, of);
}

static int fail_getopt(const struct cmd *c, int got, const char *word, struct err *e)
{
	const struct cmd_option *opt = optopt ? option_of(optopt) : NULL;
	char title[32], words[200];

	if (!optopt)
		return fail_unknown(c, word, e);
	if (!opt)
		return err_set(e, ERR_USAGE, -EINVAL, "unknown option '-%c'; see: %s --help", optopt,
			       cmd_title(c, title));
	if (!find_option(opt->name, c->bit, NULL))
		return fail_foreign(c, opt->name, e);
	if (got == ':')
		return err_set(e, ERR_USAGE, -EINVAL, "option --%s needs a value: %s%s%s", opt->name, opt->arg,
			       opt->word ? ", one of " : "", opt->word ? cmd_join_words(opt->word, words) : "");
	return err_set(e, ERR_USAGE, -EINVAL, "option --%s takes no value", opt->name);
}

/* getopt sees an optional value only after "=". This takes the next word, too, if it is a value of the option. */
static char *optional_value(const struct cmd_option *opt, char **argv)
{
	unsigned i;

	if (optarg || !opt->arg || opt->arg[0] != '[' || !opt->word || !argv[optind])
		return optarg;
	for (i = 0; opt->word(i); i++)
		if (!strcmp(opt->word(i), argv[optind]))
			return argv[optind++];
	return NULL;
}

/* seen[i] becomes true for each row i of cmd_options[] that was given. */
static int parse_options(const struct cmd *c, int argc, char **argv, struct cmd_opts *o, bool *seen, struct err *e)
{
	const struct cmd_option *opt;
	struct getopt_rows g;
	char *value;
	int got, err;

	getopt_fill(&g, c->bit & CMD_LIVE);
	optind = 0;
	opterr = 0;
	while ((got = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
		if (got == '?' || got == ':')
			return fail_getopt(c, got, argv[optind - 1], e);
		opt = find_option(option_of(got)->name, c->bit, NULL);
		if (!opt)
			return fail_foreign(c, option_of(got)->name, e);
		value = optional_value(opt, argv);
		err = opt->set(opt, o, value, e);
		if (err || o->instead)
			return err;
		seen[opt - cmd_options] = true;
		if (o->ngiven < CMD_GIVEN_MAX)
			o->given[o->ngiven++] = (struct cmd_given){opt, value};
	}
	o->args = argv + optind;
	o->nargs = argc - optind;
	if ((c->bit & CMD_LIVE) && o->nargs && !strcmp(argv[optind - 1], "--")) {
		o->ses.command = o->args;
		o->nargs = 0;
	}
	return 0;
}

/*
 * Without --api, live tables leave out the calls that neither work nor wait. Recordings and traces have all calls, and
 * so have layouts of the runtimes' own profilers, which record all.
 */
static void settle_api(const struct cmd *c, struct cmd_opts *o, const bool *seen)
{
	bool all = !(c->bit & CMD_BIT_ATTACH) || strcmp(o->layout, CMD_LAYOUT) != 0;
	const struct cmd_option *opt;

	for (opt = cmd_options; opt->name; opt++)
		all |= opt->whole_api && seen[opt - cmd_options];
	if (o->ses.api == SES_API_USUAL && all)
		o->ses.api = SES_API_ALL;
}

#define MAX_OVERHEAD 100 /* permille: the default of tables and of top */

/*
 * Says whether calls are recorded in slices if all of them cost too much. Whatever needs every call has none, and
 * neither have windows that the user chose, the agent, which is cheap, and CUPTI, whose launches need their operators.
 */
static void settle_limit(const struct cmd *c, struct cmd_opts *o, const bool *seen)
{
	struct ses_opts *so = &o->ses;
	bool exact = so->exact || so->max_overhead == SES_NO_LIMIT || so->agent || so->gpu || so->iterations ||
		     so->follow_app || c->bit & CMD_BIT_RECORD || strcmp(o->layout, CMD_LAYOUT) != 0;
	const struct cmd_option *opt;

	for (opt = cmd_options; opt->name; opt++)
		exact |= opt->every_call && seen[opt - cmd_options];
	if (!(c->bit & (CMD_LIVE | CMD_BIT_TOP)))
		return;
	so->exact = exact;
	so->slices = !exact;
	so->max_overhead = exact ? 0 : so->max_overhead ? so->max_overhead : MAX_OVERHEAD;
}

/* Without --format, the suffixes of files choose the formats. */
static int settle_formats(const struct cmd *c, struct cmd_opts *o, struct err *e)
{
	int err = 0;

	if (c->bit & CMD_TABLES && o->output && !strcmp(o->output, "-"))
		o->output = NULL;
	if (o->format == CMD_UNSAID && c->bit & (CMD_TABLES | CMD_BIT_DIFF))
		err = cmd_settle_format(o, c->bit & CMD_TABLES ? cmd_table_suffix : cmp_form_suffix, e);
	else if (o->format == CMD_UNSAID)
		o->format = CMD_TABLE;
	if (!err && o->ses.trace)
		err = cmd_check_suffix("trace", o->ses.trace, e);
	if (!err && c->bit & CMD_BIT_EXPORT && o->output && !o->form)
		err = cmd_check_suffix("output", o->output, e);
	return err;
}

static int fail_command(const char *word, struct err *e)
{
	struct near n = {0};
	const struct cmd *c;
	char hint[NEAR_HINT_BYTES], all[200] = "";
	size_t len = 0;

	if (word[0] && !word[strspn(word, "0123456789")])
		return err_set(e, ERR_USAGE, -EINVAL,
			       "'%.60s' is not a command; to profile a process: mxbpf --pid %.60s", word, word);
	for (c = cmd_table; c->run; c++) {
		if (!c->name || len >= sizeof(all))
			continue;
		near_try(&n, word, c->name);
		len += snprintf(all + len, sizeof(all) - len, "%s%s", len ? ", " : "", c->name);
	}
	return err_set(
		e, ERR_USAGE, -EINVAL,
		"'%.60s' is not a command (%s); name a process with --pid PID, or a program to run with -- COMMAND%s",
		word, all, near_hint(&n, "", hint));
}

int cmd_parse(int argc, char **argv, const struct cmd **c, struct cmd_opts *o, struct err *e)
{
	bool seen[NOPTIONS] = {0};
	int err;

	*o = (struct cmd_opts){.layout = CMD_LAYOUT,
			       .ses.probes = PROBES_ALL,
			       .ses.api = SES_API_USUAL,
			       .sort = SORT_UNSAID,
			       .format = CMD_UNSAID};
	*c = &cmd_table[0];
	if (argv[1][0] != '-') {
		*c = cmd_find(argv[1]);
		if (!*c)
			return fail_command(argv[1], e);
		argc--;
		argv++;
	}
	err = parse_options(*c, argc, argv, o, seen, e);
	if (err || o->instead)
		return err;
	if (o->sort == SORT_UNSAID)
		o->sort = o->by == VIEW_BY_EVENT ? VIEW_SORT_START : VIEW_SORT_TOTAL;
	err = cmd_check_given(*c, o, seen, e);
	if (!err)
		err = settle_formats(*c, o, e);
	if (!err && ((*c)->bit & CMD_TABLES))
		err = cmd_check_layout(o, seen, e);
	if (!err)
		err = cmd_check_whole(*c, o, e);
	settle_api(*c, o, seen);
	settle_limit(*c, o, seen);
	o->needs = (*c)->needs;
	return err;
}
