/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a feature in a live session. user/feature/NAME/load.c defines a struct ses_feature, and the session calls
 * its functions at the moments below, in the order of mdl_features[]. A function that is NULL does nothing.
 */
#ifndef SESSION_FEATURE_H
#define SESSION_FEATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct mdl_session;
struct ses_opts;
struct ses_target;
struct session;

/* Decides when events are recorded. A session has one of these. */
struct ses_window {
	bool (*asked)(const struct ses_opts *o); /* NULL: the window of sessions that have no other */
	/* Called when probes are attached. Starts recording now, or when a window opens. */
	void (*start)(struct session *ses);
	/* Called when BPF has opened or closed a window. NULL: BPF never does. */
	void (*told)(struct session *ses);
	/* Called when the user pauses or resumes the session. */
	void (*take)(struct session *ses, bool on);
	/* Called when the session ends; no window opens after that. Returns true if events were recorded until now. */
	bool (*stop)(struct session *ses);
	/* About once a second. NULL: nothing */
	void (*second)(struct session *ses);
	/* Returns true if no window is open now. NULL: a window is open unless the user has paused the session. */
	bool (*rests)(const struct session *ses);
	/* Returns how long windows have been open, in ns. NULL: the time since the start without pauses. */
	uint64_t (*window_ns)(const struct session *ses);
	/* Corrects duration and pauses of a session, which are those of one window that only the user pauses. NULL:
	 * they are right. */
	void (*account)(const struct session *ses, struct mdl_session *s);
};

struct ses_feature {
	/* Returns true if the session uses the feature. If not, the members below are ignored. NULL: always true. */
	bool (*asked)(const struct ses_opts *o);
	unsigned groups;       /* probes that it needs: mask of enum probe_group */
	unsigned stack_groups; /* those that it needs with --py-stacks as well */
	bool of_calls;	       /* its records name their call: BPF fills it in, and with --agent mxbpf does */
	const struct ses_window *window;
	size_t state_bytes; /* size of ses_state(); 0: the feature keeps no state */

	/*
	 * Called when the target is planned and nothing is attached. Returns 0, or -errno with e set to what the target
	 * lacks.
	 */
	int (*check)(struct session *ses, const struct ses_target *of, struct err *e);
	/* Removes the option, so that the session goes on if the target lacks something. NULL: it ends then. */
	void (*leave_out)(struct ses_opts *o);
	/* Adds to the session's description and its notes. Returns 0 or -ENOMEM. */
	int (*describe)(struct session *ses, const struct ses_target *of, struct mdl_session *s);
	/* Called when the window begins. Returns 0, or -errno with e set. */
	int (*start)(struct session *ses, struct err *e);
	/*
	 * Reads the current state of what the feature watches, at both ends of a window and of an interval, and about
	 * once a second in between. resumed: the time since the last reading is not part of the window.
	 */
	void (*read)(struct session *ses, bool resumed);
	/* Called when recording has paused or ended: puts unfinished items into the model. The lock is not held. */
	void (*rest)(struct session *ses);
	/* Called while the session waits. Returns when it has to be called again, in ns of CLOCK_MONOTONIC. */
	uint64_t (*tick)(struct session *ses);
	/* Fills what is known about the session so far. */
	void (*account)(const struct session *ses, struct mdl_session *s);
	/* Called just before recording stops for good, and when the window has ended. */
	void (*ends)(struct session *ses);
	void (*end)(struct session *ses);
	/* Called when nothing is recorded any more, and before the probes and the agent's callbacks are removed. */
	void (*alone)(struct session *ses);
	/* Called when all probes are removed. The target may still run, and the session has not been described yet. */
	void (*detached)(struct session *ses);
	/* Frees what the state owns. The session frees the state itself. */
	void (*fini)(struct session *ses);
};

/* Returns the feature's state in a session, which is zero-filled at first. Any thread may call it. */
void *ses_state(const struct session *ses, const struct ses_feature *f);
int ses_features_open(struct session *ses); /* makes the states of all features; 0 or -ENOMEM */

/* The functions below call all features that the session uses. */
int ses_features_check(struct session *ses, const struct ses_target *of, struct err *e);
int ses_features_describe(struct session *ses, const struct ses_target *of, struct mdl_session *s);
int ses_features_start(struct session *ses, struct err *e);
void ses_features_read(struct session *ses, bool resumed);
void ses_features_rest(struct session *ses);
uint64_t ses_features_tick(struct session *ses); /* UINT64_MAX: none is due */
void ses_features_account(const struct session *ses, struct mdl_session *s);
void ses_features_ends(struct session *ses);
void ses_features_end(struct session *ses);
void ses_features_alone(struct session *ses);
void ses_features_detached(struct session *ses);
void ses_features_fini(struct session *ses); /* also frees all states */

unsigned ses_features_groups(const struct ses_opts *o); /* probes that they need: mask of enum probe_group */
bool ses_features_of_calls(const struct ses_opts *o);	/* true if a feature has records that name their call */
const struct ses_window *ses_features_window(const struct ses_opts *o); /* NULL: none has one */

#endif
