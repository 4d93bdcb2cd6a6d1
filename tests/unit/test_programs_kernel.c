/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the kernel accepts every possible program, with a margin to the limit of its verifier. On other kernels
 * this is the only test of rows, because the runtimes are not installed there.
 */
#include "agent/seccomp.h"
#include "verified.h"

#include "adapter/adapter.h"
#include "agent.skel.h"
#include "attach/attach.h"
#include "attach/regs.h"
#include "attach/watch.h"
#include "feature/counters/events.h"
#include "inject.skel.h"

#define AT_ONCE 30 /* as many as perf allows, and less than the table can hold */

static const char *backend;

/* A row of an adapter, either as it is or with the layout of another build of the library. */
struct row {
	const struct adp_probe *probe;
	struct mxbpf_row row;
};

/* Actions that no adapter has: the planner's own, and those of OpenMP runtimes. */
static const enum mxbpf_action actions[] = {
	MXBPF_ACT_CLOSE_CUT, MXBPF_ACT_ALLOCATED, MXBPF_ACT_OMP_OPEN,  MXBPF_ACT_OMP_BEGIN, MXBPF_ACT_OMP_WAIT,
	MXBPF_ACT_OMP_CLOSE, MXBPF_ACT_OMP_JOIN,  MXBPF_ACT_OMP_LEAVE, MXBPF_ACT_COUNT,
};

/* The verifier's work does not depend on the argument or on offsets. */
static void outline_fetch(struct mxbpf_fetch *f)
{
	if (f->base >= MXBPF_BASE_ARG1 && f->base <= MXBPF_BASE_ARG6)
		f->base = MXBPF_BASE_ARG1;
	memset(f->off, 0, sizeof(f->off));
}

/* Returns the part of a row on which the verifier's work depends: which reads it has and what they lead to. */
static struct mxbpf_row outline(struct mxbpf_row r)
{
	struct mxbpf_fetch *fetches[] = {&r.name,  &r.key,	&r.device, &r.size,	  &r.link,
					 &r.guard, &r.alt_name, &r.seq,	   &r.seq_thread, &r.layer};
	unsigned i;

	for (i = 0; i < sizeof(fetches) / sizeof(fetches[0]); i++)
		outline_fetch(fetches[i]);
	r.inputs_off = !!r.inputs_off;
	r.outputs_off = !!r.outputs_off;
	r.reqs_after = !!r.reqs_after;
	r.name_tag = 0;
	return r;
}

/* Adds a row unless one with the same outline is there. */
static void add(struct row *rows, unsigned *n, unsigned max, const struct adp_probe *p, struct mxbpf_row r)
{
	struct mxbpf_row its = outline(r), other;
	unsigned i;

	for (i = 0; i < *n; i++) {
		other = outline(rows[i].row);
		if (rows[i].probe->each_lib == p->each_lib && !rows[i].probe->iteration == !p->iteration &&
		    !memcmp(&other, &its, sizeof(its)))
			return;
	}
	if (*n < max)
		rows[(*n)++] = (struct row){p, r};
}

/* Collects the rows of all adapters. A row that several adapters share is added once. */
static unsigned all_rows(struct row *rows, unsigned max)
{
	const struct adp *a;
	const struct adp_layout *l;
	struct mxbpf_row row;
	unsigned i, k, n = 0;

	for (i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		add(rows, &n, max, &adapter_openmp, (struct mxbpf_row){.action = actions[i]});
	for (k = 0; (a = adapters[k]); k++)
		for (i = 0; i < a->nprobes; i++) {
			add(rows, &n, max, &a->probes[i], a->probes[i].row);
			for (l = a->probes[i].layouts; l && l->version; l++) {
				row = l->row;
				row.bulk_id = !!l->bulk;
				add(rows, &n, max, &a->probes[i], row);
			}
		}
	return n;
}

/* Session options. endless: cuts do not hold. */
struct way {
	bool everything, endless;
	const char *how;
};

/* The counters that every machine has, as many as a session may read. */
static unsigned some_counters(void)
{
	unsigned i, mask = 0;

	for (i = 0; ctr_name(i); i++)
		if (!strcmp(ctr_name(i), "task-clock") || !strcmp(ctr_name(i), "page-faults"))
			mask |= 1u << i;
	return mask;
}

static bool loads(const struct row *rows, unsigned n, const struct way *w, struct err *e)
{
	const bool everything = w->everything;
	const struct mxbpf_python python = {0};
	const struct adp_array array = {"", 8, 312};
	struct att_opts o = {.backend = backend,
			     .details = everything ? ~0u : 0,
			     .counters = everything ? some_counters() : 0,
			     .python = &python,
			     .iterations = everything ? 5 : 0,
			     .follow_app = everything,
			     .teams = everything,
			     .life = everything,
			     .held = everything,
			     .sched = everything,
			     .account = everything,
			     .samples = everything};
	struct tgt_lib self = {.path = "/proc/self/exe", .open_path = "/proc/self/exe"};
	struct plan_probe probes[AT_ONCE] = {0};
	struct mxbpf_row own[AT_ONCE];
	struct plan_site sites[AT_ONCE];
	struct plan plan = {.lib = &self,
			    .array = everything ? &array : NULL,
			    .probes = probes,
			    .rows = own,
			    .nprobes = n,
			    .sites = {.data = (char *)sites, .len = n * sizeof(sites[0])}};
	struct att *att = NULL;
	unsigned i;
	int err;

	for (i = 0; i < n; i++) {
		probes[i] = (struct plan_probe){.row = rows[i].probe, .wanted = !rows[i].probe->each_lib};
		own[i] = rows[i].row;
		if (w->endless && own[i].end == MXBPF_END_CUT)
			own[i].end = MXBPF_END_NEXT;
		if (everything && rows[i].probe->iteration)
			snprintf(own[i].iteration_end, sizeof(own[i].iteration_end), "%s", rows[i].probe->iteration);
		sites[i] = (struct plan_site){.row = &own[i], .lib = &self};
	}
	err = att_load(&plan, getpid(), &o, &att, e);
	verified_now();
	att_free(att);
	return !err;
}

static bool all_load(const struct way *w, struct err *e)
{
	static struct row rows[4 * MXBPF_ROWS_MAX];
	unsigned n = all_rows(rows, 4 * MXBPF_ROWS_MAX), first, i, kept = 0;

	for (i = 0; w->endless && i < n; i++) /* the other rows do not depend on whether cuts hold */
		if (rows[i].row.end == MXBPF_END_CUT)
			rows[kept++] = rows[i];
	n = w->endless ? kept : n;
	for (first = 0; first < n; first += AT_ONCE)
		if (!loads(&rows[first], n - first < AT_ONCE ? n - first : AT_ONCE, w, e))
			return false;
	return n && n < 4 * MXBPF_ROWS_MAX;
}

static void test_backend(void)
{
	static const struct way ways[] = {
		{.how = "with calls only"},
		{.everything = true, .how = "with all options"},
		{.everything = true, .endless = true, .how = "with all options and without cuts"},
	};
	static char names[2][256]; /* two buffers, because a test's name is printed when the next test begins */
	static unsigned k;
	unsigned i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct err e = {0};

		k ^= 1;
		snprintf(names[k], sizeof(names[k]), "the kernel accepts the programs of every runtime by %s %s",
			 backend, ways[i].how);
		TEST(names[k])
		{
			CHECK(all_load(&ways[i], &e));
			if (e.code)
				printf("# %s\n", e.why);
		}
	}
}

/* Loads the programs that belong to no row: those of --follow, --agent, and stacks of waiting threads. */
static void test_others(void)
{
	struct agent_bpf *agent;
	struct inject_bpf *inject;
	struct watch *watch = NULL;
	struct regs *regs = NULL;
	struct agt_filters *filters = NULL;
	struct err e = {0};

	TEST_IF(nverified,
		"the kernel accepts the programs that watch processes, enter them, serve agents, and read "
		"registers and filters",
		"none can be loaded")
	{
		CHECK(!watch_open(true, 1024, NULL, false, &watch, &e));
		CHECK(!regs_open(getpid(), &regs, &e));
		CHECK(!agt_filters_open(&filters, &e));
		CHECK((agent = agent_bpf__open_and_load()));
		CHECK((inject = inject_bpf__open_and_load()));
		verified_now();
		inject_bpf__destroy(inject);
		agent_bpf__destroy(agent);
		agt_filters_close(filters);
		regs_close(regs);
		watch_close(watch);
		if (e.code)
			printf("# %s\n", e.why);
	}
}

/* Other kernels need more instructions for the same program: Linux 6.1 needs 1.5 times those of 6.12 for the largest.
 */
static void test_margin(void)
{
	unsigned most = verified_print();

	TEST_IF(most, "each program needs less than a quarter of the instructions that the verifier allows",
		"Linux 5.16 or later counts them")
	{
		CHECK(nverified > 20 && most < VERIFIED_LIMIT / 4);
	}
}

/* Another thread's program would use the same memory if it preempts this one. */
static void test_stacks(void)
{
	TEST_IF(nverified, "no program at a uprobe keeps its stack in memory of the CPU", "none can be loaded")
	{
		CHECK(!ncpu_stacks);
	}
}

int main(void)
{
	char name[600];
	int i;

	for (i = 0; att_backends[i]; i++) {
		struct err e = {0};

		backend = att_backends[i]->name;
		if (att_backends[i]->supported(&e)) {
			snprintf(name, sizeof(name), "the kernel accepts programs of %s # SKIP %s", backend, e.why);
			TEST(name) continue;
		}
		test_backend();
	}
	test_others();
	test_margin();
	test_stacks();
	UNIT_MAIN_END;
}
