/* SPDX-License-Identifier: Apache-2.0 */
/* The agent in the processes that a session follows, and in those that use a GPU. */
#ifndef FEATURE_AGENTS_H
#define FEATURE_AGENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define AGENTS_NAMED_MAX  8 /* processes that are named in notes with what is wrong there */
#define AGENTS_REFUSED_AT 4 /* of them, in warnings */

struct ses_process;
struct session;
struct tgt;

/* What a session has of them. Only the main thread uses it, except where it is said. */
struct agents {
	struct agts *all;	/* --agent or --gpu: all agents; NULL: not requested; session/agent.c opens them */
	unsigned in;		/* atomic: of the followed processes, those in which the agent has been */
	unsigned refused;	/* and those in which it cannot be */
	struct src *gpu_source; /* --gpu; NULL: not requested */
	struct ses_gpu *gpu;	/* its processes, see load_gpu.c */
};

/*
 * load_gpu.c: --gpu. ses_gpu_uses: returns true if a process has mapped CUDA's driver, and not only inherited it from a
 * process that uses it. ses_gpu_open: adds the source; the first agent is attached or will be.
 * ses_gpu_look: a followed process has mapped libraries; if one is CUDA's driver, its GPU is recorded from now on.
 * ses_gpu_leave: a process has ended or executed another program. ses_gpu_await: asks for CUPTI and waits until it
 * delivers, or it is clear that it will not; false: the session has to end. ses_gpu_take: the window opens or closes.
 * ses_gpu_tick: each second. ses_gpu_age: writes what tables of --interval have to say, if anything. ses_gpu_end: all
 * is folded; adds what has to be said to every output. ses_gpu_free: after the hub.
 */
bool ses_gpu_uses(const struct session *ses, struct tgt *t);
int ses_gpu_open(struct session *ses, struct err *e);
void ses_gpu_look(struct session *ses, struct tgt *t);
void ses_gpu_leave(struct session *ses, struct ses_process *p);
void ses_gpu_free(struct session *ses);
bool ses_gpu_await(struct session *ses);
void ses_gpu_tick(struct session *ses);
void ses_gpu_take(struct session *ses, bool on);
bool ses_gpu_age(const struct session *ses, char text[160]);
void ses_gpu_end(struct session *ses);
/*
 * load.c: the agent in processes that are followed. ses_agent_follow: the process, which has a plan, gets the
 * agent now or at its next operator. t: the process; NULL: it is a forked child. was_there: it is older than the
 * session, which waits for it in ses_agents_await(); that returns false if the session has to end. ses_agent_leave: the
 * process has ended or executed another program. ses_agents_check and ses_agents_end report processes without the
 * agent; ses_agents_free frees all, after the hub.
 */
void ses_agent_follow(struct session *ses, struct ses_process *p, struct tgt *t, bool was_there);
void ses_agent_leave(struct session *ses, struct ses_process *p);
bool ses_agents_await(struct session *ses);
void ses_agents_check(struct session *ses);
void ses_agents_end(struct session *ses);
void ses_agents_free(struct session *ses);
/*
 * load.c, for load_gpu.c: loads the agent into a process with a plan as a client of CUPTI, now or at its next operator.
 * t: the process. Returns the agent, or NULL if that was refused, which is told then.
 */
struct agt *agents_load_gpu(struct session *ses, struct ses_process *p, struct tgt *t, bool was_there);

#endif
