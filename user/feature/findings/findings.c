// SPDX-License-Identifier: Apache-2.0
/* Findings: every rule looks at the facts, and those that cross their thresholds speak, the largest share first. */
#include "feature/findings/causes/late.h"
#include "feature/findings/rules.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* A late rank is said by a common rule, with what the causes before it have found of that rank. */
const struct finding_cause finding_causes[] = {
	{make_collector, rules_collector},
	{make_paging, rules_paging},
	{make_late, rules_common},
	{make_copied, rules_copied},
	{make_trend, rules_trend},
	{make_debug_modes, rules_debug_modes},
	{make_inside, rules_inside},
	{make_hang, rules_hang},
	{make_backlog, rules_backlog},
	{make_epoch_start, rules_epoch_start},
	{make_alone, rules_alone},
	{make_polling, rules_polling},
	{make_exceptions, rules_exceptions},
	{make_network, rules_network},
	{make_pinned, rules_pinned},
	{make_gil, rules_gil},
	{make_inputs, rules_inputs},
	{make_stuck, rules_stuck},
	{NULL, NULL},
};
/* clang-format on */

static int by_share(const void *va, const void *vb)
{
	const struct finding *a = va, *b = vb;

	if (a->rule->first != b->rule->first)
		return a->rule->first > b->rule->first ? -1 : 1;
	return a->share < b->share ? 1 : a->share > b->share ? -1 : 0;
}

/* The largest share of the loop's time or of the window among the findings so far. */
static double explained(const struct findings *out)
{
	double most = 0;
	unsigned i;

	for (i = 0; i < out->n; i++)
		most = !out->list[i].rule->other_time && out->list[i].share > most ? out->list[i].share : most;
	return most;
}

static bool is_silent(const struct facts *f, const struct finding_rule *rule)
{
	return (facts_is_gpu_full(f) && !rule->full_gpu) || (f->lost.share > FACTS_LOST_MOST && rule->all_records);
}

static uint32_t pid_of(const struct facts *f, const struct finding_rule *rule)
{
	uint32_t pid = f->loop.tgid;

	if (rule->pid_at)
		memcpy(&pid, (const char *)f + rule->pid_at, sizeof(pid));
	return pid;
}

static const char *next_of(const struct facts *f, const struct finding_rule *rule)
{
	if (rule->next_of)
		return rule->next_of(f);
	return rule->taken && (f->have & rule->taken) == rule->taken ? NULL : rule->next;
}

static void judge(const struct finding_rule *rule, struct findings *out)
{
	const struct facts *f = &out->facts;
	const double part = rule->of_loop ? f->loop.covers : 1, found = is_silent(f, rule) ? 0 : part * rule->share(f);
	struct finding *to = &out->list[out->n];

	if (found < rule->least || out->n == FINDINGS_FOUND_MAX || (rule->last && explained(out) * 2 >= found))
		return;
	*to = (struct finding){.rule = rule, .share = found, .pid = pid_of(f, rule)};
	next_put(f, next_of(f, rule), &to->next);
	rule->say(f, &to->text);
	if (rule->evidence)
		rule->evidence(f, &to->evidence);
	out->n++;
}

const struct finding_rule *finding_rule_of(const char *key)
{
	const struct finding_cause *cause;
	const struct finding_rule *rule;

	for (cause = finding_causes; cause->rules; cause++)
		for (rule = cause->rules; rule->key; rule++)
			if (!strcmp(rule->key, key))
				return rule;
	return NULL;
}

static void drop(struct finding *f)
{
	buf_fini(&f->next);
	buf_fini(&f->text);
	buf_fini(&f->evidence);
}

/* Another finding is the cause of this one, and explains a half of it or more. */
static bool is_explained(const struct findings *found, const struct finding *f)
{
	const size_t len = strlen(f->rule->key);
	const char *at;
	unsigned i;

	for (i = 0; i < found->n; i++) {
		at = found->list[i].rule->explains;
		for (at = at ? strstr(at, f->rule->key) : NULL; at; at = strstr(at + len, f->rule->key))
			if ((at[len] == ' ' || !at[len]) && (at == found->list[i].rule->explains || at[-1] == ' ') &&
			    found->list[i].share * 2 >= f->share)
				return true;
	}
	return false;
}

/* Sorts them, and leaves out symptoms whose cause is known and what is beyond FINDINGS_MAX. */
static void choose(struct findings *found)
{
	bool explained[FINDINGS_FOUND_MAX];
	unsigned i, n = 0;

	qsort(found->list, found->n, sizeof(found->list[0]), by_share);
	for (i = 0; i < found->n; i++)
		explained[i] = is_explained(found, &found->list[i]);
	for (i = 0; i < found->n; i++) {
		if (explained[i] || n == FINDINGS_MAX)
			drop(&found->list[i]);
		else
			found->list[n++] = found->list[i];
	}
	found->n = n;
}

static void judge_all(struct findings *out, bool last)
{
	const struct finding_cause *cause;
	const struct finding_rule *rule;

	for (cause = finding_causes; cause->rules; cause++)
		for (rule = cause->rules; rule->key; rule++)
			if (rule->last == last)
				judge(rule, out);
}

int findings_make(struct mdl *m, const struct mdl_session *s, struct findings *out)
{
	const struct finding_cause *cause;
	int err;

	*out = (struct findings){.n = 0};
	err = facts_make(m, s, &out->facts);
	for (cause = finding_causes; !err && cause->rules; cause++)
		err = cause->make ? cause->make(m, s, &out->facts) : 0;
	if (err)
		return err;
	judge_all(out, false);
	judge_all(out, true); /* they are silent if another one explains enough */
	choose(out);
	return 0;
}

void findings_fini(struct findings *f)
{
	unsigned i;

	for (i = 0; i < f->n; i++)
		drop(&f->list[i]);
}
