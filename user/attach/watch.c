// SPDX-License-Identifier: Apache-2.0
#include "attach/watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/backend.h"
#include "attach/kernel_types.h"
#include "base/hash.h"
#include "watch.skel.h"

#define LOADERS_MAX  16
#define CODE_KIB_MIN 256 /* libraries of runtimes have tens of thousands of KiB */

/* A dynamic loader. Processes share a few of them. */
struct loader {
	uint64_t dev, ino, off;
	int fd;
};

struct watch {
	struct watch_bpf *skel;
	const struct att_backend *backend;
	struct ring_buffer *sightings;
	struct loader loaders[LOADERS_MAX];
	unsigned nloaders;
	struct hash links; /* (tgid, index of its loader) -> link fd + 1; tgid 0: all processes have it */
	bool any_process;  /* the hooks in loaders are for all processes; BPF knows who is watched */
	watch_fn fn;	   /* valid during watch_take() */
	void *ctx;
	pid_t guard;
	uint64_t no_room; /* processes that did not fit into the map of watched ones */
	int guard_fd;	  /* the guard sees that mxbpf has ended when this is closed */
};

static int on_sighting(void *ctx, void *data, size_t size)
{
	struct watch *w = ctx;

	if (size >= sizeof(struct mxbpf_sighting))
		w->fn(w->ctx, data);
	return 0;
}

static void let_go(void *ctx, const struct mxbpf_sighting *s)
{
	watch_continue(s);
}

/*
 * Starts a process that outlives mxbpf. If mxbpf is killed while a launched process is stopped, the guard continues it.
 * The guard keeps nothing but the map of watched processes.
 */
static int start_guard(struct watch *w)
{
	int ends[2], map = bpf_map__fd(w->skel->maps.watched);
	struct mxbpf_watched value;
	__u32 tgid, *prev = NULL;
	char end;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	w->guard = fork();
	if (!w->guard) {
		setsid(); /* Ctrl-C and signals to the job do not reach it */
		dup2(map, 0);
		dup2(ends[0], 1);
		close_range(2, ~0u, 0);
		while (read(1, &end, 1) < 0 && errno == EINTR)
			;
		for (; !bpf_map_get_next_key(0, prev, &tgid); prev = &tgid)
			if (!bpf_map_lookup_elem(0, &tgid, &value) && value.stop)
				kill((pid_t)tgid, SIGCONT);
		_exit(0);
	}
	close(ends[0]);
	w->guard_fd = ends[1];
	return w->guard < 0 ? -errno : 0;
}

int watch_open(bool follow, unsigned most, const char *backend, bool verbose, struct watch **out, struct err *e)
{
	LIBBPF_OPTS(bpf_object_open_opts, types, .btf_custom_path = kernel_types_path());
	struct watch *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!verbose)
		backend_quiet();
	w->guard_fd = -1;
	w->backend = att_pick(backend, e);
	if (!w->backend) {
		err = e->code;
		goto fail;
	}
	w->skel = watch_bpf__open_opts(&types);
	if (!w->skel) {
		err = backend_load_failed(-errno, e);
		goto fail;
	}
	w->skel->rodata->cfg_code_pages = CODE_KIB_MIN * 1024 / (uint64_t)sysconf(_SC_PAGESIZE);
	backend_namespace(&w->skel->rodata->cfg_pidns_dev, &w->skel->rodata->cfg_pidns_ino);
	bpf_map__set_max_entries(w->skel->maps.watched, most);
	bpf_program__set_autoload(w->skel->progs.on_fork, follow);
	bpf_program__set_expected_attach_type(w->skel->progs.on_loader, (enum bpf_attach_type)w->backend->attach_type);
	bpf_program__set_autoattach(w->skel->progs.on_loader, false);
	err = watch_bpf__load(w->skel);
	if (!err)
		err = watch_bpf__attach(w->skel);
	if (err) {
		backend_load_failed(err, e);
		goto fail;
	}
	w->sightings = ring_buffer__new(bpf_map__fd(w->skel->maps.sightings), on_sighting, w, NULL);
	if (!w->sightings) {
		err = -errno;
		err_set(e, ERR_RUNTIME, err, "cannot watch processes: %s", strerror(-err));
		goto fail;
	}
	*out = w;
	return 0;
fail:
	watch_close(w);
	return err;
}

int watch_add(struct watch *w, pid_t tgid, bool launched, struct err *e)
{
	struct mxbpf_watched value = {.stop = launched};
	__u32 key = (__u32)tgid;
	int err = launched && w->guard_fd < 0 ? start_guard(w) : 0;

	if (!err && bpf_map_update_elem(bpf_map__fd(w->skel->maps.watched), &key, &value, BPF_NOEXIST) &&
	    errno != EEXIST)
		err = -errno;
	if (err == -E2BIG && !launched) {
		w->no_room++;
		return 0;
	}
	return err ? err_set(e, ERR_RUNTIME, err, "cannot watch process %d: %s", tgid, strerror(-err)) : 0;
}

void watch_any(struct watch *w, pid_t tgid)
{
	int map = bpf_map__fd(w->skel->maps.watched);
	struct mxbpf_watched value;
	__u32 key = (__u32)tgid;

	if (bpf_map_lookup_elem(map, &key, &value) || value.any)
		return;
	value.any = 1;
	bpf_map_update_elem(map, &key, &value, BPF_EXIST);
}

/* Finds or adds the loader at path. Returns 0 or -errno. */
static int loader_of(struct watch *w, const char *path, uint64_t off, const struct loader **out)
{
	int fd = open(path, O_PATH | O_CLOEXEC), err; /* a name: the file may be one that does not answer */
	struct loader *l = w->loaders;
	struct statx st;
	uint64_t dev;

	if (fd < 0)
		return -errno;
	err = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) ? -errno : 0;
	dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	while (!err && l < w->loaders + w->nloaders && (l->dev != dev || l->ino != st.stx_ino || l->off != off))
		l++;
	*out = l;
	if (!err && l == w->loaders + LOADERS_MAX)
		err = -E2BIG;
	if (err || l < w->loaders + w->nloaders) {
		close(fd);
		return err;
	}
	*l = (struct loader){.dev = dev, .ino = st.stx_ino, .off = off, .fd = fd};
	w->nloaders++;
	return 0;
}

/* Returns 1 if the hook is new, 0 if it was there, or -errno. */
static int hook(struct watch *w, pid_t tgid, const struct loader *l)
{
	const pid_t of = w->any_process ? 0 : tgid;
	uint64_t *link = hash_put(&w->links, (uint64_t)of, (uint64_t)(l - w->loaders));
	uint64_t cookie = 0;
	char path[32];
	int fd, made;

	if (!link)
		return -ENOMEM;
	if (*link)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l->fd);
	made = w->backend->attach(bpf_program__fd(w->skel->progs.on_loader), path, &l->off, &cookie, 1, of, &fd);
	if (made > 0)
		*link = (uint64_t)fd + 1;
	return made < 0 ? made : 1;
}

int watch_loader(struct watch *w, pid_t tgid, const char *path, uint64_t off, struct err *e)
{
	const struct loader *l = NULL;
	int err = loader_of(w, path, off, &l);

	err = err ? err : hook(w, tgid, l);
	if (err >= 0)
		return err;
	return err_set(e, ERR_RUNTIME, err, "cannot watch the loader of process %d: %s", tgid, strerror(-err));
}

void watch_inherit(struct watch *w, pid_t child, pid_t parent)
{
	unsigned i;

	for (i = 0; i < w->nloaders; i++)
		if (hash_get(&w->links, (uint64_t)parent, i)) /* the parent may have ended already; its entry remains */
			hook(w, child, &w->loaders[i]);
}

/* Closes the links of a process, or of all if tgid is 0. */
static void unhook(struct watch *w, pid_t tgid, bool wait)
{
	struct buf fds = {0};
	struct hash_entry *h;
	size_t pos = 0;
	int fd;

	while ((h = hash_next(&w->links, &pos))) {
		fd = (int)h->val - 1;
		if ((!tgid || h->a == (uint64_t)tgid) && fd >= 0 && !buf_put(&fds, &fd, sizeof(fd)))
			h->val = 0;
	}
	backend_close(&fds, wait);
}

void watch_forget(struct watch *w, pid_t tgid)
{
	uint64_t link;
	unsigned i;

	unhook(w, tgid, false);
	for (i = 0; i < w->nloaders; i++)
		hash_del(&w->links, (uint64_t)tgid, i, &link);
}

int watch_targets_fd(const struct watch *w)
{
	return bpf_map__fd(w->skel->maps.targets);
}

void watch_cover(struct watch *w)
{
	__atomic_store_n(&w->skel->bss->covering, 1, __ATOMIC_SEQ_CST);
}

void watch_tell_all(struct watch *w)
{
	w->any_process = w->backend->shares;
	__atomic_store_n(&w->skel->bss->telling_all, 1, __ATOMIC_SEQ_CST);
}

bool watch_hooks_all(const struct watch *w)
{
	return w->any_process;
}

uint64_t watch_execs(const struct watch *w, pid_t tgid)
{
	struct mxbpf_watched value;
	__u32 key = (__u32)tgid;

	if (!bpf_map_lookup_elem(bpf_map__fd(w->skel->maps.watched), &key, &value))
		return value.execs;
	return errno == ENOENT ? WATCH_ENDED : WATCH_UNKNOWN;
}

int watch_fd(const struct watch *w)
{
	return ring_buffer__epoll_fd(w->sightings);
}

void watch_take(struct watch *w, watch_fn fn, void *ctx)
{
	w->fn = fn;
	w->ctx = ctx;
	ring_buffer__consume(w->sightings);
}

void watch_stop(struct mxbpf_sighting *s)
{
	s->stopped |= !kill((pid_t)s->tgid, SIGSTOP);
}

void watch_continue(const struct mxbpf_sighting *s)
{
	if (s->stopped)
		kill((pid_t)s->tgid, SIGCONT);
}

uint64_t watch_missed(const struct watch *w)
{
	return w->skel->bss->missed + w->no_room;
}

void watch_close(struct watch *w)
{
	unsigned i;

	if (!w)
		return;
	if (w->sightings) {
		__atomic_store_n(&w->skel->data->watching, 0, __ATOMIC_SEQ_CST);
		backend_grace(); /* wait for programs that still saw watching == 1 */
		watch_take(w, let_go, NULL);
		ring_buffer__free(w->sightings);
	}
	unhook(w, 0, true);
	watch_bpf__destroy(w->skel);
	for (i = 0; i < w->nloaders; i++)
		close(w->loaders[i].fd);
	hash_fini(&w->links);
	if (w->guard_fd >= 0)
		close(w->guard_fd);
	if (w->guard > 0)
		waitpid(w->guard, NULL, 0);
	free(w);
}
