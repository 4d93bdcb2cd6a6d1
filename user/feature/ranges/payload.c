// SPDX-License-Identifier: Apache-2.0
/* The payload of a range: its numbers, with the names and words that its schema gives them (mxbpf_range.h). */
#include "feature/ranges/ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 24

/* Finds line i of a schema. */
static const char *line_at(const char *text, size_t left, unsigned i, size_t *len)
{
	const char *end;

	for (; text; i--) {
		end = memchr(text, '\n', left);
		*len = end ? (size_t)(end - text) : left;
		if (!i)
			return text;
		left -= *len + !!end;
		text = end ? end + 1 : NULL;
	}
	return NULL;
}

/* Finds "\tNUMBER=WORD" in a line. */
static const char *word_of(const char *line, size_t len, uint64_t number, size_t *word_len)
{
	const char *end = line + len, *p, *stop;
	char want[NUMBER_MAX];
	const size_t n = (size_t)snprintf(want, sizeof(want), "%llu=", (unsigned long long)number);

	for (p = memchr(line, '\t', len); p; p = stop < end ? stop : NULL) {
		p++;
		stop = memchr(p, '\t', (size_t)(end - p));
		stop = stop ? stop : end;
		if ((size_t)(stop - p) > n && !memcmp(p, want, n)) {
			*word_len = (size_t)(stop - p) - n;
			return p + n;
		}
	}
	return NULL;
}

static enum ranges_form form_of(char letter)
{
	return letter == 'i'   ? RANGES_SIGNED
	       : letter == 'f' ? RANGES_DOUBLE
	       : letter == 'x' ? RANGES_ADDRESS
			       : RANGES_UNSIGNED;
}

/* A payload without a schema is one number. */
static bool plain(const struct mxbpf_range *r, struct ranges_item *to)
{
	double wide;
	float f;

	switch (r->data.type) {
	case MXBPF_RANGE_I64:
	case MXBPF_RANGE_I32:
		to->form = RANGES_SIGNED;
		break;
	case MXBPF_RANGE_FLOAT:
		memcpy(&f, &to->value, sizeof(f));
		wide = (double)f;
		memcpy(&to->value, &wide, sizeof(wide));
		to->form = RANGES_DOUBLE;
		break;
	case MXBPF_RANGE_DOUBLE:
		to->form = RANGES_DOUBLE;
		break;
	case MXBPF_RANGE_SEQ:
		to->name = "seq";
		to->len = strlen(to->name);
		break;
	}
	return r->data.type;
}

bool ranges_item(const struct mdl *m, const struct mxbpf_range *r, unsigned i, struct ranges_item *to)
{
	size_t all = 0, len;
	const char *text = r->schema_id ? mdl_name(m, r->schema_id, &all) : NULL, *line, *tab;

	*to = (struct ranges_item){.name = ""};
	if (i >= r->data.nvalues || i >= MXBPF_RANGE_VALUES)
		return false;
	to->value = r->data.values[i];
	if (!r->schema_id)
		return !i && plain(r, to);
	line = text ? line_at(text, all, i, &len) : NULL;
	if (!line || len < 3 || line[1] != ' ')
		return false;
	tab = memchr(line, '\t', len);
	to->name = line + 2;
	to->len = (size_t)((tab ? tab : line + len) - to->name);
	to->form = form_of(*line);
	if (*line == 'e')
		to->word = word_of(line, len, to->value, &to->word_len);
	return true;
}

bool ranges_value(const struct mdl *m, const struct mxbpf_range *r, const char *name, uint64_t *value)
{
	struct ranges_item item;
	unsigned i;

	for (i = 0; ranges_item(m, r, i, &item); i++)
		if (item.len == strlen(name) && !memcmp(item.name, name, item.len)) {
			*value = item.value;
			return true;
		}
	return false;
}

void ranges_add(struct mxbpf_range *to, const struct mxbpf_range *from)
{
	if (from->data.nvalues) {
		memcpy(to->data.values, from->data.values, sizeof(to->data.values));
		to->data.nvalues = from->data.nvalues;
		to->data.type = from->data.type;
		to->data.left_out = from->data.left_out;
		to->schema_id = from->schema_id;
	}
	to->domain_id = from->domain_id ? from->domain_id : to->domain_id;
	to->category_id = from->category_id ? from->category_id : to->category_id;
	to->data.category = from->data.category ? from->data.category : to->data.category;
	to->data.color = from->data.color ? from->data.color : to->data.color;
}
