// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/findings/findings.h"
#include "feature/findings/jobs.h"
#include "feature/lines/lines.h"
#include "feature/memory/failed.h"
#include "feature/neighbours/neighbours.h"
#include "feature/steps/steps.h"
#include "view/priv.h"
#include "view/sheet.h"

#define JOBS_MAX 8 /* that have findings of their own */

struct row {
	struct view_text key, text, evidence, next, advice, job;
	uint64_t permille, pid;
	uint64_t thread; /* of the loop that it speaks of, if its process has others; 0 */
};

/* A job and what was found. A single job has the model of the view, and neither a name nor a heading. */
struct told {
	struct findings_job job;
	struct mdl *own; /* NULL: the job is alone */
	struct findings found;
};

struct table {
	struct view_list list;
	struct told told[JOBS_MAX];
	unsigned n;
	size_t jobs; /* of the session, also those without a place here */
};

static struct view_text findings_text_of(const struct buf *b)
{
	return (struct view_text){b->len ? b->data : NULL, b->len};
}

static void findings_put_row(const struct view *s, const struct told *t, const struct finding *f, struct row *r)
{
	*r = (struct row){
		.key = view_word(f->rule->key),
		.text = findings_text_of(&f->text),
		.evidence = findings_text_of(&f->evidence),
		.next = findings_text_of(&f->next),
		.pid = f->pid	? f->pid
		       : t->own ? t->job.tgid
				: mdl_target_of(s->in->session).pid,
		.advice = view_word(f->rule->advice),
		.job = view_word(t->own ? t->job.name : NULL),
		.permille = whole(1000 * f->share + 0.5),
		.thread = t->found.facts.loop.beside ? t->found.facts.loop.tid : 0,
	};
}

/* Judges each job by itself, for the numbers of one explain nothing of another. */
static int findings_sheet_judge(const struct view *s, struct table *t)
{
	struct mdl *m = s->in->processes ? s->in->processes : s->in->model;
	struct buf jobs = {0};
	int err = findings_jobs(m, s->in->session, &jobs);

	t->jobs = buf_count(&jobs, struct findings_job);
	for (; !err && t->n < JOBS_MAX && t->n < t->jobs; t->n++) {
		struct told *told = &t->told[t->n];

		if (t->jobs == 1)
			break;
		told->job = *buf_at(&jobs, struct findings_job, t->n);
		told->own = findings_only(m, s->in->session, &told->job);
		err = told->own ? findings_make(told->own, s->in->session, &told->found) : -ENOMEM;
	}
	buf_fini(&jobs);
	if (!err && !t->n)
		err = findings_make(m, s->in->session, &t->told[t->n++].found);
	return err;
}

static int findings_sheet_make(const struct view *s, void *table)
{
	struct table *t = table;
	const int err = findings_sheet_judge(s, t);
	struct row *r;
	unsigned i, k;

	for (i = 0; i < t->n; i++)
		t->list.all += t->told[i].found.n;
	r = calloc(t->list.all + 1, sizeof(*r));
	t->list.rows = r;
	t->list.empty_too = true;
	if (err || !r)
		return -ENOMEM;
	for (i = 0; i < t->n; i++)
		for (k = 0; k < t->told[i].found.n; k++)
			findings_put_row(s, &t->told[i], &t->told[i].found.list[k], r++);
	return 0;
}

static void findings_sheet_fini(void *table)
{
	struct table *t = table;
	unsigned i;

	for (i = 0; i < t->n; i++) {
		findings_fini(&t->told[i].found);
		mdl_free(t->told[i].own);
	}
}

static void findings_put_parts(struct view *s, const struct facts *f)
{
	uint8_t order[MXBPF_STEP_PARTS];
	const unsigned n = steps_large_parts(f->loop.part_ns, f->loop.known_ns, order);
	unsigned i;

	for (i = 0; i < n; i++)
		out_printf(s->out, "%s%.0f%% %s%s", i ? ", " : ": ",
			   100.0 * (double)f->loop.part_ns[order[i]] / (double)f->loop.known_ns,
			   steps_part_words(order[i], f->python),
			   order[i] == MXBPF_PART_OUTSIDE && f->unprobed ? " or calls not probed" : "");
}

static void put_speed(struct view *s, uint64_t n, uint64_t total_ns)
{
	char each[24];

	out_printf(s->out, "%.3g iterations per second, %s each", 1e9 * (double)n / (double)total_ns,
		   fmt_ns(total_ns / n, each));
}

/* The other loops of the process. */
static void put_beside(struct view *s, const struct facts *f)
{
	unsigned k;

	for (k = 0; f->loop.beside && k < FACTS_LOOPS_MAX; k++) {
		if (!f->loops[k].n || f->loops[k].tgid != f->loop.tgid || f->loops[k].tid == f->loop.tid)
			continue;
		out_printf(s->out, "thread %" PRIu32 ": ", f->loops[k].tid);
		put_speed(s, f->loops[k].n, f->loops[k].total_ns);
		out_puts(s->out, "\n");
	}
	if (f->loop.beside)
		out_printf(s->out, "\"The loop\" below is that of thread %" PRIu32 ", which has the most time.\n",
			   f->loop.tid);
}

/* A few iterations in a long window are no rate. */
static void put_few(struct view *s, const struct facts *f)
{
	char each[24];

	out_printf(s->out, "%" PRIu64 " iteration%s, %s each", f->loop.n, f->loop.n == 1 ? "" : "s",
		   fmt_ns(f->loop.total_ns / f->loop.n, each));
}

#define REST_LEAST 5 /* samples outside iterations, to say what was there */

/* What the loop's thread did in the rest of the window. */
static void put_rest(struct view *s, const struct facts *f)
{
	const struct fact_line *l = &f->rest.line;
	const bool compiles = f->rest.compiles > FACTS_COVERED_LEAST;

	if (l->of < REST_LEAST || (!l->looks && !compiles))
		return;
	out_puts(s->out, "; in the rest, ");
	if (compiles)
		out_printf(s->out, "%s compiles in %.0f%% of the samples%s", f->rest.compiler, 100 * f->rest.compiles,
			   l->looks ? ", called by " : "");
	else
		out_printf(s->out, "%.0f%% of the samples are at ", 100 * facts_share((double)l->looks, (double)l->of));
	view_put_safe(s->out, l->text, strlen(l->text));
}

/* A program without an optimizer: its annotation, or how often it runs the same operators. */
static void put_passes(struct view *s, const struct facts *f)
{
	const uint64_t window_ns = s->in->session->duration_ns;
	const double per_s = 1e9 * facts_share((double)f->passes.n, (double)window_ns);
	const struct fact_operator *a = &f->passes.annotation;
	char ns[24];

	if (!f->passes.n || !window_ns || f->lost.share > FACTS_LOST_MOST)
		return;
	if (a->much) {
		view_put_safe(s->out, a->name, a->len);
		out_printf(s->out, ": %.3g per second, %s each: %.0f%% in operators\n", per_s,
			   fmt_ns(a->much / f->passes.n, ns),
			   100 * facts_least(facts_share((double)f->passes.op_ns, (double)a->much), 1));
		return;
	}
	out_printf(s->out,
		   "No optimizer: the same %.0f calls of operators repeat %.3g times per second, %s each time\n",
		   (double)f->passes.calls / (double)f->passes.n, per_s, fmt_ns(f->passes.op_ns / f->passes.n, ns));
}

/* How fast the job goes on, before what holds it up. */
static void put_rate(struct view *s, const struct facts *f)
{
	const double part = f->loop.covers;

	if (!f->loop.n && f->gpu.known)
		out_printf(s->out, "GPU%s busy in %.0f%% of the time\n", f->gpu.n > 1 ? "s" : "", 100 * f->gpu.busy);
	if (!f->loop.n) {
		put_passes(s, f);
		return;
	}
	if (f->loop.beside)
		out_printf(s->out, "thread %" PRIu32 ": ", f->loop.tid);
	if (part < 1)
		put_few(s, f);
	else
		put_speed(s, f->loop.n, f->loop.total_ns);
	if (f->loop.known_ns)
		findings_put_parts(s, f);
	if (part < 1)
		out_printf(s->out, "; %s %.2g%% of the window", f->loop.n == 1 ? "it takes" : "they take", 100 * part);
	if (part < 1)
		put_rest(s, f);
	if (f->gpu.known)
		out_printf(s->out, "; GPU%s busy %.0f%%", f->gpu.n > 1 ? "s" : "", 100 * f->gpu.busy);
	s->parts_said = f->loop.known_ns && !f->loop.beside;
	out_puts(s->out, "\n");
	put_beside(s, f);
}

/* A GPU that is busy all the time is what the job is for. Says with what. */
static void put_none(struct view *s, const struct facts *f)
{
	unsigned i;

	if (s->in->session->stats) {
		out_puts(s->out, "No finding: rules look at single calls, and only sums are known.\n");
		return;
	}

	if (!facts_is_gpu_full(f)) {
		out_puts(s->out, f->loop.n || f->gpu.known ? "No finding: mxbpf found no bottleneck.\n"
				 : f->passes.n		   ? "No finding: mxbpf found no bottleneck, as far as it can "
							     "be seen without iterations.\n"
							   : "No finding: no iteration ended in the window, and most "
							     "rules look at iterations. One ends with a step "
							     "of an optimizer.\n");
		return;
	}
	out_puts(s->out, "No finding: the GPU is busy nearly all the time");
	for (i = 0; i < FACTS_OPERATORS_MAX && f->gpu.longest[i].much; i++) {
		out_puts(s->out, i ? ", " : ", with ");
		view_put_safe(s->out, f->gpu.longest[i].name, f->gpu.longest[i].len);
		out_printf(s->out, " %.0f%%",
			   100 * facts_share((double)f->gpu.longest[i].much, (double)f->gpu.kernel_ns));
	}
	out_puts(s->out, ".\n");
}

/*
 * The rule says PID, and people get the number, unless a trace tells it: its process has ended. Every rule's command
 * looks at a process, which requires root.
 */
static void put_next(struct view *s, const struct view_text *next, uint64_t of)
{
	const char *pid = memmem(next->data, next->len, "PID", 3);
	const int before = pid ? (int)(pid - next->data) : 0;

	if (pid && !s->in->session->profiler)
		out_printf(s->out, "   next: sudo mxbpf %.*s%" PRIu64 "%.*s\n", before, next->data, of,
			   (int)next->len - before - 3, pid + 3);
	else
		out_printf(s->out, "   next: sudo mxbpf %.*s\n", (int)next->len, next->data);
}

#define ADVICE_COLUMNS 76 /* without the indentation */

/* A paragraph, broken between words. */
static void put_advice(struct view *s, const char *text)
{
	size_t len, fits;

	for (; *text; text += len + strspn(text + len, " ")) {
		for (len = fits = 0; len <= ADVICE_COLUMNS && text[len]; len++)
			if (text[len] == ' ')
				fits = len;
		len = text[len] && fits ? fits : len;
		out_printf(s->out, "   %.*s\n", (int)len, text);
	}
}

/* Says which job the next lines are about, for a session of several. */
static void put_job(struct view *s, const struct told *t)
{
	const char *name = mdl_thread_name(t->own, t->job.tgid, t->job.tgid);

	out_printf(s->out, "Job of process %" PRIu32, t->job.tgid);
	if (name && *name) {
		out_puts(s->out, " (");
		view_put_safe(s->out, name, strlen(name));
		out_puts(s->out, ")");
	}
	if (t->job.name) {
		out_puts(s->out, ", ");
		view_put_safe(s->out, t->job.name, strlen(t->job.name));
	}
	out_puts(s->out, "\n");
}

static void put_finding(struct view *s, const struct row *r, unsigned nr)
{
	out_printf(s->out, "%u. ", nr);
	view_put_safe(s->out, r->text.data, r->text.len);
	out_puts(s->out, ".\n");
	if (r->evidence.len) {
		out_puts(s->out, "   seen: ");
		view_put_safe(s->out, r->evidence.data, r->evidence.len);
		out_puts(s->out, "\n");
	}
	if (r->next.len)
		put_next(s, &r->next, r->pid);
	if (s->opts->advice || !r->next.len)
		put_advice(s, r->advice.data);
}

static int print(struct view *s, const void *table)
{
	const struct table *t = table;
	const struct row *r = t->list.rows;
	unsigned i, k;

	for (i = 0; i < t->n; i++) {
		const struct told *told = &t->told[i];

		if (told->own)
			put_job(s, told);
		put_rate(s, &told->found.facts);
		for (k = 0; k < told->found.n; k++, r++)
			put_finding(s, r, k + 1);
		if (!told->found.n)
			put_none(s, &told->found.facts);
		out_puts(s->out, "\n");
	}
	if (t->jobs > t->n && t->n > 1)
		out_printf(s->out, "%zu more jobs have no findings here; look at one of them with --pid\n\n",
			   t->jobs - t->n);
	return 0;
}

/*
 * Recordings of before version 1.3 have nothing that rules could judge by, and neither have windows that are too short
 * for a look at the lines; traces of other profilers have something else. Memory that was out is a finding of its own,
 * and so are lost records.
 */
static bool findings_when(const struct view *s)
{
	const struct memory_failed *failed = memory_failures(s->in->model);
	const struct mdl_source *which;
	size_t nlines, nprocesses;

	lines_rows(s->in->model, &nlines);
	neighbours_rows(s->in->model, &nprocesses);
	return nlines || nprocesses || s->in->session->profiler || (failed && failed->n) ||
	       facts_lost(s->in->session, &which) >= FACTS_LOST_LEAST;
}

#define ROW struct row
static const struct tbl_column columns[] = {
	{"finding", NULL, "finding", TBL_TEXT, AT(key), .help = "name of the rule"},
	{"text", NULL, "text", TBL_TEXT, AT(text), .help = "the finding as a sentence"},
	{"evidence", NULL, NULL, TBL_TEXT, AT(evidence), TBL_NULL, .help = "what was seen, and where"},
	{"share_permille", NULL, NULL, TBL_COUNT, AT(permille),
	 .help = "thousandths of the time that the finding explains"},
	{"next", NULL, NULL, TBL_TEXT, AT(next), TBL_NULL,
	 .help = "arguments of mxbpf that look closer, PID stands for `pid`; null: the advice says what is left to do"},
	{"pid", NULL, NULL, TBL_COUNT, AT(pid), .help = "process that the finding is about"},
	{"advice", NULL, NULL, TBL_TEXT, AT(advice), TBL_NULL},
	{"job", NULL, NULL, TBL_TEXT, AT(job), TBL_OMIT,
	 .help = "label of the job that the finding is about; only in a session of several"},
	{"loop_thread", NULL, NULL, TBL_COUNT, AT(thread), TBL_OMIT,
	 .help = "thread of the loop that the finding speaks of; only if its process has several loops"},
	{0},
};

const struct view_sheet sheet_findings = {
	.title = "Findings",
	.help = "What bounds the job, the largest first.",
	.member = "findings",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.first = true,
	.whole = true,
	.when = findings_when,
	.make = findings_sheet_make,
	.fini = findings_sheet_fini,
	.print = print,
};
