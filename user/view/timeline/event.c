// SPDX-License-Identifier: Apache-2.0
/* Events of a timeline as Chrome's JSON. */
#include "view/timeline/trace.h"

static void begin_track(struct view_trace *t, const struct view_track *k, const char *what)
{
	out_printf(t->s.out, "%s\n{\"ph\":\"M\",\"name\":\"%s_%s\",\"ts\":0.000,\"pid\":%u,\"tid\":%u,\"args\":{",
		   t->begun ? "," : "", k->thread ? "thread" : "process", what, k->pid, k->thread ? k->tid : 0);
	t->begun = true;
}

static void write_track(struct view_trace *t, const struct view_track *k)
{
	if (k->name) {
		begin_track(t, k, "name");
		out_puts(t->s.out, "\"name\":");
		view_trace_string(t, k->name);
		out_puts(t->s.out, "}}");
	}
	if (k->label) {
		begin_track(t, k, "labels");
		out_puts(t->s.out, "\"labels\":");
		view_trace_string(t, k->label);
		out_puts(t->s.out, "}}");
	}
	if (k->placed) {
		begin_track(t, k, "sort_index");
		out_printf(t->s.out, "\"sort_index\":%lld}}", (long long)k->place);
	}
}

static void begin_event(struct view_trace *t, const struct view_event *e)
{
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p;

	p = put(start, ",\n{\"ph\":\"");
	*p++ = e->letter;
	p = put(p, e->letter == 'f' ? "\",\"bp\":\"e\"," : "\",");
	if (view_event_is_arrow(e))
		p = put(view_put_u64(put(p, "\"id\":"), e->id), ",");
	p = view_put_where(t, p, e->pid, e->tid, e->ts_ns);
	if (e->letter == 'X')
		p = view_put_us(put(p, ",\"dur\":"), e->dur_ns);
	if (e->scope) {
		p = put(p, ",\"s\":\"");
		*p++ = e->scope;
		*p++ = '"';
	}
	if (e->category)
		p = put(put(put(p, ",\"cat\":\""), e->category), "\"");
	p = put(p, ",\"name\":\"");
	out_filled(t->s.out, (size_t)(p - start));
	out_write(t->s.out, e->name.data, e->name.len);
	out_puts(t->s.out, view_event_is_arrow(e) ? "\"" : "\",\"args\":{");
}

static void write_args(struct view_trace *t, const struct view_arg *args, unsigned n)
{
	char *start, *p;
	unsigned i;

	for (i = 0; i < n; i++) {
		start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
		p = put(put(put(start, i ? ",\"" : "\""), args[i].key), "\":");
		p = args[i].is_signed ? view_put_i64(p, (int64_t)args[i].value) : view_put_u64(p, args[i].value);
		out_filled(t->s.out, (size_t)(p - start));
	}
}

static void end_event(struct view_trace *t, const struct view_event *e)
{
	out_puts(t->s.out, view_event_is_arrow(e) ? "}" : "}}");
}

static void write_counter(struct view_trace *t, const struct view_counter *c)
{
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p;

	p = put(start, ",\n{\"ph\":\"C\",");
	if (t->form->process_json) { /* its counters are those of the machine */
		p = put(put(p, "\"pid\":"), t->form->process_json);
		p = view_put_u64(put(p, ",\"tid\":"), c->tid);
		p = view_put_us(put(p, ",\"ts\":"), c->ts_ns - t->base_ns);
	} else {
		p = view_put_where(t, p, c->pid, c->tid, c->ts_ns);
	}
	if (c->category)
		p = put(put(put(p, ",\"cat\":\""), c->category), "\"");
	p = put(p, ",\"name\":\"");
	out_filled(t->s.out, (size_t)(p - start));
	out_write(t->s.out, c->name.data, c->name.len);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = put(put(put(start, "\",\"args\":{\""), c->unit), "\":");
	p = put(put(p, c->value), "}}");
	out_filled(t->s.out, (size_t)(p - start));
}

static const struct view_event_ops json_ops = {
	.track = write_track, .begin = begin_event, .args = write_args, .end = end_event, .counter = write_counter};

static const struct view_event_ops *ops_of(const struct view_trace *t)
{
	return t->form->events ? t->form->events : &json_ops;
}

void view_track(struct view_trace *t, const struct view_track *k)
{
	ops_of(t)->track(t, k);
}

void view_trace_name_track(struct view_trace *t, uint32_t pid, uint32_t tid, const char *name, int64_t place)
{
	const struct view_track k = {pid, tid, .thread = true, .name = name, .placed = true, .place = place};

	view_track(t, &k);
}

void view_event_begin(struct view_trace *t, const struct view_event *e)
{
	ops_of(t)->begin(t, e);
}

void view_args(struct view_trace *t, const struct view_arg *args, unsigned n)
{
	ops_of(t)->args(t, args, n);
}

void view_event_end(struct view_trace *t, const struct view_event *e)
{
	ops_of(t)->end(t, e);
}

void view_event(struct view_trace *t, const struct view_event *e)
{
	view_event_begin(t, e);
	view_event_end(t, e);
}

void view_counter(struct view_trace *t, const struct view_counter *c)
{
	ops_of(t)->counter(t, c);
}
