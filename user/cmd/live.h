/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live session, as `mxbpf --pid` and `mxbpf record` share it: prepare (nothing touched) -> start (probes in, active)
 * -> wait -> stop (probes out, everything folded) -> results.
 */
#ifndef CMD_LIVE_H
#define CMD_LIVE_H

#include <time.h>

#include "attach/attach.h"
#include "base/hash.h"
#include "cmd/cmd.h"
#include "model/model.h"
#include "model/session.h"
#include "plan/plan.h"
#include "record/record.h"
#include "ring/ring.h"
#include "target/target.h"

struct live {
	const struct cmd_opts *o;
	const char *recording; /* path of the recording; NULL: none, or a scratch file for the trace */
	struct tgt *target;
	struct plan plan;
	struct att *att;
	struct ring *ring;
	struct mdl *model;	   /* the ring's second thread feeds it; others only after live_stop() */
	struct rec_writer *writer; /* likewise; NULL: nothing is kept */
	struct hash threads;	   /* tids whose names are known; likewise */
	struct hash nameless;	   /* names that were not found while this chunk is read; likewise */
	int write_error;	   /* first error of the writer or the model; likewise */
	struct mdl_session session;
	bool ended;		   /* by a signal or with the target; during --delay: before the window began */
	int signals;		   /* signalfd: INT, TERM, HUP; USR1 and USR2 for pauses */
	uint64_t paused_at_ns;	   /* when the present pause began; 0: none */
	uint64_t prepared_mono_ns; /* when the session began, for --verbose */
};

/* 0 or -errno with e set. live_free() in any case. */
int live_prepare(struct live *l, const struct cmd_opts *o, const char *recording, struct err *e);
int live_start(struct live *l, struct err *e);
/* Until -d has passed, a signal came or the target ended. Shows progress on a terminal. */
void live_wait(struct live *l);
int live_stop(struct live *l, struct err *e);
void live_free(struct live *l);

/* live_pause.c: time since the start, without pauses. */
uint64_t live_window_ns(const struct live *l);
/* Pauses or goes on if the signal says so; false: it says something else. */
bool live_pause_signal(struct live *l, int sig);
void live_close_pause(struct live *l);

/* live_names.c: gives the model the names and threads of these records that it does not know yet. */
void live_learn_names(struct live *l, const void *recs, size_t bytes);

/* live_session.c: everything but times and counts. 0 or -ENOMEM. */
int live_describe(struct live *l);

uint64_t live_now_ns(clockid_t clock);

#endif
