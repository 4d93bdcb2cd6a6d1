// SPDX-License-Identifier: Apache-2.0
/*
 * Code of the program that the runtime calls: a hook, a callback, the step() of an optimizer of its own. It runs inside
 * a call of the runtime, so that the time of an iteration says nothing of it. The stack does: between the program's
 * innermost lines and its outermost ones is a frame of the runtime's library.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <string.h>

#include "feature/lines/lines.h"

#define HOOKS_LEAST 0.25 /* of the samples: what hooks compute with operators counts as well */
#define SUPER_LEAST 0.1	 /* of the samples: the runtime's own step works inside of the program's */

enum { OPTIMIZER_STEP, OTHERS };

/* Frames that call the program, and the functions that they are there to call. Others are hooks. */
static const struct caller {
	const char *file, *where;
	const char *plain;	 /* separated by blanks */
	const char *plain_where; /* NULL: as `where` */
} callers[] = {
	[OPTIMIZER_STEP] = {"torch/optim/optimizer.py(", "inside the step of the optimizer", "step"},
	{"torch/autograd/graph.py(", "in a hook of the backward pass", ""},
	{"torch/utils/hooks.py(", "in a hook of a module's backward pass", ""},
	{"torch/autograd/function.py(", "in the backward function of an operator of your own", "forward backward"},
	{"torch/nn/modules/module.py(", "in a hook of a module", "forward", "in the forward() of a module"},
	{"torch/optim/lr_scheduler.py(", "in a learning rate scheduler", ""},
	{"mxnet/gluon/trainer.py(", "inside the step of the trainer", "update update_multi_precision"},
	{"mxnet/optimizer/", "inside the step of the optimizer", "update update_multi_precision step fused_step"},
	{"mxnet/gluon/block.py(", "in a hook of a block", "forward hybrid_forward", "in the forward() of a block"},
	{"mxnet/module/base_module.py(", "in a callback of fit()", ""},
	{"mxnet/gluon/contrib/estimator/", "in a handler of the estimator", ""},
};
/* Any other package whose frame of that name has called the program. */
static const struct caller callback = {"callback", "in a callback of the trainer", "", NULL};
/* The runtime's own frames between the caller and the program. */
static const char *const between = "torch/utils/_contextlib.py(";

/* A line of a stack: "/app/train.py(7): hook" */
struct line {
	const char *text;
	size_t len;
};

static bool next_line(const char **text, size_t *left, struct line *l)
{
	const char *end = memchr(*text, '\n', *left);

	*l = (struct line){*text, end ? (size_t)(end - *text) : *left};
	*text += l->len + !!end;
	*left -= l->len + !!end;
	return l->len;
}

/* The function of the line is one of the words. */
static bool is_plain(const struct line *l, const char *words)
{
	const char *name = memmem(l->text, l->len, "): ", 3), *at;
	const size_t len = name ? l->len - (size_t)(name + 3 - l->text) : 0;

	for (at = words; len && *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == len && !memcmp(at, name + 3, len))
			return true;
	return false;
}

static const struct caller *caller_of(const struct line *l)
{
	size_t i;

	for (i = 0; i < sizeof(callers) / sizeof(callers[0]); i++)
		if (facts_starts_with(l->text, l->len, callers[i].file))
			return &callers[i];
	return NULL;
}

/* Code of the program in a stack that the runtime has called. */
struct inner {
	const struct caller *by; /* NULL: there is none */
	bool plain;		 /* the function that it is there to call, not a hook */
	bool super;		 /* it has called the runtime's own step */
	struct line line;	 /* the program's innermost one */
};

static struct inner find_inner(const char *text, size_t left)
{
	struct inner in = {.by = NULL};
	struct line l, outermost = {NULL, 0};

	for (; !in.by && left && next_line(&text, &left, &l);) {
		if (lines_is_program(l.text, l.len)) {
			in.line = in.line.text ? in.line : l;
			outermost = l;
		} else if (!in.line.text) {
			in.super |= facts_starts_with(l.text, l.len, "torch/optim/");
		} else if (facts_is_runtime(l.text, l.len) && !facts_starts_with(l.text, l.len, between)) {
			in.by = caller_of(&l);
			break;
		} else if (memmem(l.text, l.len, callback.file, strlen(callback.file))) {
			in.by = &callback;
		}
	}
	in.plain = in.by && is_plain(&outermost, in.by->plain);
	return in;
}

/* Looks at the loop's thread in code that was called: in no operator, in one, and in one that a hook calls. */
struct inside_tallies {
	struct facts_tally own, calls, hooks;
	uint64_t all, super, hooked;
};

static struct inner inner_of(const struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *text = l->stack_id ? mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len) : NULL;

	return text && !lines_compiler(text, len) ? find_inner(text, len) : (struct inner){.by = NULL};
}

static int add_look(struct mdl *m, const struct facts *f, const struct mxbpf_agg_line *l, struct inside_tallies *t)
{
	size_t len;
	const struct inner in = inner_of(m, l);
	const char *name;
	bool outside;

	/*
	 * In slices few samples know in which operator they are. So a forward(), and a hook that runs, look like code
	 * beside their operators.
	 */
	if (!in.by || (in.plain && f->sliced && in.by != &callers[OPTIMIZER_STEP]))
		return 0;
	if (in.plain && in.super) {
		t->super += l->count;
		return 0;
	}
	name = mdl_name(m, l->name_id, &len);
	outside = facts_is_outside(m, l) || (l->cls == MXBPF_CLASS_OPERATOR && !memmem(name, len, "aten::", 6) &&
					     in.by != &callers[OPTIMIZER_STEP]);
	outside = outside && !(f->sliced && (in.plain || !l->sleeps));
	t->hooked += outside || in.plain ? 0 : l->count;
	return facts_tally_add(outside ? &t->own : in.plain ? &t->calls : &t->hooks, in.line.text, in.line.len, l);
}

/*
 * A function that is there to be called, such as the step of an optimizer that the program defines, computes with
 * operators. Lines that do are no code beside it, unless the runtime's own step does that work. A hook may call a few.
 */
static void take_inside(const struct inside_tallies *t, struct facts *f)
{
	struct fact_line *best = &f->cause.inside.line;
	const bool super = t->super && (double)t->super >= SUPER_LEAST * (double)t->all;
	uint64_t sum = facts_tally_without(&t->own, super ? NULL : &t->calls, best);

	if (super)
		sum += facts_tally_without(&t->calls, NULL, best);
	if ((double)(sum + t->hooked) >= HOOKS_LEAST * (double)t->all)
		sum += facts_tally_without(&t->hooks, NULL, best);
	if (best->looks < FACTS_LOOKS_LEAST)
		*best = (struct fact_line){.text = ""};
	best->of = t->all;
	f->cause.inside.share = facts_share((double)sum, (double)t->all);
}

/* Who has called the line that was chosen. */
static void take_where(const struct mdl *m, const struct mxbpf_agg_line *l, struct facts *f)
{
	const struct inner in = inner_of(m, l);
	const char *line = f->cause.inside.line.text;
	const size_t len = strlen(line);

	if (!in.by || in.line.len < len || memcmp(line, in.line.text, len))
		return;
	if (in.line.len == len || len == FACTS_LINE_BYTES - 1)
		f->cause.inside.where = in.plain && in.by->plain_where ? in.by->plain_where : in.by->where;
}

int make_inside(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct inside_tallies t = {.all = 0};
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	int err = 0;

	(void)s;
	for (i = 0; i < n && !err; i++) {
		if (l[i].rank || !f->loop.tid || l[i].h.tgid != f->loop.tgid || l[i].tid != f->loop.tid)
			continue;
		t.all += l[i].count;
		err = add_look(m, f, &l[i], &t);
	}
	take_inside(&t, f);
	for (i = 0; i < n; i++)
		if (l[i].h.tgid == f->loop.tgid && l[i].tid == f->loop.tid)
			take_where(m, &l[i], f);
	facts_tally_fini(&t.own);
	facts_tally_fini(&t.calls);
	facts_tally_fini(&t.hooks);
	return err;
}

static double inside_share(const struct facts *f)
{
	return f->cause.inside.line.looks ? f->cause.inside.share : 0;
}

static void inside_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "Your %s code %s takes %.0f%% of the loop's time: %s", f->python ? "Python" : "own",
		   f->cause.inside.where, 100 * f->cause.inside.share, f->cause.inside.line.text);
	rules_put_gain(f, f->cause.inside.share, b);
}

static void inside_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->cause.inside.line, b);
}

/* clang-format off */
const struct finding_rule rules_inside[] = {
	{.key = "code_inside", .explains = "own_code tiny_operators sync_wait", .least = 0.15, .share = inside_share, .say = inside_say,
	 .evidence = inside_evidence, .next_of = next_inside,
	 .advice = "The runtime calls this code in each iteration and waits until it returns: a hook, a callback, or a step() that logs. "
		   "Log every hundredth step only, keep values as tensors until then, and write in another thread, without "
		   "flush() and fsync() each time."},
	{.key = NULL},
};
/* clang-format on */
