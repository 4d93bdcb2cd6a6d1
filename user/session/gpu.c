// SPDX-License-Identifier: Apache-2.0
/* --gpu: the agent is a client of CUPTI while a window is open. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "session/priv.h"
#include "source/gpu.h"

#define WANT	    (MXBPF_GPU_WANT_KERNELS | MXBPF_GPU_WANT_CALLS | MXBPF_GPU_WANT_DRIVER)
#define LEAKS_FROM  130000 /* versions of CUPTI that are known to grow */
#define LEAKS_UNTIL 130402
#define AWAIT_NS    (60 * NS_PER_S) /* CUPTI has taken 15 s to accept its first client in a process */
#define LOOK_NS	    (20 * NS_PER_MS)
#define PROGRESS_NS (2 * NS_PER_S)
#define STOP_MS	    5000
#define OLD_NS	    NS_PER_S /* records that are younger are no surprise */

/* ---- the state of the agent */

static void say_on(struct session *ses, const struct mxbpf_gpu_shared *g)
{
	char subscribe[24], enable[24];

	ses_note(ses, "CUPTI delivers records: version %u, %.256s; subscribing took %s, enabling %s", g->version,
		 g->path, fmt_ns(g->subscribe_ns, subscribe), fmt_ns(g->enable_ns, enable));
	if (g->version >= LEAKS_FROM && g->version < LEAKS_UNTIL)
		ses_note(ses, "this version of CUPTI loses memory in long windows (about 1 GiB in 25 million records); "
			      "13.4.2 and later do not");
	if (g->unhooked)
		ses_warn(ses,
			 "calls of CUPTI by the program's own profiler are not seen (%s), so mxbpf cannot give way to "
			 "it; do not start it now",
			 strerror((int)g->unhooked));
}

/* Tells the user of a new state once. */
static void look(struct session *ses)
{
	struct mxbpf_gpu_shared g;
	char why[512];

	if (!agt_gpu(ses->agent, &g) || g.state + 1 == ses->gpu_said || g.state == MXBPF_GPU_OFF)
		return;
	ses->gpu_said = g.state + 1;
	if (g.state == MXBPF_GPU_ON)
		say_on(ses, &g);
	else if (g.state == MXBPF_GPU_SUBSCRIBING)
		ses_detail(ses, "asking for CUPTI");
	else
		ses_warn(ses, "%s", ses_gpu_why(&g, why));
}

static bool is_settled(const struct mxbpf_gpu_shared *g)
{
	return g->state != MXBPF_GPU_OFF && g->state != MXBPF_GPU_SUBSCRIBING;
}

/*
 * If CUPTI does not deliver the calls of CUDA, probes see those of the libraries that are mapped. A process that exits
 * tears CUDA down: then CUPTI fails.
 */
static void choose_probes(struct session *ses)
{
	struct mxbpf_gpu_shared g;
	const bool known = agt_gpu(ses->agent, &g), was_on = known && g.subscriptions;
	const uint32_t state = known ? g.state : MXBPF_GPU_OFF;

	if (state == MXBPF_GPU_ON)
		ses_late_cuda(ses, false);
	else if (state == MXBPF_GPU_BUSY || state == MXBPF_GPU_YIELDED ||
		 (!was_on && (state == MXBPF_GPU_FAILED || state == MXBPF_GPU_NO_CUDA)))
		ses_late_cuda(ses, true);
}

void ses_gpu_tick(struct session *ses)
{
	look(ses);
	choose_probes(ses);
	src_gpu_launches(ses->gpu_source, ses_late_launches(ses));
}

bool ses_gpu_await(struct session *ses)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_gpu_shared g;
	uint64_t now = begun, said = begun;

	if (!agt_gpu(ses->agent, &g)) /* it will be loaded when the command calls its first operator */
		return true;
	agt_gpu_want(ses->agent, WANT);
	while (agt_gpu(ses->agent, &g) && !is_settled(&g) && now - begun < AWAIT_NS) {
		if (ses_interrupted(ses, now + LOOK_NS))
			return false;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now - said >= PROGRESS_NS) {
			said = now;
			ses_note(ses, "waiting for CUPTI, %llu s; the first time in a process can take 15 s",
				 (unsigned long long)((now - begun) / NS_PER_S));
		}
	}
	look(ses);
	choose_probes(ses);
	return true;
}

/* ---- session */

int ses_gpu_open(struct session *ses, struct err *e)
{
	ses->gpu_source = src_add_gpu(ses->hub, ses->agent, (uint32_t)tgt_pid(ses->targets[0].tgt));
	return ses->gpu_source ? 0 : err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
}

void ses_gpu_take(struct session *ses, bool on)
{
	if (on) {
		src_gpu_start(ses->gpu_source);
		agt_gpu_want(ses->agent, WANT);
		return;
	}
	look(ses);
	src_gpu_launches(ses->gpu_source, ses_late_launches(ses));
	if (!src_gpu_stop(ses->gpu_source, STOP_MS))
		ses_warn(ses, "CUPTI did not return within %u s, so the last records of the GPU are missing",
			 STOP_MS / 1000);
}

static void note(struct session *ses, const char *text)
{
	if (ses_add_note(&ses->about, "gpu", "%s", text) && !ses->write_error)
		ses->write_error = -ENOMEM;
}

bool ses_gpu_age(const struct session *ses, char text[160])
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_gpu_shared g;

	if (!ses->gpu_source || !agt_gpu(ses->agent, &g) || !g.oldest_ns || now < g.oldest_ns + OLD_NS)
		return false;
	snprintf(text, 160,
		 "records of the GPU are up to %.1f s old: CUPTI holds a buffer back while work in it has not ended",
		 (double)(now - g.oldest_ns) / NS_PER_S);
	return true;
}

void ses_gpu_end(struct session *ses)
{
	struct mxbpf_gpu_shared g;
	struct mxbpf_gpu_account a;
	char text[600], why[512], stop[24];

	src_gpu_account(ses->gpu_source, &a);
	if (ses->about.followed)
		note(ses,
		     "records of the GPU are those of the first process; the agent is a client of CUPTI nowhere else");
	if (!agt_gpu(ses->agent, &g)) {
		if (!agt_broken(ses->agent))
			note(ses, "no record of the GPU: no operator was called, so the agent was not loaded");
		return;
	}
	if (a.subscriptions) {
		snprintf(text, sizeof(text), "CUPTI %u, %.256s; letting go took %s", g.version, g.path,
			 g.stop_ns ? fmt_ns(g.stop_ns, stop) : "an unknown time");
		note(ses, text);
	}
	if (ses->gpu_said && ses->gpu_said != MXBPF_GPU_ON + 1)
		note(ses, ses_gpu_why(&g, why));
	if (a.unjoined) {
		note(ses, ses_gpu_unjoined(&g, a.unjoined, why));
		ses_warn(ses, "%s", why);
	}
	if (g.foreign_tids)
		note(ses, "CUPTI does not number threads as the system does, so kernels are not joined to operators");
	else if (a.threadless) {
		snprintf(text, sizeof(text),
			 "%llu calls of CUDA have a thread number that is no thread of the process: their kernels are "
			 "not joined to operators",
			 (unsigned long long)a.threadless);
		note(ses, text);
	}
}
