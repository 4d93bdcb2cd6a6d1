// SPDX-License-Identifier: Apache-2.0
/* Compared tables as text and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "compare/show.h"
#include "compare/tables.h"

#define NAME_COLUMNS 58

static const char *per(const struct cmp_tables *t)
{
	return t->iterations ? "iteration" : "second";
}

static enum cmp_verdict verdict_of(const struct cmp_value *v)
{
	return !v->certain ? CMP_NOISE : !v->value[CMP_A] ? CMP_NEW : !v->value[CMP_B] ? CMP_GONE : CMP_CHANGED;
}

/* Calls fn for the values to show, of at most `top` if it is not 0. Returns how many are left. */
static size_t each_value(const struct cmp_tables *t, unsigned top,
			 void (*fn)(void *, const struct cmp_tables *, const struct cmp_value *), void *ctx)
{
	const size_t n = t->one ? buf_count(&t->values, struct cmp_value) : t->nmost;
	const struct cmp_value *v;
	size_t i, shown = 0, left = 0;

	for (i = 0; i < n; i++) {
		v = t->one ? buf_at(&t->values, struct cmp_value, i) : t->most[i];
		if (!isfinite(v->value[CMP_A] + v->value[CMP_B]) || (!v->value[CMP_A] && !v->value[CMP_B]))
			continue;
		if (top && shown++ >= top)
			left++;
		else
			fn(ctx, t, v);
	}
	return left;
}

/* ---- text */

/* "gpu.idle.total_ns(data, gpu 0)", without the table if the user named it. */
static void put_name(struct out *out, const struct cmp_tables *t, const struct cmp_value *v)
{
	const char *at = t->keys.data + v->keys;
	char name[CMP_NAME_BYTES], text[CMP_NAME_BYTES / 2];
	unsigned i, n = 0;
	size_t len;

	len = (size_t)snprintf(name, sizeof(name), "%s%s%s", t->one ? "" : v->of->name, t->one ? "" : ".",
			       v->number->key);
	for (i = 0; i < v->of->nkeys; i++, at += strlen(at) + 1) {
		fmt_safe(text, sizeof(text), at, strlen(at));
		if (*text && len < sizeof(name))
			len += (size_t)snprintf(name + len, sizeof(name) - len, "%s%s%s%s", n++ ? ", " : "(",
						v->of->key[i].type == TBL_COUNT ? v->of->key[i].key : "",
						v->of->key[i].type == TBL_COUNT ? " " : "", text);
	}
	if (v->of->nkeys && len < sizeof(name))
		snprintf(name + len, sizeof(name) - len, "%s", n ? ")" : "(-)");
	cmp_put_name(out, name, NAME_COLUMNS);
}

static const char *value_text(const struct cmp_value *v, enum cmp_which side, char buf[24])
{
	const double size = fabs(v->value[side]);
	char text[24];

	if (v->number->type == TBL_COUNT)
		snprintf(text, sizeof(text), "%.4g", size);
	else if (v->number->type == TBL_NS)
		fmt_tight_ns(whole(size), text);
	else
		fmt_bytes(whole(size), text);
	snprintf(buf, 24, "%s%.20s", v->value[side] < 0 ? "-" : "", size > 0 ? text : "-");
	return buf;
}

static void text_put_value(void *ctx, const struct cmp_tables *t, const struct cmp_value *v)
{
	char a[24], b[24], percent[24] = "-";

	if (v->value[CMP_A] > 0 && v->value[CMP_B] > 0)
		cmp_percent(v->change, percent);
	put_name(ctx, t, v);
	out_printf(ctx, " %10s %10s %8s%s%s\n", value_text(v, CMP_A, a), value_text(v, CMP_B, b), percent,
		   !t->several	? ""
		   : v->certain ? " "
				: " ~",
		   v->certain ? cmp_verdict_words[verdict_of(v)] : "");
}

void cmp_put_tables(struct out *out, const struct cmp_tables *t, unsigned top)
{
	const struct cmp_table *first = t->table;
	char head[CMP_NAME_BYTES];
	size_t left;

	if (!t->one && !t->nmost)
		return;
	snprintf(head, sizeof(head), "%s, per %s", t->one ? first->name : "other tables, the times that changed most",
		 per(t));
	out_printf(out, "%s%-*s %10s %10s %8s%s\n", t->one ? "" : "\n", NAME_COLUMNS, head, "A", "B", "change",
		   t->several ? " certain" : "");
	left = each_value(t, t->one ? top : 0, text_put_value, out);
	if (left)
		out_printf(out, "%zu more rows (--top 0 shows all)\n", left);
	if (t->one && (first->lacks[CMP_A] || first->lacks[CMP_B]))
		out_printf(out, "not compared: %s recorded without it\n",
			   !first->lacks[CMP_B]	  ? "A was"
			   : !first->lacks[CMP_A] ? "B was"
						  : "both sides were");
	if (t->one) /* these words tell diff's own files */
		out_puts(out, "\n~: not certain. Sizes of memory are the largest ones, and the rest is the sum of the "
			      "window.\n");
	if (!t->several)
		out_puts(out, "One recording of each side does not tell which of these changes are certain.\n");
	if (t->slices)
		out_puts(out, "Calls were recorded in slices: tables of calls have only those.\n");
}

/* ---- JSON */

static void json_put_value(void *ctx, const struct cmp_tables *t, const struct cmp_value *v)
{
	static const char *const units[TBL_NTYPES] = {[TBL_NS] = "ns", [TBL_BYTES] = "bytes", [TBL_COUNT] = "count"};
	const char *at = t->keys.data + v->keys;
	struct json *j = ctx;
	unsigned i;

	json_line(j, 4);
	json_object(j, NULL);
	json_string(j, "table", v->of->name);
	json_object(j, "keys");
	for (i = 0; i < v->of->nkeys; i++, at += strlen(at) + 1)
		if (*at)
			json_text(j, v->of->key[i].key, at, strlen(at));
	json_end(j);
	json_string(j, "column", v->number->key);
	json_string(j, "unit", units[v->number->type]);
	if (v->number->merge == TBL_SUM)
		json_string(j, "per", per(t));
	json_printf(j, "a", "%.9g", v->value[CMP_A]);
	json_printf(j, "b", "%.9g", v->value[CMP_B]);
	json_printf(j, "change", "%.5f", v->change);
	if (t->several) {
		json_printf(j, "p", "%.3g", v->p);
		json_string(j, "verdict", cmp_verdict_words[verdict_of(v)]);
	}
	json_bool(j, "certain", v->certain);
	json_end(j);
}

void cmp_tables_json(struct json *j, const struct cmp_tables *t, unsigned top)
{
	json_array(j, "table_rows");
	each_value(t, top, json_put_value, j);
	json_line(j, 2);
	json_end(j);
	json_bool(j, "calls_in_slices", t->slices);
	json_bool(j, "not_in_a", t->one && t->table[0].lacks[CMP_A]);
	json_bool(j, "not_in_b", t->one && t->table[0].lacks[CMP_B]);
}
