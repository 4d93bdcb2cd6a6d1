// SPDX-License-Identifier: Apache-2.0
/*
 * The timeline in Perfetto's own format. It is the one of -f chrome (or of another form of it) with the same tracks,
 * slices, arrows, counters and args, because it is made of that: the writer of JSON writes to from_json.c. Spans are
 * most of a timeline, so those of the form chrome become packets without JSON.
 */
#include <errno.h>
#include <stdlib.h>

#include "view/compat/kineto_text.h"
#include "view/timeline/from_json.h"
#include "view/timeline/trace.h"

/* Args of a span, in the words of -f chrome. */
enum key {
	SELF_NS,
	DEVICE,
	LINK,
	IN_SEGMENT,
	THREAD,
	END_THREAD,
	UNWOUND,
	CPU,
	END_CPU,
	ON_CPU_US,
	RUNQ_US,
	BLOCKED_US,
	NVCSW,
	NIVCSW,
	MINFLT,
	MAJFLT,
	MIGRATED,
	KEYS,
};
static const char *const keys[KEYS] = {
	"self_ns",   "device",	"link",	      "in_segment", "thread", "end_thread", "unwound", "cpu",	   "end_cpu",
	"on_cpu_us", "runq_us", "blocked_us", "nvcsw",	    "nivcsw", "minflt",	    "majflt",  "migrated",
};

#define CLASSES 64 /* more than the largest class */

struct pftrace {
	struct view s;
	const struct view_ops *of; /* the form of JSON */
	struct inner *inner;	   /* owned; its state */
	struct view_form form;	   /* of the inner timeline, with another function for spans */
	struct out *json;	   /* owned; the inner timeline writes to it */
	uint64_t settled;	   /* bytes of JSON that are packets already */
	bool of_args;		   /* what comes are args of a span, not events */
	struct buf args;
	struct from_json from;
	struct packets packets;

	unsigned generation; /* of the numbers below */
	uint32_t of_key[KEYS], of_class[CLASSES];
	struct hash names; /* id -> number */
	struct hash live;  /* (process, device) -> track of its live memory */
};

/* The state of the form chrome, with the way back. Other forms have a state of their own, and do not need it. */
struct inner {
	struct view_trace t;
	struct pftrace *outer;
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

/* What has been written are complete events. */
static void settle(struct pftrace *f)
{
	if (out_bytes(f->json) == f->settled)
		return;
	hand_over(f, false);
	from_json_settle(&f->from);
}

static int done(struct pftrace *f, int ret)
{
	settle(f);
	if (!ret && (f->packets.failed || f->from.failed))
		ret = err_set(f->s.err, ERR_RUNTIME, -ENOMEM,
			      "not enough memory to write this trace: record a shorter window");
	return ret;
}

static void put_text(struct pftrace *f, struct view_text text)
{
	if (text.len)
		from_json_args(&f->from, text.data, text.len);
}

static void put_feature_args(struct pftrace *f, enum view_trace_args place, const struct mxbpf_span *s)
{
	struct view_trace *t = &f->inner->t;

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

static uint32_t key_of(struct pftrace *f, enum key key)
{
	if (!f->of_key[key])
		f->of_key[key] = packets_number(&f->packets, PACKETS_KEY, keys[key], strlen(keys[key]));
	return f->of_key[key];
}

static void put_u64(struct pftrace *f, enum key key, uint64_t v)
{
	packets_arg_u64(&f->packets, key_of(f, key), PACKETS_UINT, v);
}

static void put_true(struct pftrace *f, enum key key)
{
	packets_arg_u64(&f->packets, key_of(f, key), PACKETS_BOOL, 1);
}

static void put_us(struct pftrace *f, enum key key, uint64_t ns)
{
	packets_arg_double(&f->packets, key_of(f, key), (double)ns / 1000);
}

static void put_numbers(struct pftrace *f, const struct mxbpf_span *s)
{
	char link[24];

	put_u64(f, SELF_NS, s->self_ns);
	if (s->device) {
		struct view_text device = view_trace_text(&f->inner->t, s->device, view_text_device);
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

static void put_threads(struct pftrace *f, const struct mxbpf_span *s, uint32_t tid)
{
	if (tid != s->tid)
		put_u64(f, THREAD, s->tid);
	if (s->end_tid != s->tid)
		put_u64(f, END_THREAD, s->end_tid);
	if (s->flags & MXBPF_SPAN_UNWOUND)
		put_true(f, UNWOUND);
}

/* As view_put_account(). */
static void put_account(struct pftrace *f, const struct mxbpf_span *s)
{
	const struct mxbpf_account *a = &s->account;
	const uint64_t times[] = {a->on_cpu_ns, a->runq_ns, a->blocked_ns};
	const uint32_t counts[] = {a->nvcsw, a->nivcsw, a->minflt, a->majflt};
	unsigned i;

	if (!(s->flags & MXBPF_SPAN_ACCOUNT))
		return;
	if (s->cpu != MXBPF_CPU_NONE)
		put_u64(f, CPU, s->cpu);
	if (a->end_cpu != s->cpu)
		put_u64(f, END_CPU, a->end_cpu);
	for (i = 0; i < 3 && a->on_cpu_ns != s->dur_ns; i++)
		if (times[i])
			put_us(f, ON_CPU_US + i, times[i]);
	for (i = 0; i < 4; i++)
		if (counts[i])
			put_u64(f, NVCSW + i, counts[i]);
	if (a->flags & MXBPF_ACCOUNT_MIGRATED)
		put_true(f, MIGRATED);
}

static uint32_t name_of(struct pftrace *f, const struct mxbpf_span *s)
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
		name = view_trace_text(&f->inner->t, s->name_id, view_text_name);
		text = from_json_text(&f->from, name.data, name.len, &len);
		*at = packets_number(&f->packets, PACKETS_NAME, text, len);
	}
	return (uint32_t)*at;
}

/* The category of a call of CUDA depends on its name. */
static uint32_t category_of(struct pftrace *f, const struct mxbpf_span *s)
{
	const bool fixed = s->cls != MXBPF_CLASS_CUDA && s->cls < CLASSES;
	const char *category;
	uint32_t number;

	if (fixed && f->of_class[s->cls])
		return f->of_class[s->cls];
	category = view_trace_category(&f->inner->t, s);
	number = packets_number(&f->packets, PACKETS_CATEGORY, category, strlen(category));
	if (fixed)
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

/* All numbers are new. */
static void forget_numbers(struct pftrace *f)
{
	f->generation = f->packets.generation;
	memset(f->of_key, 0, sizeof(f->of_key));
	memset(f->of_class, 0, sizeof(f->of_class));
	hash_clear(&f->names);
}

/*
 * The reader sorts packets by time, and those with the same time by their place in the file. The end of a span stands
 * before the start of the next one, because spans are recorded when they end. Of the few for which this does not hold,
 * those that touch another one end earlier by back_ns.
 */
static void write_span(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place)
{
	struct pftrace *f = ((struct inner *)t)->outer;
	struct packets *p = &f->packets;
	struct packets_event event = {.type = PACKETS_BEGIN};
	const uint64_t back_ns = place->late || t->plan.reorder ? place->back_ns : 0;
	const uint64_t dur_ns = s->dur_ns - (s->dur_ns > back_ns ? back_ns : 0), start_ns = s->h.ts_ns - t->base_ns;
	uint64_t track;

	settle(f);
	if (f->generation != p->generation)
		forget_numbers(f);
	track = packets_thread(p, s->h.tgid, place->tid);
	event.category = category_of(f, s);
	event.name = name_of(f, s);
	put_feature_args(f, VIEW_ARGS_FIRST, s);
	put_numbers(f, s);
	put_feature_args(f, VIEW_ARGS_NUMBERS, s);
	if (s->layer_id)
		put_text(f, view_trace_text(t, s->layer_id, view_text_layer));
	if (s->args_id)
		put_text(f, view_trace_text(t, s->args_id, view_text_args));
	put_feature_args(f, VIEW_ARGS_CALL, s);
	put_threads(f, s, place->tid);
	put_account(f, s);
	put_feature_args(f, VIEW_ARGS_LAST, s);
	put_arrows(p, place);
	packets_event(p, track, start_ns, &event);
	packets_end(p, track, start_ns + dur_ns);
}

/* As view_put_live(). */
static void write_alloc(struct view_trace *t, const struct view_plan_alloc *a, uint64_t live_bytes)
{
	struct pftrace *f = ((struct inner *)t)->outer;
	const double value = (double)live_bytes;
	const struct packets_event event = {.type = PACKETS_COUNTER, .value = &value};
	uint64_t *track = hash_put(&f->live, a->tgid, a->device);
	struct view_text device;
	const char *text;
	size_t len;

	settle(f);
	if (!track) {
		f->packets.failed = true;
		return;
	}
	if (!*track) {
		device = view_trace_text(t, a->device, view_text_device);
		text = from_json_text(&f->from, device.data, device.len, &len);
		f->args.len = 0;
		if (buf_printf(&f->args, "memory %.*s bytes", (int)len, text))
			f->packets.failed = true;
		*track = packets_counter(&f->packets, a->tgid, f->args.data, f->args.len, true);
	}
	packets_event(&f->packets, *track, a->ts_ns - t->base_ns, &event);
}

/* ---- the output */

static int pftrace_begin(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;
	const struct view_ops *of = view_for(&view_chrome, s->in->session);
	const size_t bytes = of->state_bytes > sizeof(struct inner) ? of->state_bytes : sizeof(struct inner);
	struct view *inner = calloc(1, bytes);

	f->inner = (struct inner *)inner;
	if (!inner || out_open_take(take, f, &f->json))
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	f->of = of;
	f->packets.out = s->out;
	f->from.to = &f->packets;
	*inner = (struct view){.ops = of, .in = s->in, .opts = s->opts, .out = f->json, .err = s->err};
	if (of != &view_chrome)
		return of->begin(inner);
	f->inner->outer = f;
	f->form = view_chrome_form;
	f->form.span = write_span;
	f->form.alloc = write_alloc;
	return view_trace_begin(inner, &f->form);
}

static int pftrace_survey(struct view *s, const struct mxbpf_rec *r)
{
	struct pftrace *f = (struct pftrace *)s;

	return f->of->survey(&f->inner->t.s, r);
}

static int pftrace_surveyed(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;

	return done(f, f->of->surveyed(&f->inner->t.s));
}

static int pftrace_record(struct view *s, const struct mxbpf_rec *r)
{
	struct pftrace *f = (struct pftrace *)s;
	const int ret = f->of->record(&f->inner->t.s, r);

	return !ret && (f->packets.failed || f->from.failed) ? done(f, ret) : ret;
}

static int pftrace_end(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;

	return done(f, f->of->end(&f->inner->t.s));
}

static void pftrace_fini(struct view *s)
{
	struct pftrace *f = (struct pftrace *)s;

	if (f->of)
		f->of->fini(&f->inner->t.s);
	free(f->inner);
	out_abort(f->json);
	buf_fini(&f->args);
	hash_fini(&f->names);
	hash_fini(&f->live);
	from_json_fini(&f->from);
	packets_fini(&f->packets);
}

static const char *const suffixes[] = {".pftrace", ".pftrace.gz", NULL};

const struct view_ops view_pftrace = {
	.name = "pftrace",
	.help = "timeline in Perfetto's own format, which is smaller",
	.suffixes = suffixes,
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
