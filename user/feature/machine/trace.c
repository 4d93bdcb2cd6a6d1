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

static int text_scope(struct view_trace *t, uint64_t scope, struct buf *b)
{
	size_t len;
	const char *name = machine_scope_name(t->s.in->model, (uint16_t)scope, &len);

	return view_text_escape(b, name, len);
}

/* Perfetto shows "name key": "cgroup: memory bytes". A gauge that several groups can have bears the name of its group.
 */
static void write_counter(struct view_trace *t, const struct mxbpf_gauge *g, uint64_t ts_ns, const char *value)
{
	static const char *const keys[] = {[MACHINE_TRACK_PERCENT] = "%", [MACHINE_TRACK_CPUS] = "CPUs"};
	const struct machine_gauge *gauge = &machine_gauges[g->id];
	struct view_text name = {"", 0};
	char process[16];

	if (gauge->of == MACHINE_OF_GROUPS)
		name = view_trace_text(t, g->scope, text_scope);
	snprintf(process, sizeof(process), "%u", VIEW_MACHINE_PID);
	out_printf(t->s.out, ",\n{\"ph\":\"C\",\"pid\":%s,\"tid\":%u,\"ts\":%llu.%03u,\"name\":\"%s%s",
		   t->form->process_json ? t->form->process_json : process, VIEW_MACHINE_PID,
		   (unsigned long long)(ts_ns - t->base_ns) / 1000, (unsigned)((ts_ns - t->base_ns) % 1000),
		   gauge->of == MACHINE_OF_MACHINE ? "machine" : "cgroup", name.len ? " " : "");
	out_write(t->s.out, name.data, name.len);
	out_printf(t->s.out, ": %s\",\"args\":{\"%s\":%s}}", gauge->title,
		   gauge->track == MACHINE_TRACK_VALUE ? machine_units[gauge->unit] : keys[gauge->track], value);
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
	if (t->form->process_json)
		return;
	out_printf(t->s.out,
		   ",\n{\"ph\":\"M\",\"ts\":0.000,\"pid\":%u,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":"
		   "\"machine\"}},\n{\"ph\":\"M\",\"ts\":0.000,\"pid\":%u,\"tid\":0,\"name\":\"process_sort_index\","
		   "\"args\":"
		   "{\"sort_index\":%d}}",
		   VIEW_MACHINE_PID, VIEW_MACHINE_PID, LAST_PROCESS);
}

static int survey(struct view_trace *t, void *state, const struct mxbpf_rec *r)
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

static void fini(void *state)
{
	buf_fini(&((struct state *)state)->readings);
}

const struct view_trace_feature machine_trace = {
	.state_bytes = sizeof(struct state),
	.kinds = {MXBPF_GAUGE},
	.survey = survey,
	.before = write_gauges,
	.fini = fini,
};
