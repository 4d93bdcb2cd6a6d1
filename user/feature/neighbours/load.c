// SPDX-License-Identifier: Apache-2.0
/* CPU time of all processes, read when the window begins and when it ends. */
#include <errno.h>

#include "feature/neighbours/neighbours.h"
#include "feature/neighbours/read.h"
#include "session/feature.h"
#include "session/priv.h"

static bool is_root(const void *session, pid_t pid)
{
	return ses_is_root(session, pid);
}

static int neighbours_start(struct session *ses, struct err *e)
{
	const struct neighbours_job job = {is_root, ses};

	ses->neighbours = neighbours_begin(&job);
	return ses->neighbours ? 0 : err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
}

static void neighbours_fini(struct session *ses)
{
	neighbours_free(ses->neighbours);
	ses->neighbours = NULL;
}

static void neighbours_tell(struct session *ses)
{
	struct buf recs = {0};
	int err;

	if (!ses->neighbours)
		return;
	err = neighbours_end(ses->neighbours, &recs);
	ses_keep(ses, recs.data, recs.len, err == -ENOMEM ? err : 0);
	buf_fini(&recs);
	neighbours_fini(ses);
}

const struct ses_feature neighbours_session = {
	.start = neighbours_start,
	.end = neighbours_tell,
	.fini = neighbours_fini,
};
