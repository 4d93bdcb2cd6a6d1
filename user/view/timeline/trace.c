// SPDX-License-Identifier: Apache-2.0
#include "view/timeline/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "mxbpf_gauge.h"
#include "mxbpf_kv.h"

struct text_ref {
	size_t off, len;
};

struct late {
	struct mxbpf_span span;
	struct view_place place;
};

int view_trace_no_memory(struct view_trace *t)
{
	t->error = err_set(t->s.err, ERR_RUNTIME, -ENOMEM,
			   "not enough memory to write this trace: record a shorter window");
	return t->error;
}

/* ---- numbers */

char *view_put_u64(char *p, uint64_t v)
{
	static const char pairs[] = "0001020304050607080910111213141516171819"
				    "2021222324252627282930313233343536373839"
				    "4041424344454647484950515253545556575859"
				    "6061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	char digits[20], *d = digits + sizeof(digits);

	for (; v >= 100; v /= 100)
		memcpy(d -= 2, pairs + v % 100 * 2, 2);
	if (v >= 10)
		memcpy(d -= 2, pairs + v * 2, 2);
	else
		*--d = (char)('0' + v);
	return put_bytes(p, d, (size_t)(digits + sizeof(digits) - d));
}

char *view_put_i64(char *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return view_put_u64(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

char *view_put_us(char *p, uint64_t ns)
{
	unsigned rest = (unsigned)(ns % 1000);

	p = view_put_u64(p, ns / 1000);
	*p++ = '.';
	*p++ = (char)('0' + rest / 100);
	*p++ = (char)('0' + rest / 10 % 10);
	*p++ = (char)('0' + rest % 10);
	return p;
}

char *view_put_hex(char *p, uint64_t v)
{
	int shift = 60;

	while (shift && !(v >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

char *view_put_where(const struct view_trace *t, char *p, uint32_t tgid, uint32_t tid, uint64_t ts_ns)
{
	p = put(p, "\"pid\":");
	p = view_put_u64(p, tgid);
	p = put(p, ",\"tid\":");
	p = view_put_u64(p, tid);
	p = put(p, ",\"ts\":");
	return view_put_us(p, ts_ns - t->base_ns);
}

char *view_put_threads(char *p, const struct mxbpf_span *s, uint32_t tid)
{
	if (tid != s->tid) {
		p = put(p, ",\"thread\":");
		p = view_put_u64(p, s->tid);
	}
	if (s->end_tid != s->tid) {
		p = put(p, ",\"end_thread\":");
		p = view_put_u64(p, s->end_tid);
	}
	if (s->flags & MXBPF_SPAN_UNWOUND)
		p = put(p, ",\"unwound\":true");
	return p;
}

/* The record has the account of the span's own thread only. */
char *view_put_account(char *p, const struct mxbpf_span *s)
{
	const struct mxbpf_account *a = &s->account;
	const struct {
		const char *key;
		uint64_t ns;
	} times[] = {
		{",\"on_cpu_us\":", a->on_cpu_ns}, {",\"runq_us\":", a->runq_ns}, {",\"blocked_us\":", a->blocked_ns}};
	const struct {
		const char *key;
		uint32_t n;
	} counts[] = {{",\"nvcsw\":", a->nvcsw},
		      {",\"nivcsw\":", a->nivcsw},
		      {",\"minflt\":", a->minflt},
		      {",\"majflt\":", a->majflt}};
	size_t i;

	if (!(s->flags & MXBPF_SPAN_ACCOUNT))
		return p;
	if (s->cpu != MXBPF_CPU_NONE)
		p = view_put_u64(put(p, ",\"cpu\":"), s->cpu);
	if (a->end_cpu != s->cpu)
		p = view_put_u64(put(p, ",\"end_cpu\":"), a->end_cpu);
	for (i = 0; i < 3 && (a->on_cpu_ns != s->dur_ns); i++)
		if (times[i].ns)
			p = view_put_us(put(p, times[i].key), times[i].ns);
	for (i = 0; i < 4; i++)
		if (counts[i].n)
			p = view_put_u64(put(p, counts[i].key), counts[i].n);
	if (a->flags & MXBPF_ACCOUNT_MIGRATED)
		p = put(p, ",\"migrated\":true");
	return p;
}

/* ---- names from the target */

int view_text_escape(struct buf *b, const char *text, size_t len)
{
	size_t n = fmt_json_exact(NULL, 0, text, len);
	char *p = buf_add(b, n + 1);

	if (!p)
		return -ENOMEM;
	fmt_json_exact(p, n + 1, text, len);
	b->len--; /* the terminator */
	return 0;
}

int view_text_name(struct view_trace *t, uint64_t id, struct buf *b)
{
	size_t len;
	const char *text = mdl_name(t->s.in->model, id, &len);

	return view_text_escape(b, text, len);
}

int view_text_device(struct view_trace *t, uint64_t device, struct buf *b)
{
	char name[48];

	mdl_device_name(t->s.in->session, (uint32_t)device, name);
	return view_text_escape(b, name, strlen(name));
}

static int text_add(struct view_trace *t, uint64_t id, view_text_fn make)
{
	struct text_ref ref = {.off = t->texts.len};
	int ret = make(t, id, &t->texts);

	if (ret)
		return ret;
	ref.len = t->texts.len - ref.off;
	return buf_put(&t->ref, &ref, sizeof(ref));
}

struct view_text view_trace_text(struct view_trace *t, uint64_t id, view_text_fn make)
{
	uint64_t *at = hash_put(&t->refs, id, (uintptr_t)make);
	const struct text_ref *ref;

	if (at && !*at && !text_add(t, id, make))
		*at = buf_count(&t->ref, struct text_ref);
	if (!at || !*at) {
		view_trace_no_memory(t);
		return (struct view_text){"", 0};
	}
	ref = buf_at(&t->ref, struct text_ref, *at - 1);
	return (struct view_text){t->texts.data + ref->off, ref->len};
}

void view_trace_string(struct view_trace *t, const char *text)
{
	view_put_json_exact(t->s.out, text, strlen(text));
}

/* What a process executes: its command line without the directory of the program, or its name. */
static const char *program_of(const struct view_trace *t, uint32_t tgid)
{
	const struct mdl_session *s = t->s.in->session;
	const char *name = mdl_thread_name(t->s.in->model, tgid, tgid & MDL_PID_MASK), *end, *at;

	if (tgid != s->pid)
		return name ? name : "process";
	if (!s->cmdline || !*s->cmdline)
		return s->comm;
	/* Arguments are joined by blanks, and the directory may have some, too. */
	for (at = s->cmdline; *s->comm && (at = strstr(at, s->comm)); at++)
		if (at > s->cmdline && at[-1] == '/' && strchr(" ", at[strlen(s->comm)]))
			return at;
	end = s->cmdline + strcspn(s->cmdline, " ");
	at = memrchr(s->cmdline, '/', (size_t)(end - s->cmdline));
	return at ? at + 1 : s->cmdline;
}

static bool several_hosts(const struct mdl_session *s)
{
	size_t i;

	for (i = 1; i < s->nprocesses; i++)
		if (strcmp(s->processes[i].hostname, s->processes[0].hostname))
			return true;
	return false;
}

const char *view_trace_process_name(const struct view_trace *t, uint32_t tgid, char buf[VIEW_PROCESS_BYTES])
{
	const struct mdl_session *s = t->s.in->session;
	const char *name = tgid == s->pid ? s->comm : mdl_thread_name(t->s.in->model, tgid, tgid & MDL_PID_MASK);
	const struct mdl_process *p = mdl_process_of(s, tgid);
	const bool ranked = p ? !*p->role || !strcmp(p->role, "rank") : tgid == s->pid && s->world_size;
	const char *host = p && ranked && several_hosts(s) ? p->hostname : "";

	name = name ? name : "process";
	if (!p && !ranked)
		return name;
	if (ranked)
		snprintf(buf, VIEW_PROCESS_BYTES, "rank %u of %u: %.160s%s%s", p ? p->rank : s->rank,
			 p ? p->of : s->world_size, program_of(t, tgid), *host ? " on " : "", host);
	else
		snprintf(buf, VIEW_PROCESS_BYTES, "%s %u (%s%s%s)", p->role, p->rank, name, *p->hostname ? " of " : "",
			 p->hostname);
	return buf;
}

const char *view_trace_track_name(const struct view_trace *t, const struct view_plan_track *k, char buf[32])
{
	const char *name = mdl_thread_name(t->s.in->model, k->tgid, k->tid);

	if (k->lane) {
		snprintf(buf, 32, "async %u", k->lane);
		return buf;
	}
	if (name)
		return name;
	return k->tid == t->s.in->session->pid ? t->s.in->session->comm : "thread";
}

const char *view_trace_category(const struct view_trace *t, const struct mxbpf_span *s)
{
	const char *name;

	if (s->cls == MXBPF_CLASS_CUDA) {
		name = mdl_name(t->s.in->model, s->name_id, NULL);
		if (!strncmp(name, "cu", 2) && strncmp(name, "cuda", 4))
			return "cuda_driver";
	}
	return mdl_category(s->cls);
}

static int text_memory(struct view_trace *t, uint64_t device, struct buf *b)
{
	return buf_put(b, "memory ", 7) ? -ENOMEM : view_text_device(t, device, b);
}

void view_trace_memory(struct view_trace *t, const struct view_plan_alloc *a, const char *unit, uint64_t bytes)
{
	char value[24];
	const struct view_counter c = {.pid = a->tgid,
				       .tid = a->tgid,
				       .ts_ns = a->ts_ns,
				       .name = view_trace_text(t, a->device, text_memory),
				       .unit = unit,
				       .value = value,
				       .id = a->device + 1};

	*view_put_u64(value, bytes) = '\0';
	view_counter(t, &c);
}

/* ---- the target, the window, the loss */

static void write_target(struct json *j, const struct mdl_session *s)
{
	const struct mdl_target target = mdl_target_of(s);
	const struct {
		const char *key, *text; /* older recordings lack them */
	} others[] = {{"cpu_model", s->cpu_model}, {"kernel", s->kernel}, {"python", s->python}};
	size_t i;

	json_object(j, "target");
	json_u64(j, "pid", target.pid);
	json_string(j, "comm", target.comm);
	json_string(j, "cmdline", target.cmdline);
	json_string(j, "hostname", s->hostname);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].text && *others[i].text)
			json_string(j, others[i].key, others[i].text);
	json_array(j, "libraries");
	for (i = 0; i < s->nlibs; i++) {
		json_object(j, NULL);
		json_string(j, "path", s->libs[i].path);
		json_string(j, "build_id", s->libs[i].build_id);
		json_string(j, "runtime", s->libs[i].runtime);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void write_window(struct json *j, const struct mdl_session *s)
{
	json_object(j, "window");
	json_u64(j, "start_unix_ns", s->start_unix_ns);
	json_u64(j, "start_mono_ns", s->start_mono_ns);
	json_u64(j, "duration_ns", s->duration_ns);
	json_bool(j, "incomplete", s->incomplete);
	view_json_window(j, s);
	json_end(j);
}

static void write_counts(struct json *j, const struct mdl_session *s, const struct view_plan *p)
{
	json_u64(j, "hits", s->hits);
	json_u64(j, "open_spans", s->open_spans);
	json_u64(j, "cut_records", s->cut_records);
	json_u64(j, "spans", p->nspans);
	json_u64(j, "allocations", buf_count(&p->allocs, struct view_plan_alloc));
	json_u64(j, "arrows", p->narrows);
	json_u64(j, "arrows_unmatched", p->nedges - p->nrootless - p->narrows);
	json_u64(j, "edges_rootless", p->nrootless);
}

static void write_probes(struct json *j, const struct mdl_session *s)
{
	size_t i;

	json_array(j, "probes");
	for (i = 0; i < s->nprobes; i++) {
		json_object(j, NULL);
		json_string(j, "name", s->probes[i].name);
		json_string(j, "group", s->probes[i].group);
		json_string(j, "symbol", s->probes[i].symbol);
		json_string(j, "status", s->probes[i].status);
		json_string(j, "reason", s->probes[i].reason);
		json_end(j);
	}
	json_end(j);
}

uint64_t view_trace_base_unix_ns(const struct view_trace *t)
{
	const struct mdl_session *s = t->s.in->session;

	return s->start_unix_ns - (s->start_mono_ns - t->base_ns);
}

/* Continues an object of the trace. HTA searches for the blank after each colon. */
void view_trace_rank(struct view_trace *t)
{
	const struct mdl_session *s = t->s.in->session;
	struct json j = {.out = t->s.out, .exact = true};

	if (!s->world_size)
		return;
	out_puts(t->s.out, ",\"distributedInfo\":");
	json_object(&j, NULL);
	if (s->job_backend)
		json_string(&j, "backend", s->job_backend);
	json_u64(&j, "rank", s->rank);
	json_u64(&j, "world_size", s->world_size);
	json_end(&j);
}

void view_trace_devices(struct view_trace *t)
{
	struct json j = {.out = t->s.out, .exact = true, .tight = true};
	unsigned i;

	out_puts(t->s.out, "\"deviceProperties\":");
	json_array(&j, NULL);
	for (i = 0; i < t->non; i++)
		if (t->on[i].f->devices)
			t->on[i].f->devices(t, &j, t->on[i].state);
	json_end(&j);
}

void view_trace_about(struct view_trace *t)
{
	const struct mdl_session *s = t->s.in->session;
	struct json j = {.out = t->s.out, .exact = true, .tight = true};
	unsigned i;

	json_object(&j, "otherData");
	json_string(&j, "mxbpf_version", s->mxbpf_version);
	write_target(&j, s);
	write_window(&j, s);
	json_object(&j, "loss");
	view_json_loss(&j, &s->loss);
	json_end(&j);
	view_json_sources(&j, s);
	view_json_cost(&j, s, NULL);
	write_counts(&j, s, &t->plan);
	for (i = 0; i < t->non; i++)
		if (t->on[i].f->about)
			t->on[i].f->about(&j, t->on[i].state);
	write_probes(&j, s);
	json_end(&j);
}

/* ---- the two passes */

static void trace_add_call(struct view_trace_calls *calls, unsigned on)
{
	calls->on[calls->n++] = (uint8_t)on;
}

static int add_feature(struct view_trace *t, const struct view_trace_feature *f)
{
	const unsigned on = t->non;
	unsigned i;

	t->on[on].f = f;
	t->on[on].state = calloc(1, f->state_bytes ? f->state_bytes : 1);
	if (!t->on[on].state)
		return -ENOMEM;
	t->non++;
	for (i = 0; i < VIEW_TRACE_KINDS && f->kinds[i]; i++)
		t->of_kind[f->kinds[i]] = (uint8_t)(on + 1);
	if (f->span)
		trace_add_call(&t->spans, on);
	for (i = 0; i < VIEW_ARGS_PLACES; i++)
		if (f->args[i])
			trace_add_call(&t->args[i], on);
	return 0;
}

int view_trace_begin(struct view *s, const struct view_form *form)
{
	struct view_trace *t = (struct view_trace *)s;
	const struct mdl_feature *const *f;
	size_t ncalls;

	t->form = form;
	t->places_per_thread = 1;
	mdl_rows(s->in->model, MXBPF_CLASS_CUDA, &ncalls);
	t->plan.reorder = ncalls;
	for (f = mdl_features; *f; f++)
		if ((*f)->trace && (!(*f)->trace->when || (*f)->trace->when(s)) && add_feature(t, (*f)->trace))
			return view_trace_no_memory(t);
	return 0;
}

/* Returns 1 + the place of the feature that has this kind of records; 0: none has. */
static unsigned of_kind(const struct view_trace *t, const struct mxbpf_rec *r)
{
	return r->kind < VIEW_TRACE_KIND_MAX ? t->of_kind[r->kind] : 0;
}

int view_trace_survey(struct view *s, const struct mxbpf_rec *r)
{
	struct view_trace *t = (struct view_trace *)s;
	const unsigned at = of_kind(t, r);

	if (at && t->on[at - 1].f->survey && t->on[at - 1].f->survey(t, t->on[at - 1].state, r))
		return view_trace_no_memory(t);
	return view_plan_survey(&t->plan, r) ? view_trace_no_memory(t) : 0;
}

int view_trace_plan(struct view_trace *t)
{
	uint64_t start_ns = t->s.in->session->start_mono_ns;
	const struct mxbpf_open *opens;
	size_t nopens;
	unsigned i;

	opens = mdl_opens(t->s.in->model, &nopens);
	if (view_plan_opens(&t->plan, opens, t->form->thread ? nopens : 0))
		return view_trace_no_memory(t);
	if (view_plan_finish(&t->plan))
		return view_trace_no_memory(t);
	t->base_ns = t->plan.first_ns && t->plan.first_ns < start_ns ? t->plan.first_ns : start_ns;
	for (i = 0; i < t->non; i++)
		if (t->on[i].f->plan && t->on[i].f->plan(t, t->on[i].state))
			return view_trace_no_memory(t);
	return 0;
}

void view_trace_tracks(struct view_trace *t)
{
	const struct buf *b = &t->plan.tracks;
	uint32_t pid = t->s.in->session->pid, last = pid;
	const size_t step = t->places_per_thread;
	unsigned j;
	size_t i;

	t->form->process(t, pid);
	for (i = 0; i < buf_count(b, struct view_plan_track); i++) {
		const struct view_plan_track *k = buf_at(b, struct view_plan_track, i);

		if (k->tgid != last && k->tgid != pid)
			t->form->process(t, k->tgid);
		last = k->tgid;
		t->form->thread(t, k, step * i);
		for (j = 0; j < t->non && step > 1; j++)
			if (t->on[j].f->thread)
				t->on[j].f->thread(t, t->on[j].state, k->tgid, k->tid, step * i + 1);
	}
	for (j = 0; j < t->non; j++)
		if (t->on[j].f->tracks)
			t->on[j].f->tracks(t, t->on[j].state, step * i);
}

int view_trace_before(struct view_trace *t)
{
	unsigned i;

	for (i = 0; i < t->non && !t->error; i++)
		if (t->on[i].f->before && t->on[i].f->before(t, t->on[i].state))
			return view_trace_no_memory(t);
	return t->error;
}

void view_trace_args(struct view_trace *t, enum view_trace_args place, const struct mxbpf_span *s)
{
	const struct view_trace_calls *calls = &t->args[place];
	unsigned i;

	for (i = 0; i < calls->n; i++)
		t->on[calls->on[i]].f->args[place](t, t->on[calls->on[i]].state, s);
}

int view_trace_record(struct view *s, const struct mxbpf_rec *r)
{
	struct view_trace *t = (struct view_trace *)s;
	const unsigned at = t->form->thread ? of_kind(t, r) : 0;
	struct late late;
	unsigned i;

	if (at && t->on[at - 1].f->record)
		t->on[at - 1].f->record(t, t->on[at - 1].state, r);
	if (r->kind != MXBPF_SPAN)
		return t->error;
	kind_span(r, &late.span);
	late.place = view_plan_place(&t->plan, &late.span);
	for (i = 0; i < t->spans.n && t->form->thread; i++)
		t->on[t->spans.on[i]].f->span(t, t->on[t->spans.on[i]].state, &late.span, &late.place);
	if (!late.place.late) {
		t->form->span(t, &late.span, &late.place);
		return t->error;
	}
	return buf_put(&t->late, &late, sizeof(late)) ? view_trace_no_memory(t) : 0;
}

/* Of two that start together, the outer one ended last. */
static int by_nesting(const void *x, const void *y)
{
	const struct late *a = x, *b = y;

	if (a->span.h.ts_ns != b->span.h.ts_ns)
		return a->span.h.ts_ns < b->span.h.ts_ns ? -1 : 1;
	return a->place.ordinal > b->place.ordinal ? -1 : 1;
}

/*
 * A span that has not ended is a slice until the end of the window, because a viewer draws a slice without an end to
 * the end of the trace, over everything that follows. Its category is not that of the spans that have ended: tools that
 * count calls or add up durations leave it out, as the tables do.
 */
static void write_open(struct view_trace *t, const struct mxbpf_open *o, const struct view_place *place)
{
	char category[64], waits[VIEW_WAITS_BYTES], *start, *p;
	const struct view_event e = {.letter = 'X',
				     .pid = o->h.tgid,
				     .tid = place->tid,
				     .ts_ns = o->h.ts_ns,
				     .dur_ns = o->open_ns - (o->open_ns > place->back_ns ? place->back_ns : 0),
				     .category = category,
				     .name = view_trace_text(t, o->name_id, view_text_name)};

	snprintf(category, sizeof(category), "%s,unfinished", mdl_category(o->cls));
	view_event_begin(t, &e);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = view_put_u64(put(start, "\"unfinished\":true,\"open_ns\":"), o->open_ns);
	if (place->tid != o->tid)
		p = view_put_u64(put(p, ",\"thread\":"), o->tid);
	p = put(put(put(p, ",\"state\":\""), view_open_state(o)), "\",\"waits in\":");
	out_filled(t->s.out, (size_t)(p - start));
	view_trace_string(t, view_open_waits(t->s.in->model, o, waits));
	view_event_end(t, &e);
}

int view_trace_late(struct view_trace *t)
{
	size_t i, n = buf_count(&t->late, struct late);
	const struct mxbpf_open *o;
	struct view_place place;

	for (i = 0; t->form->thread && (o = view_plan_open(&t->plan, i, &place)); i++)
		write_open(t, o, &place);
	if (n)
		qsort(t->late.data, n, sizeof(struct late), by_nesting);
	for (i = 0; i < n; i++) {
		const struct late *l = buf_at(&t->late, struct late, i);

		t->form->span(t, &l->span, &l->place);
	}
	for (i = 0; i < t->non && t->form->thread; i++)
		if (t->on[i].f->arrows)
			t->on[i].f->arrows(t, t->on[i].state);
	return t->error;
}

void view_trace_after(struct view_trace *t)
{
	unsigned i;

	for (i = 0; i < t->non; i++)
		if (t->on[i].f->after)
			t->on[i].f->after(t, t->on[i].state);
}

void view_trace_fini(struct view *s)
{
	struct view_trace *t = (struct view_trace *)s;
	unsigned i;

	view_plan_fini(&t->plan);
	hash_fini(&t->refs);
	buf_fini(&t->ref);
	buf_fini(&t->texts);
	buf_fini(&t->late);
	for (i = 0; i < t->non; i++) {
		if (t->on[i].f->fini)
			t->on[i].f->fini(t->on[i].state);
		free(t->on[i].state);
	}
}
