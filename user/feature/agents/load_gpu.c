// SPDX-License-Identifier: Apache-2.0
/*
 * --gpu: the agents of processes that use a GPU are clients of CUPTI while a window is open. Processes that have not
 * mapped CUDA's driver are left alone.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "feature/activity/activity.h"
#include "feature/agents/agents.h"
#include "feature/kernels/kernels.h"
#include "session/priv.h"
#include "target/labels.h"
#include "targets/targets.h"

#define WANT	    (MXBPF_GPU_WANT_KERNELS | MXBPF_GPU_WANT_CALLS | MXBPF_GPU_WANT_DRIVER)
#define LEAKS_FROM  130000 /* versions of CUPTI that are known to grow */
#define LEAKS_UNTIL 130402
#define AWAIT_NS    (60 * NS_PER_S) /* CUPTI has taken 15 s to accept its first client in a process */
#define LOOK_NS	    (20 * NS_PER_MS)
#define PROGRESS_NS (2 * NS_PER_S)
#define STOP_MS	    5000
#define OLD_NS	    NS_PER_S /* records that are younger are no surprise */

/* The state that all processes of a session share. Only the main thread uses it. */
struct ses_gpu {
	bool wants;		/* CUPTI is asked for */
	bool measures;		/* a window is open: counters of kernels are measured */
	bool awaited;		/* the first process was */
	unsigned nall;		/* processes that were ever there */
	unsigned delivered;	/* those of which CUPTI has delivered records, and which have ended */
	unsigned warned, noted; /* processes for which that was done */
};

/* What costs something is left out unless it was asked for. */
static uint32_t want_of(const struct session *ses)
{
	return WANT | (ses->o->memory ? MXBPF_GPU_WANT_MEMORY : 0) |
	       (*ses->o->metrics.pattern ? MXBPF_GPU_WANT_METRICS : 0);
}

/* Iterates over the processes whose GPU is recorded. */
static struct ses_process *gpu_next(const struct session *ses, const struct ses_process *last)
{
	struct ses_process *p = last ? last->next : ses->processes.first;

	while (p && !p->gpu.agt)
		p = p->next;
	return p;
}
#define EACH_GPU(ses, p) for ((p) = gpu_next(ses, NULL); (p); (p) = gpu_next(ses, p))

/* Begins a message about a process if there are several. */
static const char *of_process(const struct ses_gpu *g, uint32_t tgid, char buf[32])
{
	*buf = '\0';
	if (g->nall > 1)
		snprintf(buf, 32, "process %u: ", tgid);
	return buf;
}

/* ---- the state of the agents */

static void say_on(struct session *ses, const struct ses_process *p, const struct mxbpf_gpu_shared *g)
{
	char subscribe[24], enable[24], of[32], text[512];

	snprintf(text, sizeof(text), "%sCUPTI delivers records: version %u, %.256s; subscribing took %s, enabling %s",
		 of_process(ses->agents.gpu, p->tgid, of), g->version, g->path, fmt_ns(g->subscribe_ns, subscribe),
		 fmt_ns(g->enable_ns, enable));
	if (ses->agents.gpu->nall > 1)
		ses_detail(ses, "%s", text);
	else
		ses_note(ses, "%s", text);
	if (g->version >= LEAKS_FROM && g->version < LEAKS_UNTIL && ses->agents.gpu->nall == 1)
		ses_note(ses, "this version of CUPTI loses memory in long windows (about 1 GiB in 25 million records); "
			      "13.4.2 and later do not");
	if (g->unhooked)
		ses_warn(ses,
			 "%scalls of CUPTI by the program's own profiler are not seen (%s), so mxbpf cannot give way "
			 "to it; do not start it now",
			 of, strerror((int)g->unhooked));
}

/* A process that has mapped CUDA and waits with using it is not worth a warning if others use it. */
static void say_why(struct session *ses, const struct ses_process *p, const struct mxbpf_gpu_shared *g)
{
	char of[32], why[512];

	of_process(ses->agents.gpu, p->tgid, of);
	ses_gpu_why(g, why);
	if (*of && (g->state == MXBPF_GPU_NO_CUDA || ses->agents.gpu->warned >= AGENTS_REFUSED_AT)) {
		ses_detail(ses, "%s%s", of, why);
		return;
	}
	ses->agents.gpu->warned++;
	ses_warn(ses, "%s%s", of, why);
}

/* Tells the user of a new state once. */
static void agents_look(struct session *ses, struct ses_process *p)
{
	struct mxbpf_gpu_shared g;

	if (!agt_gpu(p->gpu.agt, &g) || g.state + 1 == p->gpu.said || g.state == MXBPF_GPU_OFF)
		return;
	p->gpu.said = g.state + 1;
	if (g.state == MXBPF_GPU_ON)
		say_on(ses, p, &g);
	else if (g.state == MXBPF_GPU_SUBSCRIBING)
		ses_detail(ses, "asking for CUPTI");
	else
		say_why(ses, p, &g);
}

static void look_at_all(struct session *ses)
{
	struct ses_process *p;

	EACH_GPU (ses, p)
		agents_look(ses, p);
}

static bool is_settled(const struct mxbpf_gpu_shared *g)
{
	return g->state != MXBPF_GPU_OFF && g->state != MXBPF_GPU_SUBSCRIBING;
}

/* An agent that waits for an operator is settled: nobody knows when that will be called. */
static bool all_settled(const struct session *ses)
{
	const struct ses_process *p;
	struct mxbpf_gpu_shared g;

	EACH_GPU (ses, p)
		if (agt_gpu(p->gpu.agt, &g) && !is_settled(&g))
			return false;
	return true;
}

/*
 * If CUPTI does not deliver the calls of CUDA, probes see those of the libraries that are mapped. A process that exits
 * tears CUDA down: then CUPTI fails. Probes are those of all processes: as long as CUPTI delivers the calls of one,
 * there are none.
 */
static void choose_probes(struct session *ses)
{
	struct mxbpf_gpu_shared g;
	bool known, was_on, fails = false;
	const struct ses_process *p;
	uint32_t state;

	EACH_GPU (ses, p) {
		known = agt_gpu(p->gpu.agt, &g);
		was_on = known && g.subscriptions;
		state = known ? g.state : MXBPF_GPU_OFF;
		if (state == MXBPF_GPU_ON) {
			ses_late_cuda(ses, false);
			return;
		}
		fails |= state == MXBPF_GPU_BUSY || state == MXBPF_GPU_YIELDED ||
			 (!was_on && (state == MXBPF_GPU_FAILED || state == MXBPF_GPU_NO_CUDA));
	}
	if (fails)
		ses_late_cuda(ses, true);
}

/* ---- processes */

static struct tgt_lib *driver_of(struct tgt *t)
{
	return tgt_find_lib(t, "libcuda.so*");
}

/* The address of a library is a part of the path that opens it. */
static bool same_place(const struct tgt_lib *a, const struct tgt_lib *b)
{
	const char *x = strrchr(a->open_path, '/'), *y = strrchr(b->open_path, '/');

	return a->dev == b->dev && a->ino == b->ino && x && y && !strcmp(x, y);
}

/* Returns the parent if the process has the driver where its parent has it, which it was forked from; else 0. */
static pid_t heir_of(const struct tgt *t, const struct tgt_lib *driver)
{
	const pid_t parent = tgt_peek_parent(tgt_pid(t));
	struct tgt_lib *its;
	struct tgt *p;
	bool same;

	if (!parent || tgt_open(parent, &p, NULL))
		return 0;
	its = driver_of(p);
	same = its && same_place(its, driver);
	tgt_close(p);
	return same ? parent : 0;
}

enum use { USES_NONE, USES_GPU, USES_UNKNOWN };

/*
 * A forked child cannot use CUDA if its parent had initialised it, and has the driver mapped all the same. If the
 * parent had not, as in a job whose runtime is linked with the driver, the child can.
 */
static enum use use_of(const struct session *ses, struct tgt *t)
{
	struct tgt_lib *driver = driver_of(t);
	const pid_t parent = driver ? heir_of(t, driver) : 0;
	const struct ses_process *p = ses_process_of(ses, (uint32_t)parent);
	struct mxbpf_gpu_shared g;

	if (!driver)
		return USES_NONE;
	if (!p || !p->gpu.agt)
		return USES_GPU;
	if (!agt_gpu(p->gpu.agt, &g) || g.state == MXBPF_GPU_OFF)
		return USES_UNKNOWN;
	return g.ndevices ? USES_NONE : USES_GPU;
}

static bool matches(const char *patterns, const char *text)
{
	char one[TGT_LABEL_BYTES];
	const char *p = patterns;
	size_t n;

	for (; text[0] && *p; p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		snprintf(one, sizeof(one), "%.*s", (int)n, p);
		if (!fnmatch(one, text, 0))
			return true;
	}
	return false;
}

/* The library enters only processes of jobs that the user has named. */
static bool may_enter(const struct session *ses, const struct tgt *t)
{
	const char *patterns = ses->o->gpu_jobs;
	struct tgt_labels l;

	if (!patterns)
		return true;
	tgt_labels(t, &l);
	return matches(patterns, tgt_comm(t)) || matches(patterns, l.pod_name) || matches(patterns, l.slurm_job) ||
	       matches(patterns, l.container);
}

bool ses_gpu_uses(const struct session *ses, struct tgt *t)
{
	return may_enter(ses, t) && use_of(ses, t) == USES_GPU;
}

static int agents_add(struct session *ses, struct ses_process *p, struct agt *agt)
{
	if (src_gpu_join(ses->agents.gpu_source, agt))
		return -ENOMEM;
	p->gpu.agt = agt;
	p->gpu.said = 0;
	ses->agents.gpu->nall++;
	agt_gpu_measure(agt, ses->agents.gpu->measures);
	if (ses->agents.gpu->wants)
		agt_gpu_want(agt, want_of(ses));
	return 0;
}

/* The window has not begun: mxbpf waits until the agent is there. */
static bool was_there(const struct session *ses)
{
	return !ses->about.start_mono_ns;
}

static void follow(struct session *ses, struct ses_process *p, struct tgt *t)
{
	struct agt *agt;

	if (ses->o->agent && p->of->build != ses->first) /* the agent's operators are of one build */
		return;
	agt = agents_load_gpu(ses, p, t, was_there(ses));
	if (agt && agents_add(ses, p, agt) && !ses->write_error)
		ses->write_error = -ENOMEM;
}

static void load_first(struct session *ses, struct ses_process *p)
{
	struct err e = {0};

	if (ses->agent.gpu_late && agt_load(ses->agent.first, &e)) {
		ses->agent.failed = e;
		ses_warn(ses, "no record of the GPU: %s", e.why);
	} else if (agents_add(ses, p, ses->agent.first) && !ses->write_error) {
		ses->write_error = -ENOMEM;
	}
}

void ses_gpu_look(struct session *ses, struct tgt *t)
{
	struct ses_process *p = ses->agents.gpu ? ses_process_add(ses, (uint32_t)tgt_pid(t)) : NULL;
	enum use use;
	bool first;

	if (!p || p->gpu.decided || !may_enter(ses, t))
		return;
	use = use_of(ses, t);
	first = tgt_pid(t) == agt_pid(ses->agent.first);
	p->gpu.undecided = use == USES_UNKNOWN || (use == USES_GPU && !first && !p->place);
	if (p->gpu.undecided)
		return;
	if (use == USES_GPU && first)
		load_first(ses, p);
	else if (use == USES_GPU)
		follow(ses, p, t);
	p->gpu.decided = driver_of(t);
}

/* By now the agents of their parents may be loaded. */
static void look_again(struct session *ses)
{
	const struct ses_process *p;
	struct tgt *t;

	for (p = ses->processes.first; p; p = p->next)
		if (p->gpu.undecided && p->phase != SES_ENDED && !tgt_open((pid_t)p->tgid, &t, NULL)) {
			ses_gpu_look(ses, t);
			tgt_close(t);
		}
}

int ses_gpu_open(struct session *ses, struct err *e)
{
	struct tgt *first = ses->targets[0].tgt;
	struct ses_process *p = ses_process_add(ses, (uint32_t)tgt_pid(first));

	ses->agents.gpu = p ? calloc(1, sizeof(*ses->agents.gpu)) : NULL;
	ses->agents.gpu_source = ses->agents.gpu ? src_add_gpu(ses->hub, ses->agents.all) : NULL;
	if (!ses->agents.gpu_source)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (ses->agent.gpu_late || !ses_gpu_uses(ses, first))
		return 0;
	p->gpu.decided = true;
	return agents_add(ses, p, ses->agent.first) ? err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory") : 0;
}

void ses_gpu_free(struct session *ses)
{
	free(ses->agents.gpu);
	ses->agents.gpu = NULL;
}

/* ---- session */

void ses_gpu_tick(struct session *ses)
{
	look_again(ses);
	look_at_all(ses);
	choose_probes(ses);
	src_gpu_launches(ses->agents.gpu_source, ses_late_launches(ses));
}

static void want(struct session *ses)
{
	const struct ses_process *p;

	ses->agents.gpu->wants = true;
	EACH_GPU (ses, p)
		agt_gpu_want(p->gpu.agt, want_of(ses));
}

/* Returns false if the session has to end. */
static bool await_cupti(struct session *ses)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	uint64_t now = begun, said = begun;

	while (!all_settled(ses) && now - begun < AWAIT_NS) {
		if (ses_interrupted(ses, now + LOOK_NS))
			return false;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now - said >= PROGRESS_NS) {
			said = now;
			ses_note(ses, "waiting for CUPTI, %llu s; the first time in a process can take 15 s",
				 (unsigned long long)((now - begun) / NS_PER_S));
		}
	}
	return true;
}

/* When all processes are known. */
static void say_processes(struct session *ses)
{
	const struct ses_gpu *g = ses->agents.gpu;
	const struct ses_process *p;
	struct mxbpf_gpu_shared shared;
	unsigned on = 0;

	EACH_GPU (ses, p)
		on += agt_gpu(p->gpu.agt, &shared) && shared.state == MXBPF_GPU_ON;
	if (on > 1)
		ses_note(ses, "CUPTI delivers records of %u processes", on);
	if (!g->nall && !ses->launch.pid)
		ses_warn(ses, "no record of the GPU: no process has initialised CUDA; mxbpf goes on looking");
}

bool ses_gpu_await(struct session *ses)
{
	want(ses);
	if (!await_cupti(ses))
		return false;
	look_again(ses);
	if (!await_cupti(ses))
		return false;
	look_at_all(ses);
	choose_probes(ses);
	if (ses->agents.gpu->awaited)
		say_processes(ses);
	ses->agents.gpu->awaited = true;
	return true;
}

static void measure(struct session *ses, bool on)
{
	const struct ses_process *p;

	ses->agents.gpu->measures = on;
	EACH_GPU (ses, p)
		agt_gpu_measure(p->gpu.agt, on);
}

void ses_gpu_take(struct session *ses, bool on)
{
	unsigned held;

	measure(ses, on);

	if (on) {
		src_gpu_start(ses->agents.gpu_source);
		want(ses);
		return;
	}
	look_at_all(ses);
	src_gpu_launches(ses->agents.gpu_source, ses_late_launches(ses));
	ses->agents.gpu->wants = false;
	held = src_gpu_stop(ses->agents.gpu_source, STOP_MS);
	if (held && ses->agents.gpu->nall > 1)
		ses_warn(ses,
			 "CUPTI did not return within %u s in %u processes, so the last records of their GPUs are "
			 "missing",
			 STOP_MS / 1000, held);
	else if (held)
		ses_warn(ses, "CUPTI did not return within %u s, so the last records of the GPU are missing",
			 STOP_MS / 1000);
}

bool ses_gpu_age(const struct session *ses, char text[160])
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t oldest_ns = UINT64_MAX;
	const struct ses_process *p;
	struct mxbpf_gpu_shared g;

	EACH_GPU (ses, p)
		if (agt_gpu(p->gpu.agt, &g) && g.oldest_ns && g.oldest_ns < oldest_ns)
			oldest_ns = g.oldest_ns;
	if (oldest_ns > now || now - oldest_ns < OLD_NS)
		return false;
	snprintf(text, 160,
		 "records of the GPU are up to %.1f s old: CUPTI holds a buffer back while work in it has not ended",
		 (double)(now - oldest_ns) / NS_PER_S);
	return true;
}

/* ---- what every output says */

__attribute__((format(printf, 2, 3))) static void note(struct session *ses, const char *format, ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (ses_add_note(&ses->about, "gpu", "%s", text) && !ses->write_error)
		ses->write_error = -ENOMEM;
}

/* What launches cost afterwards was measured on an H200 (docs/gpu-hardware.md). */
static void note_cupti(struct session *ses, const struct mxbpf_gpu_shared *g, const char *of)
{
	char stop[24];

	note(ses,
	     "%sCUPTI %u, %.256s; letting go took %s. CUPTI stays in the process: each launch takes about 1 to 2 us "
	     "more "
	     "until it ends",
	     of, g->version, g->path, g->stop_ns ? fmt_ns(g->stop_ns, stop) : "an unknown time");
}

static void note_unjoined(struct session *ses, const struct mxbpf_gpu_shared *g, const struct mxbpf_gpu_account *a,
			  const char *of)
{
	char why[512];

	if (a->unjoined) {
		ses_gpu_unjoined(g, a->unjoined, why);
		note(ses, "%s%s", of, why);
		ses_warn(ses, "%s%s", of, why);
	}
	if (g->foreign_tids)
		note(ses, "%sCUPTI does not number threads as the system does, so kernels are not joined to operators",
		     of);
	else if (a->threadless)
		note(ses,
		     "%s%llu calls of CUDA have a thread number that is no thread of the process: their kernels are "
		     "not joined to operators",
		     of, (unsigned long long)a->threadless);
}

static void note_metrics(struct session *ses, const struct mxbpf_gpu_shared *g, const char *of)
{
	char text[1024];

	ses_metrics_note(g, text);
	if (ses_add_note(&ses->about, "gpu", "%s%s", of, text) && !ses->write_error)
		ses->write_error = -ENOMEM;
	if (!g->metrics.measured)
		ses_warn(ses, "%s%s", of, text);
}

/* Notes what is wrong in a process. The version of CUPTI stands there for the first one only. */
static void note_process(struct session *ses, const struct ses_process *p)
{
	struct ses_gpu *all = ses->agents.gpu;
	struct mxbpf_gpu_account a;
	struct mxbpf_gpu_shared g;
	char of[32], why[512];
	const bool known = agt_gpu(p->gpu.agt, &g);
	bool done;

	src_gpu_account(ses->agents.gpu_source, p->gpu.agt, &a);
	done = known && a.subscriptions && g.state == MXBPF_GPU_OFF; /* the last state that was told is over */
	of_process(all, p->tgid, of);
	if (known && a.subscriptions && !all->delivered++)
		note_cupti(ses, &g, of);
	if (all->noted >= AGENTS_NAMED_MAX)
		return;
	if (known && a.subscriptions && *ses->o->metrics.pattern)
		note_metrics(ses, &g, of);
	if (known && g.graphs == MXBPF_GPU_GRAPHS_REFUSED)
		note(ses, "%sCUPTI does not tell who captures CUDA graphs, so their kernels stay with their launches",
		     of);
	if (!known && !agt_broken(p->gpu.agt))
		note(ses, "%sno record of the GPU: no operator was called, so the agent was not loaded", of);
	else if (known && !done && p->gpu.said && p->gpu.said != MXBPF_GPU_ON + 1 &&
		 !(all->nall > 1 && g.state == MXBPF_GPU_NO_CUDA))
		note(ses, "%s%s", of, ses_gpu_why(&g, why));
	else if (known && (a.unjoined || a.threadless || g.foreign_tids))
		note_unjoined(ses, &g, &a, of);
	else
		return;
	all->noted++;
}

void ses_gpu_leave(struct session *ses, struct ses_process *p)
{
	struct agt *agt = p->gpu.agt;

	if (agt && agt == ses->agent.first)
		return;
	if (agt) {
		agents_look(ses, p);
		note_process(ses, p);
		src_gpu_leave(ses->agents.gpu_source, agt);
	}
	p->gpu = (struct ses_gpu_use){0};
}

void ses_gpu_end(struct session *ses)
{
	const struct ses_gpu *g = ses->agents.gpu;
	const struct ses_process *p;

	EACH_GPU (ses, p)
		note_process(ses, p);
	if (g->delivered > 1)
		note(ses, "CUPTI delivered records of %u processes", g->delivered);
	if (!g->nall && !ses->agent.failed.code)
		note(ses, "no record of the GPU: no process has initialised CUDA");
}
