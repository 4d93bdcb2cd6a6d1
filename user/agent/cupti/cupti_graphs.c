// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes of CUDA graphs. A record of a kernel names its node, and not the operator that captured it. CUPTI calls back
 * when a node is made, in the thread that captures it, so the operator is the one in which this thread is. The graph
 * that is executed is a copy: CUPTI says which node each of its nodes is a copy of.
 */
#include <sys/syscall.h>

#include "agent.h"
#include "cupti.h"
#include "cupti_metrics.h"

static uint32_t lock; /* 1: taken. Its holder waits for nothing but the bell. */
static struct mxbpf_agent_batch batch;
static uint64_t last_ns; /* when the last node was made that is no copy */

static void take_lock(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		agent_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void release_lock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void cupti_graphs_send(struct mxbpf_gpu_shared *g)
{
	if (!__atomic_load_n(&batch.ncalls, __ATOMIC_RELAXED))
		return;
	take_lock();
	if (batch.ncalls)
		cupti_send_batch(g, &batch);
	release_lock();
}

static void cupti_graphs_put(struct mxbpf_gpu_shared *g, const struct mxbpf_gpu_rec *r)
{
	take_lock();
	batch.gpu[batch.ncalls] = *r;
	__atomic_store_n(&batch.ncalls, batch.ncalls + 1, __ATOMIC_RELAXED);
	if (batch.ncalls == MXBPF_AGENT_GPU_BATCH)
		cupti_send_batch(g, &batch);
	release_lock();
}

/* CUPTI reports a copied node twice: as a node that was made, and as a copy. */
void cupti_on_callback(void *unused, uint32_t domain, uint32_t cbid, const void *info)
{
	struct mxbpf_agent_shared *s = agent_shared();
	const struct cupti_graph *node =
		domain == CUPTI_DOMAIN_RESOURCE ? ((const struct cupti_resource *)info)->graph : NULL;
	struct mxbpf_gpu_rec r = {.kind = MXBPF_GPU_NODE, .start_ns = agent_now()};
	uint64_t id = 0, original = 0;

	(void)unused;
	if (s && domain == CUPTI_DOMAIN_DRIVER)
		cupti_metrics_on_call(&s->gpu, cbid, info);
	if (!s || !node || node->type > CUDA_NODE_SET || cupti.get_node_id(node->node, &id) || !id)
		return;
	if (cbid == CUPTI_GRAPHNODE_CLONED && (cupti.get_node_id(node->original_node, &original) || !original))
		return;
	if (!original)
		__atomic_store_n(&last_ns, r.start_ns, __ATOMIC_RELAXED);
	r.graph_node = id;
	r.bytes = original;
	r.call.tid = (uint32_t)agent_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
	cupti_graphs_put(&s->gpu, &r);
}

void cupti_graphs_watch(struct mxbpf_gpu_shared *g, void *subscriber, bool on)
{
	static const uint32_t cbids[] = {CUPTI_GRAPHNODE_CREATED, CUPTI_GRAPHNODE_CLONED};
	unsigned i, n = 0;

	if (!on)
		cupti_graphs_send(g);
	for (i = 0; cupti.enable_callback && cupti.get_node_id && i < 2; i++)
		n += !cupti.enable_callback(on, subscriber, CUPTI_DOMAIN_RESOURCE, cbids[i]);
	if (on)
		__atomic_store_n(&g->graphs, n == 2 ? MXBPF_GPU_GRAPHS_ON : MXBPF_GPU_GRAPHS_REFUSED, __ATOMIC_RELAXED);
}

uint64_t cupti_graphs_last(void)
{
	return __atomic_load_n(&last_ns, __ATOMIC_RELAXED);
}

void cupti_graphs_forget(void)
{
	release_lock();
	batch.ncalls = 0;
}
