// SPDX-License-Identifier: Apache-2.0
/* Takes the records of a format, and makes a recording of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fmt.h"
#include "base/gzip.h"
#include "base/hash.h"
#include "base/out.h"
#include "import/import.h"
#include "import/nest.h"
#include "import/sink.h"
#include "import/sort.h"
#include "mxbpf_stack.h"
#include "plan/plan.h"
#include "records/kinds.h"
#include "source/gpu_convert.h"
#include "source/source.h"

#define NAMES_MAX      (1u << 19) /* different texts of a file */
#define NAMES_BATCH    (64u << 10)
#define UNIX_LEAST     1000000000000000000ull /* times since 1970 are later than this: 2001 */
#define EVENTS_MAX     (64ull << 30)	      /* bytes of events on the disk */
#define HEAD_BYTES     (64u << 10)
#define PROGRESS_EVERY 16384 /* events */

struct sink {
	const struct import_format *format;
	const char *path;
	int file;
	struct mdl_session about;
	struct mdl *model;
	struct src_hub *hub;
	struct src *source;
	struct rec_writer *writer; /* NULL: while the file is being read */
	struct nest *nest;
	struct sort *sort;
	struct hash known;			/* (id, kind) -> 1 */
	struct buf rows;			/* of tables */
	struct buf names;			/* records of names that the model does not have yet */
	const struct import_progress *progress; /* NULL: nobody is told */
	uint64_t taken, passed;			/* records from the file, and of them those that are in order */
	uint64_t first_ns, last_ns;
	uint64_t lost, untold; /* untold: texts beyond NAMES_MAX */
	bool levels;	       /* allocations have levels */
	struct hash level;     /* (tgid, device) -> bytes after the last allocation */
	uint32_t classes;      /* that spans have: bits of 1 << enum mxbpf_class */
	struct mxbpf_loss loss;
	int err; /* the first error of the model, of the disk, or for lack of memory */
};

static int sink_fail(struct sink *s, int err)
{
	s->err = s->err ? s->err : err;
	return s->err;
}

/* ---- names */

static int pass_names(struct sink *s)
{
	if (s->names.len)
		src_deliver_names(s->source, s->names.data, s->names.len);
	s->names.len = 0;
	return s->err;
}

/* Makes a text known under an id. Returns the id, or what stands for it. */
static uint64_t sink_text(struct sink *s, enum mxbpf_name_kind kind, uint64_t id, const char *text, size_t len)
{
	uint64_t *known;

	if (hash_get(&s->known, id, kind))
		return id;
	if (s->known.len >= NAMES_MAX) {
		s->untold++;
		return MXBPF_NAME_UNNAMED;
	}
	known = hash_put(&s->known, id, kind);
	if (!known || kind_put_name(&s->names, kind, 0, id, text, len)) {
		sink_fail(s, -ENOMEM);
		return 0;
	}
	*known = 1;
	if (s->names.len >= NAMES_BATCH)
		pass_names(s);
	return id;
}

uint64_t sink_name(struct sink *s, enum mxbpf_name_kind kind, const char *text, size_t len)
{
	const size_t most = kind == MXBPF_NAME_SPAN ? MXBPF_NAME_BYTES_MAX : MXBPF_TEXT_BYTES_MAX;

	if (!len)
		return MXBPF_NAME_UNNAMED;
	s->loss.truncated += len > most;
	len = len > most ? most : len;
	return sink_text(s, kind, plan_text_id(0, text, len), text, len);
}

uint64_t sink_domain_name(struct sink *s, const char *domain, size_t domain_len, const char *text, size_t len)
{
	uint64_t id;

	if (!len)
		return MXBPF_NAME_UNNAMED;
	s->loss.truncated += (len > MXBPF_NAME_BYTES_MAX) + (domain_len > MXBPF_NAME_BYTES_MAX);
	len = len > MXBPF_NAME_BYTES_MAX ? MXBPF_NAME_BYTES_MAX : len;
	domain_len = domain_len > MXBPF_NAME_BYTES_MAX ? MXBPF_NAME_BYTES_MAX : domain_len;
	id = plan_text_id((unsigned)hash_text(HASH_SEED, domain, domain_len), text, len);
	id = sink_text(s, MXBPF_NAME_SPAN, id, text, len);
	return id == MXBPF_NAME_UNNAMED || !domain_len ? id : sink_text(s, MXBPF_NAME_DOMAIN, id, domain, domain_len);
}

void sink_thread(struct sink *s, uint32_t tgid, uint32_t tid, const char *text, size_t len)
{
	uint64_t *known = s->known.len < NAMES_MAX ? hash_put(&s->known, (uint64_t)tgid << 32 | tid, ~0ull) : NULL;

	if (!known || *known)
		return;
	*known = 1;
	if (kind_put_name(&s->names, MXBPF_NAME_THREAD, tgid, tid, text, len))
		sink_fail(s, -ENOMEM);
}

/* ---- records */

static void tell_progress(const struct sink *s, uint64_t events, uint64_t of)
{
	if (s->progress && !(events % PROGRESS_EVERY))
		s->progress->tell(s->progress->ctx, events, of);
}

static uint64_t order_of(struct sink *s, const struct mxbpf_rec *r)
{
	struct mxbpf_span span;

	if (r->kind != MXBPF_SPAN)
		return UINT64_MAX;
	kind_span(r, &span);
	s->classes |= 1u << span.cls;
	return UINT64_MAX - span.dur_ns;
}

int sink_put(struct sink *s, const struct mxbpf_rec *r)
{
	const uint64_t end_ns = kind_end_ns(r);
	int err;

	if (r->ts_ns && r->ts_ns < s->first_ns)
		s->first_ns = r->ts_ns;
	s->last_ns = end_ns > s->last_ns ? end_ns : s->last_ns;
	tell_progress(s, ++s->taken, 0);
	err = sort_put(s->sort, order_of(s, r), r);
	return err ? sink_fail(s, err) : s->err;
}

int sink_row(struct sink *s, const struct mxbpf_rec *r)
{
	const struct mxbpf_agg *a = (const void *)r;

	if (r->kind == MXBPF_AGG) {
		s->classes |= 1u << a->cls;
		s->loss.stored += a->count;
	}
	return buf_put(&s->rows, r, r->size) ? sink_fail(s, -ENOMEM) : s->err;
}

void sink_rounded(struct sink *s, uint64_t ns)
{
	nest_rounded(s->nest, ns);
}

void sink_levels(struct sink *s)
{
	s->levels = true;
}

void sink_lost(struct sink *s, uint64_t n)
{
	s->lost += n;
}

struct mdl_session *sink_about(struct sink *s)
{
	return &s->about;
}

int sink_note(struct sink *s, const char *name, const char *fmt, ...)
{
	struct mdl_note *notes = realloc(s->about.notes, (s->about.nnotes + 1) * sizeof(*notes)), *n;
	va_list ap;

	if (!notes)
		return sink_fail(s, -ENOMEM);
	s->about.notes = notes;
	n = &notes[s->about.nnotes];
	*n = (struct mdl_note){.name = strdup(name)};
	va_start(ap, fmt);
	if (vasprintf(&n->text, fmt, ap) < 0)
		n->text = NULL;
	va_end(ap);
	if (!n->name || !n->text) {
		free(n->name);
		free(n->text);
		return sink_fail(s, -ENOMEM);
	}
	s->about.nnotes++;
	return 0;
}

struct mxbpf_span sink_span(uint32_t tgid, uint32_t tid, uint64_t start_ns, uint64_t dur_ns, uint64_t name_id,
			    enum mxbpf_class cls)
{
	return (struct mxbpf_span){
		.h = {.kind = MXBPF_SPAN, .size = MXBPF_SPAN_BYTES_DETAILS, .tgid = tgid, .ts_ns = start_ns},
		.dur_ns = dur_ns,
		.self_ns = dur_ns,
		.name_id = name_id,
		.tid = tid,
		.end_tid = tid,
		.cls = cls,
	};
}

struct mxbpf_activity sink_activity(enum mxbpf_activity_class cls, uint64_t start_ns, uint64_t dur_ns, uint64_t name_id)
{
	return (struct mxbpf_activity){
		.h = {.kind = MXBPF_ACTIVITY, .size = sizeof(struct mxbpf_activity), .ts_ns = start_ns},
		.dur_ns = dur_ns,
		.name_id = name_id,
		.cls = cls,
	};
}

int sink_cuda_call(struct sink *s, const struct mxbpf_span *call, const char *name, uint64_t correlation)
{
	const struct mxbpf_launch l = {
		.h = {.kind = MXBPF_LAUNCH, .size = sizeof(l), .tgid = call->h.tgid, .ts_ns = call->h.ts_ns},
		.edge_id = correlation,
		.tid = call->tid,
		.domain = MXBPF_DOMAIN_CUPTI,
		.dur_ns = call->dur_ns,
		.call_id = call->name_id,
	};
	const int err = sink_put(s, &call->h);

	return err || !correlation || !gpu_launches(name) ? err : sink_put(s, &l.h);
}

/* ---- the source */

/* Makes the level after an allocation the bytes that it added. An allocation that added none freed older memory. */
static int add_to_level(struct sink *s, struct mxbpf_alloc *a)
{
	uint64_t *level = hash_put(&s->level, a->h.tgid, a->device);
	const int64_t bytes = a->bytes;

	if (!level)
		return -ENOMEM;
	a->bytes -= (int64_t)*level;
	a->flags = MXBPF_ALLOC_COUNTED | (a->bytes > 0 ? 0 : MXBPF_ALLOC_FREED);
	*level = (uint64_t)bytes;
	return 0;
}

/* A record that names no process belongs to the one of the session. */
static int sink_sorted(void *ctx, struct mxbpf_rec *r)
{
	struct sink *s = ctx;
	int err;

	tell_progress(s, ++s->passed, s->taken);
	if (!r->tgid)
		r->tgid = s->about.pid;
	err = s->levels && r->kind == MXBPF_ALLOC ? add_to_level(s, (struct mxbpf_alloc *)r) : 0;
	err = err ? err : nest_put(s->nest, r);
	return err ? err : s->err;
}

static int pass_batch(void *ctx, void *recs, size_t bytes)
{
	struct sink *s = ctx;

	pass_names(s);
	src_deliver(s->source, recs, bytes);
	return s->err;
}

static uint64_t name_stack(void *ctx, const uint64_t *frames, size_t n)
{
	struct sink *s = ctx;
	struct buf text = {0};
	size_t i, len;
	uint64_t id;

	pass_names(s);
	for (i = 0; i < n; i++) {
		const char *line = mdl_text(s->model, MXBPF_NAME_STACK, frames[i], &len);

		if (line && ((i && buf_put(&text, "\n", 1)) || buf_put(&text, line, len)))
			sink_fail(s, -ENOMEM);
	}
	id = sink_name(s, MXBPF_NAME_STACK, text.data, text.len);
	buf_fini(&text);
	return id == MXBPF_NAME_UNNAMED ? 0 : id;
}

/* Reads the sorted records. The file has been read before, because its events may come in any order. */
static int sink_open(struct src *src, struct err *e)
{
	struct sink *s = src->ctx;
	int err = sort_each(s->sort, sink_sorted, s);

	err = err ? err : nest_end(s->nest);
	pass_names(s);
	err = err ? err : mdl_fold_all(s->model, s->rows.data, s->rows.len);
	return err ? err_set(e, ERR_RUNTIME, err, "%s", strerror(-err)) : 0;
}

static void sink_loss(const struct src *src, struct mxbpf_loss *loss)
{
	const struct sink *s = src->ctx;

	*loss = s->loss;
	loss->dropped += s->lost + nest_lost(s->nest) + __atomic_load_n(&src->malformed, __ATOMIC_RELAXED);
	loss->attempted = loss->stored + loss->dropped;
}

static const struct src_ops ops = {.open = sink_open, .loss = sink_loss};

static bool is_name(const struct mxbpf_rec *r)
{
	return r->kind == MXBPF_NAME;
}

static void sink_fold(void *ctx, unsigned number, void *recs, size_t bytes)
{
	struct sink *s = ctx;
	const struct mxbpf_rec *r;
	struct mxbpf_loss loss;
	size_t pos = 0;
	int err;

	while ((r = kind_next(recs, bytes, &pos)))
		s->loss.stored += !is_name(r);
	mdl_begin(s->model, number);
	err = mdl_fold_all(s->model, recs, bytes);
	src_loss(s->source, &loss);
	if (!err && s->writer)
		err = rec_writer_append(s->writer, recs, bytes, s->model, &loss);
	if (err)
		sink_fail(s, err);
}

/* ---- the session */

static int fill(char **text, const char *with)
{
	if (!*text)
		*text = strdup(with);
	return *text ? 0 : -ENOMEM;
}

static int add_devices(struct mdl_session *s, const struct adp *a)
{
	unsigned i;

	s->devices = calloc(a->ndevices, sizeof(*s->devices));
	for (i = 0; s->devices && i < a->ndevices; i++) {
		s->devices[i] =
			(struct mdl_device){a->devices[i].type, a->devices[i].numbered, strdup(a->devices[i].name)};
		if (!s->devices[i].name)
			return -ENOMEM;
		s->ndevices++;
	}
	return s->devices ? 0 : -ENOMEM;
}

int sink_runtime(struct sink *s, const struct adp *a)
{
	struct mdl_session *about = &s->about;
	unsigned cls;

	if (fill(&about->class_title[MXBPF_CLASS_CUDA], "CUDA call"))
		return -ENOMEM;
	if (!a)
		return 0;
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		if (a->class_title[cls] && (cls == MXBPF_CLASS_OPERATOR || s->classes & 1u << cls) &&
		    fill(&about->class_title[cls], a->class_title[cls]))
			return -ENOMEM;
	about->libs = calloc(1, sizeof(*about->libs));
	if (!about->libs || fill(&about->trace_form, a->trace_form ? a->trace_form : "") || add_devices(about, a))
		return -ENOMEM;
	about->libs[about->nlibs++] = (struct mdl_lib){strdup(""), strdup(""), strdup(a->title)};
	return about->libs->path && about->libs->build_id && about->libs->runtime ? 0 : -ENOMEM;
}

/* The process of the session has its place in a job, by which several files are told apart. */
static int label_rank(struct mdl_session *a)
{
	const struct mdl_labels rank = {.numbers = {[MDL_RANK] = a->rank,
						    [MDL_LOCAL_RANK] = MDL_NO_NUMBER,
						    [MDL_WORLD_SIZE] = a->world_size,
						    [MDL_GROUP_RANK] = MDL_NO_NUMBER}};

	return a->world_size && !a->nlabels ? mdl_labels_add(a, &rank, a->pid, "") : 0;
}

/* Fills what the format has left empty. */
static int sink_describe(struct sink *s)
{
	struct mdl_session *a = &s->about;
	const bool of_day = s->first_ns >= UNIX_LEAST;

	if (s->first_ns > s->last_ns) /* there is no event */
		s->first_ns = s->last_ns = 0;
	a->start_mono_ns = s->first_ns;
	a->start_unix_ns += of_day || a->start_unix_ns ? s->first_ns : 0;
	a->duration_ns = s->last_ns - s->first_ns;
	if (!a->sched)
		sink_note(s, "trace",
			  "it does not say when threads waited for a CPU, a lock or a disk, or what recording cost; "
			  "record the job with mxbpf to see that");
	return label_rank(a) || fill(&a->mxbpf_version, MXBPF_VERSION) || fill(&a->comm, "") ||
			       fill(&a->cmdline, s->path) || fill(&a->hostname, "") || fill(&a->trace_form, "") ||
			       fill(&a->boot_id, s->path) || fill(&a->profiler, s->format->source)
		       ? -ENOMEM
		       : 0;
}

static int describe_loss(struct sink *s)
{
	struct mdl_session *a = &s->about;

	if (s->untold)
		sink_note(s, "names",
			  "%llu events have a name, shapes or a stack beyond the limit of %u different texts",
			  (unsigned long long)s->untold, NAMES_MAX);
	a->sources = calloc(1, sizeof(*a->sources));
	if (!a->sources)
		return -ENOMEM;
	a->nsources = 1;
	a->over_ns = nest_over_ns(s->nest);
	src_loss(s->source, &a->loss);
	a->sources[0] =
		(struct mdl_source){.name = strdup(s->format->source), .loss = a->loss, .late = src_late(s->source)};
	return a->sources[0].name ? s->err : -ENOMEM;
}

/* ---- from the file to the recording */

static int sink_new(struct sink *s, int scratch)
{
	const struct nest_out out = {pass_batch, name_stack, s};

	s->first_ns = UINT64_MAX;
	s->model = mdl_new();
	s->hub = src_hub_new(sink_fold, s);
	s->source = s->hub ? src_add(s->hub, &ops, s->format->source, s) : NULL;
	s->nest = nest_new(&out);
	s->sort = sort_new(scratch);
	return s->model && s->source && s->nest && s->sort ? 0 : -ENOMEM;
}

static void sink_fini(struct sink *s)
{
	src_hub_free(s->hub);
	sort_free(s->sort);
	nest_free(s->nest);
	mdl_free(s->model);
	mdl_session_fini(&s->about);
	hash_fini(&s->known);
	hash_fini(&s->level);
	buf_fini(&s->names);
	buf_fini(&s->rows);
}

/* Reads the file into the sorter, and from there into the recording. */
static int sink_run(struct sink *s, struct err *e)
{
	int err = s->format->read(s, s->file, e), fd;

	if (err || s->err)
		return e->code ? e->code
			       : err_set(e, ERR_RUNTIME, err ? err : s->err, "%s", strerror(-(err ? err : s->err)));
	if (pass_names(s) || sink_describe(s))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	fd = out_scratch(NULL, e);
	if (fd < 0 || rec_writer_open(fd, EVENTS_MAX, &s->about, &s->writer, e))
		return e->code;
	rec_writer_scratch(s->writer);
	if (src_open(s->hub, e))
		return e->code;
	src_flush(s->hub);
	if (describe_loss(s))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return rec_writer_finish(s->writer, s->model, &s->about, e);
}

static const struct import_format *const formats[] = {&import_nvprof,	   &import_nsys,   &import_mxnet,
						      &import_mxnet_table, &import_kineto, NULL};

/* Reads the start of a file, decompressed. Returns the number of bytes. */
static size_t read_head(int fd, char head[HEAD_BYTES])
{
	gzFile z = gzip_reader(fd);
	const int n = z ? gzread(z, head, HEAD_BYTES) : 0;

	if (z)
		gzclose_r(z);
	lseek(fd, 0, SEEK_SET);
	return n > 0 ? (size_t)n : 0;
}

static const struct import_format *format_of(int fd)
{
	char head[HEAD_BYTES];
	const size_t n = read_head(fd, head);
	const struct import_format *const *f;

	for (f = formats; n && *f; f++)
		if ((*f)->is(fd, head, n))
			return *f;
	return NULL;
}

const char *import_format(int fd)
{
	const struct import_format *f = format_of(fd);

	return f ? f->name : NULL;
}

int import_open(int fd, const char *path, const struct import_progress *progress, struct rec_reader **r, struct err *e)
{
	struct sink s = {.format = format_of(fd), .path = path, .file = fd, .progress = progress};
	int scratch = out_scratch(NULL, e);

	*r = NULL;
	if (scratch < 0)
		return scratch;
	if (sink_new(&s, scratch))
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else if (!sink_run(&s, e))
		rec_reader_open(rec_writer_fd(s.writer), r, e);
	rec_writer_free(s.writer);
	sink_fini(&s);
	close(scratch);
	return e->code;
}
