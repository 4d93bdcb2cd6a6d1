// SPDX-License-Identifier: Apache-2.0
/* Matches operator names against --ops, and finds the names nearest to a pattern without a match. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

/* Copies the next pattern of a list to buf. Returns false at the end. */
static bool next_pattern(const char **list, char buf[PLAN_PATTERN_BYTES_MAX])
{
	size_t n = strcspn(*list, ",");

	if (!**list)
		return false;
	snprintf(buf, PLAN_PATTERN_BYTES_MAX, "%.*s", (int)n, *list);
	*list += n + ((*list)[n] == ',');
	return true;
}

/* Returns "conv2d" for "aten::conv2d", and the part after the last ": " of a longer name. */
static const char *short_name(const char *name)
{
	const char *p = strrchr(name, ':');

	return p ? p + 1 + strspn(p + 1, " ") : name;
}

bool plan_ops_match(const char *patterns, const char *name)
{
	const char *tail = short_name(name);
	char pattern[PLAN_PATTERN_BYTES_MAX];

	while (next_pattern(&patterns, pattern))
		if (!fnmatch(pattern, name, 0) || !fnmatch(pattern, tail, 0))
			return true;
	return false;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns the number of letters to insert, delete, replace or swap between a word and the first n letters of a name. */
static unsigned distance(const char *word, size_t len, const char *name, size_t n)
{
	unsigned rows[3][PLAN_PATTERN_BYTES_MAX], *last = rows[0], *before = rows[1], *row = rows[2], *spare;
	size_t i, k;

	for (k = 0; k <= len; k++)
		last[k] = (unsigned)k;
	for (i = 1; i <= n; i++) {
		row[0] = (unsigned)i;
		for (k = 1; k <= len; k++) {
			row[k] = least(last[k - 1] + (word[k - 1] != name[i - 1]), least(last[k], row[k - 1]) + 1);
			if (i > 1 && k > 1 && word[k - 1] == name[i - 2] && word[k - 2] == name[i - 1])
				row[k] = least(row[k], before[k - 2] + 1);
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[len];
}

/* Returns the distance of a name to the nearest pattern. Only the part before a wildcard counts. */
static unsigned distance_of(const char *patterns, const char *name)
{
	char pattern[PLAN_PATTERN_BYTES_MAX];
	unsigned best = ~0u, d;
	size_t len, n;

	while (next_pattern(&patterns, pattern)) {
		const char *word = short_name(pattern);

		len = strcspn(word, "*?[");
		n = strlen(name);
		d = distance(word, len, name, n > len && word[len] ? len : n);
		best = least(best, d);
	}
	return best;
}

void plan_near_try(struct plan_near *n, const char *name)
{
	const char *word = short_name(name);
	unsigned d = distance_of(n->patterns, word), i, k;
	const unsigned max = sizeof(n->best) / sizeof(n->best[0]);

	n->seen++;
	for (i = 0; i < n->n; i++)
		if (!strcmp(n->best[i].name, word)) /* an overload of a name that is there already */
			return;
	for (i = n->n; i > 0 && n->best[i - 1].distance > d; i--)
		;
	if (i == max || strlen(word) >= sizeof(n->best[0].name))
		return;
	n->n += n->n < max;
	for (k = n->n - 1; k > i; k--)
		n->best[k] = n->best[k - 1];
	n->best[i].distance = d;
	strcpy(n->best[i].name, word);
}

const char *plan_near_text(const struct plan_near *n, char buf[300])
{
	size_t len = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; i < n->n; i++)
		len += (size_t)snprintf(buf + len, 300 - len, "%s%s", i ? ", " : "", n->best[i].name);
	return buf;
}
