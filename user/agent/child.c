// SPDX-License-Identifier: Apache-2.0
/* Forked children of a process with the agent. They start the agent themselves. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "agent/state.h"
#include "base/thread.h"

/* Returns true if the process starts the agent itself at its first call: it has inherited the agent's callbacks. */
bool agt_will_start(struct agt *a)
{
	struct mxbpf_agent_config config = {0};
	struct err e = {0};
	uint64_t bytes;

	if (a->newborn)
		return true;
	return a->o.children && a->other && a->injected.base && !agt_read_config(a, &config, &bytes, &e) &&
	       config.registered && !shared_open_family(&a->family, a->pid, &config);
}

/*
 * Attaches to the agent that a forked child has started. Its earlier calls belong to this session too, because the
 * agent did not exist before it.
 */
void agt_look_born(struct agt *a)
{
	struct err e = {0};
	bool born;

	pthread_mutex_lock(&a->all->births);
	if (a->unborn && a->shared.fd < 0 && !agt_open_shared(a, &e))
		agt_take_shared(a);
	born = a->unborn && a->shared.fd >= 0 && __atomic_load_n(&a->told, __ATOMIC_ACQUIRE);
	if (born) {
		a->born = true;
		a->injected.route = "it started in a forked child";
		agt_go_in(a);
		SHARED_SET(&a->shared, unheard, 0);
		__atomic_store_n(&a->unborn, false, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&a->all->births);
	if (born)
		a->o.on_entry(a->o.ctx, NULL);
}

void agt_ended(struct agt *a)
{
	__atomic_store_n(&a->told, true, __ATOMIC_RELEASE);
}

/*
 * Attaches to a forked child in a thread. The bell's probe comes first, because the child calls the bell as soon as it
 * learns that mxbpf is attached. If the child has ended by now, what it recorded can still be read.
 */
static void *attend_birth(void *ctx)
{
	struct agt *a = ctx;
	struct err e = {0};

	agt_listen(a, &e);
	agt_watch_clears(a, &a->runtime, &e);
	__atomic_store_n(&a->told, true, __ATOMIC_RELEASE);
	agt_look_born(a);
	return NULL;
}

/* Attaches in a thread, because attaching takes long and many children may come at once. */
int agt_await_birth(struct agt *a, struct err *e)
{
	int err;

	__atomic_store_n(&a->unborn, true, __ATOMIC_RELEASE);
	if (a->o.eager) { /* this already runs in a thread of its own */
		attend_birth(a);
		return 0;
	}
	a->cancel_fd = eventfd(0, EFD_CLOEXEC);
	err = a->cancel_fd < 0 ? -errno : thread_start(&a->waits, attend_birth, a);
	return err ? err_set(e, ERR_RUNTIME, err, "cannot start a thread: %s", strerror(-err)) : 0;
}
