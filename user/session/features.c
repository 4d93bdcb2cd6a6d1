// SPDX-License-Identifier: Apache-2.0
/* Calls the features at the moments of a session. */
#include "session/feature.h"

#include "model/feature.h"
#include "session/priv.h"

/* Returns the next feature, from *at on, that a session with such options uses, or NULL. */
static const struct ses_feature *next(const struct ses_opts *o, const struct mdl_feature *const **at)
{
	const struct ses_feature *f;

	while (**at) {
		f = (*(*at)++)->session;
		if (f && (!f->asked || f->asked(o)))
			return f;
	}
	return NULL;
}

int ses_features_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->check && f->check(ses, of, e)) {
			if (!f->leave_out || of->build != ses->first || ses_refuse(ses, e))
				return e->code;
			f->leave_out(&ses->opts);
		}
	return 0;
}

int ses_features_describe(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;
	int err = 0;

	while ((f = next(ses->o, &at)))
		if (!err && f->describe)
			err = f->describe(ses, of, s);
	return err;
}

int ses_features_start(struct session *ses, struct err *e)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->start && f->start(ses, e))
			return e->code;
	return 0;
}

void ses_features_read(struct session *ses, bool resumed)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->read)
			f->read(ses, resumed);
}

void ses_features_rest(struct session *ses)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->rest)
			f->rest(ses);
}

uint64_t ses_features_tick(struct session *ses)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;
	uint64_t due = UINT64_MAX, its;

	while ((f = next(ses->o, &at))) {
		its = f->tick ? f->tick(ses) : UINT64_MAX;
		due = its < due ? its : due;
	}
	return due;
}

void ses_features_account(const struct session *ses, struct mdl_session *s)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->account)
			f->account(ses, s);
}

void ses_features_ends(struct session *ses)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->ends)
			f->ends(ses);
}

void ses_features_alone(struct session *ses)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->alone)
			f->alone(ses);
}

void ses_features_detached(struct session *ses)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->detached)
			f->detached(ses);
}

void ses_features_end(struct session *ses)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->end)
			f->end(ses);
}

void ses_features_fini(struct session *ses)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(ses->o, &at)))
		if (f->fini)
			f->fini(ses);
}

unsigned ses_features_groups(const struct ses_opts *o)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;
	unsigned groups = 0;

	while ((f = next(o, &at)))
		groups |= f->groups | (o->details & MXBPF_DETAIL_STACK ? f->stack_groups : 0);
	return groups;
}

bool ses_features_of_calls(const struct ses_opts *o)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;
	bool any = false;

	while ((f = next(o, &at)))
		any |= f->of_calls;
	return any;
}

const struct ses_window *ses_features_window(const struct ses_opts *o)
{
	const struct mdl_feature *const *at = mdl_features;
	const struct ses_feature *f;

	while ((f = next(o, &at)))
		if (f->window && f->window->asked(o))
			return f->window;
	return NULL;
}
