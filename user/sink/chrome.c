// SPDX-License-Identifier: Apache-2.0
/*
 * A timeline for Perfetto, HTA and TensorBoard: Chrome's JSON, as an object. What viewers require is in the tests
 * (tests/unit/test_chrome.c, tests/perfetto); the two that shape this file: times are relative to the window's start,
 * because a viewer's double loses ns of an epoch, and an arrow's ends stand at the start of their own spans.
 */
#include "sink/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "sink/chrome_plan.h"

/* Longest text of an event without its names. */
#define EVENT_BYTES 512

struct text {
	const char *data; /* borrowed until the next text_of() */
	size_t len;
};

struct text_ref {
	size_t off, len;
};

struct late {
	struct mxbpf_span span;
	struct snk_place place;
	uint64_t ordinal;
};

struct chrome {
	struct snk s;
	struct snk_plan plan;
	const char *category[MXBPF_CLASS_MAX];
	uint64_t base_ns; /* time 0 of the trace */
	struct hash refs; /* (id, what) -> index + 1 in ref */
	struct buf ref;	  /* struct text_ref */
	struct buf texts; /* escaped, one behind the other */
	struct buf late;  /* struct late */
	int error;	  /* the first, 0 */
};

enum { TEXT_NAME, TEXT_DEVICE };

static int no_memory(struct chrome *c)
{
	c->error = err_set(c->s.err, ERR_RUNTIME, -ENOMEM,
			   "not enough memory to write this trace: record a shorter window");
	return c->error;
}

/* ---- text into a reserved buffer: printf would be most of the time of an export */

static inline char *put(char *p, const char *text)
{
	size_t n = strlen(text);

	memcpy(p, text, n);
	return p + n;
}

static char *put_u64(char *p, uint64_t v)
{
	static const char pairs[] = "0001020304050607080910111213141516171819"
				    "2021222324252627282930313233343536373839"
				    "4041424344454647484950515253545556575859"
				    "6061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	char digits[20], *d = digits + sizeof(digits);
	size_t n;

	for (; v >= 100; v /= 100)
		memcpy(d -= 2, pairs + v % 100 * 2, 2);
	if (v >= 10)
		memcpy(d -= 2, pairs + v * 2, 2);
	else
		*--d = (char)('0' + v);
	n = (size_t)(digits + sizeof(digits) - d);
	memcpy(p, d, n);
	return p + n;
}

/* Microseconds, exact to the ns. */
static char *put_us(char *p, uint64_t ns)
{
	unsigned rest = (unsigned)(ns % 1000);

	p = put_u64(p, ns / 1000);
	*p++ = '.';
	*p++ = (char)('0' + rest / 100);
	*p++ = (char)('0' + rest / 10 % 10);
	*p++ = (char)('0' + rest % 10);
	return p;
}

static char *put_hex(char *p, uint64_t v)
{
	int shift = 60;

	while (shift && !(v >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

static char *put_where(char *p, uint32_t tgid, uint32_t tid, uint64_t ts_ns)
{
	p = put(p, "\"pid\":");
	p = put_u64(p, tgid);
	p = put(p, ",\"tid\":");
	p = put_u64(p, tid);
	p = put(p, ",\"ts\":");
	return put_us(p, ts_ns);
}

/* ---- strings of the target */

static int append_escaped(struct buf *b, const char *text, size_t len)
{
	size_t n = fmt_json(NULL, 0, text, len);
	char *p = buf_add(b, n + 1);

	if (!p)
		return -ENOMEM;
	fmt_json(p, n + 1, text, len);
	b->len--; /* the terminator */
	return 0;
}

static void write_text(struct chrome *c, const char *text)
{
	snk_put_json(c->s.out, text, strlen(text));
}

/* `,"key":"text"` */
static void write_member(struct chrome *c, const char *key, const char *text)
{
	out_printf(c->s.out, ",\"%s\":", key);
	write_text(c, text);
}

static int text_add(struct chrome *c, uint64_t id, int what)
{
	struct text_ref ref = {.off = c->texts.len};
	char device[48];
	const char *text;
	size_t len;
	int ret;

	if (what == TEXT_NAME) {
		text = mdl_name(c->s.in->model, id, &len);
	} else {
		text = mdl_device_name(c->s.in->session, (uint32_t)id, device);
		len = strlen(text);
	}
	ret = append_escaped(&c->texts, text, len);
	if (ret)
		return ret;
	ref.len = c->texts.len - ref.off;
	return buf_put(&c->ref, &ref, sizeof(ref));
}

/* Each name is escaped once. */
static struct text text_of(struct chrome *c, uint64_t id, int what)
{
	uint64_t *at = hash_put(&c->refs, id, (uint64_t)what);
	const struct text_ref *ref;

	if (at && !*at && !text_add(c, id, what))
		*at = buf_count(&c->ref, struct text_ref);
	if (!at || !*at) {
		no_memory(c);
		return (struct text){"", 0};
	}
	ref = buf_at(&c->ref, struct text_ref, *at - 1);
	return (struct text){c->texts.data + ref->off, ref->len};
}

/* ---- events */

static void write_arrow(struct chrome *c, const char *ph, uint64_t id, const struct mxbpf_span *s, uint32_t tid)
{
	char *start = out_reserve(c->s.out, EVENT_BYTES), *p;

	p = put(start, ",\n{\"ph\":");
	p = put(p, ph);
	p = put(p, ",\"id\":");
	p = put_u64(p, id);
	*p++ = ',';
	p = put_where(p, s->h.tgid, tid, s->h.ts_ns - c->base_ns);
	p = put(p, ",\"cat\":\"flow\",\"name\":\"starts\"}");
	out_filled(c->s.out, (size_t)(p - start));
}

static char *put_args(char *p, const struct mxbpf_span *s, uint32_t tid, struct text device)
{
	p = put(p, "\",\"args\":{\"self_ns\":");
	p = put_u64(p, s->self_ns);
	if (s->device) {
		p = put(p, ",\"device\":\"");
		memcpy(p, device.data, device.len);
		p += device.len;
		*p++ = '"';
	}
	if (s->link) {
		p = put(p, ",\"link\":\"0x");
		p = put_hex(p, s->link);
		*p++ = '"';
	}
	if (tid != s->tid) {
		p = put(p, ",\"thread\":");
		p = put_u64(p, s->tid);
	}
	if (s->end_tid != s->tid) {
		p = put(p, ",\"end_thread\":");
		p = put_u64(p, s->end_tid);
	}
	if (s->flags & MXBPF_SPAN_UNWOUND)
		p = put(p, ",\"unwound\":true");
	return put(p, "}}");
}

static void write_span(struct chrome *c, const struct mxbpf_span *s, const struct snk_place *place)
{
	struct text name, device = {"", 0};
	char *start = out_reserve(c->s.out, EVENT_BYTES), *p;
	size_t i;

	p = put(start, ",\n{\"ph\":\"X\",");
	p = put_where(p, s->h.tgid, place->tid, s->h.ts_ns - c->base_ns);
	p = put(p, ",\"dur\":");
	p = put_us(p, s->dur_ns);
	p = put(p, ",\"cat\":\"");
	p = put(p, c->category[s->cls]);
	p = put(p, "\",\"name\":\"");
	out_filled(c->s.out, (size_t)(p - start));
	name = text_of(c, s->name_id, TEXT_NAME);
	out_write(c->s.out, name.data, name.len);

	if (s->device)
		device = text_of(c, s->device, TEXT_DEVICE);
	start = out_reserve(c->s.out, EVENT_BYTES + device.len);
	p = put_args(start, s, place->tid, device);
	out_filled(c->s.out, (size_t)(p - start));

	/* Behind their span, so that at equal times the viewer has it open. */
	if (place->arrow_in)
		write_arrow(c, "\"f\",\"bp\":\"e\"", place->arrow_in, s, place->tid);
	for (i = 0; i < place->narrows_out; i++)
		if (place->arrows_out[i].arrow)
			write_arrow(c, "\"s\"", place->arrows_out[i].arrow, s, place->tid);
}

/* ---- before the events: who, when, what was lost */

static const char *bool_text(bool b)
{
	return b ? "true" : "false";
}

static void write_target(struct chrome *c, const struct mdl_session *s)
{
	size_t i;

	out_printf(c->s.out, ",\"target\":{\"pid\":%u", s->pid);
	write_member(c, "comm", s->comm);
	write_member(c, "cmdline", s->cmdline);
	write_member(c, "hostname", s->hostname);
	out_puts(c->s.out, ",\"libraries\":[");
	for (i = 0; i < s->nlibs; i++) {
		out_puts(c->s.out, i ? ",{\"path\":" : "{\"path\":");
		write_text(c, s->libs[i].path);
		write_member(c, "build_id", s->libs[i].build_id);
		write_member(c, "runtime", s->libs[i].runtime);
		out_puts(c->s.out, "}");
	}
	out_puts(c->s.out, "]}");
}

static void write_probes(struct chrome *c, const struct mdl_session *s)
{
	size_t i;

	out_puts(c->s.out, ",\"probes\":[");
	for (i = 0; i < s->nprobes; i++) {
		out_puts(c->s.out, i ? ",{\"name\":" : "{\"name\":");
		write_text(c, s->probes[i].name);
		write_member(c, "group", s->probes[i].group);
		write_member(c, "symbol", s->probes[i].symbol);
		write_member(c, "status", s->probes[i].status);
		write_member(c, "reason", s->probes[i].reason);
		out_puts(c->s.out, "}");
	}
	out_puts(c->s.out, "]");
}

static void write_head(struct chrome *c)
{
	const struct mdl_session *s = c->s.in->session;
	const struct snk_plan *p = &c->plan;
	struct out *o = c->s.out;

	out_printf(o, "{\"displayTimeUnit\":\"ns\",\"schemaVersion\":1,\"baseTimeNanoseconds\":%llu,\n\"otherData\":{",
		   (unsigned long long)(s->start_unix_ns - (s->start_mono_ns - c->base_ns)));
	out_puts(o, "\"mxbpf_version\":");
	write_text(c, s->mxbpf_version);
	write_target(c, s);
	out_printf(o,
		   ",\"window\":{\"start_unix_ns\":%llu,\"start_mono_ns\":%llu,\"duration_ns\":%llu,\"incomplete\":%s",
		   (unsigned long long)s->start_unix_ns, (unsigned long long)s->start_mono_ns,
		   (unsigned long long)s->duration_ns, bool_text(s->incomplete));
	snk_put_window_json(o, s);
	out_puts(o, "},\"loss\":{");
	snk_put_loss_json(o, &s->loss);
	out_puts(o, "}");
	out_printf(o,
		   ",\"hits\":%llu,\"open_spans\":%llu,\"cut_records\":%llu,\"spans\":%llu,\"allocations\":%zu,"
		   "\"arrows\":%llu,\"arrows_unmatched\":%llu,\"edges_rootless\":%llu",
		   (unsigned long long)s->hits, (unsigned long long)s->open_spans, (unsigned long long)s->cut_records,
		   (unsigned long long)p->nspans, buf_count(&p->allocs, struct snk_plan_alloc),
		   (unsigned long long)p->narrows, (unsigned long long)(p->nedges - p->nrootless - p->narrows),
		   (unsigned long long)p->nrootless);
	write_probes(c, s);
	out_puts(o, "},\n\"traceEvents\":[");
}

static void write_process(struct chrome *c, uint32_t tgid, const char *separator)
{
	const struct mdl_session *s = c->s.in->session;
	const char *name = tgid == s->pid ? s->comm : mdl_thread_name(c->s.in->model, tgid, tgid);

	out_printf(c->s.out, "%s\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":", separator,
		   tgid);
	write_text(c, name ? name : "process");
	out_puts(c->s.out, "}}");
}

static void write_thread(struct chrome *c, const struct snk_plan_track *t, size_t place)
{
	const char *name = mdl_thread_name(c->s.in->model, t->tgid, t->tid);
	char lane[32];

	if (t->lane) {
		snprintf(lane, sizeof(lane), "async %u", t->lane);
		name = lane;
	} else if (!name) {
		name = t->tid == c->s.in->session->pid ? c->s.in->session->comm : "thread";
	}
	out_printf(c->s.out,
		   ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":", t->tgid,
		   t->tid);
	write_text(c, name);
	out_printf(c->s.out,
		   "}},\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%"
		   "zu}}",
		   t->tgid, t->tid, place);
}

static void write_tracks(struct chrome *c)
{
	const struct buf *b = &c->plan.tracks;
	uint32_t pid = c->s.in->session->pid, last = pid;
	size_t i;

	/* Always there: the first event, which has no comma before it. */
	write_process(c, pid, "");
	for (i = 0; i < buf_count(b, struct snk_plan_track); i++) {
		const struct snk_plan_track *t = buf_at(b, struct snk_plan_track, i);

		if (t->tgid != last && t->tgid != pid)
			write_process(c, t->tgid, ",");
		last = t->tgid;
		write_thread(c, t, i);
	}
}

/* What was allocated before the window is unknown: its being freed must not show as less than nothing. */
static int write_memory(struct chrome *c)
{
	const struct buf *b = &c->plan.allocs;
	struct hash live = {0};
	size_t i;

	for (i = 0; i < buf_count(b, struct snk_plan_alloc); i++) {
		const struct snk_plan_alloc *a = buf_at(b, struct snk_plan_alloc, i);
		struct text device = text_of(c, a->device, TEXT_DEVICE);
		uint64_t *bytes = hash_put(&live, a->tgid, a->device), freed = 0 - (uint64_t)a->bytes;
		char *start = out_reserve(c->s.out, EVENT_BYTES + device.len), *p;

		if (!bytes)
			break;
		if (a->bytes >= 0)
			*bytes += (uint64_t)a->bytes;
		else
			*bytes = *bytes > freed ? *bytes - freed : 0;
		p = put(start, ",\n{\"ph\":\"C\",");
		p = put_where(p, a->tgid, a->tgid, a->ts_ns - c->base_ns);
		p = put(p, ",\"name\":\"memory ");
		memcpy(p, device.data, device.len);
		p = put(p + device.len, "\",\"args\":{\"bytes\":");
		p = put_u64(p, *bytes);
		p = put(p, "}}");
		out_filled(c->s.out, (size_t)(p - start));
	}
	hash_fini(&live);
	return i < buf_count(b, struct snk_plan_alloc) ? no_memory(c) : 0;
}

/* ---- the sink */

static int chrome_begin(struct snk *s)
{
	struct chrome *c = (struct chrome *)s;
	size_t i;

	c->plan.first_ns = UINT64_MAX;
	for (i = 0; i < MDL_NCLASSES; i++)
		c->category[mdl_classes[i].cls] = mdl_classes[i].category;
	return 0;
}

static int chrome_survey(struct snk *s, const struct mxbpf_rec *r)
{
	struct chrome *c = (struct chrome *)s;

	return snk_plan_survey(&c->plan, r) ? no_memory(c) : 0;
}

static int chrome_surveyed(struct snk *s)
{
	struct chrome *c = (struct chrome *)s;
	uint64_t start_ns = s->in->session->start_mono_ns;

	if (snk_plan_finish(&c->plan))
		return no_memory(c);
	c->base_ns = c->plan.first_ns < start_ns ? c->plan.first_ns : start_ns;
	write_head(c);
	write_tracks(c);
	return write_memory(c);
}

static int chrome_record(struct snk *s, const struct mxbpf_rec *r)
{
	struct chrome *c = (struct chrome *)s;
	const struct mxbpf_span *span = (const struct mxbpf_span *)r;
	struct late late;

	if (r->kind != MXBPF_SPAN)
		return 0;
	late.place = snk_plan_place(&c->plan, span);
	if (!late.place.late) {
		write_span(c, span, &late.place);
		return c->error;
	}
	late.span = mdl_span(r);
	late.ordinal = buf_count(&c->late, struct late);
	return buf_put(&c->late, &late, sizeof(late)) ? no_memory(c) : 0;
}

/* Of those that start together the outer one was closed last. */
static int by_nesting(const void *x, const void *y)
{
	const struct late *a = x, *b = y;

	if (a->span.h.ts_ns != b->span.h.ts_ns)
		return a->span.h.ts_ns < b->span.h.ts_ns ? -1 : 1;
	return a->ordinal > b->ordinal ? -1 : 1;
}

static int chrome_end(struct snk *s)
{
	struct chrome *c = (struct chrome *)s;
	size_t i, n = buf_count(&c->late, struct late);

	if (n)
		qsort(c->late.data, n, sizeof(struct late), by_nesting);
	for (i = 0; i < n; i++) {
		const struct late *l = buf_at(&c->late, struct late, i);

		write_span(c, &l->span, &l->place);
	}
	out_puts(s->out, "\n]}\n");
	return c->error;
}

static void chrome_fini(struct snk *s)
{
	struct chrome *c = (struct chrome *)s;

	snk_plan_fini(&c->plan);
	hash_fini(&c->refs);
	buf_fini(&c->ref);
	buf_fini(&c->texts);
	buf_fini(&c->late);
}

static const char *const suffixes[] = {".json", ".json.gz", NULL};

const struct snk_ops snk_chrome = {
	.name = "chrome",
	.help = "timeline in Chrome's JSON, for Perfetto",
	.suffixes = suffixes,
	.needs_records = true,
	.by_process = true,
	.state_bytes = sizeof(struct chrome),
	.begin = chrome_begin,
	.survey = chrome_survey,
	.surveyed = chrome_surveyed,
	.record = chrome_record,
	.end = chrome_end,
	.fini = chrome_fini,
};
