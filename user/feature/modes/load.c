// SPDX-License-Identifier: Apache-2.0
/*
 * Reads which modes for debugging are on, from the memory of the processes that run when the window begins, at both
 * ends of the window and about once a second: a program may turn a mode on for a part of its loop.
 */
#include "feature/modes/load_source.h"
#include "session/feature.h"
#include "session/priv.h"
#include "table/table.h"
#include "targets/targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fmt.h"
#include "python/python.h"

#define PROCESSES_MAX	  32
#define ENVIRON_MAX	  1024
#define ENVIRON_TEXT	  128 /* of a variable; those that are sought are shorter */
#define LINE_BYTES	  400
#define CODE_BYTES	  48
#define TRACING_OF_CONFIG 4 /* of the interpreter's _Py_tracemalloc_config, which has it until 3.11 */

/* A variable of the environment that turns a mode on with any value but "" and "0", or with this one alone. */
static const struct {
	const char *name, *value; /* value: "DEBUG" also fits "debug"; NULL: any */
	enum mode mode;
} variables[] = {
	{"CUDA_LAUNCH_BLOCKING", NULL, MODE_LAUNCH_BLOCKING},
	{"HIP_LAUNCH_BLOCKING", NULL, MODE_LAUNCH_BLOCKING},
	{"AMD_SERIALIZE_KERNEL", NULL, MODE_LAUNCH_BLOCKING},
	{"MXNET_ENGINE_TYPE", "NaiveEngine", MODE_NAIVE_ENGINE},
	{"PYTORCH_NO_CUDA_MEMORY_CACHING", NULL, MODE_NO_CACHING},
	{"MXNET_PROFILER_AUTOSTART", NULL, MODE_MXNET_PROFILER},
	{"PYTHONMALLOC", "debug", MODE_MALLOC},
	{"PYTHONMALLOC", "malloc_debug", MODE_MALLOC},
	{"PYTHONMALLOC", "pymalloc_debug", MODE_MALLOC},
	{"PYTHONMALLOC", "mimalloc_debug", MODE_MALLOC},
	{"MALLOC_CHECK_", NULL, MODE_MALLOC},
	{"MALLOC_PERTURB_", NULL, MODE_MALLOC},
	{"PYTHONDEVMODE", NULL, MODE_DEVELOPMENT},
	{"PYTHONASYNCIODEBUG", NULL, MODE_DEVELOPMENT},
	{"PYTHONTRACEMALLOC", NULL, MODE_TRACEMALLOC},
	{"TORCH_NCCL_BLOCKING_WAIT", NULL, MODE_NCCL_WAIT},
	{"NCCL_BLOCKING_WAIT", NULL, MODE_NCCL_WAIT},
	{"TORCH_DISTRIBUTED_DEBUG", "DETAIL", MODE_DISTRIBUTED_DEBUG},
	{"NCCL_DEBUG", "TRACE", MODE_VERBOSE},
	{"TORCH_LOGS", NULL, MODE_VERBOSE},
	{"TORCH_COMPILE_DEBUG", NULL, MODE_VERBOSE},
	{"MKL_VERBOSE", NULL, MODE_VERBOSE},
	{"DNNL_VERBOSE", NULL, MODE_VERBOSE},
	{"ONEDNN_VERBOSE", NULL, MODE_VERBOSE},
	{"MKLDNN_VERBOSE", NULL, MODE_VERBOSE},
};

struct process {
	struct tgt *t;
	struct py *py;						      /* NULL: no Python, or one that cannot be read */
	uint64_t environ, anomaly, deterministic, cudnn, tracemalloc; /* addresses; 0: not known */
	uint64_t looked;
	uint64_t lines[MODES]; /* that turn modes on; 0: not known */
	uint32_t searched;     /* bits of modes whose lines were sought */
};

struct state {
	struct session *ses;
	struct process processes[PROCESSES_MAX];
	unsigned n;
	bool silent; /* a file system did not answer, so no source file is read any more */
	struct tbl found;
	struct buf recs;
	int err;
};

static uint64_t address(struct tgt *t, struct tgt_lib *lib, const char *name)
{
	struct elf_sym sym;
	struct elf *elf;

	return !lib || tgt_lib_elf(t, lib, &elf, NULL) || elf_find_sym(elf, name, &sym, NULL) ? 0
											      : sym.va + lib->load_bias;
}

/* Returns the offset of the member that a function of one load returns ("movzbl OFF(%rdi),%eax; ret"), or -1. */
static int64_t member_of(const struct tgt *t, uint64_t function)
{
	uint8_t c[CODE_BYTES];
	int32_t off;

	if (!function || tgt_read(t, function, c, sizeof(c)) || c[0] != 0x0f || c[1] != 0xb6)
		return -1;
	if (c[2] == 0x47 && c[4] == 0xc3)
		return c[3];
	memcpy(&off, &c[3], sizeof(off));
	return c[2] == 0x87 && c[7] == 0xc3 && off > 0 ? off : -1;
}

/* The context that at::globalContext() returns: its name, or what the function loads the address of first. */
static uint64_t context_of(struct tgt *t, struct tgt_lib *lib)
{
	uint64_t at = address(t, lib, "_ZZN2at13globalContextEvE14globalContext_"), from;
	uint8_t c[CODE_BYTES];
	int32_t rel;
	unsigned i;

	from = at ? 0 : address(t, lib, "_ZN2at13globalContextEv");
	if (!from || tgt_read(t, from, c, sizeof(c)))
		return at;
	for (i = 0; i + 7 <= sizeof(c) && !at; i++)
		if (c[i] == 0x48 && c[i + 1] == 0x8d && (c[i + 2] & 0xc7) == 0x05) {
			memcpy(&rel, &c[i + 3], sizeof(rel));
			at = from + i + 7 + (uint64_t)(int64_t)rel;
		}
	return at && tgt_is_writable(t, at) ? at : 0;
}

static uint64_t flag_of(struct process *p, struct tgt_lib *lib, uint64_t context, const char *reader)
{
	const int64_t off = context ? member_of(p->t, address(p->t, lib, reader)) : -1;

	return off < 0 ? 0 : context + (uint64_t)off;
}

static void find_flags(struct process *p)
{
	struct tgt_lib *torch = tgt_find_lib(p->t, "libtorch_cpu.so*");
	const uint64_t context = torch ? context_of(p->t, torch) : 0;

	/* A program that names the variable has a copy, which is the one that the C library uses then. */
	p->environ = address(p->t, tgt_program(p->t), "environ");
	p->environ = p->environ ? p->environ : address(p->t, tgt_find_lib(p->t, "libc.so*"), "environ");
	p->anomaly = address(p->t, torch, "_ZN5torch8autograd11AnomalyMode8_enabledE");
	p->deterministic = flag_of(p, torch, context, "_ZNK2at7Context23deterministicAlgorithmsEv");
	p->cudnn = flag_of(p, torch, context, "_ZNK2at7Context18deterministicCuDNNEv");
	if (p->py)
		p->tracemalloc = address(p->t, (struct tgt_lib *)py_lib(p->py), "_Py_tracemalloc_config");
}

static void watch(void *ctx, pid_t pid)
{
	struct state *st = ctx;
	struct process *p = st->processes;

	while (p < st->processes + st->n && tgt_pid(p->t) != pid)
		p++;
	if (st->n == PROCESSES_MAX || p < st->processes + st->n)
		return;
	*p = (struct process){.t = NULL};
	if (tgt_open(pid, &p->t, NULL))
		return;
	if (py_open(p->t, &p->py, NULL))
		p->py = NULL;
	find_flags(p);
	st->n++;
	if (!st->ses->o->no_follow)
		tgt_each_child(pid, watch, st);
}

/* ---- readings */

/* Once, when the program's files are known first: the line does not change. */
static uint64_t line_of(struct state *st, struct process *p, enum mode mode)
{
	struct mxbpf_rec r = {.tgid = (uint32_t)tgt_pid(p->t), .ts_ns = clock_ns(CLOCK_MONOTONIC)};
	char text[LINE_BYTES];
	ssize_t len;

	if (!(p->searched & 1u << mode) && p->py && !st->silent) {
		len = source_line(p->t, p->py, mode, text, sizeof(text));
		p->searched |= len == -EAGAIN ? 0 : 1u << mode;
		st->silent = len == -ETIMEDOUT;
		p->lines[mode] = len > 0 ? ses_learn_stack(st->ses, &r, text, (size_t)len) : 0;
	}
	return p->lines[mode];
}

static void note(struct state *st, struct process *p, enum mode mode)
{
	const struct mode_row row = {.tgid = (uint32_t)tgt_pid(p->t),
				     .mode = mode,
				     .seen = 1,
				     .looked = p->looked,
				     .line = line_of(st, p, mode)};
	bool added;

	if (!tbl_add(&st->found, &row, &added))
		st->err = -ENOMEM;
}

static void note_flag(struct state *st, struct process *p, uint64_t address, enum mode mode)
{
	uint8_t on = 0;

	if (address && !tgt_read(p->t, address, &on, sizeof(on)) && on == 1)
		note(st, p, mode);
}

static void note_variable(struct state *st, struct process *p, const char *text)
{
	const char *value = strchr(text, '=');
	size_t i;

	for (i = 0; value && i < sizeof(variables) / sizeof(variables[0]); i++)
		if (!strncmp(text, variables[i].name, (size_t)(value - text)) && !variables[i].name[value - text] &&
		    (variables[i].value ? !strcasecmp(value + 1, variables[i].value)
					: value[1] && strcmp(value + 1, "0") != 0))
			note(st, p, variables[i].mode);
}

/* The environment as it is now: programs change theirs before they import a runtime. */
static void read_environ(struct state *st, struct process *p)
{
	uint64_t list, at;
	char text[ENVIRON_TEXT];
	unsigned i;
	ssize_t n;

	if (!p->environ || tgt_read(p->t, p->environ, &list, sizeof(list)))
		return;
	for (i = 0; i < ENVIRON_MAX && !tgt_read(p->t, list + i * sizeof(at), &at, sizeof(at)) && at; i++) {
		n = tgt_read_some(p->t, at, text, sizeof(text) - 1);
		if (n <= 0)
			continue;
		text[n] = '\0';
		note_variable(st, p, text);
	}
}

/* By the type of the object that a tracing function gets. Tools that have no row here count as what they use. */
static enum mode mode_of(const char *type, enum mode other)
{
	static const struct {
		const char *part;
		enum mode mode;
	} tools[] = {
		{"CTracer", MODE_COVERAGE},
		{"Profiler", MODE_CPROFILE},
		{"Profile", MODE_CPROFILE},
		{"TraceContext", MODE_TORCH_PROFILER},
		{"PythonTracer", MODE_TORCH_PROFILER},
	};
	size_t i;

	for (i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (!strcmp(type, tools[i].part))
			return tools[i].mode;
	return other;
}

static void read_python(struct state *st, struct process *p)
{
	struct py_tracing tracing = {.traces = false};

	py_tracing(p->py, &tracing);
	if (tracing.traces)
		note(st, p, mode_of(tracing.tracer, MODE_SETTRACE));
	if (tracing.profiles)
		note(st, p, mode_of(tracing.profiler, MODE_SETPROFILE));
}

static void modes_read(struct session *ses, bool resumed)
{
	struct state *st = ses_state(ses, &modes_session);
	struct process *p;

	(void)resumed;
	st->recs.len = 0;
	st->err = 0;
	st->found = (struct tbl){.def = &modes_table};
	for (p = st->processes; p < st->processes + st->n; p++) {
		p->looked++;
		note_flag(st, p, p->anomaly, MODE_ANOMALY);
		note_flag(st, p, p->deterministic, MODE_DETERMINISTIC);
		note_flag(st, p, p->cudnn, MODE_DETERMINISTIC_CUDNN);
		note_flag(st, p, p->tracemalloc ? p->tracemalloc + TRACING_OF_CONFIG : 0, MODE_TRACEMALLOC);
		if (p->looked == 1)
			read_environ(st, p);
		if (p->py)
			read_python(st, p);
	}
	st->err = st->err ? st->err : tbl_emit(&st->found, &st->recs);
	tbl_fini(&st->found);
	ses_keep(ses, st->recs.data, st->recs.len, st->err);
}

static int modes_start(struct session *ses, struct err *e)
{
	struct state *st = ses_state(ses, &modes_session);

	(void)e;
	st->ses = ses;
	ses_each_root(ses, watch, st);
	modes_read(ses, true);
	return 0;
}

static void modes_ends(struct session *ses)
{
	modes_read(ses, false);
}

static void modes_fini(struct session *ses)
{
	struct state *st = ses_state(ses, &modes_session);
	unsigned i;

	for (i = 0; i < st->n; i++) {
		py_close(st->processes[i].py);
		tgt_close(st->processes[i].t);
	}
	buf_fini(&st->recs);
}

const struct ses_feature modes_session = {
	.state_bytes = sizeof(struct state),
	.start = modes_start,
	.read = modes_read,
	.ends = modes_ends,
	.fini = modes_fini,
};
