// SPDX-License-Identifier: Apache-2.0
/*
 * The timeline in Perfetto's own format. It is the one of -f chrome (or of another form of it) with the same tracks,
 * slices, arrows, counters and args: features say what their events are, and write args as JSON, which from_json.c
 * reads. Spans are most of a timeline, so most of their args are written without JSON (pftrace_kineto.c has those of
 * PyTorch).
 */
#include <errno.h>
#include <stdlib.h>

#include "view/compat/compat.h"
#include "view/compat/kineto.h"
#include "view/compat/kineto_text.h"
#include "view/timeline/pftrace.h"

static const char *const keys[KEYS] = {
	[SELF_NS] = "self_ns",
	[DEVICE] = "device",
	[LINK] = "link",
	[IN_SEGMENT] = "in_segment",
	[THREAD] = "thread",
	[END_THREAD] = "end_thread",
	[UNWOUND] = "unwound",
	[CPU] = "cpu",
	[END_CPU] = "end_cpu",
	[ON_CPU_US] = "on_cpu_us",
	[RUNQ_US] = "runq_us",
	[BLOCKED_US] = "blocked_us",
	[NVCSW] = "nvcsw",
	[NIVCSW] = "nivcsw",
	[MINFLT] = "minflt",
	[MAJFLT] = "majflt",
	[MIGRATED] = "migrated",
	[EXTERNAL_ID] = "External id",
	[SEQUENCE_NUMBER] = "Sequence number",
	[FWD_THREAD_ID] = "Fwd thread id",
	[RECORD_FUNCTION_ID] = "Record function id",
	[EV_IDX] = "Ev Idx",
};

/* ---- from JSON */

static void pftrace_take(void *ctx, const char *data, size_t n)
{
	struct pftrace *f = ctx;

	f->packets.failed |= buf_put(&f->written, data, n) != 0;
}

static bool has_json(const struct pftrace *f)
{
	return out_bytes(f->json) != f->settled;
}

/* Puts the JSON that has been written into f->written, which the caller empties. Most spans have none. */
static __attribute__((noinline)) void take_json(struct pftrace *f)
{
	struct err e = {0};

	out_flush(f->json, &e);
	f->settled = out_bytes(f->json);
}

/* Turns the JSON that has been written into args of the next event. */
static void put_json(struct pftrace *f)
{
	if (!has_json(f))
		return;
	take_json(f);
	from_json_args(&f->from, f->written.data, f->written.len);
	f->written.len = 0;
}

static void settle_end(struct pftrace *f)
{
	if (f->end.used)
		packets_end(&f->packets, f->end.track, f->end.ts_ns);
	f->end.used = false;
}

/* Forgets numbers of texts if they are not valid any more. */
static void pftrace_forget(struct pftrace *f)
{
	if (f->generation == f->packets.generation)
		return;
	f->generation = f->packets.generation; /* all numbers are new */
	memset(f->of_key, 0, sizeof(f->of_key));
	memset(f->of_class, 0, sizeof(f->of_class));
	hash_clear(&f->names);
	hash_clear(&f->constants);
}

void pftrace_settle(struct pftrace *f)
{
	settle_end(f);
	pftrace_forget(f);
}

static int done(struct pftrace *f, int ret)
{
	settle_end(f);
	if (!ret && (f->packets.failed || f->from.failed))
		ret = err_set(f->s.err, ERR_RUNTIME, -ENOMEM,
			      "not enough memory to write this trace: record a shorter window");
	return ret;
}

void pftrace_put_text(struct pftrace *f, struct view_text text)
{
	if (text.len)
		from_json_args(&f->from, text.data, text.len);
}

void pftrace_put_features(struct pftrace *f, enum view_trace_args place, const struct mxbpf_span *s)
{
	struct view_trace *t = f->inner;

	if (!t->args[place].n)
		return;
	view_trace_args(t, place, s);
	put_json(f);
}

/* ---- events of features */

/* The text has any bytes, and packets have UTF-8. Borrowed until the next text. */
static struct view_text valid(struct pftrace *f, const char *text)
{
	size_t len;

	f->text.len = 0;
	if (!text || view_text_escape(&f->text, text, strlen(text)))
		return (struct view_text){NULL, 0};
	text = from_json_text(&f->from, f->text.data, f->text.len, &len);
	return (struct view_text){text, len};
}

static void write_track(struct view_trace *t, const struct view_track *k)
{
	struct pftrace *f = pftrace_of(t);
	const struct view_text name = valid(f, k->name);
	const struct packets_about about = {.name = name.data,
					    .name_len = name.len,
					    .label = k->label,
					    .label_len = k->label ? strlen(k->label) : 0,
					    .placed = k->placed,
					    .place = k->place};

	settle_end(f);
	if (k->thread)
		packets_about_thread(&f->packets, k->pid, k->tid, &about);
	else
		packets_about_process(&f->packets, k->pid, &about);
}

/* The number of a text that is a constant of the program. */
static uint32_t constant(struct pftrace *f, enum packets_kind kind, const char *text)
{
	uint64_t *at = hash_put(&f->constants, (uintptr_t)text, kind);

	if (!at) {
		f->packets.failed = true;
		return 0;
	}
	if (!*at)
		*at = packets_number(&f->packets, kind, text, strlen(text));
	return (uint32_t)*at;
}

static uint32_t number_of_text(struct pftrace *f, enum packets_kind kind, struct view_text text)
{
	size_t len;
	const char *plain = from_json_text(&f->from, text.data, text.len, &len);

	return packets_number(&f->packets, kind, plain, len);
}

static void begin_event(struct view_trace *t, const struct view_event *e)
{
	static const char scopes[] = " gpt"; /* as in the format: 1 is global */
	struct pftrace *f = pftrace_of(t);

	pftrace_forget(f);
	if (!view_event_is_arrow(e))
		settle_end(f);
	f->track = packets_thread(&f->packets, e->pid, e->tid);
	f->event = (struct packets_event){.type = e->letter == 'X' ? PACKETS_BEGIN : PACKETS_LEGACY,
					  .letter = e->letter,
					  .id = e->id,
					  .enclosing = e->letter == 'f'};
	if (e->scope)
		f->event.scope = (unsigned)(strchr(scopes, e->scope) - scopes);
	if (e->category)
		f->event.category =
			e->fixed ? constant(f, PACKETS_CATEGORY, e->category)
				 : packets_number(&f->packets, PACKETS_CATEGORY, e->category, strlen(e->category));
	f->event.name = e->fixed ? constant(f, PACKETS_NAME, e->name.data) : number_of_text(f, PACKETS_NAME, e->name);
}

#define STARTS_MAX (1u << 16)

/*
 * Where a slice ends. The reader sorts packets by time, and those with the same time by their place in the file. A
 * slice that ends where one before it in the file starts would end that one, so it ends 1 ns earlier.
 */
static uint64_t end_of(struct pftrace *f, uint64_t track, uint64_t start_ns, uint64_t dur_ns)
{
	const bool touches = dur_ns && hash_get(&f->starts, track, start_ns + dur_ns);

	if (f->starts.len >= STARTS_MAX)
		hash_clear(&f->starts);
	f->packets.failed |= !hash_put(&f->starts, track, start_ns);
	return start_ns + dur_ns - touches;
}

static void write_args(struct view_trace *t, const struct view_arg *args, unsigned n)
{
	struct pftrace *f = pftrace_of(t);
	unsigned i;

	for (i = 0; i < n; i++)
		packets_arg_u64(&f->packets, constant(f, PACKETS_KEY, args[i].key),
				args[i].is_signed && (int64_t)args[i].value < 0 ? PACKETS_INT : PACKETS_UINT,
				args[i].value);
}

static void end_event(struct view_trace *t, const struct view_event *e)
{
	struct pftrace *f = pftrace_of(t);
	const uint64_t start_ns = e->ts_ns - t->base_ns;

	put_json(f);
	packets_event(&f->packets, f->track, start_ns, &f->event);
	if (e->letter != 'X')
		return;
	f->end.used = true;
	f->end.track = f->track;
	f->end.ts_ns = end_of(f, f->track, start_ns, e->dur_ns);
}

static uint64_t counter_track(struct pftrace *f, const struct view_counter *c)
{
	size_t len;
	const char *name = from_json_text(&f->from, c->name.data, c->name.len, &len);

	f->text.len = 0;
	f->packets.failed |= buf_put(&f->text, name, len) || buf_put(&f->text, " ", 1) ||
			     buf_put(&f->text, c->unit, strlen(c->unit));
	return f->packets.failed
		       ? 0
		       : packets_counter(&f->packets, c->pid, f->text.data, f->text.len, !strcmp(c->unit, "bytes"));
}

static void write_counter(struct view_trace *t, const struct view_counter *c)
{
	struct pftrace *f = pftrace_of(t);
	const double value = strtod(c->value, NULL);
	const struct packets_event event = {.type = PACKETS_COUNTER, .value = &value};
	const uint64_t key = (uint64_t)c->pid << 32 | c->id;
	uint64_t *known = c->id ? hash_put(&f->counters, (uintptr_t)c->unit, key) : NULL, track;

	settle_end(f);
	track = known && *known ? *known : counter_track(f, c);
	if (known)
		*known = track;
	packets_event(&f->packets, track, c->ts_ns - t->base_ns, &event);
}

static const struct view_event_ops events = {
	.track = write_track, .begin = begin_event, .args = write_args, .end = end_event, .counter = write_counter};

/* Writes the description of the session ("otherData") as metadata. */
static void write_head(struct view_trace *t)
{
	static const char key[] = "\"otherData\":";
	struct pftrace *f = pftrace_of(t);

	view_trace_about(t);
	take_json(f);
	if (f->written.len >= sizeof(key))
		packets_metadata(&f->packets, "mxbpf", f->written.data + sizeof(key) - 1,
				 f->written.len - sizeof(key) + 1);
	f->written.len = 0;
}

/* ---- spans without JSON */

static uint32_t pftrace_key_of(struct pftrace *f, enum pftrace_key key)
{
	if (!f->of_key[key])
		f->of_key[key] = packets_number(&f->packets, PACKETS_KEY, keys[key], strlen(keys[key]));
	return f->of_key[key];
}

void pftrace_put(struct pftrace *f, enum pftrace_key key, enum packets_value how, uint64_t v)
{
	packets_arg_u64(&f->packets, pftrace_key_of(f, key), how, v);
}

static void put_true(struct pftrace *f, enum pftrace_key key)
{
	pftrace_put(f, key, PACKETS_BOOL, 1);
}

static void put_us(struct pftrace *f, enum pftrace_key key, uint64_t ns)
{
	packets_arg_double(&f->packets, pftrace_key_of(f, key), (double)ns / 1000);
}

static void put_numbers(struct pftrace *f, const struct mxbpf_span *s)
{
	char link[24];

	pftrace_put_u64(f, SELF_NS, s->self_ns);
	if (s->device) {
		struct view_text device = view_trace_text(f->inner, s->device, view_text_device);
		size_t len;
		const char *text = from_json_text(&f->from, device.data, device.len, &len);

		packets_arg_text(&f->packets, pftrace_key_of(f, DEVICE), text, len);
	}
	if (s->link) {
		const char *end = view_put_hex(put(link, "0x"), s->link);

		packets_arg_text(&f->packets, pftrace_key_of(f, LINK), link, (size_t)(end - link));
	}
	if (s->flags & MXBPF_SPAN_PART)
		put_true(f, IN_SEGMENT);
}

void pftrace_put_threads(struct pftrace *f, const struct mxbpf_span *s, uint32_t tid)
{
	if (tid != s->tid)
		pftrace_put_u64(f, THREAD, s->tid);
	if (s->end_tid != s->tid)
		pftrace_put_u64(f, END_THREAD, s->end_tid);
	if (s->flags & MXBPF_SPAN_UNWOUND)
		put_true(f, UNWOUND);
}

/* Has the args of view_put_account(). */
void pftrace_put_account(struct pftrace *f, const struct mxbpf_span *s)
{
	const struct mxbpf_account *a = &s->account;
	const uint64_t times[] = {a->on_cpu_ns, a->runq_ns, a->blocked_ns};
	const uint32_t counts[] = {a->nvcsw, a->nivcsw, a->minflt, a->majflt};
	unsigned i;

	if (!(s->flags & MXBPF_SPAN_ACCOUNT))
		return;
	if (s->cpu != MXBPF_CPU_NONE)
		pftrace_put_u64(f, CPU, s->cpu);
	if (a->end_cpu != s->cpu)
		pftrace_put_u64(f, END_CPU, a->end_cpu);
	for (i = 0; i < 3 && a->on_cpu_ns != s->dur_ns; i++)
		if (times[i])
			put_us(f, ON_CPU_US + i, times[i]);
	for (i = 0; i < 4; i++)
		if (counts[i])
			pftrace_put_u64(f, NVCSW + i, counts[i]);
	if (a->flags & MXBPF_ACCOUNT_MIGRATED)
		put_true(f, MIGRATED);
}

uint32_t pftrace_name(struct pftrace *f, const struct mxbpf_span *s)
{
	uint64_t *at = hash_put(&f->names, s->name_id, 0);
	struct view_text name;
	const char *text;
	size_t len;

	if (!at) {
		f->packets.failed = true;
		return 0;
	}
	if (!*at) {
		name = view_trace_text(f->inner, s->name_id, view_text_name);
		text = from_json_text(&f->from, name.data, name.len, &len);
		*at = packets_number(&f->packets, PACKETS_NAME, text, len);
	}
	return (uint32_t)*at;
}

uint32_t pftrace_category(struct pftrace *f, const struct mxbpf_span *s, const char *category, bool fixed)
{
	uint32_t number = fixed && s->cls < PFTRACE_CLASSES ? f->of_class[s->cls] : 0;

	if (number)
		return number;
	number = packets_number(&f->packets, PACKETS_CATEGORY, category, strlen(category));
	if (fixed && s->cls < PFTRACE_CLASSES)
		f->of_class[s->cls] = number;
	return number;
}

static void put_arrows(struct packets *p, const struct view_place *place)
{
	size_t i;

	if (place->arrow_in)
		packets_arrow(p, false, place->arrow_in);
	for (i = 0; i < place->narrows_out; i++)
		if (place->arrows_out[i].arrow)
			packets_arrow(p, true, place->arrows_out[i].arrow);
}

/*
 * The reader sorts packets by time, and those with the same time by their place in the file. The end of a span stands
 * before the start of the next one, because spans are recorded when they end. Of the few for which this does not hold,
 * those that touch another one end earlier by back_ns.
 */
static void write_span(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place)
{
	struct pftrace *f = pftrace_of(t);
	struct packets *p = &f->packets;
	struct packets_event event = {.type = PACKETS_BEGIN};
	const uint64_t back_ns = place->late || t->plan.reorder ? place->back_ns : 0;
	const uint64_t dur_ns = s->dur_ns - (s->dur_ns > back_ns ? back_ns : 0), start_ns = s->h.ts_ns - t->base_ns;
	uint64_t track;

	pftrace_settle(f);
	track = packets_thread(p, s->h.tgid, place->tid);
	/* The category of a call of CUDA depends on its name. */
	event.category = pftrace_category(f, s, view_trace_category(t, s), s->cls != MXBPF_CLASS_CUDA);
	event.name = pftrace_name(f, s);
	pftrace_put_features(f, VIEW_ARGS_FIRST, s);
	put_numbers(f, s);
	pftrace_put_features(f, VIEW_ARGS_NUMBERS, s);
	if (s->layer_id)
		pftrace_put_text(f, view_trace_text(t, s->layer_id, view_text_layer));
	if (s->args_id)
		pftrace_put_text(f, view_trace_text(t, s->args_id, view_text_args));
	pftrace_put_features(f, VIEW_ARGS_CALL, s);
	pftrace_put_threads(f, s, place->tid);
	pftrace_put_account(f, s);
	pftrace_put_features(f, VIEW_ARGS_LAST, s);
	put_arrows(p, place);
	packets_event(p, track, start_ns, &event);
	packets_end(p, track, start_ns + dur_ns);
}

/* ---- the output */

static int pftrace_begin(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;
	const struct view_ops *of = view_for(&view_chrome, s->in->session);
	struct view *inner = calloc(1, of->state_bytes);

	f->inner = (struct view_trace *)inner;
	if (!inner || out_open_take(pftrace_take, f, &f->json))
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	f->of = of;
	f->packets.out = s->out;
	f->from.to = &f->packets;
	*inner = (struct view){.ops = of, .in = s->in, .opts = s->opts, .out = f->json, .err = s->err};
	f->form = of == &view_kineto ? view_kineto_form : view_chrome_form;
	f->form.span = of == &view_kineto ? pftrace_kineto_span : write_span;
	f->form.head = write_head;
	f->form.events = &events;
	return view_trace_begin(inner, &f->form);
}

static int pftrace_survey(struct view *s, const struct mxbpf_rec *r)
{
	struct pftrace *f = (struct pftrace *)s;

	return f->of->survey(&f->inner->s, r);
}

static int pftrace_surveyed(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;

	return done(f, f->of->surveyed(&f->inner->s));
}

static int pftrace_record(struct view *s, const struct mxbpf_rec *r)
{
	struct pftrace *f = (struct pftrace *)s;
	const int ret = f->of->record(&f->inner->s, r);

	return !ret && (f->packets.failed || f->from.failed) ? done(f, ret) : ret;
}

static int pftrace_end(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;

	return done(f, f->of->end(&f->inner->s));
}

static void pftrace_fini(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;

	if (f->of)
		f->of->fini(&f->inner->s);
	free(f->inner);
	out_abort(f->json);
	buf_fini(&f->written);
	buf_fini(&f->text);
	hash_fini(&f->names);
	hash_fini(&f->constants);
	hash_fini(&f->counters);
	hash_fini(&f->starts);
	from_json_fini(&f->from);
	packets_fini(&f->packets);
}

static const char *const suffixes[] = {".pftrace", ".pftrace.gz", NULL};
/* Perfetto writes files with this suffix, too. These are the first words of the metadata, which come first. */
static const char *const magic[] = {"{\"mxbpf_version\":", NULL};

const struct view_ops view_pftrace = {
	.name = "pftrace",
	.help = "timeline in Perfetto's own format, which is smaller",
	.suffixes = suffixes,
	.magic = magic,
	.binary = true,
	.needs_records = true,
	.by_process = true,
	.state_bytes = sizeof(struct pftrace),
	.begin = pftrace_begin,
	.survey = pftrace_survey,
	.surveyed = pftrace_surveyed,
	.record = pftrace_record,
	.end = pftrace_end,
	.fini = pftrace_fini,
};
