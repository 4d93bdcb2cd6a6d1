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
#include "feature/lines/lines.h"
#include "mxbpf_step.h"

#define LOOKS_LEAST    3   /* that met denormal values */
#define DENORMAL_LEAST 0.3 /* of the looks at an operator */
#define SIZES_LEAST    6   /* looks that met the sizes that are slow */
#define OTHERS_LEAST   2   /* looks that met others */
#define SIZES_PART     0.5 /* of the looks at an operator, met the sizes that are slow */
#define SLOWER	       3   /* times as long for each element as for the others */
#define ELEMENT_LEAST  4   /* ns for each element; memory that is not in a cache takes one or two */
#define LOOK_AT	       2   /* a look meets a call in its middle, so it takes about twice the time until then */

/* What is known of an operator of a process. */
struct operator
{
	uint32_t tgid;
	uint64_t name_id, looks, valued, denormal; /* denormal: and not taken as 0 */
	uint64_t rows;				   /* different sizes */
	struct input_row denormals, sizes;	   /* the row with the most looks that had them; with the most looks */
};

/* These copy values and do not compute with them. */
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
					    "aten::_local_scalar_dense"};
	size_t len, i;
	const char *name = mdl_name(m, name_id, &len);

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len == strlen(names[i]) && !memcmp(name, names[i], len))
			return true;
	return false;
}

/* A product of matrices takes longer for each element of larger ones, and a convolution as its kernels are. */
static bool is_even(const struct mdl *m, uint64_t name_id)
{
	static const char *const words[] = {"mm",   "matmul", "linear", "conv",	  "attention",
					    "lstm", "gru",    "rnn",	"einsum", "dot"};
	size_t len, i;
	const char *name = mdl_name(m, name_id, &len);

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(name, len, words[i], strlen(words[i])))
			return false;
	return true;
}

static int add_row(const struct mdl *m, struct buf *all, struct hash *index, const struct input_row *r)
{
	uint64_t *at = hash_put(index, r->name_id, r->tgid);
	struct operator* o;

	if (!at)
		return -ENOMEM;
	if (!*at) {
		if (buf_put(all, &(struct operator){.tgid = r->tgid, .name_id = r->name_id}, sizeof(*o)))
			return -ENOMEM;
		*at = buf_count(all, struct operator);
	}
	o = buf_at(all, struct operator, * at - 1);
	add_sat(&o->looks, r->looks);
	o->rows++;
	add_sat(&o->valued, r->valued);
	if (r->denormal > r->flushed && !copies(m, r->name_id)) {
		add_sat(&o->denormal, r->denormal - r->flushed);
		o->denormals = r->denormal > o->denormals.denormal ? *r : o->denormals;
	}
	o->sizes = r->looks > o->sizes.looks ? *r : o->sizes;
	return 0;
}

/* The time of an operator of a process without waits for a CPU, and its calls. */
static uint64_t self_of(struct mdl *m, uint32_t tgid, uint64_t name_id, uint64_t *calls)
{
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
	uint64_t ns = 0, runq;

	for (i = 0; i < n; i++)
		if (rows[i]->tgid == tgid && rows[i]->name_id == name_id) {
			runq = rows[i]->account.runq_ns - rows[i]->account.nested_runq_ns;
			add_sat(&ns, rows[i]->self_ns > runq ? rows[i]->self_ns - runq : 0);
			add_sat(calls, rows[i]->count);
		}
	return ns;
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

/* Where the program is while these operators run. */
static int find_line(const struct mdl *m, const struct buf *all,
		     bool (*takes)(const struct operator*, uint64_t name_id), uint64_t name_id, struct fact_line *line)
{
	size_t n, i, k, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct facts_tally tally = {.of = 0};
	const struct operator* o;
	const char *text;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		for (k = 0; k < buf_count(all, struct operator) && !err; k++) {
			o = buf_at(all, const struct operator, k);
			if (l[i].h.tgid != o->tgid || l[i].name_id != o->name_id || !takes(o, name_id))
				continue;
			text = lines_of_program(m, l[i].stack_id, &len);
			add_sat(&tally.of, l[i].count);
			err = text && lines_is_program(text, len) ? facts_tally_add(&tally, text, len, &l[i]) : 0;
		}
	*line = facts_tally_top(&tally);
	facts_tally_fini(&tally);
	return err;
}

static bool is_denormal(const struct operator* o, uint64_t name_id)
{
	(void)name_id;
	return o->denormal && (double)o->denormal >= DENORMAL_LEAST * (double)o->valued;
}

static int make_values(struct mdl *m, const struct mdl_session *s, struct facts *f, const struct buf *all)
{
	struct cause_values *v = &f->cause.values;
	const struct operator* o, *most = NULL;
	uint64_t ns, most_ns = 0, sum_ns = 0, calls = 0;
	size_t k;

	for (k = 0; k < buf_count(all, struct operator); k++) {
		o = buf_at(all, const struct operator, k);
		if (!is_denormal(o, 0) || (f->loop.n && o->tgid != f->loop.tgid))
			continue;
		ns = self_of(m, o->tgid, o->name_id, &calls);
		add_sat(&sum_ns, (uint64_t)((double)ns * facts_share((double)o->denormal, (double)o->valued)));
		v->looks += o->denormal;
		v->of += o->valued;
		v->operators++;
		if (!most || ns > most_ns) {
			most = o;
			most_ns = ns;
		}
	}
	if (!most || v->looks < LOOKS_LEAST)
		return 0;
	v->tgid = most->tgid;
	v->share = share_of_operators(s, f) * share_of(f, sum_ns);
	v->operator= named(m, most->name_id);
	put_sizes(m, most->denormals.sizes, v->sizes, sizeof(v->sizes));
	return find_line(m, all, is_denormal, 0, &v->line);
}

/* ---- sizes */

/*
 * What calls with the operator's most frequent sizes take, and the others: looks tell the part of the operator's time,
 * and how long the calls are that they meet. The elements of others are known from looks, too.
 */
static struct cause_sizes sizes_of(struct mdl *m, const struct operator* o)
{
	size_t n, i;
	const struct input_row *rows = mdl_table_rows(m, &feature_inputs, &inputs_table, &n), *slow = &o->sizes;
	struct cause_sizes v = {.tgid = o->tgid, .looks = slow->looks, .of = o->looks, .operators = 1};
	const double part = facts_share((double)slow->looks, (double)o->looks);
	double elements = 0, calls;
	uint64_t others = 0, count = 0;

	v.self_ns = (uint64_t)(part * (double)self_of(m, o->tgid, o->name_id, &count));
	v.call_ns = LOOK_AT * slow->elapsed_ns / slow->looks;
	for (i = 0; i < n; i++)
		if (rows[i].name_id == o->name_id && rows[i].tgid == o->tgid && rows[i].sizes != slow->sizes) {
			add_sat(&others, rows[i].looks);
			elements += (double)rows[i].looks * (double)rows[i].elements;
		}
	calls = (double)count - facts_share((double)v.self_ns, (double)v.call_ns);
	if (others < OTHERS_LEAST || calls <= 0 || part >= 1)
		return v;
	v.other_ns = (uint64_t)((double)v.self_ns * (1 - part) / part / calls);
	v.times = facts_share((double)v.call_ns, (double)slow->elements) /
		  ((double)(v.other_ns + 1) / (elements / (double)others));
	return v;
}

static bool is_candidate(const struct mdl *m, const struct facts *f, const struct operator* o)
{
	return o->sizes.looks >= SIZES_LEAST && o->sizes.elements &&
	       (double)o->sizes.looks >= SIZES_PART * (double)o->looks && (!f->loop.n || o->tgid == f->loop.tgid) &&
	       is_even(m, o->name_id) && !copies(m, o->name_id);
}

static bool is_named(const struct operator* o, uint64_t name_id)
{
	return o->name_id == name_id;
}

/* Of the operators that are slow for certain sizes, the one with the most time; the share is that of all. */
static int make_sizes(struct mdl *m, const struct mdl_session *s, struct facts *f, const struct buf *all)
{
	struct cause_sizes *v = &f->cause.sizes, now;
	uint64_t sum_ns = 0, name_id = 0;
	const struct operator* o;
	unsigned n = 0;
	size_t k;

	for (k = 0; k < buf_count(all, struct operator); k++) {
		o = buf_at(all, const struct operator, k);
		if (!is_candidate(m, f, o))
			continue;
		now = sizes_of(m, o);
		if (now.times < SLOWER || (double)now.call_ns < ELEMENT_LEAST * (double)o->sizes.elements)
			continue;
		add_sat(&sum_ns, now.self_ns);
		n++;
		if (now.self_ns <= v->self_ns)
			continue;
		*v = now;
		v->operator= named(m, o->name_id);
		put_sizes(m, o->sizes.sizes, v->sizes, sizeof(v->sizes));
		name_id = o->name_id;
	}
	v->operators = n;
	v->share = share_of_operators(s, f) * share_of(f, sum_ns);
	return name_id ? find_line(m, all, is_named, name_id, &v->line) : 0;
}

#define VARIED_LEAST 8	 /* looks */
#define VARIED_PART  0.6 /* of them, met sizes of their own */

/* Operators of oneDNN, which prepares code for each size. */
static bool prepares(const struct mdl *m, uint64_t name_id)
{
	size_t len;
	const char *name = mdl_name(m, name_id, &len);

	return memmem(name, len, "mkldnn", 6) || memmem(name, len, "convolution", 11) || memmem(name, len, "onednn", 6);
}

static void make_varied(const struct mdl *m, struct facts *f, const struct buf *all)
{
	struct cause_varied *v = &f->cause.varied;
	const struct operator* o;
	size_t k;

	for (k = 0; k < buf_count(all, struct operator); k++) {
		o = buf_at(all, const struct operator, k);
		if (o->looks < VARIED_LEAST || (double)o->rows < VARIED_PART * (double)o->looks ||
		    o->looks <= v->looks || !prepares(m, o->name_id))
			continue;
		*v = (struct cause_varied){.tgid = o->tgid, .sizes = o->rows, .looks = o->looks};
		v->operator= named(m, o->name_id);
	}
}

int make_inputs(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	size_t n, i;
	const struct input_row *r = mdl_table_rows(m, &feature_inputs, &inputs_table, &n);
	struct hash index = {0};
	struct buf all = {0};
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = r[i].looks ? add_row(m, &all, &index, &r[i]) : 0;
	make_varied(m, f, &all);
	err = err ? err : make_values(m, s, f, &all);
	err = err ? err : make_sizes(m, s, f, &all);
	hash_fini(&index);
	buf_fini(&all);
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
		   (int)v->operator.len, v->operator.name, v->operators > 1 ? " and others" : "", 100 * v->share);
}

static void values_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_values *v = &f->cause.values;

	buf_printf(b, "%" PRIu64 " of %" PRIu64 " looks at these operators found such values, for example in %s",
		   v->looks, v->of, v->sizes);
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
		   "for each "
		   "element as with other sizes, which take %s on average; these are %.0f%% of the time",
		   (int)v->operator.len, v->operator.name, v->operators > 1 ? " and others are" : " is", v->sizes,
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
