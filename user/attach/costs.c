// SPDX-License-Identifier: Apache-2.0
#include "attach/costs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/trap.h"

#define PROGRAM_NS    400 /* first estimate for a program */
#define HITS_LEAST    64  /* hits of a program before its measured time is used */
#define HITS_MANY     2000
#define FEW_MOST_NS   (2 * PROGRAM_NS)
#define IN_PLACE      145  /* per cent: time of a trap in a job, whose caches are cold, relative to one in trap.c */
#define INTERVAL_HITS 400  /* an interval of a beat has time for so many traps, so that its own hits do not matter */
#define BLOCKS_LEAST  8	   /* blocks that a variance needs */
#define RELATED_MOST  0.99 /* correlation of successive blocks */

/* The program does nothing but what each hit does. */
static const struct mxbpf_row nothing = {.action = MXBPF_ACT_NONE};

int costs_choose(struct att *a, struct err *e)
{
	unsigned i;

	a->costs.stats_fd = a->costs.beat_nr = -1;
	for (i = 0; i < MXBPF_ROWS_MAX; i++)
		*(__u8 *)&a->skel->rodata->cfg_nr[i] = (__u8)i;
	return att_choose_program(a, &nothing, false, e);
}

static void set_cost(struct att *a, unsigned nr, uint64_t program_ns)
{
	const uint64_t trap_ns = a->costs.trap_ns;
	volatile struct mxbpf_hit_cost *cost = &a->skel->bss->hit_costs[nr];

	cost->all = (uint32_t)(trap_ns + program_ns);
	cost->behind_start = (uint32_t)(trap_ns / 2);
	cost->behind_end = (uint32_t)(trap_ns - trap_ns / 2 + program_ns);
}

/* Reads how often a program ran and how long it took in all. */
static struct bpf_prog_info program_info(int fd)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		info = (struct bpf_prog_info){0};
	return info;
}

void att_costs_open(struct att *a)
{
	const int fd = att_variant_of(a, &nothing)->prog_fd;
	struct bpf_prog_info info;
	uint64_t hit_ns, program_ns;
	unsigned i;

	if (a->costs.opened)
		return;
	a->costs.opened = true;
	a->costs.stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	hit_ns = trap_hit_ns(a, fd);
	info = program_info(fd);
	att_costs_measure(a, false);
	program_ns = info.run_cnt ? info.run_time_ns / info.run_cnt : 0;
	a->costs.trap_ns = hit_ns > program_ns ? (hit_ns - program_ns) * IN_PLACE / 100 : 0;
	for (i = 0; i < a->nvariants && a->costs.trap_ns; i++)
		set_cost(a, i, PROGRAM_NS);
}

void att_costs_measure(struct att *a, bool on)
{
	a->skel->bss->places_asked = on ? MXBPF_PLACE_HITS : 0;
	if (on && a->costs.stats_fd < 0)
		a->costs.stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (!on && a->costs.stats_fd >= 0) {
		close(a->costs.stats_fd);
		a->costs.stats_fd = -1;
	}
}

bool att_costs_update(struct att *a)
{
	struct bpf_prog_info info;
	bool any = false;
	uint64_t ns;
	unsigned i;

	for (i = 0; i < a->nvariants && a->costs.trap_ns; i++) {
		if (a->variants[i].row == &nothing)
			continue;
		info = program_info(a->variants[i].prog_fd);
		if (info.run_cnt < HITS_LEAST)
			continue;
		ns = info.run_time_ns / info.run_cnt;
		if (info.run_cnt < HITS_MANY && ns > FEW_MOST_NS) /* one preempted hit would dominate so few */
			ns = FEW_MOST_NS;
		set_cost(a, i, ns);
		any = true;
	}
	return any;
}

struct att_costs att_costs(const struct att *a)
{
	struct att_costs c = {.trap_ns = a->costs.trap_ns};
	unsigned i;

	for (i = 1; i < MXBPF_THREADS_MAX && i < a->nslots; i++) {
		const struct mxbpf_thread *t = &a->threads[i];

		c.added_ns += t->cost_ns;
		if (t->cost_ns > c.thread_ns) {
			c.thread_ns = t->cost_ns;
			c.tgid = t->tgid;
			c.tid = t->tid;
		}
	}
	return c;
}

uint64_t att_costs_grown(const struct att *a, uint64_t before[MXBPF_THREADS_MAX])
{
	uint64_t most = 0, ns;
	unsigned i;

	for (i = 1; i < MXBPF_THREADS_MAX && i < a->nslots; i++) {
		ns = a->threads[i].cost_ns - before[i];
		before[i] += ns;
		most = ns > most ? ns : most;
	}
	return most;
}

/* ---- beats */

struct candidate {
	struct mxbpf_place place;
	uint64_t hits;
};

static int by_hits(const void *va, const void *vb)
{
	const struct candidate *a = va, *b = vb;

	return a->hits < b->hits ? -1 : a->hits > b->hits;
}

/* Reads the places of a thread, those with the fewest hits first. Returns their number. */
static size_t read_places(struct att *a, uint32_t tgid, uint32_t tid, struct candidate *all, size_t max)
{
	const int fd = bpf_map__fd(a->skel->maps.places);
	struct mxbpf_place place, *last = NULL;
	__u64 hits;
	size_t n = 0;

	for (; n < max && !bpf_map_get_next_key(fd, last, &place); last = &place)
		if (place.tgid == tgid && place.tid == tid && !bpf_map_lookup_elem(fd, &place, &hits))
			all[n++] = (struct candidate){place, hits * MXBPF_PLACE_HITS};
	qsort(all, n, sizeof(*all), by_hits);
	return n;
}

unsigned att_beats_start(struct att *a, uint32_t tgid, uint32_t tid, uint64_t window_ns)
{
	const uint64_t most = a->costs.trap_ns ? window_ns / (a->costs.trap_ns * INTERVAL_HITS) : 0;
	struct candidate *all = calloc(MXBPF_PLACES_MAX, sizeof(*all));
	size_t n = all ? read_places(a, tgid, tid, all, MXBPF_PLACES_MAX) : 0, i, step;
	unsigned used = 0;

	while (n > 1 && all[n - 1].hits > most) /* if all places are hit too often, use the rarest */
		n--;
	step = n > MXBPF_BEATS_MAX ? n / MXBPF_BEATS_MAX : 1;
	for (i = 0; i < n && used < MXBPF_BEATS_MAX; i += step)
		a->skel->bss->beats[used++] = (struct mxbpf_beat){.ip = all[i].place.ip, .tgid = tgid, .tid = tid};
	free(all);
	__atomic_store_n(&a->skel->bss->beats_used, used, __ATOMIC_SEQ_CST);
	return used;
}

double att_beat_error2(const struct mxbpf_beat *b)
{
	const double n = (double)b->blocks, mean = (double)b->means / n;
	const double variance = (double)b->squares / n - mean * mean;

	if (b->blocks < BLOCKS_LEAST || mean < 1)
		return 1;
	return (variance > 0 ? variance : 0) / (mean * mean) / n;
}

double att_beat_drift2(const struct mxbpf_beat *b, uint64_t blocks)
{
	const double n = (double)b->blocks, mean = (double)b->means / n;
	const double variance = (double)b->squares / n - mean * mean;
	double related, most;

	if (b->blocks < BLOCKS_LEAST || mean < 1 || variance <= 0 || !blocks)
		return 0;
	related = ((double)b->products / (n - 1) - mean * mean) / variance;
	related = related < 0 ? 0 : related > RELATED_MOST ? RELATED_MOST : related;
	most = (1 + related) / (1 - related) / (double)blocks;
	return variance / (mean * mean) * (most < 1 ? most : 1);
}

bool att_beats_choose(struct att *a, double error)
{
	struct mxbpf_beat *beats = a->skel->bss->beats;
	uint64_t most = 0;
	int best = -1, i;

	for (i = 0; i < MXBPF_BEATS_MAX; i++)
		if (beats[i].ip && beats[i].n &&
		    (best < 0 || att_beat_error2(&beats[i]) < att_beat_error2(&beats[best])))
			best = i;
	if (best >= 0 && att_beat_error2(&beats[best]) > error * error)
		return false;
	for (i = 0; i < MXBPF_BEATS_MAX && best >= 0; i++)
		if (i != best && beats[i].ip && beats[i].n > most) {
			most = beats[i].n;
			a->costs.second_ip = beats[i].ip;
			a->costs.second_ratio = (double)most / (double)beats[best].n;
		}
	for (i = 0; i < MXBPF_BEATS_MAX; i++)
		if (i != best)
			__atomic_store_n(&beats[i].ip, 0, __ATOMIC_SEQ_CST);
	a->skel->bss->beats_used = best >= 0;
	a->costs.beat_nr = best;
	return best >= 0;
}

struct mxbpf_beat att_beat(const struct att *a)
{
	static const struct mxbpf_beat none;

	return a->costs.beat_nr < 0 ? none : a->skel->bss->beats[a->costs.beat_nr];
}

/* Finds the probe at an address of the process. */
static const struct plan_site *site_at(const struct plan *p, uint64_t ip)
{
	size_t n, i;
	const struct plan_site *sites = sites_of(p, &n);
	uint64_t va;

	for (i = 0; i < n; i++)
		if (!elf_off_va(sites[i].lib->elf, sites[i].off, &va) && va + sites[i].lib->load_bias == ip)
			return &sites[i];
	return NULL;
}

/* Probes one place of a process with the program that does nothing. Returns 0 or -errno. */
static int probe_place(struct att *a, const struct plan *p, uint64_t ip, uint32_t tgid)
{
	const struct plan_site *site = site_at(p, ip);
	struct att_link *link = site ? buf_add(&a->links, sizeof(*link)) : NULL;
	const uint64_t cookie = a->shared ? MXBPF_COOKIE_SHARED : 0; /* hits of other links do not count */
	int fd, made;

	if (!link)
		return -ENOENT;
	made = a->backend->attach(att_variant_of(a, &nothing)->prog_fd, site->lib->open_path, &site->off, &cookie, 1,
				  (pid_t)tgid, &fd);
	if (made != 1) {
		a->links.len -= sizeof(*link);
		return made < 0 ? made : -EIO;
	}
	*link = (struct att_link){.tgid = (pid_t)tgid, .fd = fd};
	return 0;
}

int att_beat_alone(struct att *a, const struct plan *p, uint64_t *hit_ns)
{
	struct mxbpf_beat *b = a->costs.beat_nr < 0 ? NULL : &a->skel->bss->beats[a->costs.beat_nr];
	const int err = b ? probe_place(a, p, b->ip, b->tgid) : -ENOENT;

	*hit_ns = a->costs.trap_ns + PROGRAM_NS;
	if (!err)
		*b = (struct mxbpf_beat){.ip = b->ip, .tgid = b->tgid, .tid = b->tid};
	return err;
}

int att_beat_second(struct att *a, const struct plan *p, double *ratio)
{
	struct mxbpf_beat *b = &a->skel->bss->beats[a->costs.beat_nr];
	const int err = a->costs.second_ip ? probe_place(a, p, a->costs.second_ip, b->tgid) : -ENOENT;

	*ratio = a->costs.second_ratio;
	if (!err)
		*b = (struct mxbpf_beat){.ip = b->ip, .tgid = b->tgid, .tid = b->tid};
	return err;
}
