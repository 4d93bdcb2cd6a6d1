// SPDX-License-Identifier: Apache-2.0
/*
 * Operators that are slow for their inputs: values that are denormal, and sizes for which the operator needs many times
 * as long for each element as for others, as a Fourier transform does for a large prime number.
 */
#include "feature/findings/rules.h"
#include "feature/inputs/inputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/lines/lines.h"
#include "mxbpf_step.h"

#define LOOKS_LEAST    3		    /* that met denormal values */
#define DENORMAL_LEAST 0.3		    /* of the looks at an operator */
#define SIZES_LEAST    6		    /* looks that met the sizes that are slow */
#define OTHERS_LEAST   2		    /* looks that met others */
#define SIZES_PART     0.5		    /* of the looks at an operator, met the sizes that are slow */
#define SLOWER	       3		    /* times as long for each element as for the others */
#define ELEMENT_LEAST  8		    /* ns for each element; a Fourier transform of a good size takes up to 6 */
#define CALL_LEAST     (10 * FACTS_TINY_NS) /* of a shorter call, most may be there whatever its inputs are */
#define LOOK_AT	       2   /* a look meets a call in its middle, so it takes about twice the time until then */
#define VARIED_LEAST   64  /* looks at an operator that nearly always meets other sizes */
#define VARIED_PART    0.6 /* of them, met sizes of their own */

/* An operator in one process, with the sums over its looks and calls. */
struct met {
	uint32_t tgid;
	uint64_t name_id, looks, valued, denormal; /* denormal: and not taken as 0 */
	uint64_t rows;				   /* different sizes */
	double elements;			   /* sum over the looks: of the largest input */
	uint64_t self_ns, calls;		   /* without waits for a CPU */
	struct input_row denormals, sizes;	   /* the row with the most looks that had them; with the most looks */
};

struct all {
	struct hash index; /* (name, process) -> 1 + place in list */
	struct buf list;   /* struct met */
};

static bool is_one_of(const struct mdl *m, uint64_t name_id, const char *const *words, bool whole_name)
{
	size_t len;
	const char *name = mdl_name(m, name_id, &len);

	for (; *words; words++)
		if (whole_name ? len == strlen(*words) && !memcmp(name, *words, len)
			       : memmem(name, len, *words, strlen(*words)) != NULL)
			return true;
	return false;
}

/* These copy values or write them, and do not compute with them. */
static bool copies(const struct mdl *m, uint64_t name_id)
{
	static const char *const names[] = {"aten::copy_",
					    "aten::clone",
					    "aten::contiguous",
					    "aten::cat",
					    "aten::stack",
					    "aten::index_select",
					    "aten::select",
					    "aten::slice",
					    "aten::index",
					    "aten::embedding",
					    "aten::gather",
					    "aten::to",
					    "aten::as_strided",
					    "aten::empty_like",
					    "aten::fill_",
					    "aten::zero_",
					    "aten::normal_",
					    "aten::uniform_",
					    "aten::bernoulli_",
					    "aten::random_",
					    "aten::exponential_",
					    "aten::_to_copy",
					    "aten::resize_",
					    "aten::_local_scalar_dense",
					    NULL};

	return is_one_of(m, name_id, names, true);
}

/*
 * Operators whose time goes with the elements of their largest input. Products and decompositions of matrices take
 * longer for each element of larger ones, and for others an index, a list or the result says how much they do.
 */
static bool is_even(const struct mdl *m, uint64_t name_id)
{
	static const char *const words[] = {"mm",      "matmul",      "linear",	  "conv",    "attention", "lstm",
					    "gru",     "rnn",	      "einsum",	  "dot",     "cdist",	  "linalg",
					    "svd",     "eig",	      "cholesky", "inverse", "qr",	  "index",
					    "scatter", "gather",      "_foreach", "_fused",  "upsample",  "repeat",
					    "expand",  "interpolate", "pool",	  NULL};

	return !is_one_of(m, name_id, words, false);
}

static int add_row(const struct mdl *m, struct all *all, const struct input_row *r)
{
	uint64_t *at = hash_put(&all->index, r->name_id, r->tgid);
	struct met *o;

	if (!at)
		return -ENOMEM;
	if (!*at) {
		if (buf_put(&all->list, &(struct met){.tgid = r->tgid, .name_id = r->name_id}, sizeof(*o)))
			return -ENOMEM;
		*at = buf_count(&all->list, struct met);
	}
	o = buf_at(&all->list, struct met, *at - 1);
	o->rows++;
	o->elements += (double)r->looks * (double)r->elements;
	add_sat(&o->looks, r->looks);
	add_sat(&o->valued, r->valued);
	if (r->denormal > r->flushed && !copies(m, r->name_id)) {
		add_sat(&o->denormal, r->denormal - r->flushed);
		o->denormals = r->denormal > o->denormals.denormal ? *r : o->denormals;
	}
	o->sizes = r->looks > o->sizes.looks ? *r : o->sizes;
	return 0;
}

static struct met *find_met(const struct all *all, uint32_t tgid, uint64_t name_id)
{
	const uint64_t *at = hash_get(&all->index, name_id, tgid);

	return at ? buf_at(&all->list, struct met, *at - 1) : NULL;
}

static void sum_times(struct mdl *m, const struct all *all)
{
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
	const struct mxbpf_account_sum *a;
	struct met *o;
	uint64_t runq;

	for (i = 0; i < n; i++) {
		o = find_met(all, rows[i]->tgid, rows[i]->name_id);
		if (!o)
			continue;
		a = &rows[i]->account;
		runq = a->runq_ns > a->nested_runq_ns ? a->runq_ns - a->nested_runq_ns : 0;
		add_sat(&o->self_ns, rows[i]->self_ns > runq ? rows[i]->self_ns - runq : 0);
		add_sat(&o->calls, rows[i]->count);
	}
}

/* Which part of the loop's time operators take; of the window, in a program without one. */
static double share_of_operators(const struct mdl_session *s, const struct facts *f)
{
	if (f->loop.known_ns)
		return facts_share((double)f->loop.part_ns[MXBPF_PART_OPERATOR], (double)f->loop.known_ns);
	return facts_least(1, facts_share((double)f->op_self_ns, (double)s->duration_ns));
}

static double share_of(const struct facts *f, uint64_t self_ns)
{
	return facts_least(1,
			   facts_share((double)self_ns, (double)(f->loop_self_ns ? f->loop_self_ns : f->op_self_ns)));
}

static struct fact_operator named(const struct mdl *m, uint64_t name_id)
{
	struct fact_operator o = {.much = 0};

	o.name = mdl_name(m, name_id, &o.len);
	return o;
}

static void put_sizes(const struct mdl *m, uint64_t sizes, char *to, size_t max)
{
	size_t len = 0;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, sizes, &len);

	snprintf(to, max, "%.*s", (int)len, text ? text : "");
}

static bool is_denormal(const struct met *o)
{
	return o->denormal && (double)o->denormal >= DENORMAL_LEAST * (double)o->valued;
}

/* Where the program is while an operator runs; name_id 0: one of those with denormal values. */
static int find_line(const struct mdl *m, const struct all *all, uint64_t name_id, struct fact_line *line)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct facts_tally tally = {.of = 0};
	const struct met *o;
	const char *text;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		o = l[i].cls == MXBPF_CLASS_OPERATOR ? find_met(all, l[i].h.tgid, l[i].name_id) : NULL;
		if (!o || (name_id ? o->name_id != name_id : !is_denormal(o)))
			continue;
		text = lines_of_program(m, l[i].stack_id, &len);
		add_sat(&tally.of, l[i].count);
		err = text && lines_is_program(text, len) ? facts_tally_add(&tally, text, len, &l[i]) : 0;
	}
	*line = facts_tally_top(&tally);
	facts_tally_fini(&tally);
	return err;
}

static int make_values(struct mdl *m, const struct mdl_session *s, struct facts *f, const struct all *all)
{
	struct cause_values *v = &f->cause.values;
	const struct met *o, *most = NULL;
	uint64_t sum_ns = 0;
	size_t k;

	for (k = 0; k < buf_count(&all->list, struct met); k++) {
		o = buf_at(&all->list, const struct met, k);
		if (!is_denormal(o) || (f->loop.n && o->tgid != f->loop.tgid))
			continue;
		add_sat(&sum_ns, whole((double)o->self_ns *
				       facts_least(1, facts_share((double)o->denormal, (double)o->valued))));
		add_sat(&v->looks, o->denormal);
		add_sat(&v->of, o->valued);
		v->operators++;
		most = !most || o->self_ns > most->self_ns ? o : most;
	}
	if (!most || v->looks < LOOKS_LEAST)
		return 0;
	v->tgid = most->tgid;
	v->share = share_of_operators(s, f) * share_of(f, sum_ns);
	v->op = named(m, most->name_id);
	put_sizes(m, most->denormals.sizes, v->sizes, sizeof(v->sizes));
	return find_line(m, all, 0, &v->line);
}

/* ---- sizes */

/*
 * Estimates how long a call takes with the operator's most frequent sizes, and how long with other sizes. The share of
 * the looks gives the part of the operator's time. The time since a call began, when a look meets it, gives its length.
 */
static struct cause_sizes sizes_of(const struct met *o)
{
	const struct input_row *slow = &o->sizes;
	struct cause_sizes v = {.tgid = o->tgid, .looks = slow->looks, .of = o->looks, .operators = 1};
	const double part = facts_share((double)slow->looks, (double)o->looks);
	const uint64_t others = o->looks - slow->looks;
	const double elements = o->elements - (double)slow->looks * (double)slow->elements;
	double calls, each;

	v.self_ns = whole(part * (double)o->self_ns);
	v.call_ns = whole(LOOK_AT * facts_share((double)slow->elapsed_ns, (double)slow->looks));
	calls = (double)o->calls - facts_share((double)v.self_ns, (double)v.call_ns);
	if (others < OTHERS_LEAST || calls < 1 || elements <= 0)
		return v;
	v.other_ns = whole((1 - part) * (double)o->self_ns / calls);
	each = facts_share((double)v.call_ns, (double)slow->elements);
	v.times = facts_share(each, ((double)v.other_ns + 1) / (elements / (double)others));
	return v;
}

static bool is_slow_size(const struct mdl *m, const struct facts *f, const struct met *o, const struct cause_sizes *v)
{
	return o->sizes.looks >= SIZES_LEAST && (double)o->sizes.looks >= SIZES_PART * (double)o->looks &&
	       v->times >= SLOWER && v->call_ns >= CALL_LEAST &&
	       (double)v->call_ns >= ELEMENT_LEAST * (double)o->sizes.elements &&
	       (!f->loop.n || o->tgid == f->loop.tgid) && is_even(m, o->name_id) && !copies(m, o->name_id);
}

/* Chooses the operator with the most time among those that are slow for certain sizes. The share is that of all. */
static int make_sizes(struct mdl *m, const struct mdl_session *s, struct facts *f, const struct all *all)
{
	struct cause_sizes *v = &f->cause.sizes, now;
	uint64_t sum_ns = 0, name_id = 0;
	const struct met *o;
	unsigned n = 0;
	size_t k;

	for (k = 0; k < buf_count(&all->list, struct met); k++) {
		o = buf_at(&all->list, const struct met, k);
		now = sizes_of(o);
		if (!is_slow_size(m, f, o, &now))
			continue;
		add_sat(&sum_ns, now.self_ns);
		n++;
		if (now.self_ns <= v->self_ns)
			continue;
		*v = now;
		v->op = named(m, o->name_id);
		put_sizes(m, o->sizes.sizes, v->sizes, sizeof(v->sizes));
		name_id = o->name_id;
	}
	v->operators = n;
	v->share = share_of_operators(s, f) * share_of(f, sum_ns);
	return name_id ? find_line(m, all, name_id, &v->line) : 0;
}

/* Operators of oneDNN, which prepares code for each size. */
static bool prepares(const struct mdl *m, uint64_t name_id)
{
	static const char *const words[] = {"mkldnn", "onednn", "convolution", NULL};

	return is_one_of(m, name_id, words, false);
}

static void make_varied(const struct mdl *m, struct facts *f, const struct all *all)
{
	struct cause_varied *v = &f->cause.varied;
	const struct met *o;
	size_t k;

	for (k = 0; k < buf_count(&all->list, struct met); k++) {
		o = buf_at(&all->list, const struct met, k);
		if (o->looks < VARIED_LEAST || (double)o->rows < VARIED_PART * (double)o->looks ||
		    o->looks <= v->looks || !prepares(m, o->name_id))
			continue;
		*v = (struct cause_varied){.tgid = o->tgid, .sizes = o->rows, .looks = o->looks};
		v->op = named(m, o->name_id);
	}
}

int make_inputs(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	size_t n, i;
	const struct input_row *r = mdl_table_rows(m, &feature_inputs, &inputs_table, &n);
	struct all all = {.list = {0}};
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = r[i].looks ? add_row(m, &all, &r[i]) : 0;
	if (!err && n) {
		sum_times(m, &all);
		make_varied(m, f, &all);
		err = make_values(m, s, f, &all);
		err = err ? err : make_sizes(m, s, f, &all);
	}
	hash_fini(&all.index);
	buf_fini(&all.list);
	return err;
}

/* ---- what is said */

/* Looks at lines are rare in slices. Then it is the line of the slow iterations, or the one that the loop is at most.
 */
static void put_line(const struct facts *f, const struct fact_line *line, struct buf *b)
{
	const struct fact_line *other = f->slow_line.looks ? &f->slow_line : &f->any_line;

	if (line->looks)
		buf_printf(b, "; called at ");
	else if (other->looks)
		buf_printf(b, "; %s at ", f->slow_line.looks ? "slow iterations are" : "the program is most");
	rules_put_line(line->looks ? line : other, b);
}

static double values_share(const struct facts *f)
{
	return f->cause.values.share;
}

static void values_say(const struct facts *f, struct buf *b)
{
	const struct cause_values *v = &f->cause.values;

	buf_printf(b,
		   "Operators compute with denormal numbers, which are so close to 0 that a processor takes up to a "
		   "hundred "
		   "times as long for them: %.*s%s, %.0f%% of the time",
		   (int)v->op.len, v->op.name, v->operators > 1 ? " and others" : "", 100 * v->share);
}

static void values_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_values *v = &f->cause.values;

	buf_printf(b, "%" PRIu64 " of %" PRIu64 " looks at these operators found such values", v->looks, v->of);
	if (v->sizes[0])
		buf_printf(b, ", for example in %s", v->sizes);
	put_line(f, &v->line, b);
}

static double sizes_share(const struct facts *f)
{
	return f->cause.sizes.share;
}

static void sizes_say(const struct facts *f, struct buf *b)
{
	const struct cause_sizes *v = &f->cause.sizes;
	char ns[2][24];

	buf_printf(b,
		   "%.*s%s slow for inputs of certain sizes: with %s, a call takes about %s, and %.0f times as long "
		   "for each element as with other sizes, which take %s on average; the slow ones take %.0f%% of the "
		   "time",
		   (int)v->op.len, v->op.name, v->operators > 1 ? " and others are" : " is", v->sizes,
		   fmt_ns(v->call_ns, ns[0]), v->times, fmt_ns(v->other_ns, ns[1]), 100 * v->share);
}

static void sizes_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_sizes *v = &f->cause.sizes;

	buf_printf(b, "%" PRIu64 " of %" PRIu64 " looks at the operator met these sizes", v->looks, v->of);
	put_line(f, &v->line, b);
}

/* clang-format off */
const struct finding_rule rules_inputs[] = {
	{.key = "denormal_values", .least = 0.1, .share = values_share, .say = values_say, .evidence = values_evidence,
	 .explains = "slower_iterations slow_iterations", .pid_at = offsetof(struct facts, cause.values.tgid), .next = "--pid PID --py-stacks --by stack", .taken = FACTS_HAVE_STACKS,
	 .advice = "torch.set_flush_denormal(True) makes the processor take them as 0; call it in each thread that computes, before others "
		   "start. Or keep values away from 0: a larger epsilon, a lower limit for decaying averages and hidden states, weight decay "
		   "that does not reach rows which are never used. How much it brings: such an operation takes about 150 cycles instead of 1 to 5."},
	{.key = "slow_sizes", .least = 0.1, .share = sizes_share, .say = sizes_say, .evidence = sizes_evidence,
	 .explains = "slow_iterations", .pid_at = offsetof(struct facts, cause.sizes.tgid), .next = "--pid PID --shapes --by shape", .taken = FACTS_HAVE_SHAPES,
	 .advice = "Pad or cut inputs to sizes that the operator is fast for: products of small prime numbers for Fourier transforms, "
		   "multiples of 8 or 16 for vector units, inputs that are contiguous. Or sort inputs into a few sizes."},
	{.key = NULL},
};
/* clang-format on */
