/* SPDX-License-Identifier: Apache-2.0 */
/* The source that reads what the agent's client of CUPTI hands over. */
#ifndef SOURCE_GPU_H
#define SOURCE_GPU_H

#include "agent/agent.h"
#include "mxbpf_track.h"
#include "source/source.h"

/*
 * Adds the source. `a` is borrowed until the hub is freed; tgid is that of the process. Returns NULL if there is no
 * memory.
 */
struct src *src_add_gpu(struct src_hub *h, struct agt *a, uint32_t tgid);
/* Reads what became of the records so far; from any thread. */
void src_gpu_account(const struct src *s, struct mxbpf_gpu_account *to);
/* Tells the account how many launches probes have counted so far. */
void src_gpu_launches(struct src *s, uint64_t counted);
/* A window opens: calls that begin earlier are not delivered, nor what they launched. */
void src_gpu_start(struct src *s);
/*
 * The window closes. Tells the agent to let go of CUPTI, and waits until it has. Returns false if it has not after
 * `ms`: it will do so as soon as CUPTI returns to it, and what it hands over until then is lost.
 */
bool src_gpu_stop(struct src *s, unsigned ms);

#endif
