// SPDX-License-Identifier: Apache-2.0
/* Conditions as text: WHAT > VALUE [for TIME], or hang TIME. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "trigger/priv.h"

enum value { OF_TIME, OF_BYTES, OF_SHARE, OF_NUMBER };

static const struct {
	const char *word, *files; /* files: what names of files call it */
	enum trg_what what;
	bool named; /* (NAME) follows */
	double percentile;
	enum value value;
} metrics[] = {
	{"iteration", "iteration", TRG_ITERATION, false, 0, OF_TIME},
	{"operator.p50", "operator", TRG_OPERATOR, true, 0.5, OF_TIME},
	{"operator.p99", "operator", TRG_OPERATOR, true, 0.99, OF_TIME},
	{"operator.max", "operator", TRG_OPERATOR, true, 1, OF_TIME},
	{"operator.avg", "operator", TRG_OPERATOR, true, -1, OF_TIME},
	{"memory.live", "memory", TRG_MEMORY, true, 0, OF_BYTES},
	{"gpu.idle", "gpu-idle", TRG_GPU_IDLE, false, 0, OF_SHARE},
	{"finding", "finding", TRG_FINDING, true, 0, OF_SHARE},
};
#define NMETRICS (sizeof(metrics) / sizeof(metrics[0]))
#define CONDITIONS                                                                                                     \
	"iteration, operator.p50(NAME), .p99, .max or .avg, memory.live(DEVICE), gpu.idle, finding(KEY), hang TIME, "  \
	"or a "                                                                                                        \
	"table and column of JSON such as gpu.idle.max_ns(NAME)"
#define HANG "hang"

struct text {
	const char *all, *at;
	struct err *e;
};

static void skip_blanks(struct text *t)
{
	while (isblank((unsigned char)*t->at))
		t->at++;
}

static int parse_fail(const struct text *t, const char *why)
{
	return err_set(t->e, ERR_USAGE, -EINVAL,
		       "--on: '%.80s', at character %zu: expected %s; for example 'iteration > 3 * median'", t->all,
		       (size_t)(t->at - t->all) + 1, why);
}

/* Copies what goes up to the next blank. */
static void take_word(struct text *t, char word[64])
{
	const size_t n = strcspn(t->at, " \t");

	snprintf(word, 64, "%.*s", (int)n, t->at);
	t->at += n;
	skip_blanks(t);
}

static int take_time(struct text *t, uint64_t *ns)
{
	const char *before = t->at;
	char word[64];

	take_word(t, word);
	if (!fmt_parse_duration(word, ns) && *ns)
		return 0;
	t->at = before;
	return parse_fail(t, "a time such as 50ms or 10s");
}

/* Names may contain parentheses, so the last one before > ends them. */
static int take_name(struct text *t, char *name, size_t cap)
{
	const char *end = strchr(t->at, '>');

	if (*t->at != '(')
		return parse_fail(t, "a name in parentheses");
	while (end && end > t->at && *end != ')')
		end--;
	if (!end || end <= t->at + 1 || (size_t)(end - t->at) > cap)
		return parse_fail(t, "a name in parentheses, and then >");
	snprintf(name, cap, "%.*s", (int)(end - t->at - 1), t->at + 1);
	t->at = end + 1;
	skip_blanks(t);
	return 0;
}

static int take_times_median(struct text *t, struct trg *trg)
{
	const char *before;
	char *end, word[64];

	trg->times = strtod(t->at, &end);
	if (!isfinite(trg->times) || trg->times < 1)
		return parse_fail(t, "a number from 1 on");
	t->at = end;
	skip_blanks(t);
	t->at++; /* the asterisk, which is_times_median() has seen */
	skip_blanks(t);
	before = t->at;
	take_word(t, word);
	if (!strcmp(word, "median"))
		return 0;
	t->at = before;
	return parse_fail(t, "median");
}

static bool is_times_median(const char *at)
{
	char *end;

	strtod(at, &end);
	return end != at && end[strspn(end, " \t")] == '*';
}

static int take_share(struct text *t, double *share)
{
	char *end;

	*share = strtod(t->at, &end) / 100;
	if (end == t->at || *end != '%' || !(*share >= 0 && *share <= 1))
		return parse_fail(t, "a percentage from 0% to 100%");
	t->at = end + 1;
	skip_blanks(t);
	return 0;
}

static int take_bytes(struct text *t, uint64_t *bytes)
{
	const char *before = t->at;
	char word[64];

	take_word(t, word);
	if (!fmt_parse_bytes(word, bytes))
		return 0;
	t->at = before;
	return parse_fail(t, "a size such as 500M or 14GiB");
}

static int take_number(struct text *t, double *number)
{
	char *end;

	*number = strtod(t->at, &end);
	if (end == t->at || !(*number >= 0) || !isfinite(*number))
		return parse_fail(t, "a number from 0 on");
	t->at = end;
	skip_blanks(t);
	return 0;
}

static int take_value(struct text *t, struct trg *trg, enum value value)
{
	if (*t->at != '>')
		return parse_fail(t, ">");
	t->at++;
	skip_blanks(t);
	if (value == OF_SHARE)
		return take_share(t, &trg->share);
	if (value == OF_BYTES)
		return take_bytes(t, &trg->limit);
	if (value == OF_NUMBER)
		return take_number(t, &trg->share);
	return trg->what == TRG_ITERATION && is_times_median(t->at) ? take_times_median(t, trg)
								    : take_time(t, &trg->limit);
}

static int take_for(struct text *t, struct trg *trg)
{
	if (strncmp(t->at, "for", 3) || !isblank((unsigned char)t->at[3]))
		return *t->at ? parse_fail(t, "nothing more, or for TIME") : 0;
	t->at += 3;
	skip_blanks(t);
	if (take_time(t, &trg->for_ns))
		return -EINVAL;
	return *t->at ? parse_fail(t, "nothing more") : 0;
}

static enum value value_of_column(const struct tbl_column *c)
{
	switch (c->type) {
	case TBL_NS:
		return OF_TIME;
	case TBL_BYTES:
	case TBL_RATE:
		return OF_BYTES;
	case TBL_SHARE:
		return OF_SHARE;
	default:
		return OF_NUMBER;
	}
}

/* Takes TABLE.COLUMN, n characters, and what follows. */
static int take_column(struct text *t, struct trg *trg, size_t n)
{
	const char *dot = memrchr(t->at, '.', n);
	const size_t table = dot ? (size_t)(dot - t->at) : 0;
	char numbers[TRG_WHY_BYTES];

	if (!dot || !trg_find_table(trg, t->at, table))
		return parse_fail(t, CONDITIONS);
	t->at = dot + 1;
	if (!trg_find_column(trg, t->at, n - table - 1, numbers))
		return parse_fail(t, numbers[0] ? numbers : "another table, because this one has no numbers");
	trg->what = TRG_COLUMN;
	t->at += n - table - 1;
	if (*t->at == '(' && take_name(t, trg->name, sizeof(trg->name)))
		return -EINVAL;
	skip_blanks(t);
	return take_value(t, trg, value_of_column(&trg->column)) || take_for(t, trg) ? -EINVAL : 0;
}

static int take_all(struct text *t, struct trg *trg)
{
	const size_t n = strcspn(t->at, " \t(>");
	size_t i = 0;

	if (n == strlen(HANG) && !strncmp(t->at, HANG, n)) {
		trg->what = TRG_HANG;
		t->at += n;
		skip_blanks(t);
		if (take_time(t, &trg->limit))
			return -EINVAL;
		return *t->at ? parse_fail(t, "nothing more") : 0;
	}
	while (i < NMETRICS && (strlen(metrics[i].word) != n || strncmp(t->at, metrics[i].word, n)))
		i++;
	if (i == NMETRICS)
		return take_column(t, trg, n);
	trg->what = metrics[i].what;
	trg->percentile = metrics[i].percentile;
	t->at += n;
	if (metrics[i].named && take_name(t, trg->name, sizeof(trg->name)))
		return -EINVAL;
	skip_blanks(t);
	return take_value(t, trg, metrics[i].value) || take_for(t, trg) ? -EINVAL : 0;
}

int trg_parse(const char *text, struct trg **out, struct err *e)
{
	struct text t = {text, text, e};
	struct trg *trg = *out = calloc(1, sizeof(*trg));

	if (!trg)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	trg->text = text;
	skip_blanks(&t);
	if (!take_all(&t, trg))
		return 0;
	trg_free(trg);
	*out = NULL;
	return e->code;
}

void trg_free(struct trg *t)
{
	if (!t)
		return;
	buf_fini(&t->loops);
	free(t);
}

const char *trg_word(const struct trg *t)
{
	size_t i;

	if (t->what == TRG_COLUMN)
		return t->sheet->member;
	for (i = 0; i < NMETRICS; i++)
		if (metrics[i].what == t->what)
			return metrics[i].files;
	return HANG;
}

const struct trg_slow *trg_slow(const struct trg *t)
{
	return t->what == TRG_ITERATION ? &t->slow : NULL;
}

bool trg_is_hang(const struct trg *t)
{
	return t->what == TRG_HANG;
}
