// SPDX-License-Identifier: Apache-2.0
/* Limits of --fail-on: METRIC, then > or <, then a percentage. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

static const struct {
	const char *word;
	enum cmp_metric metric;
	enum mxbpf_step_part part; /* of CMP_OF_PART */
} metrics[] = {
	{"iteration", CMP_OF_ITERATION, 0},	      {"memory.peak", CMP_OF_PEAK, 0},
	{"memory.iteration", CMP_OF_MEMORY, 0},	      {"data", CMP_OF_PART, MXBPF_PART_DATA},
	{"results", CMP_OF_PART, MXBPF_PART_WAIT},    {"exchange", CMP_OF_PART, MXBPF_PART_KVSTORE},
	{"program", CMP_OF_PART, MXBPF_PART_OUTSIDE},
};
#define NMETRICS (sizeof(metrics) / sizeof(metrics[0]))
#define OPERATOR "operator("

static const char *skip_blanks(const char *at)
{
	while (isblank((unsigned char)*at))
		at++;
	return at;
}

static int limit_fail(const char *text, const char *at, const char *why, struct err *e)
{
	return err_set(e, ERR_USAGE, -EINVAL,
		       "--fail-on: '%.60s', at character %zu: %s; for example 'iteration > +5%%'", text,
		       (size_t)(at - text) + 1, why);
}

/* Names of operators may contain parentheses, so the last one before the comparison ends them. */
static int parse_operator(const char *text, const char **at, struct cmp_limit *l, struct err *e)
{
	const char *name = *at + strlen(OPERATOR), *end = NULL, *p;

	for (p = name; *p; p++)
		if (*p == ')' && (*skip_blanks(p + 1) == '>' || *skip_blanks(p + 1) == '<'))
			end = p;
	if (!end || end == name)
		return limit_fail(text, *at, "expected operator(NAME) and then > or <", e);
	l->metric = CMP_OF_OPERATOR;
	l->name = name;
	l->name_len = (size_t)(end - name);
	*at = end + 1;
	return 0;
}

static int parse_metric(const char *text, const char **at, struct cmp_limit *l, struct err *e)
{
	const size_t len = strcspn(*at, " \t<>");
	size_t i;

	if (!strncmp(*at, OPERATOR, strlen(OPERATOR)))
		return parse_operator(text, at, l, e);
	for (i = 0; i < NMETRICS; i++) {
		if (strlen(metrics[i].word) != len || strncmp(metrics[i].word, *at, len))
			continue;
		l->metric = metrics[i].metric;
		if (l->metric == CMP_OF_PART) {
			l->name = cmp_part_words[metrics[i].part];
			l->name_len = strlen(l->name);
		}
		*at += len;
		return 0;
	}
	return limit_fail(text, *at,
			  "expected iteration, memory.peak, memory.iteration, data, results, exchange, program or "
			  "operator(NAME)",
			  e);
}

int cmp_limit_parse(const char *text, struct cmp_limit *l, struct err *e)
{
	const char *at = skip_blanks(text);
	char *end;
	int err;

	*l = (struct cmp_limit){.text = text};
	err = parse_metric(text, &at, l, e);
	if (err)
		return err;
	at = skip_blanks(at);
	if (*at != '>' && *at != '<')
		return limit_fail(text, at, "expected > or <", e);
	l->below = *at == '<';
	at = skip_blanks(at + 1);
	if (*at != '+' && *at != '-' && !isdigit((unsigned char)*at))
		return limit_fail(text, at, "expected a percentage", e);
	l->share = strtod(at, &end) / 100;
	if (end == at || !isfinite(l->share))
		return limit_fail(text, at, "expected a percentage", e);
	at = skip_blanks(end);
	if (*at != '%')
		return limit_fail(text, at, "expected %", e);
	at = skip_blanks(at + 1);
	return *at ? limit_fail(text, at, "expected nothing more", e) : 0;
}

static bool names(const struct cmp_limit *l, const struct cmp_row *row)
{
	switch (l->metric) {
	case CMP_OF_ITERATION:
		return row->kind == CMP_ITERATION;
	case CMP_OF_MEMORY:
		return row->kind == CMP_MEMORY;
	case CMP_OF_PART:
	case CMP_OF_OPERATOR:
		return row->kind == (l->metric == CMP_OF_PART ? CMP_PART : CMP_OPERATOR) &&
		       row->name_len == l->name_len && !memcmp(row->name, l->name, l->name_len);
	default:
		return false;
	}
}

static bool breaks(const struct cmp_limit *l, const struct cmp_row *row)
{
	if (!cmp_certain(row))
		return false;
	if (row->verdict == CMP_NEW)
		return !l->below;
	if (row->verdict == CMP_GONE)
		return l->below;
	return l->below ? row->own < l->share : row->own > l->share;
}

const struct cmp_row *cmp_limit_broken(const struct cmp_limit *l, const struct cmp_result *r, bool *known)
{
	const struct cmp_row *row;
	size_t i;

	if (l->metric == CMP_OF_PEAK) {
		*known = r->peak.value[CMP_A] > 0 || r->peak.value[CMP_B] > 0;
		return *known && breaks(l, &r->peak) ? &r->peak : NULL;
	}
	*known = false;
	for (i = 0; i < buf_count(&r->rows, *row); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		if (!names(l, row))
			continue;
		*known = true;
		return breaks(l, row) ? row : NULL;
	}
	return NULL;
}
