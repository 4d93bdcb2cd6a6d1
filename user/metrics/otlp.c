// SPDX-License-Identifier: Apache-2.0
/*
 * All series as OTLP (opentelemetry-proto, package metrics.v1), which collectors of OpenTelemetry receive. Its dozen
 * messages are nested numbers and texts, which base/proto.h writes for .pftrace, too. A library would need protoc in
 * the build, and a copy of all series in its own structs for each interval.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/proto.h"
#include "metrics/priv.h"

/* Numbers of fields. */
enum { REQUEST_RESOURCE_METRICS = 1 };
enum { RESOURCE_METRICS_RESOURCE = 1, RESOURCE_METRICS_SCOPE };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_METRICS_SCOPE = 1, SCOPE_METRICS_METRICS };
enum { SCOPE_NAME = 1, SCOPE_VERSION };
enum { PAIR_KEY = 1, PAIR_VALUE };
enum { VALUE_TEXT = 1 };
enum { METRIC_NAME = 1, METRIC_HELP, METRIC_UNIT, METRIC_GAUGE = 5, METRIC_SUM = 7, METRIC_HISTOGRAM = 9 };
enum { DATA_POINTS = 1, DATA_TEMPORALITY, DATA_MONOTONIC };
enum { POINT_SINCE = 2, POINT_TIME, POINT_DOUBLE, POINT_INT = 6, POINT_ATTRIBUTES };
enum { HIST_SINCE = 2, HIST_TIME, HIST_COUNT, HIST_SUM, HIST_COUNTS, HIST_BOUNDS, HIST_ATTRIBUTES = 9 };
enum { RESPONSE_PARTIAL = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_WHY };

#define CUMULATIVE 2

static void otlp_put_text(struct proto *p, unsigned field, const char *text)
{
	proto_bytes(p, field, text, strlen(text));
}

static void put_attribute(struct proto *p, unsigned field, const char *name, const char *value)
{
	const size_t pair = proto_begin(p, field);
	size_t any;

	otlp_put_text(p, PAIR_KEY, name);
	any = proto_begin(p, PAIR_VALUE);
	otlp_put_text(p, VALUE_TEXT, value);
	proto_end(p, any);
	proto_end(p, pair);
}

struct labels_to {
	struct proto *p;
	unsigned field;
};

static int put_label(void *ctx, const char *name, const char *value)
{
	const struct labels_to *to = ctx;

	put_attribute(to->p, to->field, name, value);
	return 0;
}

static void put_labels(struct proto *p, unsigned field, const struct met_series *s)
{
	met_each_label(s->labels, put_label, &(struct labels_to){p, field});
}

/* A clock that was set back must not make the time of a point lie before its start. */
static uint64_t time_of(const struct met *m, const struct met_series *s)
{
	return m->taken_ns > s->since_ns ? m->taken_ns : s->since_ns;
}

/* Units that are divided have decimals. */
static void otlp_put_value(struct proto *p, enum met_unit unit, int64_t value)
{
	if (unit == MET_NS)
		proto_double(p, POINT_DOUBLE, (double)value / 1e9);
	else if (unit == MET_MILLIONTHS)
		proto_double(p, POINT_DOUBLE, (double)value / 1e6);
	else
		proto_fixed64(p, POINT_INT, (uint64_t)value);
}

static void otlp_put_number(struct proto *p, const struct met *m, const struct met_series *s)
{
	const struct met_family *f = met_family(s->family);
	const size_t point = proto_begin(p, DATA_POINTS);

	put_labels(p, POINT_ATTRIBUTES, s);
	if (f->type == MET_COUNTER)
		proto_fixed64(p, POINT_SINCE, s->since_ns);
	proto_fixed64(p, POINT_TIME, time_of(m, s));
	otlp_put_value(p, f->unit, s->value);
	proto_end(p, point);
}

/* Eight bytes each, the lowest first. */
static void put_packed(struct proto *p, unsigned field, const uint64_t *values, unsigned n)
{
	unsigned char bytes[MET_BUCKETS_MAX * 8];
	unsigned i;

	for (i = 0; i < n * 8; i++)
		bytes[i] = (unsigned char)(values[i / 8] >> i % 8 * 8);
	proto_bytes(p, field, bytes, n * 8);
}

static void put_histogram(struct proto *p, const struct met *m, const struct met_series *s)
{
	const struct met_family *f = met_family(s->family);
	const size_t point = proto_begin(p, DATA_POINTS);
	uint64_t bounds[MET_BUCKETS_MAX - 1], count = 0;
	unsigned i;

	memcpy(bounds, f->bounds, f->nbounds * sizeof(bounds[0]));
	for (i = 0; i <= f->nbounds; i++)
		count += s->buckets[i];
	put_labels(p, HIST_ATTRIBUTES, s);
	proto_fixed64(p, HIST_SINCE, s->since_ns);
	proto_fixed64(p, HIST_TIME, time_of(m, s));
	proto_fixed64(p, HIST_COUNT, count);
	proto_double(p, HIST_SUM, (double)s->value / 1e9);
	put_packed(p, HIST_COUNTS, s->buckets, f->nbounds + 1);
	put_packed(p, HIST_BOUNDS, bounds, f->nbounds);
	proto_end(p, point);
}

/* Series of a family stand together. Returns how many there are. */
static size_t put_metric(struct proto *p, const struct met *m, const struct met_series **s, size_t n)
{
	static const unsigned data_of[] = {
		[MET_COUNTER] = METRIC_SUM, [MET_GAUGE] = METRIC_GAUGE, [MET_HISTOGRAM] = METRIC_HISTOGRAM};
	static const char *const units[] = {
		[MET_COUNT] = "1", [MET_NS] = "s", [MET_BYTES] = "By", [MET_MILLIONTHS] = "1"};
	const struct met_family *f = met_family(s[0]->family);
	const size_t metric = proto_begin(p, SCOPE_METRICS_METRICS);
	size_t i, data;

	otlp_put_text(p, METRIC_NAME, f->name);
	otlp_put_text(p, METRIC_HELP, f->help);
	otlp_put_text(p, METRIC_UNIT, units[f->unit]);
	data = proto_begin(p, data_of[f->type]);
	for (i = 0; i < n && s[i]->family == s[0]->family; i++)
		(f->type == MET_HISTOGRAM ? put_histogram : otlp_put_number)(p, m, s[i]);
	if (f->type != MET_GAUGE)
		proto_u64(p, DATA_TEMPORALITY, CUMULATIVE);
	if (f->type == MET_COUNTER)
		proto_u64(p, DATA_MONOTONIC, 1);
	proto_end(p, data);
	proto_end(p, metric);
	return i;
}

int met_write_otlp(const struct met *m, const struct met_attribute *resource, size_t n, struct buf *out)
{
	struct proto p = {.b = *out};
	size_t series, i, whole, part, scope;
	const struct met_series **sorted = met_sorted(m, &series);

	whole = proto_begin(&p, REQUEST_RESOURCE_METRICS);
	part = proto_begin(&p, RESOURCE_METRICS_RESOURCE);
	for (i = 0; i < n; i++)
		put_attribute(&p, RESOURCE_ATTRIBUTES, resource[i].name, resource[i].value);
	proto_end(&p, part);
	part = proto_begin(&p, RESOURCE_METRICS_SCOPE);
	scope = proto_begin(&p, SCOPE_METRICS_SCOPE);
	otlp_put_text(&p, SCOPE_NAME, "mxbpf");
	otlp_put_text(&p, SCOPE_VERSION, MXBPF_VERSION);
	proto_end(&p, scope);
	for (i = 0; sorted && i < series;)
		i += put_metric(&p, m, &sorted[i], series - i);
	proto_end(&p, part);
	proto_end(&p, whole);
	free(sorted);
	*out = p.b;
	return sorted && !p.failed ? 0 : -ENOMEM;
}

/* ---- what a collector answers */

struct reader {
	const unsigned char *at, *end;
	bool failed;
};

static uint64_t read_varint(struct reader *r)
{
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0; r->at < r->end && shift < 64; shift += 7) {
		v |= (uint64_t)(*r->at & 127) << shift;
		if (!(*r->at++ & 128))
			return v;
	}
	r->failed = true;
	return 0;
}

/* Reads a field: its number or its bytes. Returns false at the end, or if it is none. */
static bool read_field(struct reader *r, unsigned *field, uint64_t *number, struct reader *bytes)
{
	uint64_t tag, len = 0;

	if (r->failed || r->at == r->end)
		return false;
	tag = read_varint(r);
	*field = (unsigned)(tag >> 3);
	*number = 0;
	switch (tag & 7) {
	case 0:
		*number = read_varint(r);
		break;
	case 1:
		len = 8;
		break;
	case 2:
		len = read_varint(r);
		break;
	case 5:
		len = 4;
		break;
	default:
		r->failed = true;
	}
	if (r->failed || len > (uint64_t)(r->end - r->at)) {
		r->failed = true;
		return false;
	}
	*bytes = (struct reader){r->at, r->at + len, false};
	r->at += len;
	return true;
}

bool met_read_otlp(const void *data, size_t len, uint64_t *rejected, const char **why, size_t *why_len)
{
	struct reader r = {data, (const unsigned char *)data + len, false}, part, bytes;
	uint64_t number;
	unsigned field;

	*rejected = 0;
	*why = "";
	*why_len = 0;
	while (read_field(&r, &field, &number, &part)) {
		if (field != RESPONSE_PARTIAL)
			continue;
		while (read_field(&part, &field, &number, &bytes)) {
			if (field == PARTIAL_REJECTED)
				*rejected = number;
			if (field == PARTIAL_WHY) {
				*why = (const char *)bytes.at;
				*why_len = (size_t)(bytes.end - bytes.at);
			}
		}
		r.failed |= part.failed;
	}
	return !r.failed;
}
