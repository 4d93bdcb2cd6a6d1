// SPDX-License-Identifier: Apache-2.0
/* Reads the state of the machine in a live session. */
#include "feature/machine/machine.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>

#include "base/fmt.h"
#include "feature/machine/read.h"

struct state {
	struct mach *gauges;
	struct buf last; /* records of the last reading; with the lock */
	uint64_t nreadings, reading_ns;
};

static struct state *machine_state_of(const struct session *ses)
{
	return ses_state(ses, &machine_session);
}

int machine_again(const struct session *ses, struct mdl *m)
{
	return mdl_fold_all(m, machine_state_of(ses)->last.data, machine_state_of(ses)->last.len);
}

static void on_absent(void *ctx, const char *gauge, const char *why)
{
	ses_detail(ctx, "cannot read %s: %s", gauge, why);
}

static void read_gauges(struct session *ses, bool resumed)
{
	struct state *s = machine_state_of(ses);
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err;

	s->last.len = 0;
	err = mach_read(s->gauges, resumed, &s->last);
	s->reading_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	s->nreadings++;
	ses_keep(ses, s->last.data, s->last.len, err);
}

static int machine_start(struct session *ses, struct err *e)
{
	struct state *s = machine_state_of(ses);

	s->gauges = mach_open(tgt_pid(ses->targets[0].tgt), ses->o->verbose ? on_absent : NULL, ses);
	if (!s->gauges)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	read_gauges(ses, false);
	return 0;
}

static void machine_end(struct session *ses)
{
	const struct state *s = machine_state_of(ses);
	char ns[24];

	if (!ses->paused_at_ns) /* else the machine was read when the pause began */
		read_gauges(ses, false);
	ses_detail(ses, "read the machine's gauges %llu times, each in %s of CPU time",
		   (unsigned long long)s->nreadings, fmt_ns(s->reading_ns / s->nreadings, ns));
}

static void machine_load_fini(struct session *ses)
{
	mach_close(machine_state_of(ses)->gauges);
	buf_fini(&machine_state_of(ses)->last);
}

const struct ses_feature machine_session = {
	.state_bytes = sizeof(struct state),
	.start = machine_start,
	.read = read_gauges,
	.end = machine_end,
	.fini = machine_load_fini,
};
