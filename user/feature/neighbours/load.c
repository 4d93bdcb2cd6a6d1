// SPDX-License-Identifier: Apache-2.0
/* CPU time of all processes, read when the window begins and when it ends. */
#include <errno.h>

#include "feature/neighbours/neighbours.h"
#include "feature/neighbours/read.h"
#include "session/feature.h"
#include "session/priv.h"
#include "target/labels.h"
#include "targets/targets.h"

/* The state of the feature. NULL: not started, or ended. */
static struct neighbours **begun(const struct session *ses)
{
	return ses_state(ses, &neighbours_session);
}

static bool is_root(const void *session, pid_t pid)
{
	return ses_is_root(session, pid);
}

static uint32_t number_of(pid_t pid)
{
	struct tgt_labels l;

	tgt_peek_labels(pid, &l);
	return (uint32_t)l.rank + 1;
}

static int neighbours_start(struct session *ses, struct err *e)
{
	const struct neighbours_job job = {is_root, number_of, tgt_peek_cgroup, ses};

	*begun(ses) = neighbours_begin(&job);
	return *begun(ses) ? 0 : err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
}

static void neighbours_fini(struct session *ses)
{
	neighbours_free(*begun(ses));
	*begun(ses) = NULL;
}

static void neighbours_tell(struct session *ses)
{
	struct buf recs = {0};
	int err;

	if (!*begun(ses))
		return;
	err = neighbours_end(*begun(ses), &recs);
	ses_keep(ses, recs.data, recs.len, err == -ENOMEM ? err : 0);
	buf_fini(&recs);
	neighbours_fini(ses);
}

const struct ses_feature neighbours_session = {
	.state_bytes = sizeof(struct neighbours *),
	.start = neighbours_start,
	.end = neighbours_tell,
	.fini = neighbours_fini,
};
