// SPDX-License-Identifier: Apache-2.0
/* The text of all series, in the formats that Prometheus scrapes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/priv.h"

const char *const met_content_types[MET_FORMS] = {
	[MET_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	[MET_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

static const char *const type_words[] = {
	[MET_COUNTER] = "counter",
	[MET_GAUGE] = "gauge",
	[MET_HISTOGRAM] = "histogram",
};

static int by_labels(const void *va, const void *vb)
{
	const struct met_series *a = *(const struct met_series *const *)va, *b = *(const struct met_series *const *)vb;

	return a->family != b->family ? (a->family < b->family ? -1 : 1) : strcmp(a->labels, b->labels);
}

/* A value with as many decimals as it has: 1.5, not 1.500000000. */
static int write_put_value(struct buf *out, enum met_unit unit, int64_t value)
{
	const int decimals = unit == MET_NS ? 9 : unit == MET_MILLIONTHS ? 6 : 0;
	const uint64_t scale = unit == MET_NS ? 1000000000 : unit == MET_MILLIONTHS ? 1000000 : 1;
	const uint64_t n = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char text[48];
	int len = snprintf(text, sizeof(text), "%s%" PRIu64, value < 0 ? "-" : "", n / scale);

	if (n % scale) {
		len += snprintf(text + len, sizeof(text) - (size_t)len, ".%0*" PRIu64, decimals, n % scale);
		while (text[len - 1] == '0')
			len--;
	}
	return buf_put(out, text, (size_t)len);
}

static int put_sample(struct buf *out, const struct met_series *s, const char *suffix, enum met_unit unit,
		      int64_t value)
{
	int err = buf_printf(out, "%s%s%s%s%s ", met_family(s->family)->name, suffix, *s->labels ? "{" : "", s->labels,
			     *s->labels ? "}" : "");

	err = err ? err : write_put_value(out, unit, value);
	return err ? err : buf_put(out, "\n", 1);
}

/* " # {recording="FILE"} 2.5 1763616000.123", which Prometheus's text format does not have. */
static int put_exemplar(struct buf *out, const struct met_recorded *r)
{
	struct met_labels l = {0};
	int err;

	if (!*r->file)
		return 0;
	met_label_text(&l, "recording", r->file);
	err = buf_printf(out, " # {%s} ", l.text);
	err = err ? err : write_put_value(out, MET_NS, (int64_t)r->dur_ns);
	err = err ? err : buf_put(out, " ", 1);
	return err ? err : write_put_value(out, MET_NS, (int64_t)r->unix_ns);
}

static int put_histogram(struct buf *out, const struct met_series *s, enum met_form form)
{
	const struct met_family *f = met_family(s->family);
	uint64_t count = 0;
	unsigned i;
	int err = 0;

	for (i = 0; i <= f->nbounds && !err; i++) {
		count += s->buckets[i];
		err = buf_printf(out, "%s_bucket{%s%sle=\"", f->name, s->labels, *s->labels ? "," : "");
		if (i == f->nbounds)
			err = err ? err : buf_printf(out, "+Inf");
		else /* OpenMetrics wants 1.0 instead of 1 */
			err = err ? err
				  : buf_printf(out, "%.10g%s", f->bounds[i],
					       f->bounds[i] == (int)f->bounds[i] ? ".0" : "");
		err = err ? err : buf_printf(out, "\"} %" PRIu64, count);
		if (s->recorded && form == MET_OPENMETRICS)
			err = err ? err : put_exemplar(out, &s->recorded[i]);
		err = err ? err : buf_put(out, "\n", 1);
	}
	err = err ? err : put_sample(out, s, "_sum", f->unit, s->value);
	return err ? err : put_sample(out, s, "_count", MET_COUNT, (int64_t)count);
}

/* In OpenMetrics a family of counters has no _total, and an info has no _info. */
static int put_family(struct buf *out, const struct met_family *f, enum met_form form)
{
	const size_t len = strlen(f->name);
	const bool info = len > 5 && !strcmp(f->name + len - 5, "_info"), open = form == MET_OPENMETRICS;
	const char *suffix = f->type == MET_COUNTER && !open ? "_total" : "";
	const int shown = (int)(info && open ? len - 5 : len);
	int err = buf_printf(out, "# TYPE %.*s%s %s\n", shown, f->name, suffix,
			     info && open ? "info" : type_words[f->type]);

	if (open && f->unit != MET_COUNT && f->unit != MET_MILLIONTHS)
		err = err ? err : buf_printf(out, "# UNIT %s %s\n", f->name, f->unit == MET_NS ? "seconds" : "bytes");
	return err ? err : buf_printf(out, "# HELP %.*s%s %s\n", shown, f->name, suffix, f->help);
}

const struct met_series **met_sorted(const struct met *m, size_t *n)
{
	const struct met_series **sorted;
	const size_t all = buf_count(&m->series, struct met_series);
	size_t i;

	*n = 0;
	sorted = malloc((all + 1) * sizeof(*sorted));
	for (i = 0; sorted && i < all; i++)
		if (buf_at(&m->series, struct met_series, i)->value != MET_ABSENT)
			sorted[(*n)++] = buf_at(&m->series, struct met_series, i);
	if (sorted)
		qsort(sorted, *n, sizeof(*sorted), by_labels);
	return sorted;
}

int met_write(const struct met *m, enum met_form form, struct buf *out)
{
	size_t n, i;
	const struct met_series **sorted = met_sorted(m, &n);
	const struct met_family *f;
	int err = sorted ? 0 : -ENOMEM;

	for (i = 0; i < n && !err; i++) {
		f = met_family(sorted[i]->family);
		if (!i || sorted[i]->family != sorted[i - 1]->family)
			err = put_family(out, f, form);
		if (!err && f->type == MET_HISTOGRAM)
			err = put_histogram(out, sorted[i], form);
		else if (!err)
			err = put_sample(out, sorted[i], f->type == MET_COUNTER ? "_total" : "", f->unit,
					 sorted[i]->value);
	}
	if (!err && form == MET_OPENMETRICS)
		err = buf_printf(out, "# EOF\n");
	free(sorted);
	return err;
}
