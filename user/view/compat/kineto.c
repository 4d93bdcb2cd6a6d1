// SPDX-License-Identifier: Apache-2.0
/*
 * The timeline of a PyTorch session in the conventions of Kineto, which writes the traces of torch.profiler. Tools that
 * read those traces read this one: HTA, TensorBoard's plugin, Perfetto. Kineto decides names and order of members.
 */
#include "view/compat/kineto.h"
#include "view/compat/kineto_steps.h"
#include "view/compat/kineto_text.h"
#include "view/timeline/trace.h"

#include <errno.h>
#include <stdio.h>

struct kineto {
	struct view_trace t;
	struct view_numbers numbers;
	struct view_steps steps;
	bool own_steps; /* the program marks its steps itself: it runs under torch.profiler */
	size_t alloc;	/* number of allocations that are written */
};

/* ---- before the spans */

static void write_head(struct view_trace *t)
{
	const struct kineto *k = (const struct kineto *)t;
	const struct mdl_session *s = t->s.in->session;
	struct out *o = t->s.out;

	out_puts(o, "{\"schemaVersion\":1,");
	view_trace_devices(t);
	out_puts(o, ",\n\"host_name\":");
	view_trace_string(t, s->hostname);
	view_trace_rank(t);
	if (s->mem_title)
		out_puts(o, ",\"profile_memory\":1");
	if (k->numbers.args)
		out_puts(o, ",\"record_shapes\":1");
	if (k->numbers.stacks)
		out_puts(o, ",\"with_stack\":1");
	out_printf(o, ",\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%llu,\n",
		   (unsigned long long)view_trace_base_unix_ns(t));
	view_trace_about(t);
	out_puts(o, ",\n\"traceEvents\":[");
}

static void write_process(struct view_trace *t, uint32_t tgid)
{
	char name[VIEW_PROCESS_BYTES];
	const struct view_track k = {.pid = tgid,
				     .name = view_trace_process_name(t, tgid, name),
				     .label = "CPU",
				     .placed = true,
				     .place = tgid};

	view_track(t, &k);
}

static void write_thread(struct view_trace *t, const struct view_plan_track *k, size_t place)
{
	char lane[32], name[64];

	snprintf(name, sizeof(name), "thread %u (%s)", k->tid, view_trace_track_name(t, k, lane));
	/* A lane is no thread, and its id says nothing. */
	view_trace_name_track(t, k->tgid, k->tid, k->lane ? lane : name, (int64_t)place);
}

static uint32_t number_of_alloc(struct view_trace *t)
{
	struct kineto *k = (struct kineto *)t;

	return *buf_at(&k->numbers.of_alloc, uint32_t, k->alloc++);
}

/*
 * The instant that torch.profiler writes, and a counter, because Perfetto draws counters. torch.profiler gives the
 * instant the scope of its thread, and Perfetto draws it among the thread's operators. In a trace of 100,000
 * allocations they cannot be read any more. With the scope of the process, Perfetto draws all instants on a track of
 * their own. TensorBoard's plugin needs the thread, to find the operator that allocated, and takes it from "tid" in any
 * scope.
 */
static void write_alloc(struct view_trace *t, const struct view_plan_alloc *a, uint64_t live_bytes)
{
	const unsigned type = MXBPF_DEVICE_TYPE(a->device);
	const struct view_event e = {.letter = 'i',
				     .pid = a->tgid,
				     .tid = a->tid,
				     .ts_ns = a->ts_ns,
				     .category = "cpu_instant_event",
				     .name = view_text_of("[memory]"),
				     .scope = 'p',
				     .fixed = true};
	const int64_t id = type == KINETO_CPU ? -1 : (int64_t)MXBPF_DEVICE_ID(a->device);
	const struct view_arg args[] = {
		{"Total Reserved", a->pool_bytes, false},
		{"Total Allocated", a->counted ? a->total_bytes : live_bytes, false},
		{"Bytes", (uint64_t)a->bytes, true},
		{"Device Id", (uint64_t)id, true},
		{"Device Type", (uint64_t)type - 1, true},
		{"Addr", a->addr, false},
		{"Ev Idx", number_of_alloc(t), false},
	};

	view_event_begin(t, &e);
	view_args(t, args, sizeof(args) / sizeof(args[0]));
	view_event_end(t, &e);
	view_trace_memory(t, a, "bytes", live_bytes);
}

/* ---- spans */

struct view_number view_kineto_number(const struct view_trace *t, uint64_t ordinal)
{
	const struct buf *of_span = &((const struct kineto *)t)->numbers.of_span;

	/* The recording may have grown since the first pass. */
	if (ordinal >= buf_count(of_span, struct view_number))
		return (struct view_number){0};
	return *buf_at(of_span, struct view_number, ordinal);
}

const char *view_kineto_category(const struct view_trace *t, const struct mxbpf_span *s)
{
	return s->flags & MXBPF_SPAN_USER ? "user_annotation" : view_trace_category(t, s);
}

static void write_detail(struct view_trace *t, uint64_t id, view_text_fn make)
{
	struct view_text text = {"", 0};

	if (id)
		text = view_trace_text(t, id, make);
	out_write(t->s.out, text.data, text.len);
}

static void write_args(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place,
		       const struct view_number *nr)
{
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p;

	/* A call of CUDA is no operator, so it has no id of one. */
	if (s->cls == MXBPF_CLASS_CUDA) {
		p = view_put_u64(put(start, ",\"args\":{\"Ev Idx\":"), nr->ev_idx);
		p = view_put_account(view_put_threads(p, s, place->tid), s);
		out_filled(t->s.out, (size_t)(p - start));
		view_trace_args(t, VIEW_ARGS_NUMBERS, s);
		out_puts(t->s.out, "}}");
		return;
	}
	p = put(start, ",\"args\":{\"External id\":");
	p = view_put_u64(p, nr->external_id);
	if (s->flags & MXBPF_SPAN_SEQ) {
		p = put(p, ",\"Sequence number\":");
		p = view_put_u64(p, MXBPF_SEQ_NR(s->seq));
		p = put(p, ",\"Fwd thread id\":");
		p = view_put_u64(p, s->flags & MXBPF_SPAN_BACKWARD ? MXBPF_SEQ_THREAD(s->seq) : 0);
	}
	p = put(p, ",\"Record function id\":0");
	if (s->args_id || s->stack_id || s->layer_id) {
		out_filled(t->s.out, (size_t)(p - start));
		write_detail(t, s->args_id, view_text_args);
		write_detail(t, s->stack_id, view_text_stack);
		write_detail(t, s->layer_id, view_text_layer);
		start = p = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	}
	p = view_put_account(view_put_threads(p, s, place->tid), s);
	if (t->args[VIEW_ARGS_NUMBERS].n) {
		out_filled(t->s.out, (size_t)(p - start));
		view_trace_args(t, VIEW_ARGS_NUMBERS, s);
		start = p = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	}
	p = put(p, ",\"Ev Idx\":");
	p = view_put_u64(p, nr->ev_idx);
	p = put(p, "}}");
	out_filled(t->s.out, (size_t)(p - start));
}

/* An arrow has the start time of its span and stands behind it in the file: so viewers find the span. */
void view_kineto_arrow(struct view_trace *t, const struct mxbpf_span *s, uint32_t tid, uint32_t id)
{
	const struct view_event e = {.letter = s->flags & MXBPF_SPAN_BACKWARD ? 'f' : 's',
				     .pid = s->h.tgid,
				     .tid = tid,
				     .ts_ns = s->h.ts_ns,
				     .category = "fwdbwd",
				     .name = view_text_of("fwdbwd"),
				     .id = id};

	view_event(t, &e);
}

static void write_span(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place)
{
	const struct view_number nr = view_kineto_number(t, place->ordinal);
	struct view_text name = view_trace_text(t, s->name_id, view_text_name);
	char *start, *p;

	out_printf(t->s.out, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"", view_kineto_category(t, s));
	out_write(t->s.out, name.data, name.len);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = put(start, "\",");
	p = view_put_where(t, p, s->h.tgid, place->tid, s->h.ts_ns);
	p = put(p, ",\"dur\":");
	p = view_put_us(p, s->dur_ns - (s->dur_ns > place->back_ns ? place->back_ns : 0));
	out_filled(t->s.out, (size_t)(p - start));
	write_args(t, s, place, &nr);
	if (nr.arrow)
		view_kineto_arrow(t, s, place->tid, nr.arrow);
}

/*
 * A step starts 2 ns after the end of the previous one and ends 1 ns late. Readers add start and duration as doubles:
 * with these margins the step encloses the optimizer's step at its end and does not touch the next one.
 */
static void write_steps(struct kineto *k)
{
	uint32_t external_id = (uint32_t)k->t.plan.nspans;
	struct view_steps_pos pos = {0};
	struct view_step step;
	struct view_event e = {.letter = 'X', .category = "user_annotation"};
	char name[48];

	/* After a pause, one step would stand for several. */
	if (k->own_steps || k->t.s.in->session->paused_ns)
		return;
	while (view_steps_next(&k->steps, &pos, &step)) {
		if (step.end_ns <= step.start_ns + 1) /* from spans that cross: no thread can have them */
			continue;
		snprintf(name, sizeof(name), "ProfilerStep#%u", step.nr);
		e.pid = step.tgid;
		e.tid = step.tid;
		e.ts_ns = step.start_ns + 2;
		e.dur_ns = step.end_ns - step.start_ns - 1;
		e.name = view_text_of(name);
		view_event_begin(&k->t, &e);
		out_printf(k->t.s.out, "\"External id\":%u,\"Record function id\":0,\"synthesised\":true",
			   ++external_id);
		view_event_end(&k->t, &e);
	}
}

/*
 * Spans that have not ended limit the steps as others do. Without this, a step that ends in an open annotation would
 * cross it, and Perfetto drops slices that cross.
 */
static int survey_opens(struct kineto *k)
{
	const struct mxbpf_open *o;
	struct view_place place;
	size_t i;

	for (i = 0; (o = view_plan_open(&k->t.plan, i, &place)); i++) {
		struct mxbpf_span s = {.h = o->h, .dur_ns = o->open_ns - place.back_ns, .tid = o->tid};

		if (place.tid == o->tid && o->open_ns > place.back_ns && view_steps_survey(&k->steps, &s, false))
			return -ENOMEM;
	}
	return 0;
}

/* ---- the output */

/* Returns whether the span is an annotation whose name begins with prefix. */
static bool has_prefix(const struct kineto *k, const struct mxbpf_span *s, const char *prefix)
{
	return (s->flags & MXBPF_SPAN_USER) &&
	       !strncmp(mdl_name(k->t.s.in->model, s->name_id, NULL), prefix, strlen(prefix));
}

static uint32_t external_id(const struct view_trace *t, uint64_t ordinal)
{
	return view_kineto_number(t, ordinal).external_id;
}

const struct view_form view_kineto_form = {
	.head = write_head,
	.process = write_process,
	.thread = write_thread,
	.alloc = write_alloc,
	.span = write_span,
	.external_id = external_id,
	.own_iterations = true,
	.memory_in_process = true,
};

static int kineto_begin(struct view *s)
{
	return view_trace_begin(s, &view_kineto_form);
}

static int kineto_survey(struct view *s, const struct mxbpf_rec *r)
{
	struct kineto *k = (struct kineto *)s;
	struct mxbpf_span span;
	int ret = view_trace_survey(s, r);

	if (ret || r->kind != MXBPF_SPAN)
		return ret;
	kind_span(r, &span);
	ret = view_numbers_survey(&k->numbers, &span);
	/* Calls of CUDA come late, and are in an iteration or outside. */
	if (!ret && span.cls != MXBPF_CLASS_CUDA)
		ret = view_steps_survey(&k->steps, &span, has_prefix(k, &span, "Optimizer.step#"));
	k->own_steps |= has_prefix(k, &span, "ProfilerStep#");
	return ret ? view_trace_no_memory(&k->t) : 0;
}

static int kineto_surveyed(struct view *s)
{
	struct kineto *k = (struct kineto *)s;
	int ret = view_trace_plan(&k->t);

	if (ret)
		return ret;
	if (survey_opens(k) || view_numbers_finish(&k->numbers, &k->t.plan))
		return view_trace_no_memory(&k->t);
	/* This form draws these arrows only. */
	k->t.plan.narrows = k->numbers.narrows;
	k->t.plan.nedges = (uint64_t)k->numbers.narrows + k->numbers.nlonely;
	k->t.form->head(&k->t);
	view_trace_tracks(&k->t);
	return view_trace_before(&k->t);
}

static int kineto_end(struct view *s)
{
	int ret = view_trace_late((struct view_trace *)s);
	char name[320];

	write_steps((struct kineto *)s);
	view_trace_after((struct view_trace *)s);
	/* TensorBoard's plugin expects a name of this form. */
	snprintf(name, sizeof(name), "%s_%u.pt.trace.json", s->in->session->hostname, s->in->session->pid);
	out_puts(s->out, "\n],\"traceName\":");
	view_put_json_exact(s->out, name, strlen(name));
	out_puts(s->out, "}\n");
	return ret;
}

static void kineto_fini(struct view *s)
{
	view_numbers_fini(&((struct kineto *)s)->numbers);
	view_steps_fini(&((struct kineto *)s)->steps);
	view_trace_fini(s);
}

const struct view_ops view_kineto = {
	.name = "kineto",
	.help = "the form of -f chrome that torch's tools read",
	.needs_records = true,
	.by_process = true,
	.state_bytes = sizeof(struct kineto),
	.begin = kineto_begin,
	.survey = kineto_survey,
	.surveyed = kineto_surveyed,
	.record = view_trace_record,
	.end = kineto_end,
	.fini = kineto_fini,
};
