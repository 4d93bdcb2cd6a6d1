// SPDX-License-Identifier: Apache-2.0
/*
 * --ops for names that only records have: backward nodes, annotations, boxed calls, operators of an engine. Their
 * probes stay attached, so leaving them out saves no time. It happens before the model and the recording, so all
 * outputs have the same calls.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mxbpf_sample.h"
#include "mxbpf_life.h"
#include "mxbpf_omp.h"
#include "session/priv.h"

enum { UNASKED, LEAVE, SHOW };

/* Operators with unreadable names are shown. */
static bool leaves_out(struct session *ses, uint64_t name_id)
{
	uint64_t *asked = name_id && mdl_has_name(ses->model, name_id) ? hash_put(&ses->ops.asked, name_id, 0) : NULL;
	char text[MXBPF_NAME_BYTES_MAX + 1];
	const char *name;
	size_t len;

	if (!asked)
		return false;
	if (*asked == UNASKED) {
		name = mdl_name(ses->model, name_id, &len);
		len = len < MXBPF_NAME_BYTES_MAX ? len : MXBPF_NAME_BYTES_MAX;
		memcpy(text, name, len);
		text[len] = '\0';
		*asked = plan_ops_match(ses->o->ops, text) ? SHOW : LEAVE;
	}
	return *asked == LEAVE;
}

static bool keeps_span(struct session *ses, const struct mxbpf_span *s)
{
	if (s->cls != MXBPF_CLASS_OPERATOR)
		return true;
	if (leaves_out(ses, s->name_id)) {
		ses->about.left_out++;
		return false;
	}
	ses->ops.shown++;
	return true;
}

/* If the operator is excluded, the record counts as off-CPU time outside operators. */
static void leave_span(struct session *ses, struct mxbpf_sched *r)
{
	if (r->span_cls == MXBPF_CLASS_OPERATOR && leaves_out(ses, r->span_name_id))
		r->span_start_ns = r->span_name_id = r->span_cls = 0;
}

/* Keeps a sample, because it used the CPU, and removes only its excluded spans. */
static void keep_spans(struct session *ses, struct mxbpf_sample *s)
{
	struct mxbpf_sample_span *spans = (void *)(s + 1);
	unsigned i, n = 0;

	for (i = 0; i < mxbpf_sample_nspans(s); i++)
		if (spans[i].cls != MXBPF_CLASS_OPERATOR || !leaves_out(ses, spans[i].name_id))
			spans[n++] = spans[i];
	mxbpf_sample_set_nspans(s, n);
	s->h.size = (uint16_t)(sizeof(*s) + n * sizeof(*spans));
}

bool ses_ops_keeps(struct session *ses, struct mxbpf_rec *r)
{
	const struct mxbpf_span *s = (const struct mxbpf_span *)r;
	const struct mxbpf_open *o = (const struct mxbpf_open *)r;
	const struct mxbpf_team *t = (const struct mxbpf_team *)r;

	switch (r->kind) {
	case MXBPF_OPEN:
		return o->cls != MXBPF_CLASS_OPERATOR || !leaves_out(ses, o->name_id);
	case MXBPF_SPAN:
		return keeps_span(ses, s);
	case MXBPF_TEAM: /* cls is 0 outside spans, and therefore also inside an operator that is not probed */
		return t->cls && (t->cls != MXBPF_CLASS_OPERATOR || !leaves_out(ses, t->name_id));
	case MXBPF_LIFE:
		return !leaves_out(ses, ((const struct mxbpf_life *)r)->name_id);
	case MXBPF_SCHED:
		leave_span(ses, (struct mxbpf_sched *)r);
		return true;
	case MXBPF_SAMPLE:
		keep_spans(ses, (struct mxbpf_sample *)r);
		return true;
	}
	return true;
}

/* Returns the number of operator functions if --ops matches none of them, else 0. */
static unsigned all_left(const struct session *ses)
{
	unsigned left;

	return plan_ops_matched(&ses->targets[0].plan, &left) ? 0 : left;
}

void ses_ops_warn(const struct session *ses)
{
	unsigned left = all_left(ses);
	char near[300];

	if (left)
		ses_warn(ses,
			 "--ops '%s' matches none of %u operator functions (nearest: %s); names that are known only at "
			 "run "
			 "time may still match",
			 ses->o->ops, left, plan_near_text(&ses->targets[0].plan.near, near));
}

bool ses_ops_matched(const struct session *ses, char nearest[SES_NEAREST_BYTES])
{
	struct plan_near near = ses->targets[0].plan.near;
	struct hash_entry *h;
	size_t pos = 0, len;
	char name[256];

	if (ses->ops.shown || (!ses->about.left_out && !all_left(ses)))
		return true;
	while ((h = hash_next(&ses->ops.asked, &pos))) {
		snprintf(name, sizeof(name), "%s", mdl_name(ses->model, h->a, &len));
		plan_near_try(&near, name);
	}
	plan_near_text(&near, nearest);
	return false;
}
