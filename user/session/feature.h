/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a feature does in a live session. user/feature/NAME/load.c defines a struct ses_feature, and the session calls
 * all of them at the moments below, in the order of mdl_features[]. A function that is NULL does nothing.
 */
#ifndef SESSION_FEATURE_H
#define SESSION_FEATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct mdl_session;
struct ses_opts;
struct ses_target;
struct session;

/* When events are taken. A session has one of these. */
struct ses_window {
	bool (*asked)(const struct ses_opts *o); /* NULL: this is the window of sessions without another */
	/* Probes are attached. Takes events now, or when a window opens. */
	void (*start)(struct session *ses);
	/* BPF says that it has opened or closed a window. NULL: it never does. */
	void (*told)(struct session *ses);
	/* The user pauses the session, or resumes it. */
	void (*take)(struct session *ses, bool on);
	/* The session ends, and no window opens any more. Returns whether events were taken until now. */
	bool (*stop)(struct session *ses);
	/* About once a second. NULL: nothing */
	void (*second)(struct session *ses);
	/* Whether no window is open at the moment. NULL: one is, unless the user has paused the session. */
	bool (*rests)(const struct session *ses);
	/* How long windows have been open. NULL: the time since the start without pauses. */
	uint64_t (*window_ns)(const struct session *ses);
	/* Corrects duration and pauses of a session, which are those of one window that only the user pauses. NULL:
	 * they are right. */
	void (*account)(const struct session *ses, struct mdl_session *s);
};

struct ses_feature {
	/* Whether this session has to do with the feature: without it, nothing below counts. NULL: always. */
	bool (*asked)(const struct ses_opts *o);
	unsigned groups; /* of probes that it takes: mask of enum probe_group */
	bool of_calls;	 /* BPF puts the call into its records; with --agent mxbpf does that */
	const struct ses_window *window;

	/* The target is planned and nothing is attached: chooses what is possible. 0, or -errno with e set, which says
	 * what the target lacks. */
	int (*check)(struct session *ses, const struct ses_target *of, struct err *e);
	/* Adds to the session's description of itself, and notes. 0 or -ENOMEM. */
	int (*describe)(struct session *ses, const struct ses_target *of, struct mdl_session *s);
	/* The window begins. 0, or -errno with e set. */
	int (*start)(struct session *ses, struct err *e);
	/* Reads the state of something: at both ends of a window and of an interval, and about once a second between.
	 * resumed: what happened since the last reading is not in the window. */
	void (*read)(struct session *ses, bool resumed);
	/* Events are not taken any more, for now or for good: puts what was under way into the model. Without the lock.
	 */
	void (*rest)(struct session *ses);
	/* The window ends. */
	void (*end)(struct session *ses);
	/* Frees what the feature has in the session. */
	void (*fini)(struct session *ses);
};

/* The functions of all features that the session has to do with. */
int ses_features_check(struct session *ses, const struct ses_target *of, struct err *e);
int ses_features_describe(struct session *ses, const struct ses_target *of, struct mdl_session *s);
int ses_features_start(struct session *ses, struct err *e);
void ses_features_read(struct session *ses, bool resumed);
void ses_features_rest(struct session *ses);
void ses_features_end(struct session *ses);
void ses_features_fini(struct session *ses);

unsigned ses_features_groups(const struct ses_opts *o); /* probes that they take: mask of enum probe_group */
bool ses_features_of_calls(const struct ses_opts *o);	/* whether any has records that need their call */
const struct ses_window *ses_features_window(const struct ses_opts *o); /* NULL: none has one */

#endif
