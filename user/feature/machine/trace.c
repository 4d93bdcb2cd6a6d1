// SPDX-License-Identifier: Apache-2.0
/* Gauges of the machine, as counters of a timeline. */
#include "feature/machine/machine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "view/timeline/trace.h"

#define LAST_PROCESS 2000000000 /* processes of the job have their pid as index, or none */

struct state {
	struct buf readings; /* struct mxbpf_gauge, MXBPF_GAUGE_BYTES_MIN bytes each */
};

/* The previous reading of a gauge. */
struct last {
	uint64_t value, ns;
};

/* A gauge that several groups can have bears the name of its group. key: the number of the gauge above its scope. */
static int text_counter(struct view_trace *t, uint64_t key, struct buf *b)
{
	const struct machine_gauge *gauge = &machine_gauges[key >> 16];
	const char *scope = NULL;
	size_t len = 0;
	int err;

	if (gauge->of == MACHINE_OF_GROUPS)
		scope = machine_scope_name(t->s.in->model, (uint16_t)key, &len);
	err = buf_printf(b, "%s%s", gauge->of == MACHINE_OF_MACHINE ? "machine" : "cgroup", len ? " " : "");
	err = err || !len ? err : view_text_escape(b, scope, len);
	return err ? err : buf_printf(b, ": %s", gauge->title);
}

static void write_counter(struct view_trace *t, const struct mxbpf_gauge *g, uint64_t ts_ns, const char *value)
{
	static const char *const keys[] = {[MACHINE_TRACK_PERCENT] = "%", [MACHINE_TRACK_CPUS] = "CPUs"};
	const struct machine_gauge *gauge = &machine_gauges[g->id];
	const struct view_counter c = {.pid = VIEW_MACHINE_PID,
				       .tid = VIEW_MACHINE_PID,
				       .ts_ns = ts_ns,
				       .name = view_trace_text(t, (uint64_t)g->id << 16 | g->scope, text_counter),
				       .unit = gauge->track == MACHINE_TRACK_VALUE ? machine_units[gauge->unit]
										   : keys[gauge->track],
				       .value = value};

	view_counter(t, &c);
}

/* The rate since the previous reading, drawn from that reading on. It is 0 over a pause, which is not measured. */
static void write_rate(struct view_trace *t, const struct mxbpf_gauge *g, const struct last *last)
{
	const double scale = machine_gauges[g->id].track == MACHINE_TRACK_PERCENT ? 100 : 1;
	double rose = g->value > last->value ? (double)(g->value - last->value) : 0;
	double passed = (double)(g->h.ts_ns - last->ns);
	char value[64];

	if (g->flags & MXBPF_GAUGE_RESUMED)
		rose = 0;
	snprintf(value, sizeof(value), "%.3f", scale * rose / passed);
	write_counter(t, g, last->ns, value);
}

static void write_gauge(struct view_trace *t, const struct mxbpf_gauge *g, struct last *last)
{
	const struct machine_row *row = machine_row(t->s.in->model, g->id, g->scope);
	bool rate = machine_gauges[g->id].track != MACHINE_TRACK_VALUE;
	char value[32];

	/* A rate that is 0 all the time needs no track. */
	if (rate && last->ns && g->h.ts_ns > last->ns && row && row->difference)
		write_rate(t, g, last);
	snprintf(value, sizeof(value), "%llu", (unsigned long long)g->value);
	if (!rate && g->value != MXBPF_GAUGE_NO_LIMIT)
		write_counter(t, g, g->h.ts_ns, value);
	*last = (struct last){g->value, g->h.ts_ns};
}

/*
 * The gauges belong to no process of the job. As a process of their own, behind the others, they do not stand between
 * the threads of a process and its memory.
 */
static void write_process(struct view_trace *t)
{
	static const struct view_track k = {
		.pid = VIEW_MACHINE_PID, .name = "machine", .placed = true, .place = LAST_PROCESS};

	if (!t->form->process_json)
		view_track(t, &k);
}

static int machine_survey(struct view_trace *t, void *state, const struct mxbpf_rec *r)
{
	return buf_put(&((struct state *)state)->readings, r, MXBPF_GAUGE_BYTES_MIN);
}

static int write_gauges(struct view_trace *t, void *state)
{
	const struct buf *readings = &((struct state *)state)->readings;
	size_t i, n = readings->len / MXBPF_GAUGE_BYTES_MIN;
	struct buf lasts = {0};
	struct hash place = {0};
	static const struct last none;
	uint64_t *at;

	if (n)
		write_process(t);
	for (i = 0; i < n; i++) {
		const struct mxbpf_gauge *g = (const void *)(readings->data + i * MXBPF_GAUGE_BYTES_MIN);

		if (!g->id || g->id >= MXBPF_GAUGE_IDS || !machine_gauges[g->id].track || g->h.ts_ns < t->base_ns)
			continue;
		at = hash_put(&place, g->id, g->scope);
		if (!at || (!*at && buf_put(&lasts, &none, sizeof(none))))
			break;
		if (!*at)
			*at = buf_count(&lasts, struct last);
		write_gauge(t, g, buf_at(&lasts, struct last, *at - 1));
	}
	hash_fini(&place);
	buf_fini(&lasts);
	return i < n ? -ENOMEM : 0;
}

static void machine_trace_fini(void *state)
{
	buf_fini(&((struct state *)state)->readings);
}

const struct view_trace_feature machine_trace = {
	.state_bytes = sizeof(struct state),
	.kinds = {MXBPF_GAUGE},
	.survey = machine_survey,
	.before = write_gauges,
	.fini = machine_trace_fini,
};
