// SPDX-License-Identifier: Apache-2.0
#include "view/compat/kineto_steps.h"

#include <errno.h>

/* The end of a step of the optimizer. */
struct mark {
	uint64_t end_ns;
	uint64_t until_ns;  /* end of the outermost span that encloses this end only */
	uint64_t inside_ns; /* end of the innermost span that encloses this end as the last of several */
	uint64_t from_ns;   /* start or end of a span that encloses several ends: the step that ends here starts no
			       earlier */
};

struct step_thread {
	uint32_t tgid, tid;
	uint64_t name_id;      /* name of the step of the optimizer that counts */
	uint64_t next_from_ns; /* from_ns of the next mark */
	struct buf marks;      /* struct mark, by time */
};

static struct step_thread *thread_find(struct view_steps *p, const struct mxbpf_span *s, bool add)
{
	struct step_thread new = {.tgid = s->h.tgid, .tid = s->tid, .name_id = s->name_id};
	uint64_t *at = add ? hash_put(&p->index, s->h.tgid, s->tid) : hash_get(&p->index, s->h.tgid, s->tid);

	if (!at || (!*at && buf_put(&p->threads, &new, sizeof(new))))
		return NULL;
	if (!*at)
		*at = buf_count(&p->threads, struct step_thread);
	return buf_at(&p->threads, struct step_thread, *at - 1);
}

static void raise_to(uint64_t *v, uint64_t to)
{
	if (*v < to)
		*v = to;
}

/* Returns the index of the first mark at or after ns, or the number of marks. */
static size_t mark_from(const struct step_thread *th, uint64_t ns)
{
	const struct mark *m = (const struct mark *)th->marks.data;
	size_t low = 0, high = buf_count(&th->marks, struct mark), mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (m[mid].end_ns < ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Spans come in order of their ends, so a span encloses the last marks. Returns whether it encloses any. */
static bool enclose(struct step_thread *th, uint64_t start_ns, uint64_t end_ns)
{
	struct mark *m = (struct mark *)th->marks.data;
	size_t n = buf_count(&th->marks, struct mark), first = mark_from(th, start_ns);

	if (first == n)
		return false;
	if (first + 1 == n) {
		raise_to(&m[first].until_ns, end_ns);
	} else {
		raise_to(&m[first].from_ns, start_ns);
		raise_to(&th->next_from_ns, end_ns);
		if (m[n - 1].inside_ns > end_ns)
			m[n - 1].inside_ns = end_ns;
	}
	return true;
}

int view_steps_survey(struct view_steps *p, const struct mxbpf_span *s, bool optimizer)
{
	uint64_t end_ns = s->h.ts_ns + s->dur_ns;
	struct mark m = {.end_ns = end_ns, .until_ns = end_ns, .inside_ns = UINT64_MAX};
	struct step_thread *th;

	if ((!optimizer && !p->threads.len) || (s->flags & MXBPF_SPAN_ASYNC))
		return 0;
	th = thread_find(p, s, optimizer);
	if (!th)
		return optimizer ? -ENOMEM : 0;
	if (enclose(th, s->h.ts_ns, end_ns) || !optimizer || s->name_id != th->name_id)
		return 0;
	m.from_ns = th->next_from_ns;
	th->next_from_ns = 0;
	return buf_put(&th->marks, &m, sizeof(m));
}

bool view_steps_next(const struct view_steps *p, struct view_steps_pos *pos, struct view_step *step)
{
	for (; pos->thread < buf_count(&p->threads, struct step_thread); pos->thread++, pos->mark = 0) {
		const struct step_thread *th = buf_at(&p->threads, struct step_thread, pos->thread);
		const struct mark *m = (const struct mark *)th->marks.data + pos->mark;

		if (pos->mark + 1 >= buf_count(&th->marks, struct mark))
			continue;
		*step = (struct view_step){
			.tgid = th->tgid,
			.tid = th->tid,
			.nr = (uint32_t)pos->mark++,
			.start_ns = m[0].until_ns > m[1].from_ns ? m[0].until_ns : m[1].from_ns,
			.end_ns = m[1].until_ns < m[1].inside_ns ? m[1].until_ns : m[1].inside_ns - 1,
		};
		return true;
	}
	return false;
}

void view_steps_fini(struct view_steps *p)
{
	size_t i;

	for (i = 0; i < buf_count(&p->threads, struct step_thread); i++)
		buf_fini(&buf_at(&p->threads, struct step_thread, i)->marks);
	buf_fini(&p->threads);
	hash_fini(&p->index);
}
