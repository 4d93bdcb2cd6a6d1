// SPDX-License-Identifier: Apache-2.0
/* Slices: probes of one process that are attached for a few iterations. */
#include "attach/slice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/backend.h"
#include "attach/priv.h"
#include "base/clock.h"

static volatile struct mxbpf_slice *slice_of(const struct att *a)
{
	return &a->skel->bss->slice;
}

/* The links are closed side by side: the kernel removes the probes of one, then waits for programs that run. */
static void close_links(struct att *a)
{
	size_t i, kept = 0, n = buf_count(&a->links, struct att_link);
	struct att_link *links = (struct att_link *)a->links.data;
	struct buf fds = {0};

	for (i = 0; i < n; i++)
		if (!links[i].sliced || buf_put(&fds, &links[i].fd, sizeof(links[i].fd)))
			links[kept++] = links[i];
	a->links.len = kept * sizeof(*links);
	backend_close(&fds, false);
	a->slice_links = backend_handed();
}

bool att_slice_closed(const struct att *a)
{
	return backend_has_closed(a->slice_links);
}

/* Attaches the sites of the process that are not left out, by links of the slice. */
static int attach_sites(struct att *a, const struct plan *p, uint32_t tgid, const bool *left_out, struct err *e)
{
	const size_t before = buf_count(&a->links, struct att_link);
	struct mxbpf_target target;
	size_t n, i;
	bool *done;
	int err;

	if (!att_has(a, (pid_t)tgid, &target))
		return err_set(e, ERR_TARGET, -ESRCH, "process %u has ended", tgid);
	sites_of(p, &n);
	done = calloc(n + 1, sizeof(*done));
	if (!done)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	for (i = 0; left_out && i < n; i++)
		done[i] = left_out[i];
	err = att_attach_wanted(a, p, (pid_t)tgid, done, MXBPF_COOKIE_SLICED | (target.own ? 0 : MXBPF_COOKIE_SHARED),
				e);
	for (i = before; i < buf_count(&a->links, struct att_link); i++)
		buf_at(&a->links, struct att_link, i)->sliced = true;
	free(done);
	return err;
}

int att_slice_add(struct att *a, const struct plan *p, uint32_t tgid, struct err *e)
{
	return attach_sites(a, p, tgid, NULL, e);
}

int att_slice_open(struct att *a, const struct plan *p, uint32_t tgid, const bool *left_out, unsigned iterations,
		   struct err *e)
{
	volatile struct mxbpf_slice *s = slice_of(a);
	int err;

	*s = (struct mxbpf_slice){.tgid = tgid, .left = iterations};
	err = attach_sites(a, p, tgid, left_out, e);
	if (err)
		close_links(a);
	else
		__atomic_store_n(&s->armed, 1, __ATOMIC_SEQ_CST);
	return err;
}

bool att_slice_begin(struct att *a)
{
	volatile struct mxbpf_slice *s = slice_of(a);
	__u32 armed = 1;

	if (!__atomic_compare_exchange_n(&s->armed, &armed, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return false;
	s->from_ns = clock_ns(CLOCK_MONOTONIC);
	__atomic_store_n(&s->since_ns, s->from_ns, __ATOMIC_SEQ_CST);
	return true;
}

enum att_slice_state att_slice_state(const struct att *a)
{
	const volatile struct mxbpf_slice *s = slice_of(a);

	if (s->armed)
		return ATT_SLICE_ARMED;
	return s->since_ns || !s->to_ns ? ATT_SLICE_OPEN : ATT_SLICE_OVER;
}

uint64_t att_slice_from(const struct att *a)
{
	const uint64_t from = slice_of(a)->from_ns;

	return from ? from : clock_ns(CLOCK_MONOTONIC);
}

void att_only_slices(struct att *a, bool on)
{
	a->skel->bss->calls_in_slices = on;
}

struct att_slice att_slice_close(struct att *a)
{
	volatile struct mxbpf_slice *s = slice_of(a);
	uint64_t since;

	__atomic_store_n(&s->armed, 0, __ATOMIC_SEQ_CST);
	since = s->since_ns;
	if (since &&
	    __atomic_compare_exchange_n(&s->since_ns, &since, (uint64_t)0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		s->to_ns = clock_ns(CLOCK_MONOTONIC);
	close_links(a);
	return (struct att_slice){s->from_ns, s->to_ns, s->iterations};
}

static const struct mxbpf_row seen = {.action = MXBPF_ACT_SEEN};

int slice_choose(struct att *a, struct err *e)
{
	return att_choose_program(a, &seen, false, e);
}

int att_seen_open(struct att *a, const struct plan *p, uint32_t tgid, const uint32_t *sites, uint32_t n,
		  struct buf *fds, struct err *e)
{
	size_t all;
	const struct plan_site *site = sites_of(p, &all);
	const struct tgt_lib *lib = site[sites[0]].lib;
	uint64_t *offs = calloc(2 * n, sizeof(*offs));
	int *made = buf_add(fds, n * sizeof(*made)), nmade;
	uint32_t i;

	if (!offs || !made) {
		free(offs);
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	for (i = 0; i < n; i++) {
		offs[i] = site[sites[i]].off;
		offs[n + i] = sites[i];
	}
	nmade = tgt_lib_same(lib) ? a->backend->attach(att_variant_of(a, &seen)->prog_fd, lib->open_path, offs,
						       offs + n, n, (pid_t)tgid, made)
				  : -ESTALE;
	free(offs);
	fds->len -= (n - (nmade > 0 ? (size_t)nmade : 0)) * sizeof(*made);
	if (nmade >= 0)
		return 0;
	return err_set(e, nmade == -ESRCH ? ERR_TARGET : ERR_RUNTIME, nmade, "cannot attach %u probes to %s: %s", n,
		       lib->path, strerror(-nmade));
}

void att_seen_close(struct att *a, struct buf *fds, bool wait)
{
	backend_close(fds, wait);
	*fds = (struct buf){0};
	a->slice_links = backend_handed();
}

uint32_t att_seen(const struct att *a, uint32_t site)
{
	return a->skel->bss->place_hits[site & (MXBPF_SITES_MAX - 1)];
}

void att_seen_clear(struct att *a)
{
	memset((void *)a->skel->bss->place_hits, 0, sizeof(a->skel->bss->place_hits));
}

uint64_t att_iterations(const struct att *a, uint32_t tgid)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 1; i < MXBPF_THREADS_MAX && i < a->nslots; i++)
		n += a->threads[i].tgid == tgid ? a->threads[i].iterations : 0;
	return n;
}

uint64_t att_iterations_of_thread(const struct att *a, uint32_t tgid, uint32_t tid)
{
	unsigned i;

	for (i = 1; i < MXBPF_THREADS_MAX && i < a->nslots; i++)
		if (a->threads[i].tgid == tgid && a->threads[i].tid == tid)
			return a->threads[i].iterations;
	return 0;
}

uint64_t att_costs_of(const struct att *a, uint32_t tgid)
{
	uint64_t ns = 0;
	unsigned i;

	for (i = 1; i < MXBPF_THREADS_MAX && i < a->nslots; i++)
		ns += a->threads[i].tgid == tgid ? a->threads[i].cost_ns : 0;
	return ns;
}
