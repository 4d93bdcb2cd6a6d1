// SPDX-License-Identifier: Apache-2.0
/* The man page, in man(7) macros: prose, and lists that are made from the tables. */
#include <stdio.h>

#include "adapter/adapter.h"
#include "cmd/opts.h"
#include "mxbpf_thread.h"
#include "view/sheet.h"

/* Escapes plain text for roff: minus signs, backslashes, and a dot or quote that begins a line. */
static void put_roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '-')
			fputs("\\-", stdout);
		else if (*text == '\\')
			fputs("\\e", stdout);
		else
			putchar(*text);
	}
}

static void put_line(const char *macro, const char *text)
{
	fputs(macro, stdout);
	put_roff(text);
	putchar('\n');
}

static void print_synopsis(void)
{
	const struct cmd *c;
	char title[32];

	for (c = cmd_table; c->run; c++) {
		put_line(".B ", cmd_title(c, title));
		put_line("", c->synopsis);
		if (c[1].run)
			puts(".br");
	}
}

static void print_runtimes(void)
{
	const struct adp *const *a;

	fputs("Runtimes that this version knows:", stdout);
	for (a = adapters; *a; a++)
		printf("%s %s", a == adapters ? "" : ",", (*a)->title);
	puts(".");
}

static void print_commands(void)
{
	const struct cmd *c;
	char title[32];

	for (c = cmd_table; c->run; c++) {
		puts(".TP");
		put_line(".B ", cmd_title(c, title));
		put_line("", c->help);
	}
}

static void print_takers(const struct cmd_option *opt)
{
	const struct cmd *c;
	const char *sep = " ";

	fputs("Taken by", stdout);
	for (c = cmd_table; c->run; c++) {
		if (!(opt->commands & c->bit))
			continue;
		printf("%s\\fB%s\\fR", sep, c->name ? c->name : "mxbpf \\-\\-pid");
		sep = ", ";
	}
	puts(".");
}

static void print_options(void)
{
	const struct cmd_option *opt;
	char text[512];

	for (opt = cmd_options; opt->name; opt++) {
		if (!opt->group)
			continue;
		puts(".TP");
		if (opt->letter)
			printf("\\fB\\-%c\\fR, ", opt->letter);
		fputs("\\fB\\-\\-", stdout);
		put_roff(opt->name);
		printf("\\fR%s%s%s\n", opt->arg ? " \\fI" : "", opt->arg ? opt->arg : "", opt->arg ? "\\fR" : "");
		put_roff(cmd_option_text(opt, text));
		puts(".");
		print_takers(opt);
	}
}

static void print_caps(void)
{
	printf("At most %d threads at a time, and %d nested spans a thread. All threads share room for %d spans beyond "
	       "the first %d of each. What goes beyond these limits counts as dropped.\n",
	       MXBPF_THREADS_MAX - 1 /* slot 0 belongs to no thread */, MXBPF_FRAMES_MAX,
	       MXBPF_SLOTS_DEEP * MXBPF_SLOT_FRAMES, MXBPF_SLOT_FRAMES);
	printf("Names are kept up to %d bytes; longer ones are cut and counted as truncated.\n", MXBPF_NAME_BYTES_MAX);
}

static void print_exits(void)
{
	const struct cmd_exit_text *x;

	for (x = cmd_exits; x->text; x++) {
		printf(".TP\n.B %d\n", x->code);
		put_line("", x->text);
	}
}

/* A column: its names in the outputs, its unit, its meaning. */
static void print_column(const struct view_sheet *sh, const struct view_column *c)
{
	static const char *const units[VIEW_NTYPES] = {
		[VIEW_NS] = "duration",	  [VIEW_BYTES] = "size",    [VIEW_RATE] = "bytes a second",
		[VIEW_MOMENT] = "moment", [VIEW_SHARE] = "percent",
	};
	const char *csv = view_csv_head(sh, c), *names[][2] = {{"", c->head}, {"JSON ", c->key}, {"CSV ", csv}};
	const struct view_column *of;
	const char *sep = "";
	unsigned i;

	if (c->type == VIEW_PART) {
		for (of = c->columns; of->bytes; of++)
			print_column(sh, of);
		return;
	}
	if (!c->key && !c->head && !csv)
		return;
	puts(".TP");
	for (i = 0; i < 3; i++)
		if (names[i][1]) {
			printf("%s%s\\fB%s\\fR", sep, names[i][0], names[i][1]);
			sep = ", ";
		}
	if (view_has_own_row(c))
		printf(", CSV has rows \\fB%s\\fR", c->csv);
	printf(units[c->type] ? " (%s)\n" : "%s\n", units[c->type] ? units[c->type] : "");
	if (c->help)
		put_line("", c->help);
	else
		puts("\\&");
	for (of = c->columns; of && of->bytes; of++)
		printf("%s\\fB%s\\fR%s\n", of == c->columns ? "Its members: " : "", of->key, of[1].bytes ? "," : ".");
}

static void print_sheets(void)
{
	const struct view_sheet *const *sh;
	const struct view_column *c;

	for (sh = view_sheets; *sh; sh++) {
		put_line(".SS ", (*sh)->title);
		put_line("", (*sh)->help);
		for (c = (*sh)->totals; c && c->bytes; c++)
			print_column(*sh, c);
		for (c = (*sh)->columns; c->bytes; c++)
			print_column(*sh, c);
	}
}

static void print_examples(void)
{
	const struct cmd *c;

	puts(".EX");
	for (c = cmd_table; c->run; c++)
		put_line("", c->example);
	puts(".EE");
}

/* Sections in the order of the page. `text` is roff and comes before what `print` prints. */
static const struct {
	const char *title;
	void (*print)(void);
	const char *text;
} sections[] = {
	{"NAME", NULL, "mxbpf \\- operators, C API calls and memory of a running deep\\-learning job\n"},
	{"SYNOPSIS", print_synopsis, ""},
	{"DESCRIPTION", print_runtimes,
	 "mxbpf looks at an unmodified, running process with BPF programs on the functions of its runtime library.\n"
	 "The process needs no change, no environment variable and no restart; nothing is loaded into it,\n"
	 "unless \\fB\\-\\-agent\\fR asks for that.\n"
	 "When the window ends (Ctrl\\-C, \\fB\\-d\\fR, the end of the process) mxbpf removes its probes and prints\n"
	 "the tables that the runtime's own profiler would have printed, and on request a timeline.\n"
	 "What lies outside the window is not in the numbers.\n"
	 ".PP\n"},
	{"COMMANDS", print_commands, ""},
	{"OPTIONS", print_options, ""},
	{"COMMANDS THAT IT RUNS", NULL,
	 "\\fBmxbpf \\-\\- python train.py\\fR runs a command and looks at it, and at what that runs in turn, from "
	 "the\n"
	 "first call of a runtime's library on.\n"
	 "Under sudo the command belongs to who called sudo: user, groups and the environment that sudo was called\n"
	 "with, and variables that were given to mxbpf besides.\n"
	 "It has mxbpf's standard input, output and error; the tables come when it has ended, behind what it wrote.\n"
	 "With \\fB\\-\\-format json\\fR or \\fBcsv\\fR, standard output is for the result alone, and the "
	 "command\\(aqs goes to\n"
	 "standard error; with \\fB\\-o\\fR \\fIFILE\\fR the result is in the file, and the command keeps both.\n"
	 "\\fB\\-d\\fR ends the window, not the command.\n"
	 "INT, TERM and HUP that another process sends to mxbpf are passed on; those of the terminal reach both.\n"
	 "The exit status is the command's, 128 and the signal if one ended it; if it is 0, mxbpf's own.\n"
	 ".PP\n"
	 "At each exec, and when its loader has mapped larger libraries, the command is stopped with SIGSTOP until\n"
	 "mxbpf has looked; forked children are stopped as soon as they are seen.\n"
	 "Should mxbpf be killed meanwhile, a helper of it lets them go on.\n"
	 "A process that mxbpf has not launched is never stopped.\n"},
	{"CHILDREN", NULL,
	 "Children of the process are looked at as well, and theirs: those that are there, and those that come.\n"
	 "A child that is a new program is looked at when it maps the same build of the runtime's library.\n"
	 "Tables show the sum of all processes; JSON has the rows of each, with its pid, and a trace its tracks.\n"
	 "A line \\fIothers\\fR says how many there were and for how long, at the most, one ran before it had probes;\n"
	 "\\fIMISSED\\fR counts those that ended before, or could not be looked at.\n"
	 "The peak of the memory is then the sum of each one's peak, hence an upper bound.\n"},
	{"OUTPUT", NULL,
	 "Standard output carries the result and nothing else.\n"
	 "Standard error carries messages: \\fIattached: N probes\\fR once events are truly being taken and, on a\n"
	 "terminal, once a second the time, the events per second and the losses; \\fB\\-q\\fR silences these.\n"
	 ".PP\n"
	 "Every output ends with its losses, counted where they happen.\n"
	 "\\fIAttempted\\fR records are those that the probes set out to send; each is then \\fIstored\\fR or\n"
	 "\\fIdropped\\fR.\n"
	 "\\fITruncated\\fR counts names that were cut, \\fIunreadable\\fR reads of the process's memory that failed,\n"
	 "\\fIunmatched\\fR starts without an end and ends without a start, such as calls in flight at the edges of\n"
	 "the window.\n"
	 ".PP\n"
	 "A line \\fImachine\\fR stands where the machine explains slow calls: a limit of the process's control group\n"
	 "or of one around it, steal, pressure, a low frequency of busy CPUs; from files that are read about once a\n"
	 "second.\n"
	 "JSON and CSV have all that was read, traces counters; \\fB\\-\\-verbose\\fR says what could not be read, "
	 "and\n"
	 "why.\n"
	 ".PP\n"
	 "Times are wall time between start and end of a call.\n"
	 "\\fISelf\\fR is that time less the calls nested directly in it on the same thread.\n"
	 "\\fICpu\\fR, \\fIrunq\\fR and \\fIblocked\\fR are its parts on a CPU, waiting for one, and waiting for "
	 "anything\n"
	 "else: columns of tables where they are worth one, numbers in JSON, CSV and traces.\n"
	 "\\fB\\-\\-no\\-account\\fR leaves them out.\n"
	 "\\fB\\-\\-format json\\fR has the exact integers, in nanoseconds and bytes.\n"
	 "\\fB\\-\\-format csv\\fR has them as one table, whose rows \\fIloss\\fR and \\fIwindow\\fR are the account.\n"
	 "\\fB\\-\\-layout mxnet\\fR keeps the layout and the quirks of mxnet.profiler.dumps(), for scripts that\n"
	 "parse it; where the two differ, the modern layout is the right one.\n"
	 "\\fB\\-\\-layout torch\\fR prints the operators as torch.profiler's key_averages().table() does,\n"
	 "\\fBtorch\\-classic\\fR as torch.autograd.profiler did in 2017; total_average() stands behind the table.\n"
	 "A name has one row there, whatever process and device.\n"
	 "The sort_by of 2017 put the smallest first: here that is \\fB\\-\\-ascending\\fR.\n"
	 ".PP\n"
	 "\\fB\\-\\-by shape\\fR, \\fBstack\\fR and \\fBmodule\\fR split the rows of a name, as key_averages() does "
	 "with\n"
	 "group_by_input_shape and group_by_stack_n; a call that would need more than 16384 such rows is in the row "
	 "of\n"
	 "its name alone, counted.\n"
	 "\\fB\\-\\-by layer\\fR puts the operators of a layer of an MXNet model together, forward and backward: "
	 "conv0_fwd and\n"
	 "conv0_fwd_backward are conv0; what is of none keeps its own name.\n"
	 "What runs in the backward pass has the stack of the forward operator that made its node.\n"
	 "Shapes are those of every tensor, of lists of tensors too, of which torch's tables say nothing: nor do the\n"
	 "layouts like them.\n"
	 "\\fBreport \\-\\-by event\\fR is what print(prof) shows; before the time of a call that was left without "
	 "its\n"
	 "end stands a \\fI<\\fR.\n"
	 ".PP\n"
	 "\\fB\\-\\-backward\\fR: the operator that made a backward node is the last that began with its number.\n"
	 "\\fIDeeper\\fR are nodes that were made while others ran, as a second derivative needs them: they count with "
	 "the\n"
	 "forward operator where that began.\n"
	 "Nodes from before the window, of TorchScript graphs and, without \\fB\\-\\-agent\\fR, of custom Functions "
	 "stand\n"
	 "under their own names.\n"
	 ".PP\n"
	 "A trace of a PyTorch session (\\fB\\-\\-trace\\fR, \\fBexport \\-f chrome\\fR) has the form of "
	 "torch.profiler's own,\n"
	 "for HolisticTraceAnalysis and TensorBoard too; for the latter call it \\fINAME.pt.trace.json\\fR.\n"
	 "Iterations (\\fIProfilerStep#N\\fR), which a program marks for torch.profiler alone, reach from the end of "
	 "one\n"
	 "step of the optimizer to the end of the next on the same thread.\n"
	 "Of several optimizers in an iteration that counts whose class the thread is first seen with; two of one "
	 "class\n"
	 "make two steps of it.\n"
	 "A program without an optimizer, and a session that paused, have none.\n"
	 "\\fBexport \\-f chrome\\-classic\\fR writes what torch.autograd.profiler's export_chrome_trace() wrote in "
	 "2018,\n"
	 "of either runtime: spans alone.\n"
	 ".PP\n"
	 "The memory of a call is what its own thread took less what it gave back while the call was open;\n"
	 "its self memory leaves out the calls nested directly in it.\n"},
	{"WHAT IS NOT OFFERED", NULL,
	 "\\fItorch.autograd.profiler.load_nvprof()\\fR reads the SQLite files of nvprof; mxbpf writes none.\n"
	 "nvprof is gone: GPUs since Volta are no longer served by it.\n"
	 "And the reader has rotted: of a valid file, PyTorch 2.13 loads the events, but key_averages() fails on\n"
	 "them; a launch of more than one kernel, as graphs make, or any other launch call than the oldest is\n"
	 "refused, and nanoseconds are taken for microseconds.\n"
	 "A trace has what such a file had, for tools that live: \\fB\\-\\-trace\\fR.\n"},
	{"OPEN CALLS", NULL,
	 "Calls that had not ended with the window are in no table of calls.\n"
	 "Those that were open for a second, or for half of the window, stand in a table of their own: for how long,\n"
	 "on which thread, and what that did: running, sleeping in which system call and function of the kernel, "
	 "stopped.\n"
	 "What a thread does is told only where the call was open before and after it was asked; \\fIasync\\fR calls\n"
	 "go on elsewhere than on their thread.\n"
	 "JSON and CSV have all of them.\n"
	 "In a trace they begin and do not end.\n"
	 ".PP\n"
	 "\\fBmxbpf now\\fR is for a job that hangs: what each thread is in, waits for, and how it came there.\n"
	 "It watches for \\fB\\-d\\fR and then looks; nothing is stopped for it.\n"
	 "Stacks are those of threads that sleep, or are stopped, and have not moved while they were read; of others,\n"
	 "open calls are told, or the last one that ended.\n"
	 "A lock is told with its holder where it is a mutex of the C library.\n"
	 "Calls from before mxbpf came have no age: their functions stand in the stack, and those that the tables "
	 "know\n"
	 "bear the table's name in brackets.\n"
	 "Where the kernel has no iterators of tasks for BPF, stacks are short and without Python's.\n"},
	{"INTERVALS", NULL,
	 "With \\fB\\-\\-interval\\fR the tables come again and again, and once more at the end: with JSON a document\n"
	 "a line, with CSV rows under one heading, told apart by their window, else with a line between them.\n"
	 "Without \\fB\\-\\-reset\\fR each covers the session until then; with it, what came since the one before:\n"
	 "the windows lie end to end, and their numbers and losses add up to the whole.\n"
	 "A call counts where its end arrives, about a twentieth of a second after it; one that is still open is in a\n"
	 "later table.\n"
	 "Live and peak of the memory count from the start of each window.\n"
	 "When standard output is not read, the next dump covers what was missed; events are not lost for it.\n"},
	{"MEMORY", NULL,
	 "\\fB\\-\\-memory\\fR follows each allocation of the runtime from who makes it until it is freed, by "
	 "whomever.\n"
	 "It belongs to the innermost operator that is open, else to the call of the C API; operators that only "
	 "allocate\n"
	 "for others, as aten::empty does, are passed over.\n"
	 "\\fIAt peak\\fR is what was alive when the device held the most, \\fInot freed\\fR what is at the end.\n"
	 "Both are beyond what was there when the window began: what of that is freed is in the row [before], below "
	 "0.\n"
	 "An allocation that throws is none, and counted as unmatched.\n"
	 "A pool is what the runtime keeps of the device for later; what it took is told as it stood at an "
	 "allocation.\n"
	 "During a pause nothing is seen: what was freed then is told as missed when its address is given out "
	 "again.\n"},
	{"TEAMS", NULL,
	 "\\fB\\-\\-omp\\fR looks at the parallel regions that calls open in libgomp, libomp and libiomp5, the\n"
	 "libraries of OpenMP of GCC, LLVM and Intel.\n"
	 "Each belongs to the innermost call that is open on the thread that opens it.\n"
	 "The time of its threads is its wall time as many times as it has threads.\n"
	 "Of that they were on a CPU at work (\\fICPU\\fR), waited for one (\\fIqueue\\fR), had not begun\n"
	 "(\\fIlate\\fR), or were done before the others (\\fIbarrier\\fR); for the rest they were blocked.\n"
	 "\\fISpun\\fR is CPU time beside that, of threads that wait: the others\\(aq since their work before.\n"
	 "A thread that changes its CPU at work and blocks there may have a CPU time that is wrong by a tick of the\n"
	 "kernel; the table says so.\n"
	 "Of a region within a region, the thread that opens it counts in the outer one alone.\n"},
	{"LIVES", NULL,
	 "\\fB\\-\\-life\\fR sees MXNet\\(aqs operators from being pushed on, in each of its three engines.\n"
	 "A life has four parts: \\fIdispatch\\fR, in which its thread made it, since the call around it began or the\n"
	 "operator before it was pushed; \\fIdepend\\fR, until all that it reads and writes was free; \\fIqueue\\fR, "
	 "until a\n"
	 "thread took it; \\fIrun\\fR, until its true end.\n"
	 "Of operators that were pushed before the window the first parts are not known, and not counted.\n"
	 "The naive engine executes what is pushed at once: the waits are 0, and the program waits for nothing.\n"
	 "A wait of the program is for the operator that was the last to write the array, by the order of pushing, "
	 "with\n"
	 "the bulk that it ran in; a wait for all is for the one that ended last.\n"
	 "An operator without a name is the engine\\(aqs own barrier of a wait to write: what used the array before "
	 "it.\n"
	 "In a trace they are arguments of the operators and waits, and each thread that takes operators has a counter "
	 "of\n"
	 "those that stand in its queue.\n"},
	{"ITERATIONS", NULL,
	 "The program marks none: of MXNet one ends with the last operator of an optimizer (\\fI..._update\\fR) that "
	 "is\n"
	 "called before the next backward pass, of several optimizers that of the first; without such operators with\n"
	 "the last call of a KVStore, else where a backward pass begins.\n"
	 "Of PyTorch one ends with the step() of an optimizer.\n"
	 "The tables say which, how long they were, where the time of their own thread went and what was longer in "
	 "the\n"
	 "slowest; a trace has \\fIProfilerStep#N\\fR.\n"
	 "Waits for data are C++ iterators, and what comes before a batch is taken from a worker of a DataLoader;\n"
	 "iterators of Python\\(aqs own are outside the runtime.\n"
	 ".PP\n"
	 "\\fB\\-\\-iterations 20\\fR sees twenty and ends.\n"
	 "\\fB\\-\\-iterations 5/100\\fR sees five training iterations of each hundred and takes the probes out in\n"
	 "between, but for one that tells when an iteration ends: of PyTorch the step() of an optimizer, of MXNet a\n"
	 "backward pass.\n"
	 "Windows open and close in the kernel at the very hit that ends an iteration, so that they hold whole ones.\n"
	 "Attaching takes tens to hundreds of milliseconds, so short iterations go by meanwhile: each output says how\n"
	 "many were sampled of how many, and its window is the time of those.\n"
	 "\\fB\\-d\\fR and \\fB\\-\\-interval\\fR count all time.\n"
	 "The iterations are those of the process that is the first to end one, and behind its end of the next.\n"},
	{"COLUMNS", print_sheets,
	 "What the columns of tables are called in the tables for people, in JSON and in CSV.\n"
	 "JSON and CSV have exact integers: durations in ns, sizes in bytes, moments as ns of Unix time.\n"},
	{"SIGNALS", NULL,
	 "INT, TERM and HUP end the window, and the results are written; a second INT also ends that, and a message\n"
	 "says what was written and what was not.\n"
	 "Before the window begins, while mxbpf plans, attaches or waits, they end mxbpf at once, and no file is\n"
	 "written; a command that mxbpf launched gets them, and mxbpf ends with it.\n"
	 "INT counts even if the shell ignores it for what it runs in the background; an ignored HUP, as of\n"
	 "\\fBnohup\\fR(1), stays ignored.\n"
	 ".PP\n"
	 "USR1 pauses: the probes stay where they are, but nothing is taken until USR2 comes.\n"
	 "The time in between is not part of the window, and \\fB\\-d\\fR does not count it; every output says\n"
	 "how long it was.\n"
	 "Calls that are open when a pause begins count as unmatched: whether they ended in it nobody knows.\n"},
	{"OVERHEAD", NULL,
	 "A probe costs its process a trap each time it is hit: " CMD_COST_TRAP " where the kernel can emulate the\n"
	 "probed instruction, " CMD_COST_STEP " on a virtual machine where it must single\\-step it.\n"
	 "With the program behind the traps, a record costs " CMD_COST_RECORD ".\n"
	 "A job of large operators does not notice; a loop of tiny ones does.\n"
	 "Fewer hits are the only real saving.\n"
	 "Most calls of MXNet's C API are trivial getters: \\fB\\-\\-api work\\fR probes only those that do work or\n"
	 "wait, and \\fB\\-\\-probes op,mem\\fR none.\n"
	 ".PP\n"
	 "\\fB\\-\\-ops\\fR takes shell patterns for whole names or for what stands behind their last \"::\"; case "
	 "counts.\n"
	 "Of PyTorch's operators only those functions are probed that match, which saves all others' hits.\n"
	 "Names that are known only when they come (backward nodes, annotations, boxed calls, operators of MXNet's\n"
	 "engine) are hidden if they do not match, which saves nothing; every output says how many were.\n"
	 "Self times then hold what was not probed, an operator that calls itself by another overload is one call,\n"
	 "and traces have no arrows.\n"
	 ".PP\n"
	 "\\fB\\-\\-stats\\fR adds up in the kernel and sends no events: the same rows, with the same percentiles, no "
	 "copying, no\n"
	 "ring to overflow and a recording without records, for sessions that never end.\n"
	 "It saves no hit, hence nothing of what the process pays.\n"
	 "Rows are at most 16384, over all processes and up to eight stripes of CPUs; what has no room is dropped, "
	 "and\n"
	 "counted.\n"
	 "How many calls were open at once (\\fIMXNet C API Concurrency\\fR) is not counted: all CPUs would have to "
	 "share a\n"
	 "number for each call.\n"
	 ".PP\n"
	 "A trace or a recording adds one probe and disk writes.\n"
	 "While mxbpf is not attached the cost is none.\n"},
	{"LIMITS", print_caps,
	 "x86\\-64 only, and Linux 5.15 or later; before 6.6, and with \\fB\\-\\-backend perf\\fR, at most 32 probes "
	 "are\n"
	 "attached, one by one, and times of PyTorch's operators are upper bounds, as every output says.\n"
	 "\\fBmxbpf check\\fR says what is missing.\n"
	 ".PP\n"
	 "No return probe is ever used: an exception that crosses one would end the process.\n"
	 "So only functions whose end can be seen by another probe have durations.\n"
	 ".PP\n"
	 "Operators that the runtime runs as one bulk are one row, the bulk's.\n"
	 ".PP\n"
	 "Percentiles come from a histogram whose buckets are at most 12.5 % wide.\n"
	 ".PP\n"
	 "Memory counts the bytes that the runtime requested since mxbpf attached; what was allocated before is\n"
	 "unknown, and what a pool keeps after it was freed is not counted.\n"
	 ".PP\n"
	 "A library whose build is not known has its probes refused, with the reason, rather than guessed.\n"
	 ".PP\n"},
	{"EXIT STATUS", print_exits, ""},
	{"FILES", NULL,
	 "Recordings, traces and other outputs have mode 0600 and belong to who called \\fBsudo\\fR(8).\n"
	 "Traces and tables appear under their name when they are complete; tables of \\fB\\-\\-interval\\fR at once.\n"
	 "The suffix says the format: of tables \\fI.txt\\fR, \\fI.json\\fR or \\fI.csv\\fR, each also with "
	 "\\fI.gz\\fR; of traces those\n"
	 "that \\fBexport\\fR knows. Another is an error, unless \\fB\\-f\\fR says the format.\n"
	 "A file that exists is replaced if it is empty or if mxbpf wrote it, in the same format; anything else is\n"
	 "refused, but for \\fB\\-\\-force\\fR.\n"
	 "A recording can be read at any moment, also when mxbpf was killed: everything complete before the cut is\n"
	 "there, and \\fBreport\\fR says that the recording is incomplete.\n"
	 "\\fBreport\\fR and \\fBexport\\fR check all of a recording.\n"
	 "Where it is damaged, a message says in which part; what that leaves whole is still printed or written, and\n"
	 "the exit status is 1.\n"
	 "A recording of a newer major format is refused.\n"},
	{"SECURITY", NULL,
	 "Attaching needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; where the kernel has no\n"
	 "uprobe_multi links, CAP_SYS_ADMIN too.\n"
	 "\\fBreport\\fR and \\fBexport\\fR need no privilege; run them without.\n"
	 "Output paths that are symbolic links are refused.\n"
	 "Recordings hold the command line of the process, the names of its operators and threads and, where they "
	 "were\n"
	 "asked for, shapes of tensors, names of layers and lines of Python stacks; no tensor data, no other memory.\n"
	 "Names from the process or a recording are escaped wherever they are shown: control characters and bytes that "
	 "are "
	 "not UTF-8 as \\exNN, in tables, CSV and JSON alike. Traces keep names as they are. A terminal whose locale "
	 "is not "
	 "UTF-8 (LC_ALL, LC_CTYPE, LANG) gets ASCII alone.\n"},
	{"EXAMPLES", print_examples, ""},
};

int cmd_print_man(const struct cmd *c)
{
	size_t i;

	puts(".\\\" made by mxbpf \\-\\-generate man\n.TH MXBPF 1 \"\" \"mxbpf " MXBPF_VERSION "\" \"User Commands\"");
	for (i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		printf(".SH %s\n", sections[i].title);
		fputs(sections[i].text, stdout);
		if (sections[i].print)
			sections[i].print();
	}
	return CMD_OK;
}
