/* SPDX-License-Identifier: Apache-2.0 */
/* Builds small recordings for the trace tests and parses the traces that are written from them. */
#ifndef CHROME_TAPE_H
#define CHROME_TAPE_H

#include <cjson/cJSON.h>

#include "base/out.h"
#include "mxbpf_track.h"
#include "view/compat/compat.h"
#include "view/timeline/chrome_plan.h"
#include "view/priv.h"
#include "unit.h"

#define PID   4242u
#define START 1795145533000000123ull /* Unix time in ns */
#define MONO  7000000000123ull	     /* the same moment on the clock of the records, in ns */
#define CPU0  MXBPF_DEVICE(1, 0)
#define API   MXBPF_CLASS_API
#define OP    MXBPF_CLASS_OPERATOR
#define WAIT  MXBPF_CLASS_WAIT

/* ---- recordings: times are in ns after MONO */

struct tape {
	struct buf recs;
	size_t window_recs; /* records per window; 0: all in one window */
	size_t surveyed;    /* bytes that the first pass of an export already finds; 0: all */
	unsigned rewinds;
	const struct view_ops *ops; /* NULL means view_chrome */
	size_t pos;
	struct mdl *model;
	struct mdl_session session;
};

static struct mdl_device devices[] = {{.type = 1, .numbered = true, .name = (char *)"cpu"}};
static struct mdl_probe probes[] = {
	{(char *)"operator.start", (char *)"op", (char *)"_ZN5start", (char *)"attached", (char *)"", NULL},
	{(char *)"storage.free", (char *)"mem", (char *)"", (char *)"refused", (char *)"no \"symbol\"\n", NULL},
};
static struct mdl_lib libs[] = {{(char *)"/lib/libx.so", (char *)"abcd", (char *)"X 1.0"}};

static inline struct tape tape_new(void)
{
	struct tape t = {.model = mdl_new()};

	t.session = (struct mdl_session){
		.mxbpf_version = (char *)"1.2.3",
		.pid = PID,
		.comm = (char *)"trainer",
		.cmdline = (char *)"trainer -v \xff\x01\"",
		.hostname = (char *)"host",
		.libs = libs,
		.nlibs = 1,
		.probes = probes,
		.nprobes = 2,
		.devices = devices,
		.ndevices = 1,
		.start_unix_ns = START,
		.start_mono_ns = MONO,
		.duration_ns = 5000000,
		.hits = 77,
		.open_spans = 3,
		.cut_records = 9,
		.loss = {.attempted = 100,
			 .stored = 90,
			 .dropped = 10,
			 .truncated = 1,
			 .unreadable = 2,
			 .unmatched = 4},
	};
	return t;
}

static inline void tape_free(struct tape *t)
{
	mdl_free(t->model);
	buf_fini(&t->recs);
}

static inline void *rec_add(struct tape *t, uint16_t kind, size_t bytes, uint64_t at_ns)
{
	struct mxbpf_rec *r = buf_add(&t->recs, bytes);

	memset(r, 0, bytes);
	*r = (struct mxbpf_rec){.kind = kind, .size = (uint16_t)bytes, .tgid = PID, .ts_ns = MONO + at_ns};
	return r;
}

/* The result is valid until the next record is added. */
static inline struct mxbpf_span *span(struct tape *t, uint8_t cls, uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_span *s = rec_add(t, MXBPF_SPAN, sizeof(*s), start_ns);

	s->dur_ns = end_ns - start_ns;
	s->self_ns = s->dur_ns;
	s->name_id = cls;
	s->tid = s->end_tid = tid;
	s->cls = cls;
	s->device = cls == OP ? CPU0 : 0;
	return s;
}

static inline void op(struct tape *t, uint32_t tid, uint64_t start_ns, uint64_t end_ns, uint64_t link)
{
	span(t, OP, tid, start_ns, end_ns)->link = link;
}

static inline void async_op(struct tape *t, uint32_t tid, uint64_t start_ns, uint64_t end_ns, uint64_t link)
{
	struct mxbpf_span *s = span(t, OP, tid, start_ns, end_ns);

	s->link = link;
	s->flags = MXBPF_SPAN_ASYNC;
	s->end_tid = tid + 1;
}

/* A span that has not ended when the window ends. */
static inline struct mxbpf_open *open_span(struct tape *t, uint8_t cls, uint32_t tid, uint64_t start_ns,
					   uint64_t window_end_ns)
{
	struct mxbpf_open *o = rec_add(t, MXBPF_OPEN, sizeof(*o), start_ns);

	o->open_ns = window_end_ns - start_ns;
	o->name_id = cls;
	o->tid = tid;
	o->cls = cls;
	o->syscall = -1;
	return o;
}

static inline void edge(struct tape *t, uint32_t tid, uint64_t at_ns, uint64_t src_start_ns, uint64_t link)
{
	struct mxbpf_edge *e = rec_add(t, MXBPF_EDGE, sizeof(*e), at_ns);

	e->link = link;
	e->src_start_ns = MONO + src_start_ns;
	e->tid = tid;
	e->src_cls = API;
}

static inline void alloc(struct tape *t, uint64_t at_ns, int64_t bytes)
{
	struct mxbpf_alloc *a = rec_add(t, MXBPF_ALLOC, sizeof(*a), at_ns);

	a->bytes = bytes;
	a->tid = PID;
	a->device = CPU0;
}

static inline void name(struct tape *t, uint64_t id, uint32_t kind, const char *text, size_t len)
{
	struct mxbpf_name *n = rec_add(t, MXBPF_NAME, sizeof(*n) + ((len + 7) & ~7ul), 0);

	n->h.ts_ns = 0;
	n->id = id;
	n->len = (uint32_t)len;
	n->kind = kind;
	memcpy(n->text, text, len);
}

static inline struct mxbpf_span *call(struct tape *t, uint8_t cls, uint64_t name_id, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_span *s = span(t, cls, PID, start_ns, end_ns);

	s->name_id = name_id;
	return s;
}

static inline struct mxbpf_launch *launch(struct tape *t, uint32_t tid, uint64_t at_ns, uint64_t edge_id)
{
	struct mxbpf_launch *l = rec_add(t, MXBPF_LAUNCH, sizeof(*l), at_ns);

	l->tid = tid;
	l->edge_id = edge_id;
	l->domain = MXBPF_DOMAIN_CUPTI;
	return l;
}

/* A kernel. Without an id nobody has launched it. */
static inline struct mxbpf_activity *kernel(struct tape *t, uint64_t name_id, uint64_t edge_id, uint64_t start_ns,
					    uint64_t end_ns)
{
	struct mxbpf_activity *a = rec_add(t, MXBPF_ACTIVITY, sizeof(*a), start_ns);

	a->dur_ns = end_ns - start_ns;
	a->name_id = name_id;
	a->edge_id = edge_id;
	a->domain = edge_id ? MXBPF_DOMAIN_CUPTI : MXBPF_DOMAIN_NONE;
	a->cls = MXBPF_ACTIVITY_KERNEL;
	a->track = (struct mxbpf_track){.device = 0, .context = 1, .stream = 7};
	return a;
}

static inline int fold_into(struct mdl *m, struct tape *t)
{
	const int err = mdl_feed(m, t->recs.data, t->recs.len);

	t->recs.len = 0;
	return err;
}

/* Feeds the tape's model with its records as one window. */
static inline int fold(struct tape *t)
{
	return fold_into(t->model, t);
}

/* ---- a view source that reads a tape */

static inline int tape_rewind(void *ctx)
{
	struct tape *t = ctx;

	t->pos = 0;
	t->rewinds++;
	return 0;
}

static inline int tape_next(void *ctx, const void **recs, size_t *bytes)
{
	struct tape *t = ctx;
	size_t from = t->pos, n = 0, len = t->surveyed && t->rewinds == 2 ? t->surveyed : t->recs.len;

	while (t->pos < len && (!t->window_recs || n++ < t->window_recs))
		t->pos += ((struct mxbpf_rec *)(t->recs.data + t->pos))->size;
	*recs = buf_place(&t->recs, from);
	*bytes = t->pos - from;
	return *bytes > 0;
}

static inline int tape_write(struct tape *t, const char *path)
{
	struct view_source source = {tape_rewind, tape_next, t, t->recs.len};
	struct view_input in = {.session = &t->session, .model = t->model, .source = &source};
	struct view_opts opts = {0};
	struct err e = {0};
	struct out *o;
	int ret;

	tape_rewind(t);
	while (!mdl_feed(t->model, NULL, 0) && tape_next(t, (const void **)&source.ctx, &source.total_bytes))
		mdl_feed(t->model, source.ctx, source.total_bytes);
	source = (struct view_source){tape_rewind, tape_next, t, t->recs.len};
	ret = out_open(path, false, &o, &e);
	if (ret)
		return ret;
	ret = view_write(t->ops ? t->ops : &view_chrome, &in, &opts, o, &e);
	if (ret) {
		printf("# %s\n", e.why);
		out_abort(o);
		return ret;
	}
	return out_commit(o, &e);
}

/* ---- reading the written trace */

struct trace {
	char *text; /* NUL-terminated */
	cJSON *json, *events, *other;
};

static inline struct trace trace_of(struct tape *t)
{
	char path[] = "/tmp/mxbpf-test-chrome-XXXXXX";
	struct trace r = {0};
	int fd = mkstemp(path);
	FILE *f;
	long n;

	CHECK(fd >= 0 && !tape_write(t, path));
	close(fd);
	f = fopen(path, "r");
	unlink(path);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	r.text = calloc(1, (size_t)n + 1);
	CHECK(fread(r.text, 1, (size_t)n, f) == (size_t)n);
	fclose(f);
	r.json = cJSON_ParseWithOpts(r.text, NULL, 1);
	CHECK(r.json != NULL);
	r.events = cJSON_IsArray(r.json) ? r.json : cJSON_GetObjectItem(r.json, "traceEvents");
	r.other = cJSON_GetObjectItem(r.json, "otherData");
	CHECK(cJSON_IsArray(r.events));
	return r;
}

static inline void trace_free(struct trace *r)
{
	free(r->text);
	cJSON_Delete(r->json);
}

static inline double num(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : -1;
}

static inline const char *str(const cJSON *o, const char *key)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(o, key));

	return s ? s : "";
}

/* Returns the i-th event of a phase, or NULL if there are fewer. */
static inline cJSON *event(const struct trace *r, const char *ph, int i)
{
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		if (!strcmp(str(e, "ph"), ph) && !i--)
			return e;
	}
	return NULL;
}

static inline int count(const struct trace *r, const char *ph)
{
	int n = 0;

	while (event(r, ph, n))
		n++;
	return n;
}

static inline long at_ns(const cJSON *e)
{
	return (long)(num(e, "ts") * 1000 + 0.5);
}

static inline long end_ns(const cJSON *e)
{
	return at_ns(e) + (long)(num(e, "dur") * 1000 + 0.5);
}

/* Returns the X event of category `cat` that starts at `ns`, or NULL. */
static inline cJSON *slice(const struct trace *r, const char *cat, long ns)
{
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		if (!strcmp(str(e, "ph"), "X") && !strcmp(str(e, "cat"), cat) && at_ns(e) == ns)
			return e;
	}
	return NULL;
}

static inline const char *track_name(const struct trace *r, double tid)
{
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		if (!strcmp(str(e, "name"), "thread_name") && num(e, "tid") == tid)
			return str(cJSON_GetObjectItem(e, "args"), "name");
	}
	return "";
}

/* The value of a member of the args of the process's event of this name. "" if there is none. */
static inline const char *process_about(const struct trace *r, double pid, const char *name, const char *key)
{
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		if (!strcmp(str(e, "name"), name) && num(e, "pid") == pid)
			return str(cJSON_GetObjectItem(e, "args"), key);
	}
	return "";
}

/* Whether a slice is on the track of this name in the process of this name. */
static inline bool drawn_on(const struct trace *r, const cJSON *slice, const char *process, const char *track)
{
	const cJSON *e;

	if (!slice || strcmp(process_about(r, num(slice, "pid"), "process_name", "name"), process))
		return false;
	cJSON_ArrayForEach(e, r->events)
	{
		if (!strcmp(str(e, "name"), "thread_name") && num(e, "pid") == num(slice, "pid") &&
		    num(e, "tid") == num(slice, "tid"))
			return !strcmp(str(cJSON_GetObjectItem(e, "args"), "name"), track);
	}
	return false;
}

struct drawn {
	double tid;
	long start_ns, end_ns;
	int place;
};

static inline int by_drawing(const void *x, const void *y)
{
	const struct drawn *a = x, *b = y;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->place - b->place;
}

/*
 * Counts the slices that Perfetto would drop. Perfetto sorts slices by time, keeps the file's order for equal times,
 * and puts them on a stack. A slice without an end counts as well.
 */
static inline int dropped(const struct trace *r)
{
	int n = 0, bad = 0, depth = 0, max = cJSON_GetArraySize(r->events), i;
	FREED(memory_freed) struct drawn *d = calloc((size_t)max + 1, sizeof(*d));
	long *stack = calloc((size_t)max + 1, sizeof(*stack));
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		bad += !strcmp(str(e, "ph"), "B") || !strcmp(str(e, "ph"), "b"); /* a slice without an end */
		if (strcmp(str(e, "ph"), "X"))
			continue;
		d[n] = (struct drawn){num(e, "tid"), at_ns(e), end_ns(e), n};
		n++;
	}
	qsort(d, (size_t)n, sizeof(*d), by_drawing);
	for (i = 0; i < n; i++) {
		if (i && d[i].tid != d[i - 1].tid)
			depth = 0;
		while (depth && stack[depth - 1] <= d[i].start_ns)
			depth--;
		if (depth && d[i].end_ns > stack[depth - 1])
			bad++;
		else
			stack[depth++] = d[i].end_ns;
	}
	free(stack);
	return bad;
}

#endif
