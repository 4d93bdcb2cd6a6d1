// SPDX-License-Identifier: Apache-2.0
/* Reads the state of the machine in a live session. */
#include "feature/machine/machine.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>

#include "base/fmt.h"
#include "feature/machine/read.h"

static void on_absent(void *ctx, const char *gauge, const char *why)
{
	ses_detail(ctx, "cannot read %s: %s", gauge, why);
}

static void read_gauges(struct session *ses, bool resumed)
{
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err;

	ses->readings.len = 0;
	err = mach_read(ses->machine, resumed, &ses->readings);
	ses->reading_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	ses->nreadings++;
	ses_keep(ses, ses->readings.data, ses->readings.len, err);
}

static int start(struct session *ses, struct err *e)
{
	ses->machine = mach_open(tgt_pid(ses->targets[0].tgt), ses->o->verbose ? on_absent : NULL, ses);
	if (!ses->machine)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	read_gauges(ses, false);
	return 0;
}

static void end(struct session *ses)
{
	char ns[24];

	if (!ses->paused_at_ns) /* else the machine was read when the pause began */
		read_gauges(ses, false);
	ses_detail(ses, "read the machine's gauges %llu times, each in %s of CPU time",
		   (unsigned long long)ses->nreadings, fmt_ns(ses->reading_ns / ses->nreadings, ns));
}

static void fini(struct session *ses)
{
	mach_close(ses->machine);
	buf_fini(&ses->readings);
}

const struct ses_feature machine_session = {
	.start = start,
	.read = read_gauges,
	.end = end,
	.fini = fini,
};
