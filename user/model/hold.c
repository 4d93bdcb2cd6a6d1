// SPDX-License-Identifier: Apache-2.0
/*
 * Holds spans and launches back in a model that tells ranges apart, because sources do not wait for each other: a call
 * may come before the start of the range around it. Starts of ranges are folded at once.
 */
#include "model/priv.h"

#include <errno.h>
#include <string.h>

#include "mxbpf_range.h"
#include "mxbpf_track.h"
#include "records/kinds.h"

#define HOLD_NS	   2000000000ull /* the longest time for which the hub holds records back */
#define HELD_BYTES (64u << 20)	 /* limit; beyond it, the oldest records are folded */

struct held {
	uint64_t source; /* of mdl_begin() */
};

bool hold_wants(const struct mdl *m, const struct mxbpf_rec *r)
{
	return m->tells_ranges && !m->releases &&
	       (r->kind == MXBPF_SPAN || r->kind == MXBPF_LAUNCH || r->kind == MXBPF_ACTIVITY);
}

int hold_put(struct mdl *m, const struct mxbpf_rec *r)
{
	const struct held head = {m->source};
	const uint64_t end_ns = kind_end_ns(r);
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		if ((*f)->held)
			(*f)->held(m, r);
	m->held_newest_ns = end_ns > m->held_newest_ns ? end_ns : m->held_newest_ns;
	return buf_put(&m->held, &head, sizeof(head)) || buf_put(&m->held, r, r->size) ? -ENOMEM : 0;
}

/* Folds the records that have waited, in the order in which they came. */
int hold_release(struct mdl *m, bool all)
{
	const unsigned source = m->source;
	size_t pos = 0;
	int err = 0;

	m->releases = true;
	while (!err && pos < m->held.len) {
		const struct held *head = (const void *)(m->held.data + pos);
		const struct mxbpf_rec *r = (const void *)(head + 1);

		if (!all && m->held.len - pos < HELD_BYTES && kind_end_ns(r) + HOLD_NS > m->held_newest_ns)
			break;
		pos += sizeof(*head) + r->size;
		m->source = (unsigned)head->source;
		err = mdl_fold(m, r);
	}
	m->releases = false;
	m->source = source;
	memmove(m->held.data, m->held.data + pos, m->held.len - pos);
	m->held.len -= pos;
	return err;
}

int mdl_settle(struct mdl *m)
{
	const int err = m->held.len ? hold_release(m, true) : 0, err2 = m->tells_ranges ? mdl_fold_end(m) : 0;

	return err ? err : err2;
}
