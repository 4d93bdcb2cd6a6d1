// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges and marks of NVTX, with an account of their own: a line for each, "name tid a b c d": it began between a and
 * b, and ended between c and d, in ns of CLOCK_MONOTONIC. c and d of a mark are 0. With EXPORTED the functions are
 * those of libnvToolsExt, else those that NVIDIA's headers define.
 */
#ifdef EXPORTED
#include <nvToolsExt.h>
#else
#include <nvtx3/nvToolsExt.h>
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define NTHREADS 2
/* Probes on a library do not read the domain. */
#ifdef EXPORTED
#define IN_DOMAIN ""
#else
#define IN_DOMAIN "reg: "
#endif

struct told {
	const char *name;
	uint64_t a, b, c, d;
};

static FILE *account;
static int rounds;
static bool tool;
static nvtxDomainHandle_t domain;
static nvtxStringHandle_t registered;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void tell(const struct told *t)
{
	fprintf(account, "%s\t%d\t%llu\t%llu\t%llu\t%llu\n", t->name, gettid(), (unsigned long long)t->a,
		(unsigned long long)t->b, (unsigned long long)t->c, (unsigned long long)t->d);
}

#define TIMED(first, second, call)                                                                                     \
	do {                                                                                                           \
		first = now();                                                                                         \
		call;                                                                                                  \
		second = now();                                                                                        \
	} while (0)

static nvtxEventAttributes_t event(void)
{
	nvtxEventAttributes_t e = {0};

	e.version = NVTX_VERSION;
	e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	e.category = 7;
	e.colorType = NVTX_COLOR_ARGB;
	e.color = 0xff00ff00;
	return e;
}

static void spin(void)
{
	const uint64_t until = now() + 20000;

	while (now() < until)
		;
}

/* Registered names, ranges that have a number, and marks: only a tool sees them. */
static void with_tool(void)
{
	struct told in = {IN_DOMAIN "registered"}, wide = {"wide \xc3\xa9"}, one = {"started"}, two = {"overlapping"},
		    mark = {"here"};
	nvtxEventAttributes_t e = event();
	nvtxRangeId_t first, second;

	e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	e.message.registered = registered;
	TIMED(in.a, in.b, nvtxDomainRangePushEx(domain, &e));
#ifdef EXPORTED /* probes do not read wide characters */
	TIMED(wide.a, wide.b, nvtxRangePushA("wide \xc3\xa9"));
#else
	TIMED(wide.a, wide.b, nvtxRangePushW(L"wide \u00e9"));
#endif
	spin();
	TIMED(wide.c, wide.d, nvtxRangePop());
	TIMED(in.c, in.d, nvtxDomainRangePop(domain));
	TIMED(one.a, one.b, first = nvtxRangeStartA("started"));
	TIMED(two.a, two.b, second = nvtxRangeStartA("overlapping"));
	TIMED(mark.a, mark.b, nvtxMarkA("here"));
	TIMED(one.c, one.d, nvtxRangeEnd(first));
	TIMED(two.c, two.d, nvtxRangeEnd(second));
	tell(&in);
	tell(&wide);
	tell(&one);
	tell(&two);
	tell(&mark);
}

static void *run(void *arg)
{
	struct told outer = {"outer"}, inner = {"inner"}, cross = {IN_DOMAIN "cross"};
	nvtxEventAttributes_t e = event(), other = event();
	int i;

	(void)arg;
	e.messageType = NVTX_MESSAGE_TYPE_ASCII;
	e.message.ascii = "inner";
	other.messageType = NVTX_MESSAGE_TYPE_ASCII;
	other.message.ascii = "cross";
	for (i = 0; i < rounds; i++) {
		TIMED(outer.a, outer.b, nvtxRangePushA("outer"));
		TIMED(inner.a, inner.b, nvtxRangePushEx(&e));
		TIMED(cross.a, cross.b, nvtxDomainRangePushEx(domain, &other)); /* a domain has a stack of its own */
		spin();
		TIMED(inner.c, inner.d, nvtxRangePop());
		spin();
		TIMED(cross.c, cross.d, nvtxDomainRangePop(domain));
		if (tool)
			with_tool();
		TIMED(outer.c, outer.d, nvtxRangePop());
		tell(&inner);
		tell(&cross);
		tell(&outer);
	}
	return NULL;
}

/* Runs on the calling thread and on others. Returns the number of threads, or 0. */
int ranges_run(int n, int with, const char *path);
int ranges_run(int n, int with, const char *path)
{
	pthread_t threads[NTHREADS - 1];
	int i;

	rounds = n;
	tool = with;
	account = fopen(path, "w");
	if (!account)
		return 0;
	domain = nvtxDomainCreateA("reg");
	registered = nvtxDomainRegisterStringA(domain, "registered");
	for (i = 0; i < NTHREADS - 1; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	run(NULL);
	for (i = 0; i < NTHREADS - 1; i++)
		pthread_join(threads[i], NULL);
	fclose(account);
	return NTHREADS;
}
