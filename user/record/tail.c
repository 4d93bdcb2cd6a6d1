// SPDX-License-Identifier: Apache-2.0
/* The last seconds of a recording, as a recording of their own: its tables are of these seconds alone. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "record/record.h"
#include "records/kinds.h"

struct tail {
	uint64_t from_ns, last_ns; /* CLOCK_MONOTONIC */
	struct rec_writer *w;
	struct mdl *names, *m; /* names: of the whole recording */
	const struct mdl_session *s;
	struct buf kept;
};

static int find_last(void *ctx, const void *recs, size_t bytes)
{
	struct tail *t = ctx;
	const struct mxbpf_rec *r;
	size_t pos = 0;
	uint64_t end;

	while ((r = kind_next(recs, bytes, &pos))) {
		end = kind_end_ns(r);
		t->last_ns = end > t->last_ns ? end : t->last_ns;
	}
	return 0;
}

/* Keeps records that end in the tail, and those without a time, such as names. */
static int tail_keep(void *ctx, const void *recs, size_t bytes)
{
	struct tail *t = ctx;
	const struct mxbpf_rec *r;
	size_t pos = 0;
	uint64_t end;
	int err = 0;

	t->kept.len = 0;
	while (!err && (r = kind_next(recs, bytes, &pos))) {
		end = kind_end_ns(r);
		if (!end || end >= t->from_ns)
			err = buf_put(&t->kept, r, r->size);
	}
	if (err || !t->kept.len)
		return err;
	err = mdl_fold_all(t->m, t->kept.data, t->kept.len);
	return err ? err : rec_writer_append(t->w, t->kept.data, t->kept.len, t->names, &t->s->loss);
}

/* Copies the tail into a recording. Takes fd over. */
static void tail_copy(struct rec_reader *r, struct tail *t, const struct mdl_session *s, int fd, struct err *e)
{
	if (!rec_writer_open(fd, 0, s, &t->w, e) && !rec_reader_each(r, true, t->names, tail_keep, t, e))
		rec_writer_finish(t->w, t->m, s, e);
	rec_writer_free(t->w);
}

/*
 * Makes the tail begin at ns. A recording that is not longer than the tail stays whole, because its first events may
 * have come late and be older than its window.
 */
static void begin_at(struct tail *t, struct mdl_session *s, uint64_t ns)
{
	if (ns <= s->start_mono_ns)
		return;
	t->from_ns = ns;
	s->start_unix_ns += ns - s->start_mono_ns;
	s->start_mono_ns = ns;
	s->duration_ns = t->last_ns - ns;
}

int rec_write_tail(struct rec_reader *r, uint64_t ns, int fd, struct err *e)
{
	struct tail t = {.names = mdl_new(), .m = mdl_new(), .s = rec_reader_session(r)};
	struct mdl_session s = *t.s;

	if (!t.names || !t.m)
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else if (!rec_reader_events(r, t.names, e) && !rec_reader_each(r, true, t.names, find_last, &t, e)) {
		begin_at(&t, &s, t.last_ns > ns ? t.last_ns - ns : 0);
		if (mdl_copy_names(t.m, t.names)) {
			err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
		} else {
			tail_copy(r, &t, &s, fd, e);
			fd = -1;
		}
	}
	if (fd >= 0)
		close(fd);
	buf_fini(&t.kept);
	mdl_free(t.names);
	mdl_free(t.m);
	return e->code;
}
