// SPDX-License-Identifier: Apache-2.0
/* What is done for each feature. */
#include "model/priv.h"

#include <stdlib.h>

static size_t place_of(const struct mdl_feature *f)
{
	size_t i = 0;

	while (mdl_features[i] != f)
		i++;
	return i;
}

bool mdl_asked(const struct mdl_session *s, const struct mdl_feature *f)
{
	return s->features & f->option->bit;
}

void *mdl_state(struct mdl *m, const struct mdl_feature *f)
{
	void **state = &m->states[place_of(f)];

	if (!*state)
		*state = calloc(1, f->state_bytes);
	return *state;
}

const void *mdl_state_of(const struct mdl *m, const struct mdl_feature *f)
{
	return m->states[place_of(f)];
}

void mdl_move(struct mdl *to, struct mdl *from)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		if ((*f)->move)
			(*f)->move(to, from);
}
