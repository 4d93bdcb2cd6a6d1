// SPDX-License-Identifier: Apache-2.0
/* Modes for debugging that were left on. What they cost is known where they run Python or operators of their own. */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/lines/lines.h"
#include "feature/modes/modes.h"

#define WORDS_MAX   4
#define IDLE_WEIGHT 0.1 /* of a mode of GPUs in a job without one */

/*
 * weight: what it counts at least, because most of its cost is inside of calls that look as always. frames: files that
 * run for it alone; operators: those that it calls itself.
 */
static const struct {
	const char *name, *by, *cost;
	double weight;
	bool of_gpu;
	const char *frames[WORDS_MAX], *operators[WORDS_MAX];
} modes[MODES] = {
	[MODE_ANOMALY] = {"Anomaly detection of autograd",
			  "torch.autograd.set_detect_anomaly() or detect_anomaly()",
			  "each operator notes its Python stack, and the backward pass searches each gradient for NaN",
			  0.35,
			  false,
			  {"/traceback.py(", "/linecache.py("},
			  {"aten::isnan", "aten::ne", "aten::any", "aten::_is_any_true"}},
	[MODE_DETERMINISTIC] = {"The mode of deterministic algorithms", "torch.use_deterministic_algorithms()",
				"operators such as index_add, scatter and cumsum use slower algorithms, and each new "
				"tensor is filled",
				0.25},
	[MODE_DETERMINISTIC_CUDNN] = {"The deterministic mode of cuDNN", "torch.backends.cudnn.deterministic",
				      "convolutions may not use their fastest algorithms", 0.15, true},
	[MODE_SETTRACE] = {"A tracing function", "sys.settrace(), as debuggers do", "Python calls it for each line",
			   0.35},
	[MODE_SETPROFILE] = {"A profiling function", "sys.setprofile(), as profilers do",
			     "Python calls it for each call and return", 0.3},
	[MODE_COVERAGE] = {"Measuring of coverage", "coverage.py", "Python calls it for each line", 0.35},
	[MODE_CPROFILE] = {"Python's profiler", "cProfile", "Python calls it for each call and return", 0.3},
	[MODE_TORCH_PROFILER] = {"PyTorch's profiler", "torch.profiler.profile(with_stack=True)",
				 "it records each operator and each call of Python, and keeps them in memory", 0.35},
	[MODE_TRACEMALLOC] = {"Tracing of Python's memory", "tracemalloc.start() or PYTHONTRACEMALLOC",
			      "Python notes a stack for each object that it allocates", 0.35},
	[MODE_LAUNCH_BLOCKING] = {"Synchronous launching of kernels",
				  "CUDA_LAUNCH_BLOCKING=1 or its counterpart for ROCm",
				  "the program waits for each kernel before it goes on", 0.4, true},
	[MODE_NAIVE_ENGINE] = {"MXNet's synchronous engine", "MXNET_ENGINE_TYPE=NaiveEngine",
			       "the program waits for each operator, and operators never run side by side", 0.4},
	[MODE_NO_CACHING] = {"Allocation without a cache", "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
			     "each tensor on the GPU is allocated and freed by the driver, which waits for the GPU",
			     0.4, true},
	[MODE_MXNET_PROFILER] = {"MXNet's profiler", "MXNET_PROFILER_AUTOSTART=1",
				 "it records each operator and keeps the records in memory", 0.3},
	[MODE_MALLOC] = {"Checking of allocations", "PYTHONMALLOC, MALLOC_CHECK_ or MALLOC_PERTURB_",
			 "each allocation is filled and checked", 0.2},
	[MODE_DEVELOPMENT] = {"Python's development mode", "PYTHONDEVMODE or PYTHONASYNCIODEBUG",
			      "allocations and coroutines are checked", 0.15},
	[MODE_NCCL_WAIT] = {"Blocking waits for collectives", "TORCH_NCCL_BLOCKING_WAIT=1",
			    "the program waits for each collective before it launches more", 0.2, true},
	[MODE_DISTRIBUTED_DEBUG] = {"Checking of collectives", "TORCH_DISTRIBUTED_DEBUG=DETAIL",
				    "before each collective, all ranks compare what they are about to call", 0.2},
	[MODE_VERBOSE] = {"Logging for debugging",
			  "TORCH_LOGS, TORCH_COMPILE_DEBUG, NCCL_DEBUG=TRACE, MKL_VERBOSE or ONEDNN_VERBOSE",
			  "the runtime prints what it does", 0.1},
};

static bool is_in(const char *text, size_t len, const char *const words[WORDS_MAX])
{
	unsigned i;

	for (i = 0; i < WORDS_MAX && words[i]; i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}

#define COMPILER_ERROR 0.3 /* of few readings */

/* The compiler of PyTorch turns anomaly detection on while it works, which samples may miss if it is short. */
static bool is_of_compiler(const struct mdl *m, const struct mode_row *r)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	uint64_t all = 0, compiles = 0;
	const char *text;

	for (i = 0; i < n && r->mode == MODE_ANOMALY; i++) {
		if (l[i].h.tgid != r->tgid || !l[i].main)
			continue;
		text = mdl_text(m, MXBPF_NAME_STACK, l[i].stack_id, &len);
		all += l[i].count;
		compiles += text && lines_compiler(text, len) ? l[i].count : 0;
	}
	return r->mode == MODE_ANOMALY && (compiles || r->seen <= 1) &&
	       facts_share((double)r->seen, (double)r->looked) <
		       facts_share((double)compiles, (double)all) + COMPILER_ERROR;
}

/* The share of the samples at the main threads of the process that are in the mode's code, and the line that calls it.
 */
static int sum_looks(const struct mdl *m, uint32_t tgid, struct fact_mode *mode)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct facts_tally tally = {.of = 0};
	const char *text;
	uint64_t in = 0;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (l[i].h.tgid != tgid || !l[i].main)
			continue;
		tally.of += l[i].count;
		text = mdl_text(m, MXBPF_NAME_STACK, l[i].stack_id, &len);
		if (!text || !is_in(text, len, modes[mode->mode].frames))
			continue;
		in += l[i].count;
		text = lines_of_program(m, l[i].stack_id, &len);
		err = text && lines_is_program(text, len) ? facts_tally_add(&tally, text, len, &l[i]) : 0;
	}
	mode->measured += facts_share((double)in, (double)tally.of);
	mode->line = facts_tally_top(&tally);
	facts_tally_fini(&tally);
	return err;
}

/* The share of the loop's time in operators that the mode calls. */
static void sum_operators(struct mdl *m, const struct facts *f, struct fact_mode *mode)
{
	size_t n, i, k, len;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
	const char *name;
	uint64_t ns = 0;

	for (i = 0; i < n; i++) {
		name = mdl_name(m, rows[i]->name_id, &len);
		for (k = 0; k < WORDS_MAX && modes[mode->mode].operators[k]; k++)
			if (rows[i]->tgid == f->loop.tgid && len == strlen(modes[mode->mode].operators[k]) &&
			    !memcmp(name, modes[mode->mode].operators[k], len))
				add_sat(&ns, rows[i]->self_ns);
	}
	mode->measured += facts_share((double)ns, (double)f->loop.total_ns);
}

static int add_mode(struct mdl *m, struct facts *f, const struct mode_row *r)
{
	struct debug_modes *d = &f->cause.debug_modes;
	struct fact_mode mode = {.tgid = r->tgid, .mode = r->mode, .seen = r->seen, .looked = r->looked};
	const bool idle = modes[r->mode].of_gpu && !f->gpu.known;
	size_t len;
	const char *line = r->line ? mdl_text(m, MXBPF_NAME_STACK, r->line, &len) : NULL;
	int err = 0;

	if (line)
		snprintf(mode.on, sizeof(mode.on), "%.*s", (int)len, line);
	if ((idle && r->mode == MODE_DETERMINISTIC_CUDNN) || is_of_compiler(m, r))
		return 0; /* programs set the first one for any machine */
	if (modes[r->mode].frames[0])
		err = sum_looks(m, r->tgid, &mode);
	if (r->tgid == f->loop.tgid)
		sum_operators(m, f, &mode);
	mode.measured = facts_least(mode.measured, 0.99);
	mode.share = idle ? IDLE_WEIGHT : modes[r->mode].weight;
	mode.share = mode.measured > mode.share ? mode.measured : mode.share;
	d->on |= 1u << r->mode;
	if (mode.share > d->most.share)
		d->most = mode;
	return err;
}

int make_debug_modes(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	size_t n, i;
	const struct mode_row *r = mdl_table_rows(m, &feature_modes, &modes_table, &n);
	int err = 0;

	(void)s;
	for (i = 0; !err && i < n; i++)
		err = r[i].seen && r[i].mode < MODES ? add_mode(m, f, &r[i]) : 0;
	return err;
}

#define COSTS_LEAST  0.3 /* weight of modes that slow any job down */
#define COSTS_SURELY 0.1 /* of the time, measured */

static double costly_mode_share(const struct facts *f)
{
	const struct fact_mode *mode = &f->cause.debug_modes.most;

	return mode->share >= COSTS_LEAST || mode->measured >= COSTS_SURELY ? mode->share : 0;
}

static double other_mode_share(const struct facts *f)
{
	return costly_mode_share(f) > 0 ? 0 : f->cause.debug_modes.most.share;
}

#define MEASURED_LEAST 0.03 /* of the time: what samples tell for certain */

static void debug_mode_say(const struct facts *f, struct buf *b)
{
	const struct fact_mode *mode = &f->cause.debug_modes.most;
	const uint64_t each_ns = f->loop.n ? f->loop.total_ns / f->loop.n : 0;
	char with[24], without[24];

	buf_printf(b, "%s is left on in process %" PRIu32 " (%s", modes[mode->mode].name, mode->tgid,
		   modes[mode->mode].by);
	if (mode->on[0])
		buf_printf(b, ", %s", mode->on);
	buf_printf(b, "): %s", modes[mode->mode].cost);
	if (modes[mode->mode].of_gpu && !f->gpu.known)
		buf_printf(b, "; this job uses no GPU, which it would slow down");
	if (mode->measured < MEASURED_LEAST)
		return;
	buf_printf(b, ", at least %.0f%% of the time", 100 * mode->measured);
	if (each_ns && mode->tgid == f->loop.tgid)
		buf_printf(b, "; without it an iteration would take %s or less instead of %s",
			   fmt_ns(whole((1 - mode->measured) * (double)each_ns), without), fmt_ns(each_ns, with));
}

static void debug_mode_evidence(const struct facts *f, struct buf *b)
{
	const struct debug_modes *d = &f->cause.debug_modes;
	const struct fact_line *line = d->most.line.looks ? &d->most.line : &f->any_line;
	const char *between = d->most.looked > 1 ? "; " : "";
	unsigned i;

	if (d->most.looked > 1)
		buf_printf(b, "it was on in %" PRIu64 " of %" PRIu64 " readings",
			   d->most.seen < d->most.looked ? d->most.seen : d->most.looked, d->most.looked);
	if (line->looks) {
		buf_printf(b, "%s%s", between, d->most.line.looks ? "it works for " : "the program is at ");
		rules_put_line(line, b);
		between = "; ";
	}
	for (i = 0; i < MODES; i++)
		if (d->on & 1u << i && i != d->most.mode) {
			buf_printf(b, "%s%s is on, too (%s)", between, modes[i].name, modes[i].by);
			between = "; ";
		}
}

#define ADVICE                                                                                                         \
	"Such modes find faults and slow down each step. Turn them on for the run that looks for a fault, and off "    \
	"for "                                                                                                         \
	"those that count: remove the call or the variable from the job, and start it again."

/* clang-format off */
const struct finding_rule rules_debug_modes[] = {
	{.key = "debug_mode", .first = 1, .full_gpu = true, .other_time = true, .least = 0.05, .share = costly_mode_share, .say = debug_mode_say,
	 .evidence = debug_mode_evidence, .pid_at = offsetof(struct facts, cause.debug_modes.most.tgid), .advice = ADVICE},
	{.key = "debug_mode", .full_gpu = true, .other_time = true, .least = 0.05, .share = other_mode_share, .say = debug_mode_say,
	 .evidence = debug_mode_evidence, .pid_at = offsetof(struct facts, cause.debug_modes.most.tgid), .advice = ADVICE},
	{.key = NULL},
};
/* clang-format on */
