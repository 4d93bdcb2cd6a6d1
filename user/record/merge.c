// SPDX-License-Identifier: Apache-2.0
/*
 * Merges several recordings. The clock of each host is shifted to that of the host that started first, by their times
 * of day. Pids of all hosts but the first get the host's number in their upper bits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/format.h"
#include "record/record.h"

struct part {
	struct rec_reader *r; /* owned */
	uint32_t host;
	uint64_t shift_ns; /* added to the times of its records */
};

struct rec_merge {
	struct part *parts;
	unsigned n, at; /* `at`: the part whose records come next */
	struct buf room;
};

/* ---- records */

static void merge_place(const struct part *p, struct mxbpf_rec *r)
{
	if (r->tgid)
		r->tgid = (r->tgid & MDL_PID_MASK) | p->host << MDL_PID_BITS;
	if (p->shift_ns)
		kind_shift_times(r, p->shift_ns);
}

/*
 * Copies checked records of a part into the merge. Readings of the machine come from the first part only.
 */
static int place_all(const struct rec_merge *g, const struct part *p, const void *recs, size_t bytes, struct buf *out)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;
	void *copy;

	out->len = 0;
	while ((r = kind_next(recs, bytes, &pos))) {
		if (r->kind == MXBPF_GAUGE && p != g->parts)
			continue;
		copy = buf_add(out, r->size);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, r, r->size);
		merge_place(p, copy);
	}
	return 0;
}

/* ---- the source */

static int merge_rewind(void *ctx)
{
	struct rec_merge *g = ctx;
	unsigned i;
	int err = 0;

	g->at = 0;
	for (i = 0; i < g->n && !err; i++) {
		rec_reader_source(g->parts[i].r);
		err = rec_reader_error(g->parts[i].r)->code;
	}
	return err;
}

static int merge_next(void *ctx, const void **recs, size_t *bytes)
{
	struct rec_merge *g = ctx;
	int ret = 0;

	while (g->at < g->n) {
		struct view_source *s = rec_reader_borrow(g->parts[g->at].r);

		ret = s->next(s->ctx, recs, bytes);
		if (ret)
			break;
		g->at++;
	}
	if (ret != 1)
		return ret;
	ret = place_all(g, &g->parts[g->at], *recs, *bytes, &g->room);
	*recs = g->room.data;
	*bytes = g->room.len;
	return ret ? ret : 1;
}

int merge_each(struct rec_merge *g, bool events, const struct mdl *like, rec_batch_fn fn, void *ctx, struct err *e)
{
	struct buf recs = {0};
	struct mdl *of;
	unsigned i;
	int err = 0;

	for (i = 0; i < g->n && !err; i++) {
		of = mdl_new_like(like);
		recs.len = 0;
		if (!of)
			err = -ENOMEM;
		else
			err = (events ? rec_reader_events : rec_reader_model)(g->parts[i].r, of, e);
		err = err ? err : mdl_emit(of, &recs);
		err = err ? err : place_all(g, &g->parts[i], recs.data, recs.len, &g->room);
		err = err ? err : fn(ctx, g->room.data, g->room.len);
		mdl_free(of);
	}
	buf_fini(&recs);
	return err ? err_set(e, ERR_RUNTIME, err, "cannot merge: %s", strerror(-err)) : 0;
}

const struct err *merge_error(const struct rec_merge *g)
{
	unsigned i = 0;

	while (i < g->n - 1 && !rec_reader_error(g->parts[i].r)->code)
		i++;
	return rec_reader_error(g->parts[i].r);
}

void merge_free(struct rec_merge *g)
{
	unsigned i;

	if (!g)
		return;
	for (i = 0; i < g->n; i++)
		rec_reader_close(g->parts[i].r);
	free(g->parts);
	buf_fini(&g->room);
	free(g);
}

/* ---- the session */

static const char *text(const char *s)
{
	return s ? s : "";
}

static bool same_host(const struct mdl_session *a, const struct mdl_session *b)
{
	return !strcmp(a->hostname, b->hostname) && !strcmp(text(a->boot_id), text(b->boot_id));
}

/* Returns the time of day, in ns, at which the clock of the host showed 0. */
static int64_t clock_base(const struct mdl_session *s)
{
	return (int64_t)(s->start_unix_ns - s->start_mono_ns);
}

static const struct mdl_session *session_of(const struct rec_merge *g, unsigned i)
{
	return rec_reader_session(g->parts[i].r);
}

/* Returns the first part of the same host. Its clock is used for all parts of that host. */
static unsigned first_of_host(const struct rec_merge *g, unsigned i)
{
	unsigned j = 0;

	while (!same_host(session_of(g, j), session_of(g, i)))
		j++;
	return j;
}

static void place_hosts(struct rec_merge *g)
{
	int64_t base = clock_base(session_of(g, 0));
	uint32_t nhosts = 0;
	unsigned i, first;

	for (i = 0; i < g->n; i++)
		if (clock_base(session_of(g, i)) < base)
			base = clock_base(session_of(g, i));
	for (i = 0; i < g->n; i++) {
		first = first_of_host(g, i);
		g->parts[i].host = first == i ? nhosts++ : g->parts[first].host;
		g->parts[i].shift_ns = (uint64_t)(clock_base(session_of(g, first)) - base);
	}
}

static const char *build_of(const struct mdl_session *s)
{
	return s->nlibs ? s->libs[0].build_id : "";
}

/* Returns true if both recordings have the same features. Otherwise sums would lack parts without saying so. */
static bool alike(const struct mdl_session *a, const struct mdl_session *b)
{
	size_t i;

	if (a->stats != b->stats || a->sample_hz != b->sample_hz || a->details != b->details ||
	    a->ncounters != b->ncounters || a->held != b->held || a->life != b->life || a->sched != b->sched ||
	    !a->team_cpus != !b->team_cpus)
		return false;
	for (i = 0; i < a->ncounters; i++)
		if (strcmp(a->counters[i].name, b->counters[i].name))
			return false;
	return true;
}

/* Returns true if both are of the same process from the same moment on. */
static bool merge_is_same(const struct mdl_session *a, const struct mdl_session *b)
{
	return same_host(a, b) && a->pid == b->pid && a->start_mono_ns == b->start_mono_ns;
}

/* Names of a library's constants are offsets in it, so the libraries must be the same. */
static int merge_check(const struct rec_merge *g, struct err *e)
{
	const struct mdl_session *a = session_of(g, 0), *b;
	unsigned i, k;

	for (i = 1; i < g->n; i++) {
		b = session_of(g, i);
		for (k = 0; k < i; k++)
			if (merge_is_same(session_of(g, k), b))
				return err_set(e, ERR_RUNTIME, -EEXIST, "the recording of pid %u on %s is given twice",
					       b->pid, b->hostname);
		if (strcmp(build_of(a), build_of(b)))
			return err_set(e, ERR_RUNTIME, -ENOTSUP,
				       "they are of different builds of the runtime (%s on %s, %s on %s): report each "
				       "separately",
				       a->nlibs ? a->libs[0].runtime : "none", a->hostname,
				       b->nlibs ? b->libs[0].runtime : "none", b->hostname);
		if (!alike(a, b))
			return err_set(e, ERR_RUNTIME, -ENOTSUP,
				       "they were recorded with different options (--sample, --shapes, --counters, "
				       "--memory and the like): report each separately");
	}
	return 0;
}

static int add_process(struct mdl_session *s, const struct mdl_process *from, const struct part *p, const char *host)
{
	struct mdl_process *all = realloc(s->processes, (s->nprocesses + 1) * sizeof(*all)), *new;

	if (!all)
		return -ENOMEM;
	s->processes = all;
	new = &all[s->nprocesses++];
	*new = *from;
	new->pid = (from->pid & MDL_PID_MASK) | p->host << MDL_PID_BITS;
	new->role = strdup(from->role);
	new->hostname = strdup(host);
	return new->role &&new->hostname ? 0 : -ENOMEM;
}

static int add_gaps(struct mdl_session *s, const struct mdl_session *from, const struct part *p)
{
	struct mdl_gap *all = realloc(s->gaps, (s->ngaps + from->ngaps + 1) * sizeof(*all));
	size_t i;

	if (!all)
		return -ENOMEM;
	s->gaps = all;
	for (i = 0; i < from->ngaps; i++) {
		all[s->ngaps] = from->gaps[i];
		all[s->ngaps++].pid = (from->gaps[i].pid & MDL_PID_MASK) | p->host << MDL_PID_BITS;
	}
	return 0;
}

/* Adds the processes of a recording. Processes of a job with equal roles differ only in their ranks. */
static int add_processes(struct mdl_session *s, const struct mdl_session *from, const struct part *p)
{
	struct mdl_process alone = {
		.pid = from->pid, .role = (char *)"rank", .rank = from->rank, .of = from->world_size};
	size_t i;
	int err = 0;

	if (!from->nprocesses && from->world_size)
		return add_process(s, &alone, p, from->hostname);
	for (i = 0; i < from->nprocesses && !err; i++)
		err = add_process(s, &from->processes[i], p, from->hostname);
	return err;
}

/* Adds the labels of the processes of a recording. */
static int add_labels(struct mdl_session *s, const struct mdl_session *from, const struct part *p)
{
	size_t i;
	int err = 0;

	for (i = 0; i < from->nlabels && !err; i++)
		err = mdl_labels_add(s, &from->labels[i],
				     (from->labels[i].pid & MDL_PID_MASK) | p->host << MDL_PID_BITS, from->hostname);
	return err;
}

/* Takes text over. A NULL text means that there was no memory for it. */
static int add_note(struct mdl_session *s, const char *name, char *text)
{
	struct mdl_note *notes = realloc(s->notes, (s->nnotes + 1) * sizeof(*notes)), *n;

	if (!notes) {
		free(text);
		return -ENOMEM;
	}
	s->notes = notes;
	n = &notes[s->nnotes++];
	n->name = strdup(name);
	n->text = text;
	return n->name && n->text ? 0 : -ENOMEM;
}

/* Adds a note that says which recording was merged. */
static int add_input(struct mdl_session *s, const struct mdl_session *from, bool first)
{
	const char *clock = text(from->host_clock);
	char *note;

	if (asprintf(&note, "%s, pid %u (%s): %.3f s%s, %llu events stored, %llu dropped; its clock: %s%s",
		     from->hostname, from->pid, from->comm, (double)from->duration_ns / 1e9,
		     from->incomplete ? ", INCOMPLETE" : "", (unsigned long long)from->loss.stored,
		     (unsigned long long)from->loss.dropped, *clock ? clock : "not known how exact",
		     first ? "; the readings of the machine are those of this host" : "") < 0)
		note = NULL;
	return add_note(s, "input", note);
}

static bool has_note(const struct mdl_session *s, const struct mdl_note *n)
{
	size_t i;

	for (i = 0; i < s->nnotes; i++)
		if (!strcmp(s->notes[i].name, n->name) && !strcmp(s->notes[i].text, n->text))
			return true;
	return false;
}

static bool is_refused(const struct mdl_probe *p)
{
	return !strcmp(p->status, "refused");
}

static bool refuses(const struct mdl_session *s, const struct mdl_probe *p)
{
	size_t i;

	for (i = 0; i < s->nprobes; i++)
		if (is_refused(&s->probes[i]) && !strcmp(s->probes[i].name, p->name) &&
		    !strcmp(text(s->probes[i].runtime), text(p->runtime)))
			return true;
	return false;
}

/* Adds notes of limits that apply to this recording and not to the first one. */
static int add_caveats(struct mdl_session *s, const struct mdl_session *from)
{
	char *note;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < from->nnotes; i++)
		if (!has_note(s, &from->notes[i]))
			err = add_note(s, from->notes[i].name, strdup(from->notes[i].text));
	for (i = 0; !err && i < from->nprobes; i++) {
		const struct mdl_probe *p = &from->probes[i];

		if (!is_refused(p) || refuses(s, p))
			continue;
		if (asprintf(&note, "probe %s of %s: %s", p->name, from->hostname, p->reason) < 0)
			note = NULL;
		err = add_note(s, "refused", note);
	}
	return err;
}

static int add_fallbacks(struct mdl_session *s, const struct mdl_session *from)
{
	struct mdl_fallback *all = realloc(s->fallbacks, (s->nfallbacks + from->nfallbacks + 1) * sizeof(*all)), *f;
	size_t i;

	if (!all)
		return -ENOMEM;
	s->fallbacks = all;
	for (i = 0; i < from->nfallbacks; i++) {
		f = &all[s->nfallbacks];
		*f = from->fallbacks[i];
		if (asprintf(&f->name, "%s of %s", from->fallbacks[i].name, from->hostname) < 0)
			return -ENOMEM;
		s->nfallbacks++;
	}
	return 0;
}

#define ADD(member) s->member += from->member

/* Adds the cost of a recording. A merge has one scale for all rows: the mean of all scales, weighted by added_ns. */
static void add_cost(struct mdl_cost *c, const struct mdl_cost *from)
{
	const double added = (double)c->added_ns + (double)from->added_ns;

	if (added > 0)
		c->scale = (uint32_t)(((double)c->scale * (double)c->added_ns +
				       (double)from->scale * (double)from->added_ns) /
				      added);
	c->shrink = 0;
	c->uncertain = from->uncertain > c->uncertain ? from->uncertain : c->uncertain;
	c->thread_ns = from->thread_ns > c->thread_ns ? from->thread_ns : c->thread_ns;
	c->trap_ns = from->trap_ns > c->trap_ns ? from->trap_ns : c->trap_ns;
	c->agent_helps |= from->agent_helps;
	c->beats = 0;
	c->added_ns += from->added_ns;
}

static void add_counts(struct mdl_session *s, const struct mdl_session *from)
{
	ADD(over_ns);
	ADD(hits);
	ADD(left_out);
	ADD(iterations);
	ADD(sampled_iterations);
	ADD(open_spans);
	ADD(followed);
	ADD(unfollowed);
	ADD(unlabelled);
	ADD(stranger_hits);
	ADD(stranger_ns);
	ADD(late_libs);
	ADD(late_refused);
	ADD(cut_records);
	add_cost(&s->cost, &from->cost);
	mxbpf_loss_add(&s->loss, &from->loss);
	s->incomplete |= from->incomplete;
	s->account &= from->account;
	if (from->api_left > s->api_left) {
		s->api_probed = from->api_probed;
		s->api_left = from->api_left;
	}
	if (from->follow_lag_ns > s->follow_lag_ns)
		s->follow_lag_ns = from->follow_lag_ns;
}

/* Adds sources; those of one name become one. */
static int add_sources(struct mdl_session *s, const struct mdl_session *from)
{
	struct mdl_source *all = realloc(s->sources, (s->nsources + from->nsources + 1) * sizeof(*all));
	size_t i, k;

	if (!all)
		return -ENOMEM;
	s->sources = all;
	for (i = 0; i < from->nsources; i++) {
		for (k = 0; k < s->nsources && strcmp(all[k].name, from->sources[i].name); k++)
			;
		if (k < s->nsources) {
			mxbpf_loss_add(&all[k].loss, &from->sources[i].loss);
			all[k].late += from->sources[i].late;
			continue;
		}
		all[k] = from->sources[i];
		all[k].name = strdup(from->sources[i].name);
		s->nsources++;
		if (!all[k].name)
			return -ENOMEM;
	}
	return 0;
}

/* Adds titles of tables that any of the recordings has. */
static int add_titles(struct mdl_session *s, const struct mdl_session *from)
{
	unsigned i;

	for (i = 0; i < MXBPF_CLASS_MAX; i++)
		if (!s->class_title[i] && from->class_title[i]) {
			s->class_title[i] = strdup(from->class_title[i]);
			if (!s->class_title[i])
				return -ENOMEM;
		}
	return 0;
}

/* Sets the time from the first start to the last end. */
static void widen(const struct rec_merge *g, struct mdl_session *s)
{
	uint64_t start = UINT64_MAX, end = 0;
	unsigned i;

	for (i = 0; i < g->n; i++) {
		const struct mdl_session *from = session_of(g, i);
		uint64_t at = from->start_mono_ns + g->parts[i].shift_ns;

		if (at < start) {
			start = at;
			s->start_unix_ns = from->start_unix_ns;
		}
		if (at + from->duration_ns + from->paused_ns > end)
			end = at + from->duration_ns + from->paused_ns;
	}
	s->start_mono_ns = start;
	s->duration_ns = end - start;
	s->paused_ns = 0;
}

static int merge_session(const struct rec_merge *g, struct mdl_session *s)
{
	char *meta = rec_meta_write(session_of(g, 0));
	int err = meta ? rec_meta_read(meta, strlen(meta), s, NULL) : -ENOMEM;
	size_t i;

	free(meta);
	if (err)
		return err;
	for (i = 0; i < s->nprocesses; i++) {
		free(s->processes[i].role);
		free(s->processes[i].hostname);
	}
	s->nprocesses = 0;
	for (i = 0; i < s->nlabels; i++)
		mdl_labels_fini(&s->labels[i]);
	s->nlabels = 0;
	s->incomplete = session_of(g, 0)->incomplete;
	for (i = 0; i < g->n && !err; i++) {
		const struct mdl_session *from = session_of(g, (unsigned)i);

		if (i) {
			add_counts(s, from);
			err = add_caveats(s, from);
			err = err ? err : add_fallbacks(s, from);
			err = err ? err : add_gaps(s, from, &g->parts[i]);
			err = err ? err : add_sources(s, from);
		}
		err = err ? err : add_titles(s, from);
		err = err ? err : add_processes(s, from, &g->parts[i]);
		err = err ? err : add_labels(s, from, &g->parts[i]);
		err = err ? err : add_input(s, from, !i);
	}
	for (i = 0; i < g->n; i++)
		if (!session_of(g, (unsigned)i)->nsources) /* with only some sources the list would seem complete */
			mdl_sources_fini(s);
	s->world_size = 0; /* a merge belongs to no single rank */
	widen(g, s);
	return err;
}

int rec_reader_merge(struct rec_reader **parts, unsigned n, struct rec_reader **out, struct err *e)
{
	struct rec_merge *g = calloc(1, sizeof(*g));
	struct mdl_session session = {0};
	uint64_t bytes = 0;
	unsigned i;
	int err = 0;

	*out = NULL;
	if (g)
		g->parts = calloc(n, sizeof(*g->parts));
	for (i = 0; i < n; i++) {
		if (g && g->parts)
			g->parts[g->n++].r = parts[i];
		else
			rec_reader_close(parts[i]);
	}
	if (!g || !g->parts) {
		free(g);
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	err = n > MDL_HOSTS_MAX ? err_set(e, ERR_USAGE, -E2BIG, "cannot merge more than %d recordings", MDL_HOSTS_MAX)
				: merge_check(g, e);
	if (!err) {
		place_hosts(g);
		err = merge_session(g, &session);
		if (err)
			err_set(e, ERR_RUNTIME, err, "cannot merge: %s", strerror(-err));
	}
	for (i = 0; i < n && !err; i++)
		bytes += rec_reader_source(g->parts[i].r)->total_bytes;
	if (!err)
		err = rec_reader_shell(g, &session, &(struct view_source){merge_rewind, merge_next, g, bytes}, out, e);
	if (err) {
		mdl_session_fini(&session);
		merge_free(g);
	}
	return err;
}
