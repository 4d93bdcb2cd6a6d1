// SPDX-License-Identifier: Apache-2.0
/* Compares what is no time: the machine, the versions, the options, and how calls were recorded. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "compare/compare.h"
#include "feature/machine/machine.h"
#include "mxbpf_config.h"

#define BUILD_ID_CHARS 12
#define TEXT_BYTES     400 /* bytes of a command line that are shown */

static void put_sep(struct buf *b)
{
	if (b->len)
		buf_printf(b, ", ");
}

/* ---- texts: they differ, or they do not */

static void say_host(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "%s", r->s->hostname);
}

static void say_boot(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "boot %.8s", r->s->boot_id ? r->s->boot_id : "");
}

static void say_cpu_model(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "%s", r->s->cpu_model ? r->s->cpu_model : "");
}

static void say_kernel(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "%s", r->s->kernel ? r->s->kernel : "");
}

static void say_python(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "%s", r->s->python ? r->s->python : "");
}

static void say_cpus(const struct cmp_run *r, struct buf *b)
{
	if (r->found.facts.cpus)
		buf_printf(b, "%u of %u CPUs", r->found.facts.allowed_cpus, r->found.facts.cpus);
}

static void say_runtimes(const struct cmp_run *r, struct buf *b)
{
	size_t i;

	for (i = 0; i < r->s->nlibs; i++) {
		if (!r->s->libs[i].runtime[0])
			continue;
		put_sep(b);
		buf_printf(b, "%s", r->s->libs[i].runtime);
	}
}

static void say_builds(const struct cmp_run *r, struct buf *b)
{
	size_t i;

	for (i = 0; i < r->s->nlibs; i++) {
		if (!r->s->libs[i].runtime[0] || !r->s->libs[i].build_id[0])
			continue;
		put_sep(b);
		buf_printf(b, "%.*s", BUILD_ID_CHARS, r->s->libs[i].build_id);
	}
}

static void say_command(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "%.*s", TEXT_BYTES, r->s->cmdline);
}

static void say_processes(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "%zu", r->s->nlabels ? r->s->nlabels : 1);
	if (r->s->world_size)
		buf_printf(b, " of a job of %" PRIu32, r->s->world_size);
}

static void say_mxbpf(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "%s", r->s->mxbpf_version);
}

static void say_method(const struct cmp_run *r, struct buf *b)
{
	if (r->s->profiler)
		buf_printf(b, "%s", r->s->profiler);
	else
		buf_printf(b, "%s%s%s", r->s->agent_route ? "agent" : "probes", r->s->account ? "" : ", --no-account",
			   r->s->stats ? ", --stats" : "");
}

/* Says whether the cost is known. It is not in an incomplete recording, whose times are therefore longer. */
static void say_cost(const struct cmp_run *r, struct buf *b)
{
	buf_printf(b, "%s", r->s->cost.scale ? "yes" : "no, it is not known");
}

static void say_options(const struct cmp_run *r, struct buf *b)
{
	static const struct {
		unsigned detail;
		const char *option;
	} details[] = {{MXBPF_DETAIL_ARGS, "--shapes"},
		       {MXBPF_DETAIL_STACK, "--py-stacks"},
		       {MXBPF_DETAIL_SEQ, "--backward"},
		       {MXBPF_DETAIL_LAYER, "--layers"}};
	const struct mdl_session *s = r->s;
	const struct {
		bool on;
		const char *option;
	} others[] = {{s->sched, "--sched"},	      {s->life, "--life"},	  {s->held, "--memory"},
		      {s->team_cpus, "--omp"},	      {s->sample_hz, "--sample"}, {s->ncounters, "--counters"},
		      {s->iterations, "--iterations"}};
	size_t i;

	for (i = 0; i < sizeof(details) / sizeof(details[0]); i++)
		if (s->details & details[i].detail)
			buf_printf(b, "%s%s", b->len ? " " : "", details[i].option);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].on)
			buf_printf(b, "%s%s", b->len ? " " : "", others[i].option);
	if (s->features)
		buf_printf(b, "%sfeatures 0x%" PRIx32, b->len ? " " : "", s->features);
	for (i = 0; i < s->nnotes; i++) /* --ops and others that leave calls out */
		if (!strcmp(s->notes[i].name, "ops"))
			buf_printf(b, "%s%s", b->len ? "; " : "", s->notes[i].text);
}

static const struct {
	const char *key, *what;
	void (*say)(const struct cmp_run *r, struct buf *b);
	bool newer; /* older recordings lack it, so an empty side is no difference */
	bool own;   /* traces of other profilers do not have it */
} texts[] = {
	{"host", "machine", say_host, false, true},
	{"cpu_model", "model of the CPU", say_cpu_model, true, false},
	{"kernel", "kernel", say_kernel, true, false},
	{"boot", "kernel was started again", say_boot, false, true},
	{"cpus", "CPUs that the job may use", say_cpus, false, true},
	{"runtime", "runtime", say_runtimes, false, true},
	{"build", "build of the runtime", say_builds, false, true},
	{"python", "Python", say_python, true, false},
	{"command", "command", say_command, false, true},
	{"processes", "processes", say_processes, false, false},
	{"mxbpf", "version of mxbpf", say_mxbpf, false, true},
	{"method", "how calls were recorded", say_method, false, false},
	{"cost", "profiling overhead is taken out", say_cost, false, true},
	{"options", "options of the recording", say_options, false, true},
};

/* ---- numbers: they differ if they are far apart */

static double of_duration(const struct cmp_run *r)
{
	return (double)r->s->duration_ns / 1e9;
}

static double of_cost(const struct cmp_run *r)
{
	return 100 * r->found.facts.watching;
}

static double of_lost(const struct cmp_run *r)
{
	return 100 * facts_share((double)r->s->loss.dropped, (double)r->s->loss.attempted);
}

/* Returns how many percent of the time of all CPUs other processes used. */
static double of_others(const struct cmp_run *r)
{
	const struct facts *f = &r->found.facts;

	return 100 * facts_share((double)f->others_cpu_ns, (double)f->cpu_elapsed_ns * (f->cpus ? f->cpus : 1));
}

static double of_throttled(const struct cmp_run *r)
{
	return 100 * r->found.facts.throttled;
}

static double of_stolen(const struct cmp_run *r)
{
	return 100 * r->found.facts.stolen;
}

static double of_khz(const struct cmp_run *r)
{
	const struct machine_row *row = machine_row(r->m, MXBPF_GAUGE_CPU_KHZ, 0);

	return row && row->count ? (double)row->sum / (double)row->count / 1000 : 0;
}

static const struct {
	const char *key, *what, *unit;
	double (*of)(const struct cmp_run *r);
	double apart;  /* smaller differences say nothing; in the unit of the number */
	double factor; /* nor do smaller ratios; 0: every ratio counts */
	bool own;      /* traces of other profilers do not have it */
} numbers[] = {
	{"duration", "length of the recordings", " s", of_duration, 0.5, 1.5, false},
	{"watching", "profiling overhead, which is taken out of all times", "%", of_cost, 5, 1.3, true},
	{"lost", "events that were lost", "%", of_lost, 0, 0, false},
	{"others", "CPU time that other processes took", "%", of_others, 10, 0, true},
	{"throttled", "time in which the job was throttled", "%", of_throttled, 1, 0, true},
	{"stolen", "CPU time that the hypervisor took", "%", of_stolen, 1, 0, true},
	{"frequency", "frequency of the busy CPUs", " MHz", of_khz, 0, 1.03, true},
};

static int add_difference(struct cmp_result *r, const char *key, const char *what, struct buf text[CMP_SIDES])
{
	struct cmp_difference d = {.key = key, .what = what};
	unsigned side;

	for (side = 0; side < CMP_SIDES; side++) {
		d.text[side] = strndup(text[side].len ? text[side].data : "none", text[side].len ? text[side].len : 4);
		if (!d.text[side]) {
			free(d.text[CMP_A]);
			return -ENOMEM;
		}
	}
	if (!buf_put(&r->differences, &d, sizeof(d)))
		return 0;
	free(d.text[CMP_A]);
	free(d.text[CMP_B]);
	return -ENOMEM;
}

/* Appends what the recordings of a side say, each text once. */
static void context_collect(const struct cmp_sides *of, unsigned side, size_t row, struct buf *all)
{
	struct buf one = {0};
	unsigned i;

	for (i = 0; i < of->n[side]; i++) {
		one.len = 0;
		texts[row].say(&of->run[side][i], &one);
		if (!one.len || (all->len && memmem(all->data, all->len, one.data, one.len)))
			continue;
		if (all->len)
			buf_printf(all, " | ");
		buf_put(all, one.data, one.len);
	}
	all->lacks |= one.lacks;
	buf_fini(&one);
}

static bool has_foreign(const struct cmp_sides *of)
{
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < of->n[side]; i++)
			if (of->run[side][i].s->profiler)
				return true;
	return false;
}

static int compare_texts(const struct cmp_sides *of, struct cmp_result *r)
{
	const bool foreign = has_foreign(of);
	struct buf t[CMP_SIDES] = {{0}};
	size_t i;
	int err = 0;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]) && !err; i++) {
		if (texts[i].own && foreign)
			continue;
		t[CMP_A].len = t[CMP_B].len = 0;
		context_collect(of, CMP_A, i, &t[CMP_A]);
		context_collect(of, CMP_B, i, &t[CMP_B]);
		if (t[CMP_A].lacks || t[CMP_B].lacks)
			err = -ENOMEM;
		else if (texts[i].newer && (!t[CMP_A].len || !t[CMP_B].len))
			continue;
		else if (t[CMP_A].len != t[CMP_B].len ||
			 (t[CMP_A].len && memcmp(t[CMP_A].data, t[CMP_B].data, t[CMP_A].len)))
			err = add_difference(r, texts[i].key, texts[i].what, t);
	}
	buf_fini(&t[CMP_A]);
	buf_fini(&t[CMP_B]);
	return err;
}

static int compare_numbers(const struct cmp_sides *of, struct cmp_result *r)
{
	const bool foreign = has_foreign(of);
	struct buf t[CMP_SIDES] = {{0}};
	double v[CMP_SIDES], low, high;
	unsigned side, k;
	size_t i;
	int err = 0;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && !err; i++) {
		if (numbers[i].own && foreign)
			continue;
		for (side = 0; side < CMP_SIDES; side++) {
			v[side] = 0;
			for (k = 0; k < of->n[side]; k++)
				v[side] += numbers[i].of(&of->run[side][k]) / of->n[side];
			t[side].len = 0;
			buf_printf(&t[side], "%.3g%s", v[side], numbers[i].unit);
		}
		low = v[CMP_A] < v[CMP_B] ? v[CMP_A] : v[CMP_B];
		high = v[CMP_A] < v[CMP_B] ? v[CMP_B] : v[CMP_A];
		if (t[CMP_A].lacks || t[CMP_B].lacks)
			err = -ENOMEM;
		else if (high - low > numbers[i].apart && high > low * numbers[i].factor)
			err = add_difference(r, numbers[i].key, numbers[i].what, t);
	}
	buf_fini(&t[CMP_A]);
	buf_fini(&t[CMP_B]);
	return err;
}

/* ---- findings and shapes that only one side has */

static const struct finding *finding_of(const struct cmp_run *run, const char *key)
{
	unsigned i;

	for (i = 0; i < run->found.n; i++)
		if (!strcmp(run->found.list[i].rule->key, key))
			return &run->found.list[i];
	return NULL;
}

static bool has_finding(const struct cmp_sides *of, unsigned side, const char *key)
{
	unsigned i;

	for (i = 0; i < of->n[side]; i++)
		if (finding_of(&of->run[side][i], key))
			return true;
	return false;
}

/* A finding counts if the other side has it in no recording, and its own side in every one. */
static int compare_findings(const struct cmp_sides *of, unsigned side, struct cmp_result *r)
{
	const struct cmp_run *first = &of->run[side][0];
	const struct finding *f;
	bool all;
	unsigned i, k;
	int err = 0;

	for (i = 0; i < first->found.n && !err; i++) {
		f = &first->found.list[i];
		all = true;
		for (k = 1; k < of->n[side]; k++)
			all &= finding_of(&of->run[side][k], f->rule->key) != NULL;
		if (all && !has_finding(of, !side, f->rule->key))
			err = buf_put(&r->findings, &(struct cmp_finding){f, (enum cmp_which)side},
				      sizeof(struct cmp_finding));
	}
	return err;
}

/* by_name: returns whether the operator has any shape; else whether it has this very shape. */
static bool has_shape(const struct cmp_sides *of, unsigned side, const struct cmp_shape *shape, bool by_name)
{
	const struct cmp_shape *s;
	unsigned k;
	size_t i;

	for (k = 0; k < of->n[side]; k++)
		for (i = 0; i < buf_count(&of->run[side][k].x.shapes, *s); i++) {
			s = buf_at(&of->run[side][k].x.shapes, struct cmp_shape, i);
			if (by_name ? s->name_key == shape->name_key : s->key == shape->key)
				return true;
		}
	return false;
}

static int compare_shapes(const struct cmp_sides *of, unsigned side, struct cmp_result *r)
{
	const struct buf *shapes = &of->run[side][0].x.shapes;
	const struct cmp_shape *s;
	size_t i;
	int err = 0;

	for (i = 0; i < buf_count(shapes, *s) && !err; i++) {
		s = buf_at(shapes, struct cmp_shape, i);
		if (has_shape(of, !side, s, true) && !has_shape(of, !side, s, false))
			err = buf_put(&r->shapes, &(struct cmp_new_shape){s, (enum cmp_which)side},
				      sizeof(struct cmp_new_shape));
	}
	return err;
}

int cmp_context(const struct cmp_sides *of, struct cmp_result *r)
{
	unsigned side;
	int err = compare_texts(of, r);

	if (!err)
		err = compare_numbers(of, r);
	for (side = 0; side < CMP_SIDES && !err; side++) {
		err = r->mixed ? 0 : compare_findings(of, side, r); /* not all profilers see what findings need */
		if (!err)
			err = compare_shapes(of, side, r);
	}
	return err;
}
