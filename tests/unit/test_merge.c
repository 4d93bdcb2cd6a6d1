// SPDX-License-Identifier: Apache-2.0
/* Tests merging the recordings of several hosts. */

#include "feature/machine/machine.h"
#include "record/record.h"
#include "records.h"

FREES(reader_closed, struct rec_reader, rec_reader_close)

#define PID   42
#define START 1000000000ull

static const struct mdl_session session = {
	.mxbpf_version = "1",
	.pid = PID,
	.comm = "python",
	.cmdline = "train.py",
	.class_title = {[MXBPF_CLASS_OPERATOR] = "operator"},
	.start_unix_ns = 1712345678000000000ull,
	.start_mono_ns = START,
	.duration_ns = 1000000,
};

/* Adds ten spans of one thread, the same on every host, and two readings of a machine gauge. */
static void put_events(struct buf *b)
{
	struct mxbpf_span s = {.h = {MXBPF_SPAN, sizeof(s), PID, 0},
			       .dur_ns = 100,
			       .name_id = 3,
			       .tid = 43,
			       .cls = MXBPF_CLASS_OPERATOR};
	struct mxbpf_gauge g = {.h = {MXBPF_GAUGE, MXBPF_GAUGE_BYTES_MIN, 0, 0}, .id = MXBPF_GAUGE_CPU_BUSY};
	unsigned i;

	for (i = 0; i < 10; i++) {
		s.h.ts_ns = START + i * 1000;
		buf_put(b, &s, sizeof(s));
	}
	for (i = 0; i < 2; i++) {
		g.h.ts_ns = START + i * 5000;
		g.value = i * 700;
		buf_put(b, &g, g.h.size);
	}
}

static struct rec_reader *recording(const struct mdl_session *s)
{
	const struct mxbpf_loss loss = {.attempted = 12, .stored = 12};
	int fd = memfd_create("test_merge", MFD_CLOEXEC), copy = dup(fd);
	FREED(model_freed) struct mdl *m = mdl_new();
	struct rec_writer *w = NULL;
	struct rec_reader *r = NULL;
	FREED(buf_fini) struct buf b = {0};
	struct err e = {0};

	put_name(&b, 3, MXBPF_NAME_SPAN, "dot");
	put_name(&b, 43, MXBPF_NAME_THREAD, s->hostname);
	((struct mxbpf_name *)b.data)[0].h.tgid = 0;
	((struct mxbpf_rec *)(b.data + ((struct mxbpf_rec *)b.data)->size))->tgid = PID;
	CHECK(!feed(m, &b));
	put_events(&b);
	CHECK(!mdl_feed(m, b.data, b.len));
	CHECK(!rec_writer_open(fd, 0, s, &w, &e) && !rec_writer_append(w, b.data, b.len, m, &loss));
	CHECK(!rec_writer_finish(w, m, s, &e) && !rec_reader_open(copy, &r, &e));
	rec_writer_free(w);
	close(copy);
	return r;
}

/* Returns a session of a host whose clock is ahead by later_ns. */
static struct mdl_session of(const char *hostname, uint64_t later_ns)
{
	struct mdl_session s = session;

	s.hostname = (char *)hostname;
	s.start_unix_ns += later_ns;
	return s;
}

static struct rec_reader *merged(const struct mdl_session *a, const struct mdl_session *b, struct err *e)
{
	struct rec_reader *parts[] = {recording(a), recording(b)}, *r = NULL;

	CHECK(!rec_reader_merge(parts, 2, &r, e) == !!r);
	return r;
}

/* Spans of different hosts at the same time are not late. Equal thread ids of two hosts are two threads. */
static void test_threads(void)
{
	const struct mdl_session a = of("alpha", 0), b = of("beta", 300);
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row *const *rows;
	struct err e = {0};
	FREED(reader_closed) struct rec_reader *r = merged(&a, &b, &e);
	size_t n;

	mdl_tell_threads(m);
	CHECK(r && !rec_reader_events(r, m, &e));
	CHECK(!mdl_tally(m, MXBPF_CLASS_OPERATOR, MXBPF_TALLY_LATE));
	FREED(model_freed) struct mdl *sum = mdl_sum(m);
	rows = mdl_rows(sum, MXBPF_CLASS_OPERATOR, &n);
	CHECK(n == 2 && rows[0]->tid == 43 && rows[1]->tid == 43 && rows[0]->count == 10 && rows[1]->count == 10);
	CHECK(n == 2 && !strcmp(mdl_thread_name(sum, rows[0]->tgid, 43), "alpha"));
	CHECK(n == 2 && !strcmp(mdl_thread_name(sum, rows[1]->tgid, 43), "beta"));
}

/* The gauges are those of the first host, whose clock is 300 ns ahead. */
static void test_gauge(void)
{
	const struct mdl_session a = of("alpha", 300), b = of("beta", 0);
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct machine_row *g;
	struct err e = {0};
	FREED(reader_closed) struct rec_reader *r = merged(&a, &b, &e);

	CHECK(r && !rec_reader_model(r, m, &e));
	g = machine_row(m, MXBPF_GAUGE_CPU_BUSY, 0);
	CHECK(g && g->first_ns == START + 300 && g->last_ns == START + 5300 && g->difference == 700);
}

static bool has_note(const struct mdl_session *s, const char *name, const char *text)
{
	size_t i;

	for (i = 0; i < s->nnotes; i++)
		if (!strcmp(s->notes[i].name, name) && strstr(s->notes[i].text, text))
			return true;
	return false;
}

/* Notes, refused probes and fallbacks of either recording belong to the merged one. */
static void test_caveats(void)
{
	struct mdl_session a = of("alpha", 0), b = of("beta", 0);
	const struct mdl_session *s;
	struct err e = {0};

	b.notes = (struct mdl_note[]){{"ops", "only dot"}};
	b.nnotes = 1;
	b.probes = (struct mdl_probe[]){{"kv.push", "kv", "", "refused", "no such symbol", NULL}};
	b.nprobes = 1;
	b.fallbacks = (struct mdl_fallback[]){{"dot", 5, 6}};
	b.nfallbacks = 1;
	a.iterations = a.sampled_iterations = b.sampled_iterations = 2;
	b.iterations = 9;
	FREED(reader_closed) struct rec_reader *r = merged(&a, &b, &e);
	s = rec_reader_session(r);
	CHECK(has_note(s, "ops", "only dot") && has_note(s, "refused", "kv.push of beta: no such symbol"));
	CHECK(s->nfallbacks == 1 && !strcmp(s->fallbacks[0].name, "dot of beta") && s->fallbacks[0].spans == 6);
	CHECK(s->iterations == 11 && s->sampled_iterations == 4);
}

/* Processes of another host get its name, and pids as in records. One pid of a host has one place. */
static void test_labels(void)
{
	struct mdl_labels ranks[2] = {
		{PID, {0, 0, 2, MDL_NO_NUMBER}, {"", "", "", "", "", "", "", "", "root", "node:1"}, "", NULL, NULL},
		{PID, {1, 0, 2, MDL_NO_NUMBER}, {"", "", "", "", "", "", "", "", "else", "node:1"}, "", NULL, NULL},
	};
	struct mdl_session a = of("alpha", 0), b = of("beta", 0), later = of("alpha", 0);
	const struct mdl_session *s;
	const struct mdl_labels *l;
	struct err e = {0};

	a.labels = &ranks[0];
	b.labels = later.labels = &ranks[1];
	a.nlabels = b.nlabels = later.nlabels = 1;
	FREED(reader_closed) struct rec_reader *r = merged(&a, &b, &e);
	s = rec_reader_session(r);
	l = mdl_labels_of(s, PID);
	CHECK(s->nlabels == 2 && l && !l->numbers[MDL_RANK] && !strcmp(l->hostname, "alpha"));
	CHECK(l && !strcmp(l->texts[MDL_USER], "root"));
	l = mdl_labels_of(s, PID | 1u << MDL_PID_BITS);
	CHECK(l && l->numbers[MDL_RANK] == 1 && !strcmp(l->hostname, "beta") && !strcmp(l->texts[MDL_USER], "else"));
	rec_reader_close(r);
	later.start_mono_ns++;
	r = merged(&a, &later, &e);
	s = rec_reader_session(r);
	CHECK(s->nlabels == 1 && s->labels[0].numbers[MDL_RANK] == 1);
}

/* A process that has the pid of an earlier one takes its place. */
static void test_labels_limit(void)
{
	struct mdl_labels one = {0, {7, 0, 0, 0}, {"", "", "", "", "", "", "", "", ""}, "", NULL, NULL};
	FREED(mdl_session_fini) struct mdl_session s = {0};
	uint32_t pid;

	for (pid = 1; pid <= MDL_LABELS_MAX + 3; pid++)
		CHECK(!mdl_labels_add(&s, &one, pid, "alpha"));
	CHECK(s.nlabels == MDL_LABELS_MAX && s.unlabelled == 3 && !mdl_labels_of(&s, MDL_LABELS_MAX + 1));
	one.numbers[MDL_RANK] = 9;
	CHECK(!mdl_labels_add(&s, &one, 5, "beta"));
	CHECK(s.nlabels == MDL_LABELS_MAX && s.unlabelled == 3 && mdl_labels_of(&s, 5)->numbers[MDL_RANK] == 9);
}

/* Equal sources are added up. If one part has only the sum of all sources, so has the whole. */
static void test_sources(void)
{
	struct mdl_source one[] = {{"probes", {.attempted = 10, .stored = 9, .dropped = 1}, 2}};
	struct mdl_source two[] = {{"samples", {.attempted = 5, .stored = 5}, 0},
				   {"probes", {.attempted = 7, .stored = 4, .dropped = 3}, 1}};
	struct mdl_session a = of("alpha", 0), b = of("beta", 0);
	const struct mdl_session *s;
	struct err e = {0};

	a.sources = one;
	a.nsources = 1;
	b.sources = two;
	b.nsources = 2;
	FREED(reader_closed) struct rec_reader *r = merged(&a, &b, &e);
	s = rec_reader_session(r);
	CHECK(s->nsources == 2 && !strcmp(s->sources[0].name, "probes") && !strcmp(s->sources[1].name, "samples"));
	CHECK(s->sources[0].loss.attempted == 17 && s->sources[0].loss.dropped == 4 && s->sources[0].late == 3);
	CHECK(s->sources[1].loss.stored == 5);
	rec_reader_close(r);
	b.nsources = 0;
	r = merged(&a, &b, &e);
	CHECK(rec_reader_session(r)->nsources == 0);
}

/* Data that only one of the recordings has would be missing from the sum or taken as that of both. */
static void test_unlike(void)
{
	const struct mdl_session unlike[] = {
		{.held = true},
		{.life = true},
		{.sched = true},
		{.team_cpus = 2},
		{.counters = (struct mdl_perf_event[]){{"cycles"}}, .ncounters = 1},
	};
	struct mdl_session a = of("alpha", 0), b;
	size_t i;

	a.counters = (struct mdl_perf_event[]){{"instructions"}};
	for (i = 0; i < sizeof(unlike) / sizeof(unlike[0]); i++) {
		struct err e = {0};

		b = of("beta", 0);
		b.held = unlike[i].held;
		b.life = unlike[i].life;
		b.sched = unlike[i].sched;
		b.team_cpus = unlike[i].team_cpus;
		b.counters = unlike[i].counters;
		b.ncounters = a.ncounters = unlike[i].ncounters;
		rec_reader_close(merged(&a, &b, &e));
		CHECK(strstr(e.why, "recorded with different options"));
	}
}

/* Merging a recording with itself would count everything twice. */
static void test_twice(void)
{
	const struct mdl_session a = of("alpha", 0);
	struct mdl_session later = of("alpha", 0);
	struct err e = {0};

	rec_reader_close(merged(&a, &a, &e));
	CHECK(strstr(e.why, "given twice"));
	later.start_mono_ns++;
	e = (struct err){0};
	rec_reader_close(merged(&a, &later, &e));
	CHECK(!e.code);
}

int main(void)
{
	TEST("calls of two hosts at the same time are not late, and equal thread ids of two hosts are two threads")
	test_threads();
	TEST("gauges are those of the first recording, on the clock of the host that started first")
	test_gauge();
	TEST("notes, refused probes and fallbacks of one recording apply to the merged recording")
	test_caveats();
	TEST("labels of processes have the host of their recording")
	test_labels();
	TEST("4096 processes have labels, and those beyond are counted")
	test_labels_limit();
	TEST("losses are added up by source, and shown by source only if all parts have them")
	test_sources();
	TEST("recordings with different options are refused")
	test_unlike();
	TEST("merging a recording with itself is refused")
	test_twice();
	UNIT_MAIN_END;
}
