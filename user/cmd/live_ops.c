// SPDX-License-Identifier: Apache-2.0
/*
 * --ops for names that are known only when they come: backward nodes, annotations, boxed calls, operators of MXNet's
 * engine. They are probed like all others, so this hides and saves nothing; before model and writer, so that every
 * output is of the same calls.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/live.h"

enum { UNASKED, LEAVE, SHOW };

/* A name that cannot be read, now or ever, is shown. */
static bool leaves_out(struct live *l, uint64_t name_id)
{
	uint64_t *asked = name_id && mdl_has_name(l->model, name_id) ? hash_put(&l->asked, name_id, 0) : NULL;
	char text[MXBPF_NAME_BYTES_MAX + 1];
	const char *name;
	size_t len;

	if (!asked)
		return false;
	if (*asked == UNASKED) {
		name = mdl_name(l->model, name_id, &len);
		len = len < MXBPF_NAME_BYTES_MAX ? len : MXBPF_NAME_BYTES_MAX;
		memcpy(text, name, len);
		text[len] = '\0';
		*asked = plan_ops_match(l->o->ops, text) ? SHOW : LEAVE;
	}
	return *asked == LEAVE;
}

bool live_ops_leave(struct live *l, unsigned cls, uint64_t name_id, uint64_t count)
{
	if (!l->o->ops || cls != MXBPF_CLASS_OPERATOR)
		return false;
	if (leaves_out(l, name_id)) {
		l->session.left_out += count;
		return true;
	}
	l->shown += count;
	return false;
}

/* The thread was off the CPU, in nothing that is shown. */
static void leave_span(struct live *l, struct mxbpf_sched *r)
{
	if (r->span_cls == MXBPF_CLASS_OPERATOR && leaves_out(l, r->span_name_id))
		r->span_start_ns = r->span_name_id = r->span_cls = 0;
}

/* What ran, ran: a sample stays, and its spans are those that are shown. */
static void keep_spans(struct live *l, struct mxbpf_sample *s)
{
	struct mxbpf_sample_span *spans = (void *)(s + 1);
	unsigned i, n = 0;

	for (i = 0; i < mxbpf_sample_nspans(s); i++)
		if (spans[i].cls != MXBPF_CLASS_OPERATOR || !leaves_out(l, spans[i].name_id))
			spans[n++] = spans[i];
	mxbpf_sample_set_nspans(s, n);
	s->h.size = (uint16_t)(sizeof(*s) + n * sizeof(*spans));
}

bool live_ops_keeps(struct live *l, struct mxbpf_rec *r)
{
	const struct mxbpf_span *s = (const struct mxbpf_span *)r;
	const struct mxbpf_open *o = (const struct mxbpf_open *)r;
	const struct mxbpf_team *t = (const struct mxbpf_team *)r;

	switch (r->kind) {
	case MXBPF_OPEN:
		return o->cls != MXBPF_CLASS_OPERATOR || !leaves_out(l, o->name_id);
	case MXBPF_SPAN:
		return !live_ops_leave(l, s->cls, s->name_id, 1);
	case MXBPF_TEAM: /* of one that is not probed: in no span */
		return t->cls && (t->cls != MXBPF_CLASS_OPERATOR || !leaves_out(l, t->name_id));
	case MXBPF_LIFE:
		return !leaves_out(l, ((const struct mxbpf_life *)r)->name_id);
	case MXBPF_SCHED:
		leave_span(l, (struct mxbpf_sched *)r);
		return true;
	case MXBPF_SAMPLE:
		keep_spans(l, (struct mxbpf_sample *)r);
		return true;
	}
	return true;
}

/* Functions of operators that --ops leaves out if it leaves out all; else 0. */
static unsigned all_left(const struct live *l)
{
	unsigned left;

	return cmd_ops_matched(&l->plan, &left) ? 0 : left;
}

void live_ops_warn(const struct live *l)
{
	unsigned left = all_left(l);
	char near[300];

	if (left)
		cmd_warn(
			"--ops '%s' matches none of %u functions of operators (nearest: %s); names that are known only "
			"when they come are waited for",
			l->o->ops, left, plan_near_text(&l->plan.near, near));
}

int live_ops_code(const struct live *l)
{
	struct plan_near near = l->plan.near;
	struct hash_entry *h;
	size_t pos = 0, len;
	char text[300], name[256];

	if (l->shown || (!l->session.left_out && !all_left(l)))
		return CMD_OK;
	while ((h = hash_next(&l->asked, &pos))) {
		snprintf(name, sizeof(name), "%s", mdl_name(l->model, h->a, &len));
		plan_near_try(&near, name);
	}
	cmd_warn("nothing matched --ops '%s'; nearest of what there is: %s", l->o->ops, plan_near_text(&near, text));
	return CMD_NO_TARGET;
}
