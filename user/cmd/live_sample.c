// SPDX-License-Identifier: Apache-2.0
/* --sample: what BPF sends becomes the record that outputs read, with texts in place of addresses. */
#include "cmd/live.h"

#include <errno.h>
#include <string.h>

#include "sample/sample.h"

int live_samples_open(struct live *l, struct err *e)
{
	struct err why = {0};

	l->symbols = smp_new();
	if (!l->symbols)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!l->stacks && live_stacks_open(l, &why)) {
		live_stacks_free(l);
		if (l->o->verbose)
			cmd_warn("samples have no Python frames: %s", why.why);
	}
	return 0;
}

static uint64_t code_id(struct live *l, const struct mxbpf_sample *s, const struct mxbpf_sample_where *w)
{
	static char text[MXBPF_TEXT_BYTES_MAX];
	size_t len = smp_text(l->symbols, s, w, text, sizeof(text));

	return len ? live_text_id(l, MXBPF_NAME_CODE, s->h.tgid, text, len) : 0;
}

void live_sample_finish(struct live *l, struct mxbpf_rec *r)
{
	struct mxbpf_sample *s = (struct mxbpf_sample *)r;
	const struct mxbpf_sample_where *where;
	size_t bytes;

	if (!l->symbols || r->kind != MXBPF_SAMPLE)
		return;
	bytes = MXBPF_SAMPLE_BYTES(mxbpf_sample_nspans(s));
	where = (const void *)((const char *)r + bytes);
	s->code_id = code_id(l, s, where);
	s->stack_id = where->python.n ? live_stack_text_id(l, r->tgid, &where->python) : 0;
	r->size = (uint16_t)bytes;
}
