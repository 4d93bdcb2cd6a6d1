// SPDX-License-Identifier: Apache-2.0
#include "agent/state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "agent/image.h"
#include "agent/mapped.h"
#include "agent/script.h"
#include "attach/backend.h"
#include "base/clock.h"
#include "base/thread.h"

#define CHANCE_MS   200 /* time to wait for a call of an operator before the agent is loaded in another way */
#define WAITS_TRIED 5	/* attempts to stop a waiting thread; one fails if the thread has moved on meanwhile */

#define RELEASE_NS    500000000 /* time for the kernel to remove the probe of a session that has ended */
#define RELEASE_LOOKS 25

uint64_t agt_memory_max(void)
{
	return sizeof(struct mxbpf_agent_shared) + agent_image_bytes;
}

/* ---- loading */

static int refuse_version(const struct agt *a, struct err *e)
{
	return err_set(e, ERR_TARGET, -EPROTO,
		       "cannot use the agent in process %d: it is an agent of another version of mxbpf and stays until "
		       "the process ends; restart the process",
		       a->pid);
}

static int refuse_broken(const struct agt *a, struct err *e)
{
	return err_set(e, ERR_RUNTIME, -EPROTO, "process %d broke the agent's contract: %s", a->pid,
		       gate_why(&a->gate));
}

int agt_read_config(struct agt *a, struct mxbpf_agent_config *config, uint64_t *bytes, struct err *e)
{
	struct iovec to = {config, sizeof(*config)}, from = {.iov_len = sizeof(*config)};
	uint64_t va;

	if (agt_symbol(MXBPF_AGENT_CONFIG, &va, e))
		return e->code;
	from.iov_base = (void *)(uintptr_t)(a->injected.base + va);
	if (process_vm_readv(a->pid, &to, 1, &from, 1, 0) != sizeof(*config))
		return err_set(e, ERR_TARGET, -errno, "cannot read the agent in process %d: %s", a->pid,
			       strerror(errno));
	return gate_config(&a->gate, config, bytes) ? refuse_broken(a, e) : 0;
}

/* Opens the agent's shared memory. The agent's configuration has its address. */
static int try_shared(struct agt *a, struct err *e)
{
	struct mxbpf_agent_config config = {0};
	struct gate_head head;
	uint64_t bytes = 0;

	if (agt_read_config(a, &config, &bytes, e))
		return e->code;
	if (config.error || !config.shared)
		return err_set(e, ERR_TARGET, config.error ? (int)config.error : -ENOSYS,
			       "cannot start the agent in process %d: %s", a->pid, strerror((int)-config.error));
	if (a->o.memory && !config.hooks[0].entry)
		return err_set(
			e, ERR_TARGET, -ENOTSUP,
			"the agent that an earlier mxbpf left in process %d cannot record memory; use --probes op",
			a->pid);
	if (shared_open(&a->shared, a->pid, &config, bytes, e))
		return e->code;
	a->gate.fd = a->shared.fd;
	if (gate_head(&a->gate, &head))
		return refuse_broken(a, e);
	if (head.magic != MXBPF_AGENT_MAGIC || head.version != MXBPF_AGENT_VERSION)
		return refuse_version(a, e);
	a->newborn = a->other && a->o.children && head.unheard;
	return 0;
}

/* Makes the shared memory this session's. Nothing is written before, because it may be another mxbpf's. */
void agt_take_shared(struct agt *a)
{
	if (!a->newborn)
		SHARED_SET(&a->shared, since_ns, 0); /* clears what a killed mxbpf may have left */
	SHARED_SET(&a->shared, clock.until, 0);
	SHARED_SET(&a->shared, rest, 0);
	SHARED_SET(&a->shared, children, a->o.children);
	agt_gpu_opened(a);
	SHARED_SET(&a->shared, memory, a->o.memory);
	shared_write(&a->shared, offsetof(struct mxbpf_agent_shared, details), &a->details, sizeof(a->details));
	SHARED_SET(&a->shared, numbers, a->o.numbers ? MXBPF_AGENT_NUMBERS_ON : MXBPF_AGENT_NUMBERS_OFF);
}

/* Opens the shared memory. Memory that cannot be used is closed again, because the agent may still be started anew. */
int agt_open_shared(struct agt *a, struct err *e)
{
	if (!try_shared(a, e))
		return 0;
	shared_close(&a->shared);
	a->gate.fd = -1;
	return e->code;
}

/* Returns the cookie of a process's links, as bpf/agent.bpf.c reads it. */
static uint64_t cookie_of(const struct agt *a)
{
	return (uint64_t)a->number << 32 | (uint32_t)a->pid;
}

/* Attaches to the bell. Meanwhile the kernel increments the switch, which is the probe's reference counter. */
int agt_listen(struct agt *a, struct err *e)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = cookie_of(a));
	uint64_t bell, sw;
	char path[96];

	if (agt_symbol(MXBPF_AGENT_BELL, &bell, e) || agt_symbol(MXBPF_AGENT_SWITCH, &sw, e))
		return e->code;
	if (agt_image_path(a, path))
		return err_set(e, ERR_TARGET, -ESRCH,
			       "cannot attach to the agent in process %d: it is not mapped any more", a->pid);
	o.ref_ctr_offset = agt_file_off(sw);
	a->bell = bpf_program__attach_uprobe_opts(a->skel->progs.on_bell, a->pid, path,
						  agt_file_off(bell) + MXBPF_AGENT_BELL_OFF, &o);
	return a->bell ? 0
		       : err_set(e, ERR_RUNTIME, -errno, "cannot probe the agent's bell function: %s", strerror(errno));
}

/* Probes functions that remove all callbacks of a program, because they remove the agent's callbacks too. */
int agt_watch_clears(struct agt *a, const struct runtime *r, struct err *e)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = cookie_of(a));
	unsigned i;

	for (i = 0; i < ADP_AGENT_CLEARS; i++) {
		if (!r->clear_offs[i] || a->clear[i])
			continue;
		a->clear[i] =
			bpf_program__attach_uprobe_opts(a->skel->progs.on_clear, a->pid, r->path, r->clear_offs[i], &o);
		if (!a->clear[i])
			return err_set(e, ERR_RUNTIME, -errno,
				       "cannot probe the function that removes all callbacks: %s", strerror(errno));
	}
	return 0;
}

/*
 * Returns -EBUSY if another mxbpf is attached to the agent, else 0. The kernel removes the probe of one that was killed
 * a moment after it has ended.
 */
static int check_free(const struct agt *a, struct err *e)
{
	const struct timespec nap = {.tv_nsec = RELEASE_NS / RELEASE_LOOKS};
	uint16_t listeners = 0;
	struct iovec to = {&listeners, sizeof(listeners)}, from = {.iov_len = sizeof(listeners)};
	unsigned looks;
	uint64_t va;

	if (agt_symbol(MXBPF_AGENT_SWITCH, &va, e))
		return e->code;
	from.iov_base = (void *)(uintptr_t)(a->injected.base + va);
	for (looks = 0; looks <= RELEASE_LOOKS; looks++) {
		if (looks)
			nanosleep(&nap, NULL);
		if (process_vm_readv(a->pid, &to, 1, &from, 1, 0) != sizeof(listeners) || !listeners)
			return 0;
	}
	return err_set(e, ERR_TARGET, -EBUSY,
		       "cannot attach to the agent in process %d: another mxbpf is attached to it", a->pid);
}

/* Returns true if all parts of the agent that are wanted were started. */
static bool started(struct agt *a)
{
	struct mxbpf_gpu_shared gpu;
	struct gate_head head;

	return (!a->o.calls ||
		(!gate_head(&a->gate, &head) &&
		 head.registered == (a->o.args ? MXBPF_AGENT_REGISTERED_ARGS : MXBPF_AGENT_REGISTERED))) &&
	       (!a->o.gpu || (!gate_gpu(&a->gate, &gpu) && gpu.thread));
}

/*
 * Finds the agent of an earlier session. The runtime may still call it, because the agent removes its callbacks
 * only when it is called and no mxbpf is attached. In this case *there is set, and nothing has to be called in the
 * process. A forked child has the agent's code but not its memory, and the agent starts again there.
 */
static int find_agent(struct agt *a, bool *there, struct err *e)
{
	struct err why = {0};

	*there = false;
	a->injected.base = agt_find_mapped(a->pid);
	if (!a->injected.base)
		return 0;
	if (!agt_is_same(a))
		return refuse_version(a, e);
	if (agt_open_shared(a, &why))
		return gate_why(&a->gate) ? err_set(e, why.cls, why.code, "%s", why.why) : 0;
	if (a->newborn) { /* the memory stays readable even if the child ends */
		agt_take_shared(a);
		return 0;
	}
	/* Only an agent with its own memory can have a listener: a forked child copies its parent's switch. */
	if (check_free(a, e))
		return e->code;
	agt_take_shared(a);
	if (agt_listen(a, e))
		return e->code;
	*there = started(a);
	a->injected.route = "it was there";
	return 0;
}

static int agent_agent_enter(void *ctx, struct err *e);

static int make_image(struct agt *a, const struct runtime *r, struct err *e)
{
	uint64_t config;

	if (agt_symbol(MXBPF_AGENT_CONFIG, &config, e))
		return e->code;
	a->image = malloc(agent_image_bytes);
	if (!a->image)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	memcpy(a->image, agent_image, agent_image_bytes);
	memcpy(a->image + agt_file_off(config), &r->config, sizeof(r->config));
	return 0;
}

static uint64_t modules_of(const struct agt *a)
{
	return (a->o.calls ? MXBPF_AGENT_MODULE_CALLS : 0) | (a->o.gpu ? MXBPF_AGENT_MODULE_GPU : 0) |
	       (a->o.args ? MXBPF_AGENT_MODULE_ARGS : 0);
}

/* With the lock: adds calls that the agent misses in the open window, because it is not loaded yet. */
static void count_missed(struct agt *a)
{
	uint64_t calls = a->injection && a->o.patient ? agt_inject_calls(a->injection) : 0;

	if (a->active_ns && calls > a->calls_seen)
		__atomic_fetch_add(&a->injected.missed, calls - a->calls_seen, __ATOMIC_RELAXED);
	a->calls_seen = calls;
}

static void set_injection(struct agt *a, struct inject *x)
{
	struct inject *old;

	pthread_mutex_lock(&a->lock);
	count_missed(a);
	old = a->injection;
	a->injection = x;
	a->calls_seen = 0;
	pthread_mutex_unlock(&a->lock);
	agt_inject_free(old);
}

static int arm(struct agt *a, const struct runtime *r, struct err *e)
{
	struct inject *new = NULL;

	if (!a->image && make_image(a, r, e))
		return e->code;
	a->inject = (struct agt_inject_opts){.pid = a->pid,
					     .path = r->path,
					     .off = r->entry_off,
					     .image = a->image,
					     .image_bytes = agent_image_bytes,
					     .arg = modules_of(a),
					     .reuse = true,
					     .beside = a->o.beside,
					     .wait = a->wait,
					     .first_call_ms = a->o.patient ? 0 : CHANCE_MS,
					     .launched = a->o.launched,
					     .patient = a->o.patient,
					     .cancel_fd = a->cancel_fd,
					     .on_started = a->o.launched ? agent_agent_enter : NULL,
					     .ctx = a};
	if (agt_symbol(MXBPF_AGENT_START, &a->inject.start_va, e))
		return e->code;
	if (agt_inject_arm(&a->inject, &a->injected, &new, e)) {
		agt_inject_free(new);
		return e->code;
	}
	set_injection(a, new);
	return 0;
}

/* Frees the injection at once, so that the probe at the operator's entry is detached. */
static int run_injection(struct agt *a, struct err *e)
{
	int err = agt_inject_run(a->injection, e);

	set_injection(a, NULL);
	return err;
}

/*
 * Interrupts a waiting thread. Returns -ETIME if there is none where the agent can be loaded, or if each has moved on
 * before it could be stopped.
 */
static int run_waiting(struct agt *a, const struct runtime *r, struct err *e)
{
	unsigned tries = WAITS_TRIED;
	int err;

	do {
		*e = (struct err){0};
		if (agt_find_waiting(a->target, a->plan, &a->wait, e))
			e->code = -ETIME;
		err = e->code || arm(a, r, e) ? e->code : run_injection(a, e);
	} while (err == -EAGAIN && --tries);
	a->wait = (struct agt_wait){0};
	return err == -EAGAIN ? (e->code = -ETIME) : err;
}

struct arming {
	struct agt *a;
	const struct runtime *r;
};

static void *arm_early(void *ctx)
{
	struct arming *x = ctx;

	arm(x->a, x->r, &x->a->not_armed);
	return NULL;
}

/*
 * Loads the programs, and meanwhile sets the probe that finds a thread to stop: to set a probe the kernel waits for all
 * CPUs, some 15 ms.
 */
static int load_and_arm(struct agt *a, const struct runtime *r, struct err *e)
{
	struct arming x = {a, r};
	pthread_t thread;
	const bool early =
		!a->o.launched && !a->o.patient && !agt_find_mapped(a->pid) && !thread_start(&thread, arm_early, &x);
	const int err = agts_load(a->all, e);

	if (early)
		pthread_join(thread, NULL);
	return err;
}

/* Loads the agent at a call of an operator. If no operator is called, a waiting thread loads it. */
static int run_ptrace(struct agt *a, const struct runtime *r, struct err *e)
{
	const struct err not_armed = a->not_armed;
	struct err no_call = {0};

	a->not_armed = (struct err){0};
	if (not_armed.code)
		return err_set(e, not_armed.cls, not_armed.code, "%s", not_armed.why);
	if (!a->injection && arm(a, r, e))
		return e->code;
	if (!run_injection(a, &no_call))
		return 0;
	if (no_call.code != -ETIME)
		return err_set(e, no_call.cls, no_call.code, "%s", no_call.why);
	return run_waiting(a, r, e);
}

static int run_script(struct agt *a, struct err *e)
{
	struct agt_script_opts o = {
		.t = a->target, .image = a->image, .image_bytes = agent_image_bytes, .arg = modules_of(a)};
	uint64_t start_va, there = agt_find_mapped(a->pid);

	if (agt_symbol(MXBPF_AGENT_START, &start_va, e))
		return e->code;
	o.start = there ? there + start_va : 0;
	if (agt_script(&o, &a->injected, &a->helper, e))
		return e->code;
	a->injected.base = agt_find_mapped(a->pid);
	return a->injected.base
		       ? 0
		       : err_set(e, ERR_TARGET, -ENOEXEC, "cannot use the agent: process %d has not mapped it", a->pid);
}

/* Returns true if no thread could be stopped where the agent can be loaded, and no thread was changed. */
static bool none_stopped(int err)
{
	static const int codes[] = {-ETIME, -EAGAIN, -EBUSY, -ENOSPC, -ENOTSUP};
	unsigned i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (err == codes[i])
			return true;
	return false;
}

/* Returns -ETIME if another attempt may succeed when the process calls an operator. */
static int inject(struct agt *a, const struct runtime *r, struct err *e)
{
	struct err no_stop = {0}, no_script = {0};

	if (!run_ptrace(a, r, &no_stop))
		return 0;
	if (!none_stopped(no_stop.code) || agt_script_usable(a->target, NULL))
		return err_set(e, no_stop.cls, no_stop.code, "%s", no_stop.why);
	if (!run_script(a, &no_script))
		return 0;
	return err_set(e, no_stop.cls, no_script.code == -ETIME ? no_stop.code : no_script.code, "%s; %s", no_stop.why,
		       no_script.why);
}

/* Notes the agent's counts at the start of this session, because the agent counts on from session to session. */
static void count_before(struct agt *a)
{
	struct gate_head head = {0};

	agt_sum(a, &a->before);
	if (gate_head(&a->gate, &head))
		return;
	a->no_slot_before = head.no_slot;
	a->orphans_before = head.orphans;
}

static int refuse_waited(const struct agt *a, struct err *e)
{
	return err_set(e, ERR_RUNTIME, -ETIMEDOUT,
		       "cannot attach to the agent in process %d: it waited too long for mxbpf and removed its "
		       "callbacks; try again",
		       a->pid);
}

/* Attaches to the agent, which has been loaded. */
static int agent_attach(struct agt *a, struct err *e)
{
	const bool opened = a->shared.fd >= 0;

	if (!opened && agt_open_shared(a, e))
		return e->code;
	if (!opened)
		agt_take_shared(a);
	if (!a->bell && agt_listen(a, e))
		return e->code;
	if (!started(a))
		return gate_why(&a->gate) ? refuse_broken(a, e) : refuse_waited(a, e);
	count_before(a);
	return 0;
}

/* The agent records from now on, if the window is open. */
void agt_go_in(struct agt *a)
{
	/* Removals before this point did not remove the agent's callbacks. */
	a->skel->bss->cleared_ns[a->number] = 0;
	pthread_mutex_lock(&a->lock);
	if (!a->unborn || a->synced) /* a forked child starts with its parent's since_ns */
		SHARED_SET(&a->shared, since_ns, a->o.calls ? a->active_ns : 0);
	count_missed(a);
	__atomic_store_n(&a->in, true, __ATOMIC_RELEASE);
	agt_gpu_tell(a);
	pthread_mutex_unlock(&a->lock);
}

static int bring_in(struct agt *a, const struct runtime *r, struct err *e)
{
	bool there;

	if (find_agent(a, &there, e))
		return e->code;
	if (!there && agt_will_start(a))
		return agt_await_birth(a, e);
	if ((!there && inject(a, r, e)) || agent_attach(a, e))
		return e->code;
	agt_go_in(a);
	return 0;
}

/* ---- loading when the process calls an operator */

/* Attaches while a launched process is stopped at its first call, so that the agent sees that call. */
static int agent_agent_enter(void *ctx, struct err *e)
{
	struct agt *a = ctx;

	if (agent_attach(a, e))
		return e->code;
	agt_go_in(a);
	return 0;
}

/* Calls count as missed until the agent records, so the injection is freed after that. */
static int await_operator(struct agt *a, struct err *e)
{
	int err = agt_inject_run(a->injection, e);

	if (!err && !a->o.launched)
		err = agent_agent_enter(a, e);
	set_injection(a, NULL);
	return err;
}

/*
 * Loads the agent as agt_load() does in the first process: at an operator that is called now, or in a thread that
 * waits. Returns -ETIME if it has to wait for an operator.
 */
static int try_now(struct agt *a, struct err *e)
{
	struct tgt *t;
	int err = tgt_open(a->pid, &t, e);

	if (err)
		return err;
	a->target = t;
	a->o.patient = false;
	err = bring_in(a, &a->runtime, e);
	a->target = NULL;
	tgt_close(t);
	if (err != -ETIME)
		return err;
	*e = (struct err){0};
	a->o.patient = true;
	return arm(a, &a->runtime, e) ? e->code : -ETIME;
}

static void *await_call(void *ctx)
{
	struct agt *a = ctx;
	struct err e = {0};
	int err = -ETIME;

	if (a->o.eager)
		err = try_now(a, &e);
	__atomic_store_n(&a->tries, false, __ATOMIC_RELEASE);
	if (err == -ETIME)
		err = await_operator(a, &e);
	if (err != -ECANCELED && (err || (!a->born && !agt_is_unborn(a)))) /* agt_look_born() reports a child's start */
		a->o.on_entry(a->o.ctx, err ? &e : NULL);
	return NULL;
}

static int await(struct agt *a, const struct runtime *r, struct err *e)
{
	int err;

	a->cancel_fd = eventfd(0, EFD_CLOEXEC);
	if (a->cancel_fd < 0)
		return err_set(e, ERR_RUNTIME, -errno, "cannot create an eventfd: %s", strerror(errno));
	a->tries = a->o.eager;
	err = a->o.eager ? 0 : arm(a, r, e);
	if (!err) {
		err = thread_start(&a->waits, await_call, a);
		if (!err)
			return 0;
		err_set(e, ERR_RUNTIME, err, "cannot start a thread: %s", strerror(-err));
	}
	close(a->cancel_fd);
	a->cancel_fd = -1;
	return err;
}

/* Waits for an operator if no operator was called so far and no thread waits where the agent can be loaded. */
static int bring_in_later(struct agt *a, const struct runtime *r, struct err *e)
{
	if (bring_in(a, r, e) != -ETIME)
		return e->code;
	a->no_chance = *e;
	a->o.patient = true;
	*e = (struct err){0};
	return await(a, r, e);
}

static void stop_waiting(struct agt *a)
{
	uint64_t one = 1;

	if (a->cancel_fd < 0)
		return;
	if (write(a->cancel_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(a->waits, NULL);
	close(a->cancel_fd);
	a->cancel_fd = -1;
}

/* Loads the agent into a process other than the plan's. A child may have its code, or an earlier session's agent. */
static int open_other(struct agt *a, struct err *e)
{
	bool there;

	if (a->o.eager)
		return await(a, &a->runtime, e);
	if (find_agent(a, &there, e))
		return e->code;
	if (!there && !a->o.anew && agt_will_start(a))
		return agt_await_birth(a, e);
	if (!there)
		return await(a, &a->runtime, e);
	if (agent_attach(a, e))
		return e->code;
	agt_go_in(a);
	a->o.on_entry(a->o.ctx, NULL);
	return 0;
}

static int bring(struct agt *a, struct err *e)
{
	if (a->other)
		return open_other(a, e);
	return a->o.launched || a->o.patient ? await(a, &a->runtime, e) : bring_in_later(a, &a->runtime, e);
}

int agt_load(struct agt *a, struct err *e)
{
	return bring(a, e) || (a->o.calls && !agt_is_unborn(a) && agt_watch_clears(a, &a->runtime, e)) ? e->code : 0;
}

int agt_open(struct agts *all, const struct plan *p, struct tgt *t, const struct agt_place *other,
	     const struct agt_opts *o, struct agt **out, struct err *e)
{
	struct agt *a = *out = calloc(1, sizeof(*a));
	const struct agt_place own = other ? *other : agt_place_of(p, t);

	if (!a)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	a->pid = own.pid;
	a->all = all;
	a->number = MXBPF_AGENT_PROCESSES;
	a->opened_ns = all->opened_ns;
	a->ncpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF);
	a->shared.fd = a->family.fd = a->gate.fd = -1;
	a->o = *o;
	a->details = agt_details(p, &own, o);
	a->target = other ? NULL : t;
	a->plan = p;
	a->other = other;
	a->cancel_fd = -1;
	pthread_mutex_init(&a->lock, NULL);
	threads_init(&a->threads, a->pid);
	keeper_open(&a->keeper, a->pid);
	if (agt_find_runtime(p, t, &own, o->calls, &a->runtime, e) || (!all->skel && load_and_arm(a, &a->runtime, e)))
		return e->code;
	a->skel = all->skel;
	a->ring = all->ring;
	if (agts_enter(all, a))
		return err_set(e, ERR_RUNTIME, -E2BIG, "a session can have the agent in at most %d processes",
			       MXBPF_AGENT_PROCESSES);
	return 0;
}

bool agt_tries(const struct agt *a)
{
	return __atomic_load_n(&a->tries, __ATOMIC_ACQUIRE);
}

bool agt_has_entered(const struct agt *a)
{
	return agt_is_in(a);
}

pid_t agt_pid(const struct agt *a)
{
	return a->pid;
}

const char *agt_waits(const struct agt *a)
{
	return a->no_chance.code ? a->no_chance.why : NULL;
}

const struct agt_injected *agt_injected(const struct agt *a)
{
	return &a->injected;
}

int agt_beats(struct agt *a, bool rest, struct mxbpf_agent_beat *to)
{
	SHARED_SET(&a->shared, rest, rest);
	return agt_is_in(a) ? gate_beats(&a->gate, to) : 0;
}

bool agt_numbers_wrong(struct agt *a)
{
	struct gate_head head;

	return agt_is_in(a) && !gate_head(&a->gate, &head) && head.numbers == MXBPF_AGENT_NUMBERS_WRONG;
}

const char *agt_broken(const struct agt *a)
{
	return gate_why(&a->gate);
}

void agt_activate(struct agt *a, bool on)
{
	uint64_t now = on ? clock_ns(CLOCK_MONOTONIC) : 0;

	if (on && !a->since_ns)
		__atomic_store_n(&a->since_ns, now, __ATOMIC_RELEASE);
	pthread_mutex_lock(&a->lock);
	count_missed(a);
	a->synced = true;
	a->active_ns = now;
	if (agt_is_in(a) && a->o.calls)
		SHARED_SET(&a->shared, since_ns, now);
	if (agt_is_unborn(a)) /* written in the child's copy of the page, because its parent may have ended */
		SHARED_SET(&a->family, since_ns, now);
	pthread_mutex_unlock(&a->lock);
}

/* Takes the locks of the two agents one after the other and never holds both. */
void agt_activate_like(struct agt *a, struct agt *like)
{
	uint64_t active_ns, since_ns = __atomic_load_n(&like->since_ns, __ATOMIC_ACQUIRE);

	pthread_mutex_lock(&like->lock);
	active_ns = like->active_ns;
	pthread_mutex_unlock(&like->lock);
	__atomic_store_n(&a->since_ns, since_ns, __ATOMIC_RELEASE);
	pthread_mutex_lock(&a->lock);
	count_missed(a);
	a->synced = true;
	a->active_ns = active_ns;
	if (agt_is_in(a))
		SHARED_SET(&a->shared, since_ns, active_ns);
	pthread_mutex_unlock(&a->lock);
}

void agt_detach(struct agt *a)
{
	unsigned i;

	stop_waiting(a);
	agt_script_end(&a->helper);
	bpf_link__destroy(a->bell);
	a->bell = NULL;
	for (i = 0; i < ADP_AGENT_CLEARS; i++) {
		bpf_link__destroy(a->clear[i]);
		a->clear[i] = NULL;
	}
	if (agt_is_in(a) && a->skel->bss->cleared_ns[a->number]) /* the next session registers the callbacks again */
		SHARED_SET(&a->shared, registered, 0);
}

uint64_t agt_cleared_ns(const struct agt *a)
{
	return a->skel->bss->cleared_ns[a->number];
}

void agt_close(struct agt *a)
{
	if (!a)
		return;
	agt_activate(a, false);
	agt_detach(a);
	agt_gpu_close(a);
	shared_close(&a->shared);
	shared_close(&a->family);
	hash_fini(&a->tids);
	agt_inject_free(a->injection);
	agts_leave(a);
	pthread_mutex_destroy(&a->lock);
	threads_fini(&a->threads);
	free(a->image);
	free(a);
}
