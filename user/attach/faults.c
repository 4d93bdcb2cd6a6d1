// SPDX-License-Identifier: Apache-2.0
#include "attach/faults.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/backend.h"
#include "faults.skel.h"

#define RATE 199 /* samples a second of each thread, at most */

struct thread {
	pid_t tgid, tid;
	struct bpf_link *link; /* owned; NULL: the kernel refused */
};

struct faults {
	struct faults_bpf *skel;
	struct ring_buffer *ring;
	struct thread threads[FAULTS_THREADS_MAX];
	unsigned nthreads;
	faults_fn fn;
	void *ctx;
};

static int on_sample(void *ctx, void *data, size_t bytes)
{
	struct faults *f = ctx;
	const struct mxbpf_fault *s = data;
	const size_t head = offsetof(struct mxbpf_fault, stack.frames);

	if (f->fn && bytes >= head && s->stack.n <= MXBPF_STACK_FRAMES_MAX &&
	    bytes >= head + s->stack.n * sizeof(s->stack.frames[0]))
		f->fn(f->ctx, s);
	return 0;
}

/* Creates only the maps of this program: the header with the stacks has those of all. */
static void choose_maps(struct faults_bpf *skel)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, skel->obj)
	{
		if (map != skel->maps.fault_rooms && map != skel->maps.faults && map != skel->maps.fault_processes &&
		    !bpf_map__is_internal(map))
			bpf_map__set_autocreate(map, false);
	}
}

static struct bpf_link *faults_attach(struct faults *f, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.freq = 1,
		.sample_freq = RATE,
		.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD,
		.disabled = 1,
	};
	const int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct bpf_link *link = fd < 0 ? NULL : bpf_program__attach_perf_event(f->skel->progs.on_fault, fd);

	if (fd >= 0 && !link)
		close(fd);
	return link;
}

int faults_open(const struct mxbpf_python *layout, struct faults **out)
{
	struct faults *f = calloc(1, sizeof(*f));
	int err;

	*out = NULL;
	if (!f)
		return -ENOMEM;
	f->skel = faults_bpf__open();
	err = f->skel ? 0 : -errno;
	if (!err) {
		f->skel->rodata->cfg_python = *layout;
		backend_namespace(&f->skel->rodata->cfg_pidns_dev, &f->skel->rodata->cfg_pidns_ino);
		choose_maps(f->skel);
		err = faults_bpf__load(f->skel);
	}
	if (!err) {
		f->ring = ring_buffer__new(bpf_map__fd(f->skel->maps.faults), on_sample, f, NULL);
		err = f->ring ? 0 : -errno;
	}
	if (err)
		faults_close(f);
	else
		*out = f;
	return err;
}

bool faults_is_thread(pid_t tgid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", tgid, tid);
	return !access(path, F_OK);
}

void faults_watch(struct faults *f, pid_t tgid, pid_t tid)
{
	const uint32_t key = (uint32_t)tgid;
	const uint8_t yes = 1;
	unsigned i;

	for (i = 0; i < f->nthreads; i++)
		if (f->threads[i].tid == tid && f->threads[i].tgid == tgid)
			return;
	if (i == FAULTS_THREADS_MAX ||
	    bpf_map__update_elem(f->skel->maps.fault_processes, &key, sizeof(key), &yes, sizeof(yes), BPF_ANY))
		return;
	f->threads[f->nthreads++] = (struct thread){tgid, tid, faults_attach(f, tid)};
}

void faults_tidy(struct faults *f)
{
	unsigned i, kept = 0;

	for (i = 0; i < f->nthreads; i++)
		if (faults_is_thread(f->threads[i].tgid, f->threads[i].tid))
			f->threads[kept++] = f->threads[i];
		else
			bpf_link__destroy(f->threads[i].link);
	f->nthreads = kept;
}

void faults_forget(struct faults *f, pid_t tgid)
{
	const uint32_t key = (uint32_t)tgid;
	unsigned i, kept = 0;

	bpf_map__delete_elem(f->skel->maps.fault_processes, &key, sizeof(key), 0);
	for (i = 0; i < f->nthreads; i++)
		if (f->threads[i].tgid == tgid)
			bpf_link__destroy(f->threads[i].link);
		else
			f->threads[kept++] = f->threads[i];
	f->nthreads = kept;
}

void faults_take(struct faults *f, faults_fn fn, void *ctx)
{
	f->fn = fn;
	f->ctx = ctx;
	ring_buffer__consume(f->ring);
	f->fn = NULL;
}

void faults_close(struct faults *f)
{
	if (!f)
		return;
	while (f->nthreads)
		faults_forget(f, f->threads[0].tgid);
	ring_buffer__free(f->ring);
	faults_bpf__destroy(f->skel);
	free(f);
}
