// SPDX-License-Identifier: Apache-2.0
/*
 * The timeline in Perfetto's own format. It is the one of -f chrome (or of another form of it) with the same tracks,
 * slices, arrows, counters and args, because it is made of that: the writer of JSON writes to from_json.c. Spans are
 * most of a timeline, so those become packets without JSON (pftrace_kineto.c has those of PyTorch).
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
	[TOTAL_RESERVED] = "Total Reserved",
	[TOTAL_ALLOCATED] = "Total Allocated",
	[BYTES] = "Bytes",
	[DEVICE_ID] = "Device Id",
	[DEVICE_TYPE] = "Device Type",
	[ADDR] = "Addr",
};

/* ---- from JSON */

static void take(void *ctx, const char *data, size_t n)
{
	struct pftrace *f = ctx;

	if (!f->of_args)
		from_json_take(&f->from, data, n);
	else
		f->packets.failed |= buf_put(&f->args, data, n) != 0;
}

/* Sets what the JSON is that has been written, and hands it over. */
static __attribute__((noinline)) void hand_over(struct pftrace *f, bool of_args)
{
	struct err e = {0};

	f->of_args = of_args;
	out_flush(f->json, &e);
	f->of_args = false;
	f->settled = out_bytes(f->json);
}

/* Turns the JSON that has been written into packets. It must be complete events. */
static void settle(struct pftrace *f)
{
	if (out_bytes(f->json) == f->settled)
		return;
	hand_over(f, false);
	from_json_settle(&f->from);
}

void pftrace_settle(struct pftrace *f)
{
	settle(f);
	if (f->generation == f->packets.generation)
		return;
	f->generation = f->packets.generation; /* all numbers are new */
	memset(f->of_key, 0, sizeof(f->of_key));
	memset(f->of_class, 0, sizeof(f->of_class));
	hash_clear(&f->names);
}

static int done(struct pftrace *f, int ret)
{
	settle(f);
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
	if (out_bytes(f->json) == f->settled)
		return;
	f->args.len = 0;
	hand_over(f, true);
	from_json_args(&f->from, f->args.data, f->args.len);
}

/* ---- spans without JSON */

static uint32_t key_of(struct pftrace *f, enum pftrace_key key)
{
	if (!f->of_key[key])
		f->of_key[key] = packets_number(&f->packets, PACKETS_KEY, keys[key], strlen(keys[key]));
	return f->of_key[key];
}

void pftrace_put(struct pftrace *f, enum pftrace_key key, enum packets_value how, uint64_t v)
{
	packets_arg_u64(&f->packets, key_of(f, key), how, v);
}

static void put_true(struct pftrace *f, enum pftrace_key key)
{
	pftrace_put(f, key, PACKETS_BOOL, 1);
}

static void put_us(struct pftrace *f, enum pftrace_key key, uint64_t ns)
{
	packets_arg_double(&f->packets, key_of(f, key), (double)ns / 1000);
}

static void put_numbers(struct pftrace *f, const struct mxbpf_span *s)
{
	char link[24];

	pftrace_put_u64(f, SELF_NS, s->self_ns);
	if (s->device) {
		struct view_text device = view_trace_text(f->inner, s->device, view_text_device);
		size_t len;
		const char *text = from_json_text(&f->from, device.data, device.len, &len);

		packets_arg_text(&f->packets, key_of(f, DEVICE), text, len);
	}
	if (s->link) {
		const char *end = view_put_hex(put(link, "0x"), s->link);

		packets_arg_text(&f->packets, key_of(f, LINK), link, (size_t)(end - link));
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

/* Writes the counter of view_put_live(). */
void pftrace_put_live(struct pftrace *f, const struct view_plan_alloc *a, uint64_t live_bytes)
{
	const double value = (double)live_bytes;
	const struct packets_event event = {.type = PACKETS_COUNTER, .value = &value};
	uint64_t *track = hash_put(&f->live, a->tgid, a->device);
	struct view_text device;
	const char *text;
	size_t len;

	if (!track) {
		f->packets.failed = true;
		return;
	}
	if (!*track) {
		device = view_trace_text(f->inner, a->device, view_text_device);
		text = from_json_text(&f->from, device.data, device.len, &len);
		f->args.len = 0;
		if (buf_printf(&f->args, "memory %.*s bytes", (int)len, text))
			f->packets.failed = true;
		*track = packets_counter(&f->packets, a->tgid, f->args.data, f->args.len, true);
	}
	packets_event(&f->packets, *track, a->ts_ns - f->inner->base_ns, &event);
}

static void write_alloc(struct view_trace *t, const struct view_plan_alloc *a, uint64_t live_bytes)
{
	pftrace_settle(pftrace_of(t));
	pftrace_put_live(pftrace_of(t), a, live_bytes);
}

/* ---- the output */

static int pftrace_begin(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;
	const struct view_ops *of = view_for(&view_chrome, s->in->session);
	struct view *inner = calloc(1, of->state_bytes);

	f->inner = (struct view_trace *)inner;
	if (!inner || out_open_take(take, f, &f->json))
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	f->of = of;
	f->packets.out = s->out;
	f->from.to = &f->packets;
	*inner = (struct view){.ops = of, .in = s->in, .opts = s->opts, .out = f->json, .err = s->err};
	f->form = of == &view_kineto ? view_kineto_form : view_chrome_form;
	f->form.span = of == &view_kineto ? pftrace_kineto_span : write_span;
	f->form.alloc = of == &view_kineto ? pftrace_kineto_alloc : write_alloc;
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
	buf_fini(&f->args);
	hash_fini(&f->names);
	hash_fini(&f->live);
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
