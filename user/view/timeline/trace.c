// SPDX-License-Identifier: Apache-2.0
#include "view/timeline/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/omp/omp.h"
#include "model/feature.h"
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

/* Of the record itself: only the span's own thread, and not what was elsewhere. */
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

char *view_put_team(struct view_trace *t, char *p, const struct mxbpf_span *s)
{
	const uint64_t *at = t->teams.len ? hash_get(&t->team_at, s->h.ts_ns, s->tid) : NULL;
	const struct mxbpf_team *k = at ? buf_at(&t->teams, struct mxbpf_team, *at - 1) : NULL;
	const struct {
		const char *key;
		uint64_t v;
	} args[] = {
		{",\"team_threads\":", k ? k->threads : 0},	  {",\"team_regions\":", k ? k->regions : 0},
		{",\"team_threads_ns\":", k ? k->threads_ns : 0}, {",\"team_cpu_ns\":", k ? k->cpu_ns : 0},
		{",\"team_runq_ns\":", k ? k->runq_ns : 0},	  {",\"team_late_ns\":", k ? k->late_ns : 0},
		{",\"team_barrier_ns\":", k ? k->barrier_ns : 0}, {",\"team_spun_ns\":", k ? k->spun_ns : 0},
	};
	size_t i;

	for (i = 0; k && i < sizeof(args) / sizeof(args[0]); i++) {
		p = put(p, args[i].key);
		p = view_put_u64(p, args[i].v);
	}
	return p;
}

char *view_put_live(const struct view_trace *t, char *p, const struct view_plan_alloc *a, struct view_text device,
		    uint64_t live_bytes)
{
	p = put(p, ",\n{\"ph\":\"C\",");
	p = view_put_where(t, p, a->tgid, a->tgid, a->ts_ns);
	p = put(p, ",\"name\":\"memory ");
	p = put_bytes(p, device.data, device.len);
	p = put(p, "\",\"args\":{\"bytes\":");
	p = view_put_u64(p, live_bytes);
	return put(p, "}}");
}

/* ---- strings of the target */

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

const char *view_trace_process_name(const struct view_trace *t, uint32_t tgid, char buf[VIEW_PROCESS_BYTES])
{
	const struct mdl_session *s = t->s.in->session;
	const char *name = tgid == s->pid ? s->comm : mdl_thread_name(t->s.in->model, tgid, tgid & MDL_PID_MASK);
	const struct mdl_process *p = mdl_process_of(s, tgid);

	name = name ? name : "process";
	if (!p)
		return name;
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

void view_trace_name_track(struct view_trace *t, uint32_t pid, uint32_t tid, const char *name, size_t place)
{
	out_printf(t->s.out,
		   ",\n{\"ph\":\"M\",\"ts\":0.000,\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":",
		   pid, tid);
	view_trace_string(t, name);
	out_printf(t->s.out,
		   "}},\n{\"ph\":\"M\",\"ts\":0.000,\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{"
		   "\"sort_index\":%zu}}",
		   pid, tid, place);
}

/* ---- who, when, what was lost */

/* `,"key":"text"` */
static void write_member(struct view_trace *t, const char *key, const char *text)
{
	out_printf(t->s.out, ",\"%s\":", key);
	view_trace_string(t, text);
}

static void write_target(struct view_trace *t, const struct mdl_session *s)
{
	const struct mdl_target target = mdl_target_of(s);
	size_t i;

	out_printf(t->s.out, ",\"target\":{\"pid\":%u", target.pid);
	write_member(t, "comm", target.comm);
	write_member(t, "cmdline", target.cmdline);
	write_member(t, "hostname", s->hostname);
	out_puts(t->s.out, ",\"libraries\":[");
	for (i = 0; i < s->nlibs; i++) {
		out_puts(t->s.out, i ? ",{\"path\":" : "{\"path\":");
		view_trace_string(t, s->libs[i].path);
		write_member(t, "build_id", s->libs[i].build_id);
		write_member(t, "runtime", s->libs[i].runtime);
		out_puts(t->s.out, "}");
	}
	out_puts(t->s.out, "]}");
}

static void write_probes(struct view_trace *t, const struct mdl_session *s)
{
	size_t i;

	out_puts(t->s.out, ",\"probes\":[");
	for (i = 0; i < s->nprobes; i++) {
		out_puts(t->s.out, i ? ",{\"name\":" : "{\"name\":");
		view_trace_string(t, s->probes[i].name);
		write_member(t, "group", s->probes[i].group);
		write_member(t, "symbol", s->probes[i].symbol);
		write_member(t, "status", s->probes[i].status);
		write_member(t, "reason", s->probes[i].reason);
		out_puts(t->s.out, "}");
	}
	out_puts(t->s.out, "]");
}

uint64_t view_trace_base_unix_ns(const struct view_trace *t)
{
	const struct mdl_session *s = t->s.in->session;

	return s->start_unix_ns - (s->start_mono_ns - t->base_ns);
}

/* HTA looks for the blank behind the colon. */
void view_trace_rank(struct view_trace *t)
{
	const struct mdl_session *s = t->s.in->session;

	if (!s->world_size)
		return;
	out_puts(t->s.out, ",\"distributedInfo\":{");
	if (s->job_backend) {
		out_puts(t->s.out, "\"backend\": ");
		view_trace_string(t, s->job_backend);
		out_puts(t->s.out, ", ");
	}
	out_printf(t->s.out, "\"rank\": %u, \"world_size\": %u}", s->rank, s->world_size);
}

void view_trace_about(struct view_trace *t)
{
	const struct mdl_session *s = t->s.in->session;
	const struct view_plan *p = &t->plan;
	struct out *o = t->s.out;

	out_puts(o, "\"otherData\":{\"mxbpf_version\":");
	view_trace_string(t, s->mxbpf_version);
	write_target(t, s);
	out_printf(o,
		   ",\"window\":{\"start_unix_ns\":%llu,\"start_mono_ns\":%llu,\"duration_ns\":%llu,\"incomplete\":%s",
		   (unsigned long long)s->start_unix_ns, (unsigned long long)s->start_mono_ns,
		   (unsigned long long)s->duration_ns, s->incomplete ? "true" : "false");
	view_put_window_json(o, s);
	out_puts(o, "},\"loss\":{");
	view_put_loss_json(o, &s->loss);
	out_puts(o, "}");
	view_put_sources_json(o, s, ",");
	out_printf(o,
		   ",\"hits\":%llu,\"open_spans\":%llu,\"cut_records\":%llu,\"spans\":%llu,\"allocations\":%zu,"
		   "\"arrows\":%llu,\"arrows_unmatched\":%llu,\"edges_rootless\":%llu",
		   (unsigned long long)s->hits, (unsigned long long)s->open_spans, (unsigned long long)s->cut_records,
		   (unsigned long long)p->nspans, buf_count(&p->allocs, struct view_plan_alloc),
		   (unsigned long long)p->narrows, (unsigned long long)(p->nedges - p->nrootless - p->narrows),
		   (unsigned long long)p->nrootless);
	if (t->activities.len)
		out_printf(o, ",\"activities_unlaunched\":%llu", (unsigned long long)t->nunlaunched);
	write_probes(t, s);
	out_puts(o, "}");
}

/* ---- the two passes */

/* Regions come before their span. */
static int note_team(struct view_trace *t, const struct mxbpf_team *k)
{
	uint64_t *at = k->span_start_ns ? hash_put(&t->team_at, k->span_start_ns, k->tid) : NULL;

	if (!k->span_start_ns)
		return 0;
	if (!at)
		return -ENOMEM;
	if (*at) {
		omp_team_merge(buf_at(&t->teams, struct mxbpf_team, *at - 1), k);
		return 0;
	}
	if (buf_put(&t->teams, k, sizeof(*k)))
		return -ENOMEM;
	*at = buf_count(&t->teams, struct mxbpf_team);
	return 0;
}

int view_trace_survey(struct view *s, const struct mxbpf_rec *r)
{
	struct view_trace *t = (struct view_trace *)s;

	if (r->kind == MXBPF_TEAM && note_team(t, (const void *)r))
		return view_trace_no_memory(t);
	if (view_life_survey(t, r))
		return view_trace_no_memory(t);
	if (r->kind == MXBPF_KV && view_kv_survey(t, (const struct mxbpf_kv *)r))
		return view_trace_no_memory(t);
	if (r->kind == MXBPF_SCHED && view_sched_survey(t, (const struct mxbpf_sched *)r))
		return view_trace_no_memory(t);
	if (t->form->thread && view_stream_survey(t, r))
		return view_trace_no_memory(t);
	if (r->kind == MXBPF_GAUGE && buf_put(&t->gauges, r, MXBPF_GAUGE_BYTES_MIN))
		return view_trace_no_memory(t);
	return view_plan_survey(&t->plan, r) ? view_trace_no_memory(t) : 0;
}

int view_trace_plan(struct view_trace *t)
{
	uint64_t start_ns = t->s.in->session->start_mono_ns;

	if (view_plan_finish(&t->plan))
		return view_trace_no_memory(t);
	t->base_ns = t->plan.first_ns && t->plan.first_ns < start_ns ? t->plan.first_ns : start_ns;
	if (t->scheds.first_ns && t->scheds.first_ns < t->base_ns)
		t->base_ns = t->scheds.first_ns;
	return view_stream_plan(t) ? view_trace_no_memory(t) : 0;
}

void view_trace_tracks(struct view_trace *t)
{
	const struct buf *b = &t->plan.tracks;
	uint32_t pid = t->s.in->session->pid, last = pid;
	const size_t step = t->scheds.threads.len ? 2 : 1; /* a track of states under each */
	size_t i;

	t->form->process(t, pid, true);
	for (i = 0; i < buf_count(b, struct view_plan_track); i++) {
		const struct view_plan_track *k = buf_at(b, struct view_plan_track, i);

		if (k->tgid != last && k->tgid != pid)
			t->form->process(t, k->tgid, false);
		last = k->tgid;
		t->form->thread(t, k, step * i);
		view_sched_track(t, k->tgid, k->tid, step * i + 1);
	}
	view_sched_tracks(t, step * i);
	view_stream_tracks(t, step * i);
}

/* What was allocated before the window is unknown: its being freed must not show as less than nothing. */
int view_trace_allocs(struct view_trace *t)
{
	const struct buf *b = &t->plan.allocs;
	struct hash live = {0};
	size_t i, n = buf_count(b, struct view_plan_alloc);

	for (i = 0; i < n; i++) {
		const struct view_plan_alloc *a = buf_at(b, struct view_plan_alloc, i);
		uint64_t *bytes = hash_put(&live, a->tgid, a->device), freed = 0 - (uint64_t)a->bytes;

		if (!bytes)
			break;
		if (a->bytes >= 0)
			*bytes += (uint64_t)a->bytes;
		else
			*bytes = *bytes > freed ? *bytes - freed : 0;
		t->form->alloc(t, a, *bytes);
	}
	hash_fini(&live);
	if (i == n && !t->error && t->s.in->session->held)
		return view_trace_peaks(t);
	return i < n ? view_trace_no_memory(t) : t->error;
}

static void add_features(struct view_trace *t, const struct mxbpf_span *s, uint32_t tid)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f && t->form->thread; f++)
		if ((*f)->trace && mdl_asked(t->s.in->session, *f))
			(*f)->trace->span(t, s, tid);
}

int view_trace_record(struct view *s, const struct mxbpf_rec *r)
{
	struct view_trace *t = (struct view_trace *)s;
	struct late late;

	if (r->kind == MXBPF_SCHED && t->form->thread) /* a form without threads has no tracks of theirs */
		return view_sched_write(t, (const struct mxbpf_sched *)r) ? view_trace_no_memory(t) : t->error;
	if (r->kind == MXBPF_VALUE && t->form->alloc)
		view_trace_value(t, (const struct mxbpf_value *)r);
	if (r->kind == MXBPF_INSTANT && t->form->thread)
		view_trace_instant(t, (const struct mxbpf_instant *)r);
	if (r->kind != MXBPF_SPAN)
		return t->error;
	late.span = kind_span(r);
	late.place = view_plan_place(&t->plan, &late.span);
	view_stream_span(t, &late.span, late.place.tid);
	add_features(t, &late.span, late.place.tid);
	if (!late.place.late) {
		t->form->span(t, &late.span, &late.place);
		return t->error;
	}
	return buf_put(&t->late, &late, sizeof(late)) ? view_trace_no_memory(t) : 0;
}

/* Of those that start together the outer one was closed last. */
static int by_nesting(const void *x, const void *y)
{
	const struct late *a = x, *b = y;

	if (a->span.h.ts_ns != b->span.h.ts_ns)
		return a->span.h.ts_ns < b->span.h.ts_ns ? -1 : 1;
	return a->place.ordinal > b->place.ordinal ? -1 : 1;
}

int view_trace_late(struct view_trace *t)
{
	size_t i, n = buf_count(&t->late, struct late);

	if (n)
		qsort(t->late.data, n, sizeof(struct late), by_nesting);
	for (i = 0; i < n; i++) {
		const struct late *l = buf_at(&t->late, struct late, i);

		t->form->span(t, &l->span, &l->place);
	}
	view_stream_arrows(t);
	return t->error;
}

static void write_open(struct view_trace *t, const struct mxbpf_open *o)
{
	struct view_text name = view_trace_text(t, o->name_id, view_text_name);
	bool async = o->flags & MXBPF_SPAN_ASYNC;
	char waits[VIEW_WAITS_BYTES], *start, *p;

	out_printf(t->s.out, ",\n{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":\"", async ? "b" : "B", mdl_category(o->cls));
	out_write(t->s.out, name.data, name.len);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = put(start, "\",");
	p = view_put_where(t, p, o->h.tgid, o->tid, o->h.ts_ns);
	if (async) {
		p = put(p, ",\"id\":\"0x");
		p = put(view_put_hex(p, o->h.ts_ns), "\"");
	}
	p = put(p, ",\"args\":{\"open_ns\":");
	p = view_put_u64(p, o->open_ns);
	p = put(p, ",\"state\":\"");
	p = put(p, view_open_state(o));
	p = put(p, "\",\"waits in\":");
	out_filled(t->s.out, (size_t)(p - start));
	view_trace_string(t, view_open_waits(t->s.in->model, o, waits));
	out_puts(t->s.out, "}}");
}

void view_trace_opens(struct view_trace *t)
{
	const struct mxbpf_open *rows;
	size_t n, i;

	rows = mdl_opens(t->s.in->model, &n);
	for (i = 0; i < n; i++)
		write_open(t, &rows[i]);
}

void view_trace_fini(struct view *s)
{
	struct view_trace *t = (struct view_trace *)s;

	view_plan_fini(&t->plan);
	view_sched_fini(t);
	hash_fini(&t->refs);
	buf_fini(&t->ref);
	buf_fini(&t->texts);
	buf_fini(&t->gauges);
	buf_fini(&t->late);
	view_life_fini(t);
	view_stream_fini(t);
	hash_fini(&t->team_at);
	hash_fini(&t->kv_at);
	buf_fini(&t->kvs);
	buf_fini(&t->teams);
}
