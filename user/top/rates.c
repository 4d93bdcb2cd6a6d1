// SPDX-License-Identifier: Apache-2.0
#include "top/top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "feature/findings/findings.h"
#include "feature/steps/steps.h"

static unsigned slot(const struct top *t)
{
	return (unsigned)(t->n % TOP_SECONDS);
}

const struct top_second *top_last(const struct top *t)
{
	return t->n ? &t->seconds[(t->n - 1) % TOP_SECONDS] : NULL;
}

/* ---- rows */

static struct top_row *row_of(struct top *t, const struct mdl *m, const struct mdl_row *from)
{
	uint64_t *at = hash_put(&t->places, from->cls, from->name_id);
	struct top_row new = {.cls = from->cls};
	const char *name;
	size_t len;

	if (!at)
		return NULL;
	if (*at)
		return buf_at(&t->rows, struct top_row, *at - 1);
	if (buf_count(&t->rows, struct top_row) >= TOP_ROWS_MAX)
		return NULL;
	name = mdl_name(m, from->name_id, &len);
	new.name = name ? strndup(name, len) : strdup("[unknown]");
	if (!new.name || buf_put(&t->rows, &new, sizeof(new))) {
		free(new.name);
		return NULL;
	}
	*at = buf_count(&t->rows, struct top_row);
	return buf_at(&t->rows, struct top_row, *at - 1);
}

/* Rows of several processes, devices or shapes add up. */
static void take_rows(struct top *t, struct mdl *m)
{
	const struct mdl_row *const *rows;
	struct top_row *to;
	size_t n, i;
	unsigned k;

	for (i = 0; i < buf_count(&t->rows, struct top_row); i++) {
		to = buf_at(&t->rows, struct top_row, i);
		to->calls[slot(t)] = 0;
		to->self_ns[slot(t)] = 0;
	}
	t->left_out = 0;
	for (k = 0; k < MDL_NCLASSES; k++) {
		rows = mdl_rows(m, mdl_classes[k].cls, &n);
		for (i = 0; i < n; i++) {
			to = row_of(t, m, rows[i]);
			if (!to) {
				t->left_out += rows[i]->count;
				continue;
			}
			to->calls[slot(t)] += (uint32_t)rows[i]->count;
			to->self_ns[slot(t)] += rows[i]->self_ns;
		}
	}
}

static struct top_rates rates(uint64_t calls, uint64_t self_ns, uint64_t window_ns)
{
	const double s = (double)window_ns / 1e9;

	return (struct top_rates){
		.calls = window_ns ? (double)calls / s : 0,
		.share = window_ns ? (double)self_ns / (double)window_ns : 0,
		.avg_ns = calls ? self_ns / calls : 0,
	};
}

/* Seconds that a row has not lived through are 0. */
static void rate_rows(struct top *t)
{
	uint64_t window_ns = 0, calls, self_ns;
	struct top_row *row;
	unsigned k;
	size_t i;

	for (k = 0; k < TOP_SECONDS; k++)
		window_ns += t->seconds[k].window_ns;
	for (i = 0; i < buf_count(&t->rows, struct top_row); i++) {
		row = buf_at(&t->rows, struct top_row, i);
		for (calls = self_ns = k = 0; k < TOP_SECONDS; k++) {
			calls += row->calls[k];
			self_ns += row->self_ns[k];
		}
		row->minute = rates(calls, self_ns, window_ns);
		row->second = rates(row->calls[slot(t)], row->self_ns[slot(t)], t->seconds[slot(t)].window_ns);
	}
}

/* ---- the job */

static void take_iterations(struct top *t, struct top_second *to, struct mdl *m)
{
	size_t n, i;
	const struct mxbpf_iteration *it = steps_iterations(m, &n);
	unsigned part;

	for (i = 0; i < n; i++) {
		to->iterations++;
		to->iteration_ns += it[i].dur_ns;
		t->live_bytes = it[i].live_bytes;
		if (!(it[i].flags & MXBPF_ITERATION_PARTS))
			continue;
		to->known_ns += it[i].dur_ns;
		for (part = 0; part < MXBPF_STEP_PARTS; part++)
			to->part_ns[part] += it[i].part_ns[part];
	}
}

/* The first that is not about watching itself, whose cost stands in the corner. */
static int take_finding(struct top *t, const struct mdl_session *s, struct mdl *m)
{
	struct findings found;
	const int err = findings_make(m, s, &found);
	unsigned i;

	t->finding[0] = '\0';
	for (i = 0; i < found.n && !t->finding[0]; i++)
		if (strcmp(found.list[i].rule->key, "watching"))
			snprintf(t->finding, sizeof(t->finding), "%.*s", (int)found.list[i].text.len,
				 found.list[i].text.data);
	findings_fini(&found);
	return err;
}

static uint64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int top_take(struct top *t, const struct mdl_session *s, struct mdl *m)
{
	const struct mdl_target target = mdl_target_of(s);
	struct top_second *to = &t->seconds[slot(t)];
	const uint64_t own_ns = own_cpu_ns();
	int err;

	*to = (struct top_second){.window_ns = s->duration_ns, .added_ns = s->cost.added_ns, .lost = s->loss.dropped};
	snprintf(t->title, sizeof(t->title), "%.60s (%" PRIu32 ")%s%.60s", target.comm, target.pid,
		 s->hostname && *s->hostname ? " on " : "", s->hostname ? s->hostname : "");
	t->own_ns = t->own_before_ns ? own_ns - t->own_before_ns : 0;
	t->own_before_ns = own_ns;
	take_rows(t, m);
	take_iterations(t, to, m);
	err = take_finding(t, s, m);
	rate_rows(t);
	t->n++;
	return err;
}

double top_iterations(const struct top *t, unsigned k)
{
	uint64_t n = 0, ns = 0;
	unsigned i;

	for (i = 1; i <= k && i <= t->n && i <= TOP_SECONDS; i++) {
		n += t->seconds[(t->n - i) % TOP_SECONDS].iterations;
		ns += t->seconds[(t->n - i) % TOP_SECONDS].window_ns;
	}
	return ns ? (double)n * 1e9 / (double)ns : 0;
}

void top_fini(struct top *t)
{
	size_t i;

	for (i = 0; i < buf_count(&t->rows, struct top_row); i++)
		free(buf_at(&t->rows, struct top_row, i)->name);
	buf_fini(&t->rows);
	hash_fini(&t->places);
}
