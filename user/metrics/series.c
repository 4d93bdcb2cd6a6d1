// SPDX-License-Identifier: Apache-2.0
/* Series: values that are kept under a family and labels. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "metrics/priv.h"
#include "mxbpf_hist.h"

struct met *met_new(void)
{
	struct met *m = calloc(1, sizeof(*m));

	if (m)
		m->taken_ns = clock_ns(CLOCK_REALTIME);
	return m;
}

static void free_series(struct met_series *s)
{
	free(s->labels);
	free(s->buckets);
	free(s->recorded);
	free(s->sums);
}

void met_free(struct met *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < buf_count(&m->series, struct met_series); i++)
		free_series(buf_at(&m->series, struct met_series, i));
	buf_fini(&m->series);
	hash_fini(&m->places);
	hash_fini(&m->names);
	met_processes_fini(m);
	met_forget_found(m);
	buf_fini(&m->found);
	met_groups_fini(m);
	free(m);
}

static uint64_t series_key_of(const char *labels)
{
	return hash_text(HASH_SEED, labels, strlen(labels));
}

static struct met_series *series_make(struct met *m, unsigned family, const char *labels, uint64_t *place)
{
	struct met_series new = {.family = family, .labels = strdup(labels), .since_ns = m->taken_ns};

	if (met_family(family)->type == MET_HISTOGRAM)
		new.buckets = calloc(met_buckets(family), sizeof(*new.buckets));
	if (!new.labels || (met_family(family)->type == MET_HISTOGRAM && !new.buckets) ||
	    buf_put(&m->series, &new, sizeof(new))) {
		free_series(&new);
		return NULL;
	}
	*place = buf_count(&m->series, struct met_series);
	return buf_at(&m->series, struct met_series, *place - 1);
}

static struct met_series *series_of(struct met *m, unsigned family, const char *labels)
{
	const char *text = labels ? labels : "";
	const uint64_t key = series_key_of(text);
	uint64_t *place = hash_get(&m->places, family, key);
	struct met_series *s = NULL;

	if (place)
		s = buf_at(&m->series, struct met_series, *place - 1);
	else if (buf_count(&m->series, struct met_series) < MET_SERIES_MAX &&
		 (place = hash_put(&m->places, family, key))) {
		s = series_make(m, family, text, place);
		if (!s)
			hash_del(&m->places, family, key, &(uint64_t){0});
	}
	m->left_out += !s;
	if (s)
		s->news_ns = m->now_ns;
	return s;
}

void met_add(struct met *m, unsigned family, const char *labels, uint64_t n)
{
	struct met_series *s = series_of(m, family, labels);

	if (s && __builtin_add_overflow(s->value, n, &s->value))
		s->value = INT64_MAX;
}

void met_set(struct met *m, unsigned family, const char *labels, int64_t n)
{
	struct met_series *s = series_of(m, family, labels);

	if (s)
		s->value = n;
}

void met_add_gauge(struct met *m, unsigned family, const char *labels, int64_t n)
{
	struct met_series *s = series_of(m, family, labels);

	if (s)
		s->value = (s->value == MET_ABSENT ? 0 : s->value) + n;
}

void met_raise(struct met *m, unsigned family, const char *labels, int64_t n)
{
	struct met_series *s = series_of(m, family, labels);

	if (s && s->value < n)
		s->value = n;
}

void met_reset(struct met *m, unsigned family, int64_t to)
{
	size_t i;

	for (i = 0; i < buf_count(&m->series, struct met_series); i++)
		if (buf_at(&m->series, struct met_series, i)->family == family)
			buf_at(&m->series, struct met_series, i)->value = to;
}

/* The bucket of durations that end at end_ns. */
static unsigned bucket_of(const struct met_family *f, uint64_t end_ns)
{
	const double seconds = (double)end_ns / 1e9;
	unsigned i = 0;

	while (i < f->nbounds && seconds > f->bounds[i])
		i++;
	return i;
}

void met_observe(struct met *m, unsigned family, const char *labels, uint64_t ns, uint64_t n)
{
	struct met_series *s = series_of(m, family, labels);

	if (!s)
		return;
	s->buckets[bucket_of(met_family(family), ns)] += n;
	s->value += (int64_t)(ns * n);
}

void met_observe_hist(struct met *m, unsigned family, const char *labels, const uint64_t hist[MXBPF_HIST_BUCKETS],
		      uint64_t sum_ns, double scale)
{
	struct met_series *s = series_of(m, family, labels);
	unsigned i;

	for (i = 0; s && i < MXBPF_HIST_BUCKETS; i++)
		if (hist[i]) /* a bucket of the model ends where the next one begins; the last one has no end */
			s->buckets[i + 1 < MXBPF_HIST_BUCKETS ? bucket_of(met_family(family), mdl_bucket_low(i + 1))
							      : met_family(family)->nbounds] +=
				met_scaled(hist[i], scale);
	if (s)
		s->value += (int64_t)met_scaled(sum_ns, scale);
}

void met_estimate(struct met *m, unsigned family, const char *labels, double x, double t)
{
	struct met_series *s = series_of(m, family, labels);
	struct ratio *sums = s ? s->sums ? s->sums : calloc(1, sizeof(*sums)) : NULL;

	if (!sums)
		return;
	s->sums = sums;
	*sums = (struct ratio){
		.n = sums->n * MET_FADE + 1,
		.x = sums->x * MET_FADE + x,
		.t = sums->t * MET_FADE + t,
		.xx = sums->xx * MET_FADE + x * x,
		.xt = sums->xt * MET_FADE + x * t,
		.tt = sums->tt * MET_FADE + t * t,
	};
	s->value = (int64_t)(ratio_error(sums) * 1000000);
}

/* ---- exemplars */

uint64_t met_iterations(struct met *m, const struct mdl_interval *in, uint32_t tgid)
{
	const struct met_process *p = met_process_of(m, in, tgid);
	const uint64_t key = p ? series_key_of(p->labels) : 0;

	return p && hash_get(&m->places, MET_ITERATION, key) ? key : 0;
}

/* A series that was removed meanwhile, or no memory for it: the recording has no exemplar. */
void met_record(struct met *m, const struct met_recorded *r)
{
	const uint64_t *place = r->series ? hash_get(&m->places, MET_ITERATION, r->series) : NULL;
	struct met_series *s = place ? buf_at(&m->series, struct met_series, *place - 1) : NULL;

	if (s && !s->recorded)
		s->recorded = calloc(met_buckets(MET_ITERATION), sizeof(*s->recorded));
	if (s && s->recorded)
		s->recorded[bucket_of(met_family(MET_ITERATION), r->dur_ns)] = *r;
}

/* The number of a process comes again only by chance, so its series is not kept. */
static bool is_over(const struct met_series *s)
{
	return s->family == MET_PROCESS && s->value == MET_ABSENT;
}

static bool has_many_over(const struct met *m)
{
	size_t i, n = 0;

	for (i = 0; i < buf_count(&m->series, struct met_series); i++)
		n += is_over(buf_at(&m->series, struct met_series, i));
	return n >= MET_PROCESSES_MAX;
}

int met_make_room(struct met *m)
{
	size_t n = buf_count(&m->series, struct met_series), kept = 0, i;
	const bool full = n >= MET_SERIES_MAX / 4 * 3;
	struct met_series *s;
	uint64_t *place;

	if (!full && !has_many_over(m))
		return 0;
	hash_clear(&m->places);
	if (full) /* names of jobs that are gone; those of others come back with their next calls */
		hash_clear(&m->names);
	for (i = 0; i < n; i++) {
		s = buf_at(&m->series, struct met_series, i);
		if (is_over(s) || (full && m->now_ns - s->news_ns > MET_KEEP_NS)) {
			free_series(s);
			continue;
		}
		*buf_at(&m->series, struct met_series, kept) = *s;
		place = hash_put(&m->places, s->family, series_key_of(s->labels));
		if (!place)
			return -ENOMEM;
		*place = ++kept;
	}
	m->series.len = kept * sizeof(*s);
	return 0;
}
