// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "evil.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POLL_US 200

int evil(const char *name, const char *object, const char *file, const unsigned long offs[3]);

const char *evil_object, *evil_file;
struct mxbpf_agent_shared *evil_shared;

static const struct attack *attack;
static struct mxbpf_agent_config *config;
static unsigned long config_off, bell_off, switch_off;
static void (*bell)(const struct mxbpf_agent_batch *b);

uint64_t evil_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint32_t evil_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* xorshift64: the same numbers in each run. */
uint64_t evil_random(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

void evil_ring(const struct mxbpf_agent_batch *b)
{
	bell(b);
}

struct mxbpf_agent_config *evil_config(void)
{
	return config;
}

void evil_began(void)
{
	fprintf(stderr, "evil: %s\n", attack->name);
}

void evil_wait(void)
{
	for (;;)
		pause();
}

uint32_t evil_name(const char *text)
{
	struct mxbpf_agent_shared *s = evil_shared;
	const uint32_t len = (uint32_t)strlen(text), at = __atomic_fetch_add(&s->texts_len, len + 1, __ATOMIC_RELAXED);

	memcpy(s->texts + at + 1, text, len + 1); /* the first byte is not used */
	return at + 1;
}

struct mxbpf_agent_slot *evil_slot(void)
{
	static struct mxbpf_agent_slot *own;
	uint32_t nobody, i;

	for (i = 0; !own && i < MXBPF_AGENT_THREADS; i++) {
		struct mxbpf_agent_slot *t = &evil_shared->slots[i];

		nobody = 0;
		if (!__atomic_compare_exchange_n(&t->tid, &nobody, evil_tid(), false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		own = t;
		t->uses++;
		t->batch.slot_use = (uint64_t)i << 32 | t->uses;
		t->batch.seq = 0;
	}
	return own;
}

void evil_fill(struct mxbpf_agent_batch *b, unsigned n)
{
	const struct mxbpf_agent_slot *t = evil_slot();
	static uint32_t name;
	uint64_t now;
	unsigned i;

	name = name ? name : evil_name("evil::call");
	do { /* there is time for the calls since the window was opened */
		now = evil_now();
	} while (evil_shared->since_ns && now < evil_shared->since_ns + 1000 * (MXBPF_AGENT_BATCH + 1));
	b->slot_use = t->batch.slot_use;
	b->seq = t->batch.seq;
	b->ncalls = n;
	b->what = MXBPF_AGENT_CALLS;
	b->our_tid = 0;
	for (i = 0; i < n; i++)
		b->calls[i] = (struct mxbpf_agent_call){.start_ns = now - 1000 * (n - i),
							.dur_ns = 500,
							.self_ns = 500,
							.name = name,
							.tid = t->tid,
							.end_tid = t->tid};
}

void evil_hand_over(struct mxbpf_agent_batch *b)
{
	struct mxbpf_agent_slot *t = evil_slot();

	t->calls += b->ncalls;
	evil_ring(b);
	t->batch.seq++;
}

/*
 * Address of the agent in this process, 0: mxbpf has not loaded it yet. The loader first maps the whole object as it is
 * in the file, so the agent is there when its data can be written.
 */
static uint64_t find_agent(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t from, to, base = 0;
	char line[512], mode[5];
	bool there = false;

	while (f && !there && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/memfd:mxbpf-agent") ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, mode) != 3)
			continue;
		base = base ? base : from;
		there = mode[1] == 'w' && base + config_off >= from && base + config_off < to;
	}
	if (f)
		fclose(f);
	return there ? base : 0;
}

static bool records(const struct mxbpf_agent_shared *s)
{
	return (!attack->gpu || __atomic_load_n(&s->gpu.want, __ATOMIC_ACQUIRE)) &&
	       (getenv("EVIL_WITHOUT_CALLS") || __atomic_load_n(&s->since_ns, __ATOMIC_ACQUIRE));
}

static void *run(void *unused)
{
	const volatile uint16_t *listeners;
	uint64_t base, at;

	(void)unused;
	while (!(base = find_agent()))
		usleep(POLL_US);
	config = (void *)(base + config_off);
	listeners = (const void *)(base + switch_off);
	bell = (void (*)(const struct mxbpf_agent_batch *))(base + bell_off);
	while (!(at = __atomic_load_n(&config->shared, __ATOMIC_ACQUIRE)) || !*listeners || !records((const void *)at))
		usleep(POLL_US);
	evil_shared = (void *)at;
	evil_began();
	attack->run();
	return NULL;
}

static const struct attack *find(const char *name)
{
	const struct attack *const all[] = {evil_calls, evil_memory, evil_gpu, evil_files};
	const struct attack *a;
	unsigned i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (a = all[i]; a->name; a++)
			if (!strcmp(a->name, name))
				return a;
	return NULL;
}

/*
 * Prepares the attack with this name. The offsets are those of the agent's configuration, bell and switch. Returns 0,
 * or -1 if there is no such attack.
 */
int evil(const char *name, const char *object, const char *file, const unsigned long offs[3])
{
	pthread_t thread;

	attack = find(name);
	if (!attack)
		return -1;
	evil_object = object;
	evil_file = file;
	config_off = offs[0];
	bell_off = offs[1];
	switch_off = offs[2];
	if (!attack->early)
		return pthread_create(&thread, NULL, run, NULL) ? -1 : 0;
	attack->run();
	return 0;
}
