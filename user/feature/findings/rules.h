/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the rules that stand in files of their own. What they do is said at struct finding_rule. */
#ifndef FEATURE_FINDINGS_RULES_H
#define FEATURE_FINDINGS_RULES_H

#include "feature/findings/findings.h"

#define RULE(name)                                                                                                     \
	double name##_share(const struct facts *f);                                                                    \
	void name##_say(const struct facts *f, struct buf *b);                                                         \
	void name##_evidence(const struct facts *f, struct buf *b)

extern const struct finding_rule rules_common[]; /* rules.c */

/* causes/NAME.c */
#define CAUSE(name)                                                                                                    \
	extern const struct finding_rule rules_##name[];                                                               \
	int make_##name(struct mdl *m, const struct mdl_session *s, struct facts *f)

CAUSE(collector);
CAUSE(paging);
CAUSE(copied);
CAUSE(trend);
CAUSE(debug_modes);
CAUSE(inside);
CAUSE(hang);
CAUSE(backlog);
CAUSE(epoch_start);
CAUSE(alone);
CAUSE(polling);
CAUSE(exceptions);
CAUSE(network);
CAUSE(pinned);
CAUSE(gil);
CAUSE(inputs);
CAUSE(stuck);
int make_late(struct mdl *m, const struct mdl_session *s, struct facts *f); /* its rules are among the common ones */

/* rules_cpus.c */
RULE(rules_threads);
RULE(rules_neighbours);
RULE(rules_throttled);
#define RULES_THREADS_LEAST    0.15
#define RULES_NEIGHBOURS_LEAST 0.1
double rules_stolen_share(const struct facts *f);
void rules_stolen_say(const struct facts *f, struct buf *b);
RULE(rules_stopped);
/* The share of all CPU time that processes take which are not of the job. */
double rules_others_share(const struct facts *f);
#define RULES_OTHERS_LEAST 0.1 /* of all CPU time: neighbours that took less have not caused much waiting */

double rules_exchange_share(const struct facts *f); /* rules.c: while no rank is late */

/* rules_collective.c */
RULE(rules_late);
RULE(rules_exposed);
double rules_slow_link_share(const struct facts *f);
void rules_slow_link_say(const struct facts *f, struct buf *b);

/* rules_memory.c. failed: there was no memory. Pieces: it was reserved, but not in one piece. */
RULE(rules_failed);
double rules_pieces_share(const struct facts *f);
RULE(rules_growth); /* from iteration to iteration */

void rules_put_grown(const struct facts *f, struct buf *b); /* where, if it is known, and "; " */

/* rules_program.c. resident: memory of a process that grows. */
RULE(rules_locked);
RULE(rules_compiling);
RULE(rules_resident);

/* facts_loss.c, facts_grids.c */
RULE(rules_lost);
RULE(facts_small_grids);

/* next.c: what to type next. It depends on what is known of a line. */
void next_put(const struct facts *f, const char *step, struct buf *b); /* step: of a rule, or NULL */
const char *next_lost(const struct facts *f);
const char *next_data(const struct facts *f);
const char *next_own(const struct facts *f);
const char *next_inside(const struct facts *f);
const char *next_exceptions(const struct facts *f);
const char *next_alone(const struct facts *f);
const char *next_alone_data(const struct facts *f);
const char *next_lock(const struct facts *f);
const char *next_locked(const struct facts *f);
const char *next_late(const struct facts *f);
const char *next_exchange(const struct facts *f);
const char *next_slow(const struct facts *f);
const char *next_watching(const struct facts *f);

/* rules.c: a line, how many looks found it, and what it waits for; nothing if no line is known. */
void rules_put_line(const struct fact_line *l, struct buf *b);
/* "; without it an iteration would take ...", for a share of the loop's time. */
void rules_put_gain(const struct facts *f, double share, struct buf *b);
/* That iterations which wait for the late rank come regularly, if they do. */
void rules_put_regular(const struct facts *f, struct buf *b);

#endif
