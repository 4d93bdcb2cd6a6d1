// SPDX-License-Identifier: Apache-2.0
/* Tests what a comparison calls certain, on samples that are made up: no recording, no clock, a fixed seed. */
#include <math.h>

#include "compare/compare.h"
#include "compare/judge.h"
#include "compare/stats.h"
#include "unit.h"

#define BINS  200
#define PAIRS 200
#define OPS   8

static uint64_t seed = 1;

/* From 0 to 1. */
static double chance(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) / 9007199254740992.;
}

/* Normal, by the sum of twelve. */
static double bell(void)
{
	double sum = -6;
	int i;

	for (i = 0; i < 12; i++)
		sum += chance();
	return sum;
}

/* How a recording is made up. Shares of the time of an operator. */
struct machine {
	double speed;  /* of all operators, from recording to recording */
	double jitter; /* of each value */
	double burst;  /* chance that a burst of 20 iterations begins */
	double by;     /* factor of all times in it */
	double steep;  /* exponent of a burst for half of the operators; 0: they are like the others */
	unsigned ops;  /* 0: OPS */
	unsigned firm; /* so many operators do not feel bursts, and only they differ by speed, each for itself */
	double delays; /* share of the iterations that other jobs delay, between calls and by as much in them */
};
static const struct machine quiet = {.speed = 0.01, .jitter = 0.02, .by = 1},
			    noisy = {.speed = 0.05, .jitter = 0.03, .burst = 0.01, .by = 1.5},
			    wild = {.speed = 0.1, .jitter = 0.3, .burst = 0.01, .by = 1.5},
			    unlike = {.speed = 0.003, .jitter = 0.02, .burst = 0.05, .by = 1.1, .steep = 3};
static const struct machine *machine_of_b; /* NULL: as that of A */

struct plant {
	double op;   /* factor of operator 0 */
	double data; /* factor of the wait for data */
	bool extra;  /* an operator that the other side does not have */
	bool calls;  /* operator 3 is called twice as often */
};
static const struct plant none = {1, 1, false, false};

static struct mdl_session session = {
	.hostname = (char *)"host", .mxbpf_version = (char *)"1", .cmdline = (char *)"job"};

static void put(struct cmp_samples *x, enum cmp_kind kind, const char *name, size_t bin, double v)
{
	struct cmp_series *s = cmp_series_add(x, kind, name, strlen(name), NULL, 0);

	s->value[bin] += (float)v;
	s->calls++;
}

static void make_up(struct cmp_run *run, const struct machine *m, const struct plant *p)
{
	const unsigned ops = m->ops ? m->ops : OPS;
	double speed[OPS + 1], slow, sum, v, delay;
	unsigned burst = 0, k;
	char name[16];
	size_t i;

	speed[0] = exp(m->speed * bell());
	for (k = 1; k <= OPS; k++)
		speed[k] = k >= m->firm ? speed[0] : exp(m->speed * bell());
	*run = (struct cmp_run){.path = "x", .s = &session, .m = mdl_new()};
	run->x = (struct cmp_samples){.iterations = true, .events = true, .n = BINS, .count = BINS};
	for (i = 0; i < BINS; i++) {
		burst = burst ? burst - 1 : chance() < m->burst ? 20 : 0;
		slow = burst ? m->by : 1;
		sum = 2e6 * p->data * (1 + 0.01 * bell());
		put(&run->x, CMP_PART, "waiting for data", i, sum);
		if (m->delays > 0) {
			delay = chance() < m->delays ? 1e7 * chance() : 0;
			v = 1e6 * (1 + m->jitter * bell()) + delay;
			put(&run->x, CMP_PART, CMP_OUTSIDE, i, v);
			put(&run->x, CMP_RUNQ, "waiting for a CPU", i, delay);
			sum += v;
		}
		for (k = 0; k < ops + (p->extra ? 1u : 0u); k++) {
			snprintf(name, sizeof(name), "op%u", k);
			v = k < m->firm ? 1 : pow(slow, k % 2 && m->steep > 0 ? m->steep : 1);
			v *= 1e6 * (m->firm && k >= m->firm ? 1 : speed[k]) * (k ? 1 : p->op) *
			     (1 + m->jitter * bell());
			put(&run->x, CMP_OPERATOR, name, i, v);
			if (k == 3 && p->calls)
				put(&run->x, CMP_OPERATOR, name, i, 0);
			sum += v;
		}
		put(&run->x, CMP_ITERATION, "iteration", i, sum);
	}
}

/* Compares n made-up recordings of each side. The caller calls end(). */
static struct cmp_sides sides;
static struct cmp_run runs[CMP_SIDES][4];

static void compare(struct cmp_result *r, unsigned n, const struct machine *m, const struct plant *p)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		make_up(&runs[CMP_A][i], m, &none);
		make_up(&runs[CMP_B][i], machine_of_b ? machine_of_b : m, p);
	}
	sides = (struct cmp_sides){{runs[CMP_A], runs[CMP_B]}, {n, n}};
	CHECK(!cmp_compare(&sides, r));
}

static void end(struct cmp_result *r)
{
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < sides.n[side]; i++) {
			mdl_free(sides.run[side][i].m);
			cmp_run_fini(&sides.run[side][i]);
		}
	cmp_result_fini(r);
}

static const struct cmp_row *row_of(const struct cmp_result *r, const char *name)
{
	size_t i;

	for (i = 0; i < buf_count(&r->rows, struct cmp_row); i++)
		if (!strcmp(buf_at(&r->rows, struct cmp_row, i)->name, name))
			return buf_at(&r->rows, struct cmp_row, i);
	return NULL;
}

static unsigned certain(const struct cmp_result *r)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < buf_count(&r->rows, struct cmp_row); i++)
		n += cmp_certain(buf_at(&r->rows, struct cmp_row, i));
	return n;
}

/* Returns in how many of PAIRS the row is certain; *others: pairs in which any other operator or part is. */
static unsigned count(const struct machine *m, const struct plant *p, const char *name, unsigned *others)
{
	struct cmp_result r;
	const struct cmp_row *row;
	unsigned found = 0, i, n;

	*others = 0;
	for (i = 0; i < PAIRS; i++) {
		compare(&r, 1, m, p);
		row = row_of(&r, name);
		n = certain(&r) - (row && cmp_certain(row));
		n -= row != cmp_iteration(&r) && cmp_certain(cmp_iteration(&r));
		found += row && cmp_certain(row);
		*others += n > 0;
		end(&r);
	}
	return found;
}

static void test_statistics(void)
{
	double a[] = {5, 1, 4, 2, 3}, b[] = {11, 12, 13, 14, 15, 16, 17, 18}, c[] = {1, 2, 3, 4, 5, 6, 7, 8};
	double p[] = {0.01, 0.04, 0.03}, v[] = {3, 1, 2}, w[] = {1, 1, 5};

	TEST("medians, ranks and Student's t have the values of the books")
	{
		CHECK(cmp_median(a, 5) == 3);
		CHECK(cmp_weighted(v, w, 3, 0.5) == 2 && cmp_weighted(v, w, 3, 0.9) == 3);
		CHECK(cmp_rank_test(b, 8, c, 8) < 0.002 && cmp_rank_test(b, 8, b, 8) > 0.9);
		CHECK(fabs(cmp_student(2.228, 10) - 0.05) < 0.0005 && fabs(cmp_student(-2.228, 10) - 0.05) < 0.0005);
		CHECK(fabs(cmp_student_limit(0.01, 14) - 2.977) < 0.001);
		cmp_holm(p, 3);
		CHECK(fabs(p[0] - 0.03) < 1e-12 && fabs(p[1] - 0.06) < 1e-12 && fabs(p[2] - 0.06) < 1e-12);
	}
}

static void test_verdicts(void)
{
	struct cmp_result r;
	unsigned found, others;

	TEST("of 200 pairs without a change, with bursts and another speed of the machine, at most 2 are called "
	     "changed")
	{
		found = count(&noisy, &none, "op0", &others);
		CHECK(found + others <= 2);
		printf("# noisy: %u and %u others\n", found, others);
		found = count(&quiet, &none, "op0", &others);
		CHECK(found + others <= 2);
		printf("# quiet: %u and %u others\n", found, others);
		found = count(&wild, &none, "iteration", &others);
		CHECK(found + others <= 2);
		printf("# wild: %u and %u others\n", found, others);
	}
	TEST("5 % in one operator are found in at least 190 of 200 pairs, and no other row is blamed in more than 4")
	{
		found = count(&quiet, &(struct plant){1.05, 1, false, false}, "op0", &others);
		printf("# quiet: %u and %u others\n", found, others);
		CHECK(found >= 190 && others <= 4);
		found = count(&noisy, &(struct plant){1.05, 1, false, false}, "op0", &others);
		printf("# noisy: %u and %u others\n", found, others);
		CHECK(found >= 190 && others <= 4);
	}
	TEST("if half of the operators suffer three times as much from bursts, 5 % are found in 170, and nothing else")
	{
		found = count(&unlike, &none, "op1", &others);
		printf("# nothing: %u and %u others\n", found, others);
		CHECK(found + others <= 2);
		found = count(&unlike, &(struct plant){1.05, 1, false, false}, "op0", &others);
		printf("# %u and %u others\n", found, others);
		CHECK(found >= 170 && others <= 4);
	}
	TEST("another number of calls is certain, and no change of another row")
	{
		compare(&r, 1, &noisy, &(struct plant){1, 1, false, true});
		CHECK(row_of(&r, "op3")->recalled && !row_of(&r, "op2")->recalled && !certain(&r));
		end(&r);
		compare(&r, 1, &noisy, &none);
		CHECK(!row_of(&r, "op3")->recalled);
		end(&r);
	}
	TEST("50 % in one operator are most of the change of an iteration")
	{
		compare(&r, 1, &quiet, &(struct plant){1.5, 1, false, false});
		CHECK(cmp_certain(cmp_iteration(&r)) && r.nmost == 1 && !strcmp(r.most[0]->name, "op0"));
		end(&r);
	}
	TEST("a longer wait for data is found as such")
	{
		found = count(&noisy, &(struct plant){1, 1.1, false, false}, "waiting for data", &others);
		printf("# %u and %u others\n", found, others);
		CHECK(found >= 190 && others <= 4);
	}
	TEST("an operator that only one side has is new, whatever the noise")
	{
		compare(&r, 1, &noisy, &(struct plant){1, 1, true, false});
		CHECK(row_of(&r, "op8") && row_of(&r, "op8")->verdict == CMP_NEW);
		end(&r);
	}
}

/* Returns the least or the greatest change of an operator between the centres of both sides. */
static double extreme(const struct cmp_result *r, bool greatest)
{
	const struct cmp_row *row;
	double at = 0;
	size_t i, n = 0;

	for (i = 0; i < buf_count(&r->rows, *row); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		if (row->kind == CMP_OPERATOR && (!n++ || (row->change > at) == greatest))
			at = row->change;
	}
	return at;
}

static void test_machine(void)
{
	/* Found in pairs of real recordings that had not changed. */
	static const struct machine few = {.speed = 0.1, .jitter = 0.02, .ops = 2},
				    few_quiet = {.speed = 0.01, .jitter = 0.02, .ops = 2},
				    idle = {.jitter = 0.02, .delays = 0.01}, busy = {.jitter = 0.02, .delays = 0.9},
				    idle3 = {.jitter = 0.02, .ops = 3, .delays = 0.01},
				    busy3 = {.jitter = 0.02, .ops = 3, .delays = 0.9};
	struct machine firm = {.speed = 0.1, .jitter = 0.02, .burst = 0.02, .by = 1.5};
	struct cmp_result r;
	unsigned i, n, known = 0, wrong = 0, found = 0, others;

	TEST("what operators have in common is within what they do themselves, also if some do not follow the machine")
	{
		for (n = 2; n <= 6; n++)
			for (i = 0; i < PAIRS / 4; i++) {
				firm.ops = n > 4 ? OPS : 3;
				firm.firm = n > 4 ? n : n - 1;
				compare(&r, 1, &firm, &none);
				known += r.controls > 0;
				wrong += r.controls ? r.drift < extreme(&r, false) - 1e-3 ||
							      r.drift > extreme(&r, true) + 1e-3
						    : !isnan(r.drift) || r.drifted;
				end(&r);
			}
		printf("# %u known, %u wrong\n", known, wrong);
		CHECK(!wrong);
	}
	TEST("with few operators nothing is known of the machine: 30 % are not certain with one recording of each "
	     "side, 300 % are, and with several 30 % are")
	{
		found = count(&few, &none, "op0", &others);
		printf("# %u and %u others\n", found, others);
		CHECK(found + others <= 2);
		found = count(&few, &(struct plant){4, 1, false, false}, "op0", &others);
		printf("# %u and %u others\n", found, others);
		CHECK(found >= 190 && others <= 4);
		compare(&r, 1, &few, &none);
		CHECK(!r.controls && isnan(r.drift) && !r.drifted);
		end(&r);
		for (found = i = 0; i < PAIRS / 4; i++) {
			compare(&r, 3, &few_quiet, &(struct plant){1.3, 1, false, false});
			found += cmp_certain(row_of(&r, "op0"));
			end(&r);
		}
		printf("# %u\n", found);
		CHECK(found >= 47);
	}
	TEST("a busy neighbour on one side makes nothing certain, and does not hide a change of 50 %")
	{
		machine_of_b = &busy3;
		found = count(&idle3, &none, CMP_OUTSIDE, &others);
		printf("# few operators: %u and %u others\n", found, others);
		CHECK(found + others <= 2);
		for (wrong = i = 0; i < PAIRS / 4; i++) {
			compare(&r, 3, &idle3, &none);
			wrong += certain(&r) > 0;
			end(&r);
		}
		printf("# three of each side: %u\n", wrong);
		CHECK(!wrong);
		machine_of_b = &busy;
		found = count(&idle, &none, CMP_OUTSIDE, &others);
		printf("# %u and %u others\n", found, others);
		CHECK(found + others <= 2);
		found = count(&idle, &(struct plant){1.5, 1, false, false}, "op0", &others);
		printf("# planted: %u and %u others\n", found, others);
		CHECK(found >= 190 && others <= 4);
		machine_of_b = NULL;
	}
}

static void test_several(void)
{
	struct machine slower = quiet;
	struct cmp_result r;
	unsigned i, wrong = 0;

	TEST("another speed of all operators is no change of an iteration with one recording of each side")
	{
		slower.speed = 0.15;
		for (i = 0; i < PAIRS; i++) {
			compare(&r, 1, &slower, &none);
			wrong += cmp_certain(cmp_iteration(&r));
			end(&r);
		}
		CHECK(wrong <= 2);
	}
	TEST("with several recordings of a side, an iteration is as uncertain as they differ")
	{
		for (wrong = i = 0; i < PAIRS; i++) {
			compare(&r, 3, &slower, &none);
			wrong += cmp_certain(cmp_iteration(&r));
			end(&r);
		}
		printf("# %u\n", wrong);
		CHECK(wrong <= 4);
	}
}

/* Makes sums of the samples, as a JSON result has them. */
static void add_up(struct cmp_samples *x)
{
	struct cmp_series *s;
	size_t i, k;

	for (i = 0; i < buf_count(&x->series, *s); i++) {
		s = buf_at(&x->series, struct cmp_series, i);
		for (k = 1; k < x->n; k++)
			s->value[0] += s->value[k];
		s->value[0] /= (float)x->n;
	}
	x->n = 1;
	x->sums = true;
}

static void compare_sums(struct cmp_result *r, unsigned n, const struct plant *p)
{
	unsigned side, i;

	compare(r, n, &quiet, p);
	cmp_result_fini(r);
	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < n; i++)
			add_up(&runs[side][i].x);
	CHECK(!cmp_compare(&sides, r));
}

static void test_sums(void)
{
	struct cmp_result r;
	unsigned i, wrong = 0, found = 0;

	TEST("sums tell nothing for certain, and several of each side tell as much as they differ")
	{
		compare_sums(&r, 1, &(struct plant){2, 1, false, false});
		CHECK(r.sums && r.few && !certain(&r) && isinf(row_of(&r, "op0")->noise));
		end(&r);
		for (i = 0; i < PAIRS; i++) {
			compare_sums(&r, 4, &none);
			wrong += certain(&r) > 0;
			end(&r);
			compare_sums(&r, 4, &(struct plant){1.5, 1, false, false});
			found += cmp_certain(row_of(&r, "op0"));
			end(&r);
		}
		printf("# %u wrong, %u found\n", wrong, found);
		CHECK(wrong <= 4 && found >= 190);
	}
}

static void test_scale(void)
{
	struct mdl_session a = session, b = session, other = session;
	struct cmp_run one[] = {{.s = &a}, {.s = &b}}, two[] = {{.s = &a}};
	struct cmp_sides of = {{one, two}, {2, 1}};

	TEST("recordings that were made alike have one profiling overhead, also those that do not know it")
	{
		a.cost.scale = 1000;
		b.cost.scale = 2000;
		cmp_share_scale(&of);
		CHECK(one[0].scale == 1333 && one[1].scale == 1333 && two[0].scale == 1333);
		b.cost.scale = 0;
		cmp_share_scale(&of);
		CHECK(one[0].scale == 1000 && one[1].scale == 1000);
		other.agent_route = (char *)"script";
		other.cost.scale = 500;
		two[0].s = &other;
		cmp_share_scale(&of);
		CHECK(one[0].scale == 1000 && !one[1].scale && two[0].scale == 500);
	}
}

static bool parses(const char *text, struct cmp_limit *l)
{
	struct err e = {0};

	return !cmp_limit_parse(text, l, &e);
}

static void test_limits(void)
{
	struct cmp_result r;
	struct cmp_limit l;
	struct err e = {0};
	bool known;

	TEST("limits are parsed, and what is wrong is named with its place")
	{
		CHECK(parses("iteration > +5%", &l) && l.metric == CMP_OF_ITERATION && !l.below &&
		      fabs(l.share - 0.05) < 1e-9);
		CHECK(parses(" memory.peak<-10 % ", &l) && l.metric == CMP_OF_PEAK && l.below &&
		      fabs(l.share + 0.1) < 1e-9);
		CHECK(parses("operator(f(int)) > 3%", &l) && l.name_len == 6 && !strncmp(l.name, "f(int)", 6));
		CHECK(parses("data>20%", &l) && l.metric == CMP_OF_PART);
		CHECK(!parses("iteration > 5", &l) && !parses("iteration = 5%", &l) && !parses("speed > 5%", &l));
		CHECK(!parses("operator() > 5%", &l) && !parses("iteration > 5% x", &l) && !parses("", &l));
		CHECK(!parses("iteration > nan%", &l) && !parses("iteration > x%", &l));
		CHECK(cmp_limit_parse("iteration > 5", &l, &e) && e.cls == ERR_USAGE && strstr(e.why, "character 14"));
	}
	TEST("a limit is broken by a certain change beyond it, and by no other")
	{
		compare(&r, 1, &quiet, &(struct plant){1.5, 1, false, false});
		CHECK(parses("operator(op0) > 40%", &l) && cmp_limit_broken(&l, &r, &known) && known);
		CHECK(parses("operator(op0) > 60%", &l) && !cmp_limit_broken(&l, &r, &known) && known);
		CHECK(parses("operator(op0) < -5%", &l) && !cmp_limit_broken(&l, &r, &known) && known);
		CHECK(parses("operator(op1) > 0%", &l) && !cmp_limit_broken(&l, &r, &known) && known);
		CHECK(parses("operator(none) > 0%", &l) && !cmp_limit_broken(&l, &r, &known) && !known);
		CHECK(parses("iteration > 3%", &l) && cmp_limit_broken(&l, &r, &known));
		CHECK(parses("memory.peak > 3%", &l) && !cmp_limit_broken(&l, &r, &known) && !known);
		end(&r);
	}
}

int main(void)
{
	test_statistics();
	test_verdicts();
	test_machine();
	test_several();
	test_sums();
	test_scale();
	test_limits();
	UNIT_MAIN_END;
}
