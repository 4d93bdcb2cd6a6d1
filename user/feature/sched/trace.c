// SPDX-License-Identifier: Apache-2.0
/*
 * States of threads, who woke them, and what ran while they waited for a CPU (--sched). Each thread has a track of its
 * states below its own track, and each CPU has a track of what ran there while a thread of the target could have run.
 */
#include "feature/sched/sched.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/sched/words.h"
#include "view/timeline/trace.h"

struct state {
	struct hash threads; /* (process, thread) -> 1: seen, 2: its track has a name */
	struct hash cpus;    /* number of a CPU -> time up to which its track is drawn */
	uint64_t first_ns, narrows;
};

static int put_one(struct hash *h, uint64_t a, uint64_t b)
{
	uint64_t *at = hash_put(h, a, b);

	if (at && !*at)
		*at = 1;
	return at ? 0 : -ENOMEM;
}

static int sched_survey(struct view_trace *t, void *state, const struct mxbpf_rec *rec)
{
	const struct mxbpf_sched *r = (const void *)rec;
	struct state *s = state;
	uint64_t first_ns = r->h.ts_ns - r->ran_ns;
	unsigned i;
	int err = put_one(&s->threads, r->h.tgid, r->tid);

	if (r->nslices && !err)
		err = put_one(&s->cpus, r->back_cpu, 0);
	for (i = 0; i < r->nslices; i++)
		first_ns = r->slices[i].from_ns < first_ns ? r->slices[i].from_ns : first_ns;
	if (!s->first_ns || first_ns < s->first_ns)
		s->first_ns = first_ns;
	return err;
}

static int plan(struct view_trace *t, void *state)
{
	const struct state *s = state;

	if (s->first_ns && s->first_ns < t->base_ns)
		t->base_ns = s->first_ns;
	t->places_per_thread += s->threads.len != 0;
	return 0;
}

/* ---- tracks */

static void write_track(struct view_trace *t, void *state, uint32_t tgid, uint32_t tid, size_t place)
{
	struct state *s = state;
	const struct view_plan_track k = {.tgid = tgid, .tid = tid};
	uint64_t *at = hash_get(&s->threads, tgid, tid);
	char buf[32], name[96];

	if (!at || *at != 1)
		return;
	*at = 2;
	snprintf(name, sizeof(name), "%.60s %u: state", view_trace_track_name(t, &k, buf), tid);
	view_trace_name_track(t, tgid, VIEW_SCHED_TID + tid, name, (int64_t)place);
}

/* Tracks of threads without a span, and of CPUs. */
static void write_tracks(struct view_trace *t, void *state, size_t place)
{
	static const struct view_track cpus = {.pid = VIEW_SCHED_PID,
					       .name = "CPUs, while a thread of the target waits"};
	struct state *s = state;
	const struct hash_entry *e;
	char name[32];
	size_t pos = 0;

	while ((e = hash_next(&s->threads, &pos)))
		if (e->val == 1)
			write_track(t, s, (uint32_t)e->a, (uint32_t)e->b, place++);
	if (!s->cpus.len)
		return;
	view_track(t, &cpus);
	for (pos = 0; (e = hash_next(&s->cpus, &pos));) {
		snprintf(name, sizeof(name), "CPU %u", (unsigned)e->a);
		view_trace_name_track(t, VIEW_SCHED_PID, VIEW_SCHED_PID + 1 + (uint32_t)e->a, name, (int64_t)e->a);
	}
}

/* ---- events */

static struct view_event slice_of(uint32_t pid, uint32_t tid, uint64_t from_ns, uint64_t to_ns, const char *name)
{
	return (struct view_event){.letter = 'X',
				   .pid = pid,
				   .tid = tid,
				   .ts_ns = from_ns,
				   .dur_ns = to_ns - from_ns,
				   .category = "sched",
				   .name = view_text_of(name)};
}

/* Writes a slice with one arg, a number. */
static void write_slice(struct view_trace *t, const struct view_event *e, const char *key, uint64_t v)
{
	view_event_begin(t, e);
	out_printf(t->s.out, "\"%s\":%llu", key, (unsigned long long)v);
	view_event_end(t, e);
}

/* A process chooses its name itself, so the name can have any bytes. */
static char *put_comm(char *p, const char *key, const char comm[16])
{
	char safe[16 * 6 + 1];

	fmt_json_exact(safe, sizeof(safe), comm, strnlen(comm, 16));
	p = put(p, "\"");
	p = put(p, key);
	p = put(p, "\":\"");
	p = put(p, safe);
	return put(p, "\"");
}

/* Writes a slice and the thread that began or ended it. who, tid: the keys of that thread's name and number. */
static void write_slice_by(struct view_trace *t, const struct view_event *e, const struct mxbpf_sched *r,
			   const char *who, const char *tid)
{
	char *start, *p;

	view_event_begin(t, e);
	if (sched_has_by(r)) {
		start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
		p = put(put(put(put_comm(start, who, r->by_comm), ",\""), tid), "\":");
		p = view_put_u64(p, r->by_tid);
		out_filled(t->s.out, (size_t)(p - start));
	}
	view_event_end(t, e);
}

static void write_running(struct view_trace *t, const struct mxbpf_sched *r)
{
	struct view_event e;
	char name[32];

	if (!r->ran_ns)
		return;
	snprintf(name, sizeof(name), "running on CPU %u", r->left_cpu);
	e = slice_of(r->h.tgid, VIEW_SCHED_TID + r->tid, r->h.ts_ns - r->ran_ns, r->h.ts_ns, name);
	write_slice(t, &e, "cpu", r->left_cpu);
}

static void write_sleep(struct view_trace *t, const struct mxbpf_sched *r)
{
	char words[SCHED_WORDS_BYTES];
	struct view_event e;

	if (r->woken_ns == r->h.ts_ns)
		return;
	e = slice_of(r->h.tgid, VIEW_SCHED_TID + r->tid, r->h.ts_ns, r->woken_ns, sched_words(r, words));
	write_slice_by(t, &e, r, "woken_by", "woken_by_tid");
}

static void write_waiting(struct view_trace *t, const struct mxbpf_sched *r)
{
	const struct view_event e = slice_of(r->h.tgid, VIEW_SCHED_TID + r->tid, r->woken_ns, r->back_ns, "runnable");

	if (r->back_ns == r->woken_ns)
		return;
	if (r->state == MXBPF_SCHED_RUNNABLE)
		write_slice_by(t, &e, r, "preempted_by", "preempted_by_tid");
	else
		view_event(t, &e);
}

static void write_end(struct view_trace *t, char letter, uint64_t id, uint32_t tgid, uint32_t tid, uint64_t ts_ns)
{
	const struct view_event e = {.letter = letter,
				     .pid = tgid,
				     .tid = VIEW_SCHED_TID + tid,
				     .ts_ns = ts_ns,
				     .category = "wake",
				     .name = view_text_of("wakes"),
				     .id = id};

	view_event(t, &e);
}

/*
 * The arrow starts at a slice of its own, because the record of the time in which the waker ran may come later, and
 * ends where the woken thread begins to wait for a CPU.
 */
static void write_wake(struct view_trace *t, struct state *s, const struct mxbpf_sched *r)
{
	const uint64_t at_ns = r->woken_ns - 1;
	const struct view_event e = slice_of(r->h.tgid, VIEW_SCHED_TID + r->by_tid, at_ns, r->woken_ns, "wakes");

	if (!(r->flags & MXBPF_SCHED_BY_OURS) || !sched_has_by(r) || r->state == MXBPF_SCHED_RUNNABLE ||
	    r->back_ns == r->woken_ns || !hash_get(&s->threads, r->h.tgid, r->by_tid) || at_ns < t->base_ns)
		return;
	s->narrows++;
	write_slice(t, &e, "tid", r->tid);
	write_end(t, 's', t->plan.narrows + s->narrows, r->h.tgid, r->by_tid, at_ns);
	write_end(t, 'f', t->plan.narrows + s->narrows, r->h.tgid, r->tid, r->woken_ns);
}

/* Several threads may have waited while the same slice ran on a CPU: it is drawn once. */
static void write_slices(struct view_trace *t, struct state *state, const struct mxbpf_sched *r)
{
	uint64_t *until = hash_get(&state->cpus, r->back_cpu, 0), from_ns;
	char safe[16 * 6 + 1];
	struct view_event e;
	unsigned i;

	for (i = r->nslices; until && i--;) {
		const struct mxbpf_sched_slice *s = &r->slices[i];

		from_ns = s->from_ns > *until ? s->from_ns : *until;
		if (from_ns >= s->to_ns || from_ns < t->base_ns)
			continue;
		*until = s->to_ns;
		fmt_json_exact(safe, sizeof(safe), s->comm, strnlen(s->comm, sizeof(s->comm)));
		e = slice_of(VIEW_SCHED_PID, VIEW_SCHED_PID + 1 + r->back_cpu, from_ns, s->to_ns, safe);
		view_event_begin(t, &e);
		out_printf(t->s.out, "\"pid\":%u,\"tid\":%u,\"waiting_tid\":%u", s->tgid, s->tid, r->tid);
		view_event_end(t, &e);
	}
}

static void sched_record(struct view_trace *t, void *state, const struct mxbpf_rec *rec)
{
	const struct mxbpf_sched *r = (const void *)rec;

	/* The recording may have grown since the first pass. */
	if (r->h.ts_ns - r->ran_ns < t->base_ns)
		return;
	write_running(t, r);
	write_sleep(t, r);
	write_waiting(t, r);
	write_wake(t, state, r);
	write_slices(t, state, r);
}

static void sched_trace_fini(void *state)
{
	struct state *s = state;

	hash_fini(&s->threads);
	hash_fini(&s->cpus);
}

const struct view_trace_feature sched_trace = {
	.state_bytes = sizeof(struct state),
	.kinds = {MXBPF_SCHED},
	.survey = sched_survey,
	.plan = plan,
	.thread = write_track,
	.tracks = write_tracks,
	.record = sched_record,
	.fini = sched_trace_fini,
};
