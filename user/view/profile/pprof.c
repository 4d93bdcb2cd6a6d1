// SPDX-License-Identifier: Apache-2.0
/*
 * profile.proto of pprof (github.com/google/pprof/proto), with the operator as root. It has seven small messages of
 * numbers and references to one table of strings, so writing them by hand takes less code than using a library.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "base/hash.h"
#include "view/priv.h"
#include "view/stacks.h"

#define NS_PER_S   1000000000ull
#define TEXT_BYTES 4096
#define FRAMES_MAX 640 /* 512 spans, 64 of machine code, Python's 32 with their modules */

/* Numbers of fields in profile.proto. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRING };
enum { PROFILE_TIME_NS = 9, PROFILE_DURATION_NS, PROFILE_PERIOD_TYPE, PROFILE_PERIOD, PROFILE_COMMENT };
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_FILES, MAPPING_HAS_LINES };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILE = 4 };
enum { WIRE_NUMBER = 0, WIRE_BYTES = 2 };

struct pprof {
	struct view s;
	struct view_stacks stacks;
	struct buf profile, message, part; /* part: a message within `message` */
	struct hash strings;		   /* two hashes of the text -> 1 + index */
	struct hash functions;		   /* (name, file) -> id */
	struct hash locations;		   /* (function, line) -> id */
	uint64_t nstrings;
	uint64_t at[FRAMES_MAX]; /* locations of the current stack, outermost first */
	size_t depth;
};

static int put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	} while (v);
	bytes[n - 1] &= 0x7f;
	return buf_put(b, bytes, n);
}

static int put_number(struct buf *b, unsigned field, uint64_t v)
{
	return v ? put_varint(b, field << 3 | WIRE_NUMBER) || put_varint(b, v) ? -ENOMEM : 0 : 0;
}

static int put_bytes(struct buf *b, unsigned field, const void *data, size_t len)
{
	return put_varint(b, field << 3 | WIRE_BYTES) || put_varint(b, len) || buf_put(b, data, len) ? -ENOMEM : 0;
}

/* Adds the content of `from` as a field, and empties it. */
static int put_message(struct buf *b, unsigned field, struct buf *from)
{
	int err = put_bytes(b, field, from->data, from->len);

	from->len = 0;
	return err;
}

/* Sets *index to the index of a text, which is made safe to show. */
static int string(struct pprof *p, const char *text, size_t len, uint64_t *index)
{
	char safe[TEXT_BYTES];
	uint64_t *known;

	len = fmt_utf8(safe, sizeof(safe), text, len);
	len = len < sizeof(safe) ? len : sizeof(safe) - 1;
	known = hash_put(&p->strings, hash_text(HASH_SEED, safe, len), hash_text(len + 1, safe, len));
	if (!known)
		return -ENOMEM;
	if (!*known) {
		*known = ++p->nstrings;
		if (put_bytes(&p->profile, PROFILE_STRING, safe, len))
			return -ENOMEM;
	}
	*index = *known - 1;
	return 0;
}

static int words(struct pprof *p, const char *text, uint64_t *index)
{
	return string(p, text, strlen(text), index);
}

static int function(struct pprof *p, const struct view_stack_frame *f, uint64_t *id)
{
	uint64_t name, file = 0, *known;
	int err = string(p, f->name, f->name_len, &name);

	if (!err && f->file)
		err = string(p, f->file, f->file_len, &file);
	known = err ? NULL : hash_put(&p->functions, name, file);
	if (!known)
		return -ENOMEM;
	*id = *known ? *known : p->functions.len;
	if (*known)
		return 0;
	*known = *id;
	if (put_number(&p->message, FUNCTION_ID, *id) || put_number(&p->message, FUNCTION_NAME, name) ||
	    put_number(&p->message, FUNCTION_FILE, file))
		return -ENOMEM;
	return put_message(&p->profile, PROFILE_FUNCTION, &p->message);
}

static int add_frame(void *ctx, const struct view_stack_frame *f)
{
	struct pprof *p = ctx;
	uint64_t func, *id;
	int err = function(p, f, &func);

	id = err ? NULL : hash_put(&p->locations, func, f->line);
	if (!id)
		return -ENOMEM;
	if (!*id) {
		*id = p->locations.len;
		if (put_number(&p->part, LINE_FUNCTION, func) || put_number(&p->part, LINE_LINE, f->line) ||
		    put_number(&p->message, LOCATION_ID, *id) || put_number(&p->message, LOCATION_MAPPING, 1) ||
		    put_message(&p->message, LOCATION_LINE, &p->part) ||
		    put_message(&p->profile, PROFILE_LOCATION, &p->message))
			return -ENOMEM;
	}
	if (p->depth < FRAMES_MAX)
		p->at[p->depth++] = *id;
	return 0;
}

static int put_label(struct pprof *p, const char *key, const char *text, uint64_t n)
{
	uint64_t k, t = 0;

	if (words(p, key, &k) || (text && words(p, text, &t)) || put_number(&p->part, LABEL_KEY, k) ||
	    put_number(&p->part, LABEL_TEXT, t) || put_number(&p->part, LABEL_NUMBER, n))
		return -ENOMEM;
	return put_message(&p->message, SAMPLE_LABEL, &p->part);
}

static int put_sample(struct pprof *p, const struct view_stack *k, uint64_t period_ns)
{
	const char *thread = mdl_thread_name(p->s.in->model, k->tgid, k->tid);
	int err;

	p->depth = 0;
	err = view_stack_frames(p->s.in->model, k, add_frame, p);
	while (!err && p->depth) /* pprof wants the innermost first */
		err = put_varint(&p->part, p->at[--p->depth]);
	if (err || put_message(&p->message, SAMPLE_LOCATIONS, &p->part) || put_varint(&p->part, k->count) ||
	    put_varint(&p->part, k->count * period_ns) || put_message(&p->message, SAMPLE_VALUES, &p->part) ||
	    put_label(p, "pid", NULL, k->tgid) || put_label(p, "tid", NULL, k->tid) ||
	    (thread && put_label(p, "thread", thread, 0)))
		return -ENOMEM;
	return put_message(&p->profile, PROFILE_SAMPLE, &p->message);
}

static int put_type(struct pprof *p, unsigned field, const char *type, const char *unit)
{
	uint64_t t, u;

	if (words(p, type, &t) || words(p, unit, &u) || put_number(&p->message, TYPE_TYPE, t) ||
	    put_number(&p->message, TYPE_UNIT, u))
		return -ENOMEM;
	return put_message(&p->profile, field, &p->message);
}

/* One mapping says that the profile has names, so pprof does not search for them in files. */
static int put_head(struct pprof *p, uint64_t period_ns)
{
	const struct mdl_session *ss = p->s.in->session;
	uint64_t none, comm;

	if (words(p, "", &none) || put_type(p, PROFILE_SAMPLE_TYPE, "samples", "count") ||
	    put_type(p, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds") ||
	    put_type(p, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds") || words(p, ss->comm, &comm) ||
	    put_number(&p->profile, PROFILE_TIME_NS, ss->start_unix_ns) ||
	    put_number(&p->profile, PROFILE_DURATION_NS, ss->duration_ns) ||
	    put_number(&p->profile, PROFILE_PERIOD, period_ns) || put_number(&p->message, MAPPING_ID, 1) ||
	    put_number(&p->message, MAPPING_FILE, comm) || put_number(&p->message, MAPPING_HAS_FUNCTIONS, 1) ||
	    put_number(&p->message, MAPPING_HAS_FILES, 1) || put_number(&p->message, MAPPING_HAS_LINES, 1))
		return -ENOMEM;
	return put_message(&p->profile, PROFILE_MAPPING, &p->message);
}

/* pprof -comments shows the loss. */
static int put_loss(struct pprof *p)
{
	const struct mdl_session *s = p->s.in->session;
	const struct mxbpf_loss *l = &s->loss;
	char text[160];
	uint64_t index;
	size_t i;

	snprintf(text, sizeof(text),
		 "mxbpf: %llu of %llu events dropped, %llu unreadable, %" PRIu64 " cut by --max-size",
		 (unsigned long long)l->dropped, (unsigned long long)l->attempted, (unsigned long long)l->unreadable,
		 s->cut_records);
	if (words(p, text, &index) || put_number(&p->profile, PROFILE_COMMENT, index))
		return -ENOMEM;
	for (i = 0; s->nsources > 1 && i < s->nsources; i++) {
		l = &s->sources[i].loss;
		snprintf(text, sizeof(text), "mxbpf: of %.32s: %llu of %llu events dropped, %llu unreadable",
			 s->sources[i].name, (unsigned long long)l->dropped, (unsigned long long)l->attempted,
			 (unsigned long long)l->unreadable);
		if (words(p, text, &index) || put_number(&p->profile, PROFILE_COMMENT, index))
			return -ENOMEM;
	}
	return 0;
}

static int begin(struct view *s)
{
	((struct pprof *)s)->stacks.by_thread = true;
	return 0;
}

static int record(struct view *s, const struct mxbpf_rec *r)
{
	int err = view_stacks_add(&((struct pprof *)s)->stacks, r);

	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

static int end(struct view *s)
{
	struct pprof *p = (struct pprof *)s;
	uint64_t period_ns = s->in->session->sample_hz ? NS_PER_S / s->in->session->sample_hz : 0;
	int err = put_head(p, period_ns);
	size_t i;

	for (i = 0; !err && i < buf_count(&p->stacks.list, struct view_stack *); i++)
		err = put_sample(p, *buf_at(&p->stacks.list, struct view_stack *, i), period_ns);
	err = err ? err : put_loss(p);
	if (err)
		return err_set(s->err, ERR_RUNTIME, err, "out of memory");
	out_write(s->out, p->profile.data, p->profile.len);
	return 0;
}

static void fini(struct view *s)
{
	struct pprof *p = (struct pprof *)s;

	view_stacks_fini(&p->stacks);
	buf_fini(&p->profile);
	buf_fini(&p->message);
	buf_fini(&p->part);
	hash_fini(&p->strings);
	hash_fini(&p->functions);
	hash_fini(&p->locations);
}

static const char *const suffixes[] = {".pb.gz", ".pprof", NULL};

const struct view_ops view_pprof = {
	.name = "pprof",
	.help = "a profile of --sample for go tool pprof and speedscope, the operator first",
	.suffixes = suffixes,
	.needs_records = true,
	.of_samples = true,
	.gzip = true,
	.state_bytes = sizeof(struct pprof),
	.begin = begin,
	.record = record,
	.end = end,
	.fini = fini,
};
