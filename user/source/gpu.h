/* SPDX-License-Identifier: Apache-2.0 */
/* The source that reads what the agents' clients of CUPTI hand over. */
#ifndef SOURCE_GPU_H
#define SOURCE_GPU_H

#include "agent/agent.h"
#include "mxbpf_track.h"
#include "source/source.h"

/* Adds the source. `all` is borrowed until the hub is freed. Returns NULL if there is no memory. */
struct src *src_add_gpu(struct src_hub *h, struct agts *all);
/*
 * The agent of a process is or will be a client of CUPTI, or its process has ended: the source then has all its
 * records, and does not need the agent any more. `a` is borrowed until src_gpu_leave(), or until the hub is freed.
 * src_gpu_join() returns 0 or -ENOMEM. Call these and the functions below from one thread.
 */
int src_gpu_join(struct src *s, struct agt *a);
void src_gpu_leave(struct src *s, struct agt *a); /* of a process that has not joined, too */
/* Reads what became of the records of a process so far. Returns false if it has not joined. */
bool src_gpu_account(const struct src *s, const struct agt *a, struct mxbpf_gpu_account *to);
/* Tells the account how many launches probes have counted so far. */
void src_gpu_launches(struct src *s, uint64_t counted);
/* A window opens: calls that begin earlier are not delivered, nor what they launched. */
void src_gpu_start(struct src *s);
/*
 * The window closes. Tells all agents to let go of CUPTI, and waits until they have. Returns how many have not after
 * `ms`: they will do so as soon as CUPTI returns to them, and what they hand over until then is lost.
 */
unsigned src_gpu_stop(struct src *s, unsigned ms);

#endif
