// SPDX-License-Identifier: Apache-2.0
/* Builds of runtimes: their BPF objects, their sources, and which process has which build. */
#include "targets/builds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/watch.h"
#include "base/fmt.h"
#include "feature/counters/counters.h"
#include "session/priv.h"
#include "source/rings.h"
#include "targets/targets.h"

static void on_symbols(void *ctx, const char *text)
{
	ses_warn(ctx, "%s", text);
}

/* Without Python frames the session goes on. */
int ses_build_symbols(struct ses_build *b, struct err *e)
{
	const bool stacks = b->details & MXBPF_DETAIL_STACK;
	struct session *ses = b->ses;
	const struct sym_opts so = {.target = b->of->tgt,
				    .plan = &b->of->plan,
				    .model = ses->model,
				    .warn = stacks ? on_symbols : NULL,
				    .ctx = b->ses,
				    .apart = b->number};
	struct err why = {0};

	b->symbols = sym_new(&so);
	if (!b->symbols || (ses->o->sample_hz && sym_samples_open(b->symbols)))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if ((!stacks && !ses->o->sample_hz) || !sym_python_open(b->symbols, &why))
		return 0;
	if (!stacks) {
		ses_detail(ses, "samples have no Python frames: %s", why.why);
		return 0;
	}
	err_set(e, why.cls, why.code, "--py-stacks: process %d (%s): %s", tgt_pid(b->of->tgt), tgt_comm(b->of->tgt),
		why.why);
	b->details &= ~(unsigned)MXBPF_DETAIL_STACK;
	if (b == ses->first)
		ses->details &= ~(unsigned)MXBPF_DETAIL_STACK;
	return ses_refuse(ses, e);
}

/* Switches divide the time in which GPUs wait for the program. The limit of slices does not count what they cost. */
static bool divides_idle(const struct session *ses)
{
	return ses->o->gpu && !ses->o->slices;
}

int ses_build_load(struct ses_build *b, struct err *e)
{
	const struct ses_opts *o = b->ses->o;
	struct watch *watch = ses_follow_watch(b->ses);
	const struct att_opts ao = {
		.backend = o->backend,
		.ring_bytes = (uint32_t)o->ring_bytes,
		.details = b->details,
		.account = !o->no_account,
		.agent = o->agent,
		.few_calls = o->agent && !b->number, /* the agent works with the first build only */
		.teams = o->omp,
		.life = o->life,
		.held = o->memory,
		.python = sym_python(b->symbols),
		.counters = counters_counted(b->ses),
		.samples = o->sample_hz,
		.iterations = o->iterations,
		.sliced = o->slices,
		.scans = o->slices || o->exact,
		.follow_app = o->follow_app,
		.sched_spans = o->sched,
		.sched = o->sched || ((o->agent || divides_idle(b->ses)) && !o->no_account),
		.verbose = o->verbose,
		.targets_fd = watch ? watch_targets_fd(watch) : 0,
		.build = b->number,
		.sister = b->number ? b->ses->first->att : NULL,
	};
	struct att *att;

	if (b->of->plan.known_said[0])
		ses_detail(b->ses, "%s", b->of->plan.known_said);
	if (att_load(&b->of->plan, tgt_pid(b->of->tgt), &ao, &att, e))
		return e->code;
	b->att = att;
	sym_attached(b->symbols, att);
	return 0;
}

int ses_build_sources(struct ses_build *b, struct err *e)
{
	unsigned i;

	for (i = 0; i < ATT_RINGS; i++) {
		if (att_ring_fd(b->att, i) < 0)
			continue;
		if (b->number && asprintf(&b->ring_names[i], "%s of %s", src_ring_name(i), b->title) < 0)
			b->ring_names[i] = NULL;
		b->rings[i] = src_add_ring(b->ses->hub, b->att, i, b->ring_names[i]);
		if (!b->rings[i])
			return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	return 0;
}

/* Options that work with one build of a session, and not with a further one. */
static const char *only_of_one(const struct ses_opts *o)
{
	if (o->iterations)
		return "--iterations";
	return o->follow_app ? "--follow-app" : NULL;
}

/* Details are read where the build has them; the notes say where it does not. */
static void choose_details(struct ses_build *b)
{
	const unsigned of_all = MXBPF_DETAIL_THREAD, has = b->of->plan.details | of_all;

	b->details = b->ses->details & has;
	if (b->ses->o->details & ~has)
		ses_add_note(&b->ses->about, "details", "spans of %s lack details that spans of %s have", b->title,
			     b->ses->first->title);
}

static int open_build(struct ses_build *b, struct ses_target *of, struct err *e)
{
	struct session *ses = b->ses;
	const char *option = only_of_one(ses->o);

	if (option)
		return err_set(e, ERR_USAGE, -E2BIG,
			       "%s works with one build of a runtime, and the session began with %s", option,
			       ses->first->title);
	if (ses_features_check(ses, of, e))
		return e->code;
	choose_details(b);
	if (ses_build_symbols(b, e) || ses_build_load(b, e))
		return e->code;
	if (att_shares(ses->first->att) && att_share(b->att, &of->plan, e))
		return e->code;
	if (ses_build_sources(b, e) || src_open_more(ses->hub, e) ||
	    (ses->o->sample_hz && att_clocks_start(b->att, ses->o->sample_hz, e)))
		return e->code;
	if (ses_describe_build(b))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (att_active_since_ns(ses->first->att))
		att_activate(b->att, true);
	return 0;
}

static void builds_fini(struct ses_build *b)
{
	unsigned i;

	if (b->ses)
		ses_late_free(b);
	sym_free(b->symbols);
	att_free(b->att);
	for (i = 0; i < ATT_RINGS; i++)
		free(b->ring_names[i]);
	free(b->title);
	*b = (struct ses_build){0};
}

/* Another build of the same version has the same title otherwise. */
static char *title_of(const struct session *ses, const struct plan *p)
{
	char title[128], id[2 * ELF_BUILD_ID_MAX + 1], *text;
	const struct ses_build *b;

	fmt_hex(p->lib->build_id, p->lib->build_id_bytes, id);
	snprintf(title, sizeof(title), "%s %s", p->adp->title, p->version ? p->version : "(unknown build)");
	SES_EACH_BUILD(ses, b)
	if (b->title && !strcmp(b->title, title))
		return asprintf(&text, "%s, build %.8s", title, id) < 0 ? NULL : text;
	return strdup(title);
}

int ses_build_title(struct ses_build *b)
{
	b->title = title_of(b->ses, &b->of->plan);
	return b->title ? 0 : -ENOMEM;
}

struct ses_build *ses_build_add(struct session *ses, struct ses_target *of, struct err *e)
{
	struct ses_build *b = &ses->builds[ses->nbuilds < SES_BUILDS_MAX ? ses->nbuilds : 0];
	unsigned i;

	if (ses->nbuilds == SES_BUILDS_MAX || b->att) { /* or the hub has sources of one that failed */
		err_set(e, ERR_RUNTIME, -E2BIG, "a session can follow at most %d builds of runtimes", SES_BUILDS_MAX);
		return NULL;
	}
	*b = (struct ses_build){.ses = ses, .number = ses->nbuilds, .of = of, .late.counts = ses->o->gpu};
	if (ses_build_title(b))
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else if (!open_build(b, of, e)) {
		__atomic_store_n(&ses->nbuilds, ses->nbuilds + 1, __ATOMIC_RELEASE);
		return b;
	}
	for (i = 0; i < ATT_RINGS; i++)
		if (b->rings[i]) /* the hub has the source, which uses the object until the end */
			return NULL;
	builds_fini(b);
	return NULL;
}

void ses_builds_free(struct session *ses)
{
	unsigned i;

	for (i = 0; i < SES_BUILDS_MAX; i++)
		builds_fini(&ses->builds[i]);
}

struct ses_build *ses_build_of(const struct session *ses, uint32_t tgid)
{
	const bool several = __atomic_load_n(&ses->nbuilds, __ATOMIC_ACQUIRE) > 1;
	const struct ses_process *p = several ? ses_process_of(ses, tgid) : NULL;

	return p && p->of ? p->of->build : ses->first;
}

struct ses_build *ses_build_of_plan(const struct plan *p)
{
	return ((const struct ses_target *)((const char *)p - offsetof(struct ses_target, plan)))->build;
}

struct ses_build *ses_build_of_source(const struct session *ses, unsigned number)
{
	struct ses_build *b;
	unsigned i;

	SES_EACH_BUILD(ses, b)
	for (i = 0; i < ATT_RINGS; i++)
		if (b->rings[i] && b->rings[i]->number == number)
			return b;
	return NULL;
}

uint64_t ses_hits(const struct session *ses)
{
	const struct ses_build *b;
	uint64_t sum = 0;

	SES_EACH_BUILD(ses, b)
	sum += att_hits(b->att);
	return sum;
}

void ses_activate(struct session *ses, bool on)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	att_activate(b->att, on);
}

void ses_detach(struct session *ses)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	att_detach(b->att);
}

void ses_forget(struct session *ses)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	att_forget(b->att, 0);
}

unsigned ses_open_count(const struct session *ses)
{
	const struct ses_build *b;
	unsigned sum = 0;

	SES_EACH_BUILD(ses, b)
	sum += att_open_spans(b->att, NULL, NULL);
	return sum;
}
