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

/* causes/ */
int make_pinned(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_network(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_late(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_hang(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_backlog(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_collector[];
int make_collector(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_paging(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_copied(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_paging[], rules_copied[];
int make_trend(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_trend[];
int make_debug_modes(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_debug_modes[];
int make_inside(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_inside[];
extern const struct finding_rule rules_backlog[], rules_trend[];
int make_epoch_start(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_debug_modes[], rules_epoch_start[];
int make_exceptions(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_exceptions[];
int make_alone(struct mdl *m, const struct mdl_session *s, struct facts *f);
extern const struct finding_rule rules_alone[];
extern const struct finding_rule rules_collector[], rules_polling[];
extern const struct finding_rule rules_collector[], rules_polling[], rules_gil[];
int make_collector(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_gil(struct mdl *m, const struct mdl_session *s, struct facts *f);
int make_polling(struct mdl *m, const struct mdl_session *s, struct facts *f);

/* rules_cpus.c */
RULE(rules_threads);
RULE(rules_neighbours);
RULE(rules_throttled);
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
