// SPDX-License-Identifier: Apache-2.0
/* Calls the features at the moments of a session. */
#include "session/feature.h"

#include <errno.h>
#include <stdlib.h>

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

#define EACH(o, f) for (const struct mdl_feature *const *at = mdl_features; ((f) = next(o, &at));)

/* Calls a function of each feature that has it. */
#define CALL_EACH(o, function, ...)                                                                                    \
	do {                                                                                                           \
		const struct ses_feature *f;                                                                           \
                                                                                                                       \
		EACH(o, f)                                                                                             \
		if (f->function)                                                                                       \
			f->function(__VA_ARGS__);                                                                      \
	} while (0)

void *ses_state(const struct session *ses, const struct ses_feature *f)
{
	unsigned i = 0;

	while (mdl_features[i]->session != f)
		i++;
	return ses->states[i];
}

int ses_features_open(struct session *ses)
{
	const struct ses_feature *f;
	unsigned i;

	for (i = 0; mdl_features[i]; i++) {
		f = mdl_features[i]->session;
		ses->states[i] = f && f->state_bytes ? calloc(1, f->state_bytes) : NULL;
		if (f && f->state_bytes && !ses->states[i])
			return -ENOMEM;
	}
	return 0;
}

int ses_features_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	const struct ses_feature *f;

	EACH(ses->o, f)
	if (f->check && f->check(ses, of, e)) {
		if (!f->leave_out || of->build != ses->first || ses_refuse(ses, e))
			return e->code;
		f->leave_out(&ses->opts);
	}
	return 0;
}

int ses_features_describe(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	const struct ses_feature *f;
	int err = 0;

	EACH(ses->o, f)
	if (!err && f->describe)
		err = f->describe(ses, of, s);
	return err;
}

int ses_features_start(struct session *ses, struct err *e)
{
	const struct ses_feature *f;

	EACH(ses->o, f)
	if (f->start && f->start(ses, e))
		return e->code;
	return 0;
}

void ses_features_read(struct session *ses, bool resumed)
{
	CALL_EACH(ses->o, read, ses, resumed);
}

void ses_features_rest(struct session *ses)
{
	CALL_EACH(ses->o, rest, ses);
}

uint64_t ses_features_tick(struct session *ses)
{
	const struct ses_feature *f;
	uint64_t due = UINT64_MAX, its;

	EACH(ses->o, f)
	{
		its = f->tick ? f->tick(ses) : UINT64_MAX;
		due = its < due ? its : due;
	}
	return due;
}

void ses_features_account(const struct session *ses, struct mdl_session *s)
{
	CALL_EACH(ses->o, account, ses, s);
}

void ses_features_ends(struct session *ses)
{
	CALL_EACH(ses->o, ends, ses);
}

void ses_features_alone(struct session *ses)
{
	CALL_EACH(ses->o, alone, ses);
}

void ses_features_detached(struct session *ses)
{
	CALL_EACH(ses->o, detached, ses);
}

void ses_features_end(struct session *ses)
{
	CALL_EACH(ses->o, end, ses);
}

void ses_features_fini(struct session *ses)
{
	const struct ses_feature *f;
	unsigned i;

	for (i = 0; mdl_features[i]; i++) {
		f = mdl_features[i]->session;
		if (ses->states[i] && f->fini) /* of features that were left out after they had begun, too */
			f->fini(ses);
		free(ses->states[i]);
	}
}

unsigned ses_features_groups(const struct ses_opts *o)
{
	const struct ses_feature *f;
	unsigned groups = 0;

	EACH(o, f)
	groups |= f->groups | (o->details & MXBPF_DETAIL_STACK ? f->stack_groups : 0);
	return groups;
}

bool ses_features_of_calls(const struct ses_opts *o)
{
	const struct ses_feature *f;
	bool any = false;

	EACH(o, f)
	any |= f->of_calls;
	return any;
}

const struct ses_window *ses_features_window(const struct ses_opts *o)
{
	const struct ses_feature *f;

	EACH(o, f)
	if (f->window && f->window->asked(o))
		return f->window;
	return NULL;
}
