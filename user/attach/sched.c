// SPDX-License-Identifier: Apache-2.0
#include "attach/sched.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "attach/backend.h"
#include "attach/priv.h"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* the clock that BPF uses */
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void sched_choose(struct att *a)
{
	a->sched = true;
	a->skel->rodata->cfg_sched = 1;
	bpf_program__set_autoload(a->skel->progs.on_switch, true);
	bpf_program__set_autoload(a->skel->progs.on_waking, true);
	bpf_map__set_max_entries(a->skel->maps.switches, MXBPF_SCHED_RING_BYTES);
	bpf_map__set_max_entries(a->skel->maps.sched_threads, MXBPF_SCHED_THREADS_MAX);
}

#define THREADS_BYTES (MXBPF_SCHED_THREADS_MAX * sizeof(struct mxbpf_sched_thread))

int sched_open(struct att *a)
{
	void *map = mmap(NULL, THREADS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			 bpf_map__fd(a->skel->maps.sched_threads), 0);

	if (map == MAP_FAILED)
		return -errno;
	a->sched_threads = map;
	return 0;
}

void sched_close(struct att *a)
{
	if (a->sched_threads)
		munmap(a->sched_threads, THREADS_BYTES);
}

/*
 * BPF looks only at processes whose bit is set. In a container BPF sets the bit itself when it first sees the process.
 */
void sched_join(struct att *a, pid_t tgid)
{
	if (a->sched && !a->skel->rodata->cfg_pidns_ino)
		__atomic_fetch_or(&a->skel->bss->sched_processes, 1ull << (tgid & 63), __ATOMIC_SEQ_CST);
}

int sched_attach(struct att *a, struct err *e)
{
	if (!a->sched || a->switch_link)
		return 0;
	a->switch_link = bpf_program__attach_raw_tracepoint(a->skel->progs.on_switch, "sched_switch");
	if (a->switch_link)
		a->waking_link = bpf_program__attach_raw_tracepoint(a->skel->progs.on_waking, "sched_waking");
	if (a->waking_link)
		return 0;
	return err_set(e, ERR_PRIVILEGE, -errno, "--sched: cannot attach to the scheduler's tracepoints: %s",
		       strerror(errno));
}

void sched_detach(struct att *a)
{
	bpf_link__destroy(a->switch_link);
	bpf_link__destroy(a->waking_link);
	a->switch_link = a->waking_link = NULL;
}

/* Reads a file of a thread in /proc. The text is empty if that fails. */
static void read_text(__u32 tgid, __u32 tid, const char *name, char text[512])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", tgid, tid, name);
	f = fopen(path, "re");
	text[f ? fread(text, 1, 511, f) : 0] = '\0';
	if (f)
		fclose(f);
}

static __u32 sched_slot_of(const struct att *a, __u32 tgid, __u32 tid)
{
	__u32 i;

	for (i = 1; i < MXBPF_THREADS_MAX; i++)
		if (a->threads[i].slot == i && a->threads[i].tid == tid && a->threads[i].tgid == tgid)
			return i;
	return 0;
}

static const struct {
	char letter; /* the state in /proc/PID/stat */
	uint8_t state;
} states[] = {
	{'S', MXBPF_SCHED_SLEEPING}, {'D', MXBPF_SCHED_DISK}, {'T', MXBPF_SCHED_STOPPED}, {'t', MXBPF_SCHED_STOPPED}};

/* Stores the state of a thread before recording. /proc does not say whether a runnable thread is on a CPU. */
static void seed_thread(struct att *a, __u32 tgid, __u32 tid)
{
	struct mxbpf_sched_thread t = {
		.id = tid, .tgid = tgid, .tid = tid, .slot = sched_slot_of(a, tgid, tid), .syscall = -1};
	char text[512], *p;
	size_t i;
	int field;

	read_text(tgid, tid, "stat", text);
	p = strrchr(text, ')'); /* the name before it may contain any character */
	if (!p || !p[1])
		return;
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (p[2] == states[i].letter) {
			t.state = states[i].state;
			t.left_ns = now_ns();
		}
	t.back_ns = t.left_ns ? 0 : now_ns();
	for (field = 2; p && field < 39; field++)
		p = strchr(p + 1, ' ');
	t.cpu = p ? (__u16)atoi(p + 1) : 0;
	read_text(tgid, tid, "syscall", text);
	if (text[0] >= '0' && text[0] <= '9')
		t.syscall = atoi(text);
	for (i = 0; i < MXBPF_SCHED_TRIES; i++) {
		struct mxbpf_sched_thread *to = &a->sched_threads[(tid + i) & (MXBPF_SCHED_THREADS_MAX - 1)];

		if (to->id == MXBPF_SCHED_FREE) {
			*to = t;
			break;
		}
	}
}

static void seed_process(struct att *a, __u32 tgid)
{
	struct dirent *d;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		if (atoi(d->d_name))
			seed_thread(a, tgid, (__u32)atoi(d->d_name));
	if (dir)
		closedir(dir);
}

/* In a container /proc has other thread ids than the map, so BPF adds each thread at its first switch instead. */
void sched_seed(struct att *a)
{
	int fd = bpf_map__fd(a->skel->maps.targets);
	__u32 key, *prev = NULL;

	if (a->skel->rodata->cfg_pidns_ino)
		return;
	for (; !bpf_map_get_next_key(fd, prev, &key); prev = &key)
		seed_process(a, key);
}

/* Makes the record of a thread that has been on its CPU until now. */
static void still_on(const struct mxbpf_sched_thread *t, uint64_t now, struct mxbpf_sched *r)
{
	*r = (struct mxbpf_sched){
		.h = {.kind = MXBPF_SCHED, .size = sizeof(*r), .tgid = t->tgid, .ts_ns = now},
		.ran_ns = now - t->back_ns,
		.woken_ns = now,
		.back_ns = now,
		.tid = t->tid,
		.syscall = -1,
		.left_cpu = t->cpu,
		.back_cpu = t->cpu,
		.flags = MXBPF_SCHED_LAST,
	};
}

/* Makes the record of a thread that is off its CPU now. */
static void still_off(const struct mxbpf_sched_thread *t, uint64_t now, struct mxbpf_sched *r)
{
	*r = (struct mxbpf_sched){
		.h = {.kind = MXBPF_SCHED, .size = sizeof(*r), .tgid = t->tgid, .ts_ns = t->left_ns},
		.ran_ns = t->ran_ns,
		.woken_ns = t->left_ns,
		.back_ns = now,
		.span_start_ns = t->span_start_ns,
		.span_name_id = t->span_name_id,
		.tid = t->tid,
		.by_tid = t->taker_tid,
		.syscall = t->syscall,
		.left_cpu = t->cpu,
		.back_cpu = t->cpu,
		.state = t->state,
		.span_cls = t->span_cls,
		.flags = t->flags | MXBPF_SCHED_STILL_OFF | (t->between ? MXBPF_SCHED_BETWEEN : 0),
	};
	memcpy(r->by_comm, t->taker_comm, sizeof(r->by_comm));
	if (t->state == MXBPF_SCHED_RUNNABLE)
		return;
	r->woken_ns = now;
	if (t->woken_ns > t->left_ns) {
		r->woken_ns = t->woken_ns;
		r->flags |= t->waker_flags;
		r->by_tid = t->waker_tid;
		memcpy(r->by_comm, t->waker_comm, sizeof(r->by_comm));
	}
}

unsigned att_sched_end(struct att *a, void (*fn)(void *ctx, struct mxbpf_sched *r), void *ctx)
{
	struct mxbpf_sched r;
	uint64_t now = now_ns();
	unsigned n = 0, i;

	if (!a->sched)
		return 0;
	backend_grace(); /* wait for programs that still saw the window open */
	for (i = 0; i < MXBPF_SCHED_THREADS_MAX; i++) {
		const struct mxbpf_sched_thread *t = &a->sched_threads[i];

		if (t->id == MXBPF_SCHED_FREE || t->id == MXBPF_SCHED_GONE || (!t->left_ns && !t->back_ns))
			continue;
		(t->left_ns ? still_off : still_on)(t, now, &r);
		fn(ctx, &r);
		n++;
	}
	memset(a->sched_threads, 0, THREADS_BYTES);
	return n;
}

void sched_counts(const struct att *a, uint64_t sum[MXBPF_COUNT_MAX])
{
	int ncpus = libbpf_num_possible_cpus(), i, k;
	struct mxbpf_sched_cpu *cpus = a->sched && ncpus > 0 ? calloc((size_t)ncpus, sizeof(*cpus)) : NULL;
	__u32 zero = 0;

	if (cpus && !bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.sched_cpus), &zero, cpus))
		for (i = 0; i < ncpus; i++)
			for (k = 0; k < MXBPF_COUNT_MAX; k++)
				sum[k] += cpus[i].counts[k];
	free(cpus);
}
