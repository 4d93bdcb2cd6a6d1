// SPDX-License-Identifier: Apache-2.0
/* Samples as a profile of pprof, with the operator as root. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "view/priv.h"
#include "view/profile/profile.h"

#define NS_PER_S 1000000000ull

struct pprof {
	struct view s;
	struct view_stacks stacks;
	struct profile to;
};

static int put_sample(struct pprof *p, const struct view_stack *k, uint64_t period_ns)
{
	const char *thread = mdl_thread_name(p->s.in->model, k->tgid, k->tid);
	const uint64_t values[] = {k->count, k->count * period_ns};

	if (view_stack_frames(p->s.in->model, k, profile_frame, &p->to) || profile_stack(&p->to, values, 2) ||
	    profile_label(&p->to, "pid", NULL, k->tgid) || profile_label(&p->to, "tid", NULL, k->tid) ||
	    (thread && profile_label(&p->to, "thread", thread, 0)))
		return -ENOMEM;
	return profile_end_sample(&p->to);
}

static int put_head(struct pprof *p, uint64_t period_ns)
{
	const struct mdl_session *ss = p->s.in->session;
	const struct profile_head head = {.count = {"samples", "count"},
					  .time = {"cpu", "nanoseconds"},
					  .program = ss->comm,
					  .start_unix_ns = ss->start_unix_ns,
					  .duration_ns = ss->duration_ns,
					  .period_ns = period_ns};

	return profile_head(&p->to, &head);
}

/* pprof -comments shows the loss. */
static int put_loss(struct pprof *p)
{
	const struct mdl_session *s = p->s.in->session;
	const struct mxbpf_loss *l = &s->loss;
	char text[160];
	size_t i;

	snprintf(text, sizeof(text),
		 "mxbpf: %llu of %llu events dropped, %llu unreadable, %" PRIu64 " cut by --max-size",
		 (unsigned long long)l->dropped, (unsigned long long)l->attempted, (unsigned long long)l->unreadable,
		 s->cut_records);
	if (profile_comment(&p->to, text))
		return -ENOMEM;
	for (i = 0; s->nsources > 1 && i < s->nsources; i++) {
		l = &s->sources[i].loss;
		snprintf(text, sizeof(text), "mxbpf: of %.32s: %llu of %llu events dropped, %llu unreadable",
			 s->sources[i].name, (unsigned long long)l->dropped, (unsigned long long)l->attempted,
			 (unsigned long long)l->unreadable);
		if (profile_comment(&p->to, text))
			return -ENOMEM;
	}
	return 0;
}

static int pprof_begin(struct view *s)
{
	((struct pprof *)s)->stacks.by_thread = true;
	return 0;
}

static int pprof_record(struct view *s, const struct mxbpf_rec *r)
{
	int err = view_stacks_add(&((struct pprof *)s)->stacks, r);

	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

static int pprof_end(struct view *s)
{
	struct pprof *p = (struct pprof *)s;
	uint64_t period_ns = s->in->session->sample_hz ? NS_PER_S / s->in->session->sample_hz : 0;
	int err = put_head(p, period_ns);
	size_t i;

	for (i = 0; !err && i < buf_count(&p->stacks.list, struct view_stack *); i++)
		err = put_sample(p, *buf_at(&p->stacks.list, struct view_stack *, i), period_ns);
	err = err ? err : put_loss(p);
	if (err)
		return err_set(s->err, ERR_RUNTIME, err, "out of memory");
	out_write(s->out, p->to.profile.data, p->to.profile.len);
	return 0;
}

static void pprof_fini(struct view *s)
{
	struct pprof *p = (struct pprof *)s;

	view_stacks_fini(&p->stacks);
	profile_fini(&p->to);
}

static const char *const suffixes[] = {".pb.gz", ".pprof", NULL};

const struct view_ops view_pprof = {
	.name = "pprof",
	.help = "a profile of --sample for go tool pprof and speedscope, the operator first",
	.suffixes = suffixes,
	.needs_records = true,
	.of_samples = true,
	.gzip = true,
	.state_bytes = sizeof(struct pprof),
	.begin = pprof_begin,
	.record = pprof_record,
	.end = pprof_end,
	.fini = pprof_fini,
};
