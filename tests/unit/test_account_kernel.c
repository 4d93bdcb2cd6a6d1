/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the account of a span with what /proc reports for the same thread, read just outside and just inside of the
 * span: the account must lie between the two. This holds on a busy machine, too.
 */
#include "probed_calls.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#define NPROBES	  4
#define MS	  1000000ull
#define PAGES	  600
#define FILE_PAGE 4096
/* Time by which /proc may lag, even after the thread has just yielded its CPU. */
#define STALE_NS 50000ull

/* ---- the profiled runtime */

static const struct adp_probe rows[NPROBES] = {
	{.row = {.action = MXBPF_ACT_OPEN,
		 .end = MXBPF_END_PAIR,
		 .cls = MXBPF_CLASS_API,
		 .at_call_site = 1,
		 .name_type = MXBPF_NAMED_BYTES,
		 .name = {ARG1}}},
	{.row = {.action = MXBPF_ACT_CLOSE_PAIR, .cls = MXBPF_CLASS_API, .at_call_site = 1}},
	{.row = {.action = MXBPF_ACT_OPEN, .end = MXBPF_END_KEY, .cls = MXBPF_CLASS_OPERATOR, .key = {ARG1}}},
	{.row = {.action = MXBPF_ACT_CLOSE_KEY, .cls = MXBPF_CLASS_OPERATOR, .key = {ARG1}}},
};

static struct plan_probe probes[NPROBES];
static struct plan_site sites[NPROBES];
static struct plan plan = {.lib = &self, .sites = {.data = (char *)sites, .len = sizeof(sites)}};

static struct mxbpf_span spans[16];
static uint16_t sizes[16];
static unsigned nspans;
static bool account = true;

static void make_plan(void)
{
	const void *const functions[NPROBES] = {on_enter, on_exit_api, op_start, op_end};

	make_sites(sites, probes, rows, functions, NPROBES);
}

static void take(void *ctx, void *recs, size_t bytes)
{
	const struct mxbpf_rec *r = recs;

	for (; bytes; bytes -= r->size, r = (const void *)((const char *)r + r->size)) {
		if (r->kind != MXBPF_SPAN || nspans == 16)
			continue;
		sizes[nspans] = r->size;
		kind_span(r, &spans[nspans++]);
	}
}

static bool att_has_account;

static bool begin(struct err *e)
{
	struct att_opts o = {.ring_bytes = 1u << 20, .account = account};

	if (att && account == att_has_account)
		return true;
	leave_session();
	att_has_account = account;
	return !att_load(&plan, getpid(), &o, &att, e) && !att_attach(att, &plan, &plan.target, getpid(), e);
}

static void watch(void (*work)(void))
{
	struct err e = {0};
	struct ring *ring;

	nspans = 0;
	expect_session(begin(&e) && !ring_start(att_ring_fd(att, ATT_CALLS), take, NULL, &ring, &e), &e);
	run_recorded(work);
	ring_stop(ring);
	ring_free(ring);
}

/* ---- what /proc reports for a thread */

enum { EXEC_NS, RUNQ_NS, NVCSW, NIVCSW, MINFLT, MAJFLT, NFACTS };

struct proc {
	int schedstat, status, stat;
};

static int open_of(const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/%s", what);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static const char *text_of(int fd, char *text, size_t cap)
{
	ssize_t n = pread(fd, text, cap - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static uint64_t status_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Reads the facts of the calling thread. Yielding the CPU first brings its times up to date. */
static void facts_of(const struct proc *p, uint64_t facts[NFACTS])
{
	static __thread char text[4096];
	const char *at;

	sched_yield();
	if (sscanf(text_of(p->schedstat, text, sizeof(text)), "%" SCNu64 " %" SCNu64, &facts[EXEC_NS],
		   &facts[RUNQ_NS]) != 2)
		abort();
	text_of(p->status, text, sizeof(text));
	facts[NVCSW] = status_of(text, "\nvoluntary_ctxt_switches:");
	facts[NIVCSW] = status_of(text, "\nnonvoluntary_ctxt_switches:");
	at = strrchr(text_of(p->stat, text, sizeof(text)), ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64, &facts[MINFLT],
			  &facts[MAJFLT]) != 2)
		abort();
}

/* ---- one span around a body, with facts read on both sides */

static void (*body)(void);
static uint64_t outer[NFACTS], inner[NFACTS]; /* differences between end and start of the span */

/*
 * Stolen time counts as time on CPU if one reads the clock, but the scheduler does not count it for the thread. The
 * kernel reports stolen time as a sum over all CPUs, in ticks.
 */
#define STOLEN_NS (20 * MS)
static uint64_t stolen_ns; /* while the span was open */

static uint64_t stolen(void)
{
	unsigned long long ticks = 0;
	FREED(file_closed) FILE *f = fopen("/proc/stat", "re");

	if (f && fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		ticks = 0;
	return ticks * 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

PROBED static void one_call(void)
{
	const struct proc p = {open_of("schedstat"), open_of("status"), open_of("stat")};
	uint64_t facts[4][NFACTS];
	unsigned i;

	facts_of(&p, facts[0]);
	facts_of(&p, facts[0]);
	stolen_ns = stolen();
	on_enter("call");
	facts_of(&p, facts[1]);
	body();
	facts_of(&p, facts[2]);
	on_exit_api();
	stolen_ns = stolen() - stolen_ns;
	facts_of(&p, facts[3]);
	for (i = 0; i < NFACTS; i++) {
		outer[i] = facts[3][i] - facts[0][i];
		inner[i] = facts[2][i] - facts[1][i];
	}
	close(p.schedstat);
	close(p.status);
	close(p.stat);
}

/*
 * The clocks of an emulated machine may differ by milliseconds if the host is busy: BPF's is not the scheduler's
 * there.
 */
static bool emulated;

/* Checks that v lies within the facts. slack_ns 0 allows no error; otherwise 1 % and the lag of /proc are allowed. */
static bool between(uint64_t v, unsigned fact, uint64_t slack_ns)
{
	uint64_t low = inner[fact], high = outer[fact];

	if (slack_ns && emulated)
		return true;
	if (slack_ns) {
		low -= low / 100 + slack_ns < low ? low / 100 + slack_ns : low;
		high += high / 100 + slack_ns + STOLEN_NS + stolen_ns;
	}
	if (v >= low && v <= high)
		return true;
	printf("# fact %u: %" PRIu64 " is not within %" PRIu64 " and %" PRIu64 "\n", fact, v, low, high);
	return false;
}

/* Checks that v is at least ns; on an emulated machine, that it is not 0. */
static bool least(uint64_t v, uint64_t ns)
{
	if (v >= (emulated ? 1 : ns))
		return true;
	printf("# %" PRIu64 " is less than %" PRIu64 "\n", v, ns);
	return false;
}

/* Profiles one span around what() and returns its account. Times may be off by slack_ns. */
static const struct mxbpf_account *account_of(void (*what)(void), uint64_t slack_ns)
{
	const struct mxbpf_account *a = &spans[0].account;

	body = what;
	watch(one_call);
	CHECK(nspans == 1 && spans[0].flags == MXBPF_SPAN_ACCOUNT);
	CHECK(a->on_cpu_ns + a->runq_ns + a->blocked_ns == spans[0].dur_ns);
	CHECK(between(a->on_cpu_ns, EXEC_NS, slack_ns));
	CHECK(between(a->runq_ns, RUNQ_NS, STALE_NS));
	CHECK(between(a->nvcsw, NVCSW, 0) && between(a->nivcsw, NIVCSW, 0));
	CHECK(between(a->minflt, MINFLT, 0) && between(a->majflt, MAJFLT, 0));
	return a;
}

/* ---- bodies */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void spin_ms(unsigned ms)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ms * MS;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void spin(void)
{
	spin_ms(60);
}

static void sleep_often(void)
{
	const struct timespec t = {.tv_nsec = 5 * MS};
	unsigned i;

	for (i = 0; i < 20; i++) {
		nanosleep(&t, NULL);
		spin_ms(1);
	}
}

static void touch_pages(void)
{
	char *p = mmap(NULL, PAGES * FILE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned i;

	madvise(p, PAGES * FILE_PAGE, MADV_NOHUGEPAGE);
	for (i = 0; i < PAGES; i++)
		p[i * FILE_PAGE] = 1;
	munmap(p, PAGES * FILE_PAGE);
}

static char *cold; /* a mapped file whose pages are not in memory */

static void read_cold(void)
{
	volatile char sum = 0;
	unsigned i;

	for (i = 0; i < PAGES; i += 64)
		sum = (char)(sum + cold[i * FILE_PAGE]);
}

/* Returns NULL if the file system keeps its pages in memory. */
static char *map_cold(void)
{
	static char page[FILE_PAGE];
	unsigned char in_core[PAGES];
	const char *dir = getenv("O");
	char path[512], *p;
	unsigned i;
	int fd;

	snprintf(path, sizeof(path), "%s/cold-XXXXXX", dir ? dir : "build");
	fd = mkstemp(path);
	for (i = 0; i < PAGES; i++)
		if (write(fd, page, sizeof(page)) != sizeof(page))
			return NULL;
	unlink(path);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	p = mmap(NULL, PAGES * FILE_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED || mincore(p, PAGES * FILE_PAGE, in_core) || in_core[0] & 1)
		return NULL;
	madvise(p, PAGES * FILE_PAGE, MADV_RANDOM);
	return p;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;

static void *hold(void *arg)
{
	const struct timespec t = {.tv_nsec = 40 * MS};

	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&held);
	nanosleep(&t, NULL);
	pthread_mutex_unlock(&lock);
	return arg;
}

/* The lock's holder is created outside of the span, so that creating it does not count as waiting. */
static void wait_for_lock(void)
{
	pthread_barrier_wait(&held);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		abort();
}

static int cpus[2]; /* two CPUs on which this process may run */

static void move(void)
{
	const struct timespec t = {.tv_nsec = 5 * MS};

	spin_ms(10);
	nanosleep(&t, NULL);
	pin(cpus[1]);
	spin_ms(10);
	nanosleep(&t, NULL);
}

/* Starts a process that is always busy on the CPU of this one. */
static pid_t start_rival(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			;
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

PROBED static void start_op_and_spin(void)
{
	op_start(0x1000);
	spin_ms(10);
	__asm__ volatile("" ::: "memory");
}

/* The next call starts when the function of the operator has already returned. */
static void *start_op(void *arg)
{
	pin(cpus[0]);
	on_enter("outer");
	start_op_and_spin();
	on_enter("inner");
	on_exit_api();
	on_exit_api();
	return arg;
}

static void end_elsewhere(void)
{
	const struct timespec t = {.tv_nsec = 20 * MS};
	pthread_t thread;

	pin(cpus[1]);
	if (pthread_create(&thread, NULL, start_op, NULL))
		abort();
	pthread_join(thread, NULL);
	nanosleep(&t, NULL);
	op_end(0x1000);
}

static void nothing(void)
{
}

/* ---- tests */

static void test_alone(void)
{
	const struct mxbpf_account *a;

	TEST("a span that stays on its CPU counts as on CPU for its whole duration, and its record has the short form")
	{
		unsigned i;

		for (i = 0; i < 100; i++) {
			a = account_of(nothing, STALE_NS);
			if (!(a->nvcsw | a->nivcsw | a->minflt | a->majflt))
				break;
		}
		CHECK(i < 100 && sizes[0] == MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN) &&
		      a->on_cpu_ns == spans[0].dur_ns);
		CHECK(a->end_cpu == spans[0].cpu && spans[0].cpu == cpus[0]);
	}
	TEST("a span that works and sleeps has the kernel's time on CPU, and the rest is blocked time")
	{
		a = account_of(sleep_often, STALE_NS);
		/*
		 * The timer may fire before the thread has gone to sleep; account_of() compares the count with the
		 * kernel's.
		 */
		CHECK(a->nvcsw >= 10 && least(a->on_cpu_ns, 20 * MS) && least(a->blocked_ns, 80 * MS) && !a->flags);
	}
	TEST("page faults on newly mapped memory are counted as minor faults")
	{
		a = account_of(touch_pages, STALE_NS);
		CHECK(a->minflt >= PAGES);
	}
	TEST("page faults that read from disk are counted as major faults, and the thread is blocked meanwhile")
	{
		cold = map_cold();
		if (cold) {
			a = account_of(read_cold, STALE_NS);
			/*
			 * Another process may have read the pages in the meantime. Then the kernel counts no major
			 * fault.
			 */
			if (inner[MAJFLT] && inner[NVCSW])
				CHECK(a->majflt && a->nvcsw && a->blocked_ns);
			else
				printf("# the reads caused no major fault: not checked\n");
		} else {
			printf("# this file system keeps its pages in memory: not checked\n");
		}
	}
}

static void test_with_others(void)
{
	const struct mxbpf_account *a;
	pthread_t thread;
	pid_t rival;

	TEST("a span that another process keeps from its CPU has run-queue wait")
	{
		rival = start_rival();
		a = account_of(spin, STALE_NS);
		stop(rival);
		CHECK(a->nivcsw && least(a->runq_ns, 5 * MS) && least(a->on_cpu_ns, 60 * MS) &&
		      a->blocked_ns < a->on_cpu_ns);
	}
	TEST("a span that waits for a lock is blocked")
	{
		pthread_barrier_init(&held, NULL, 2);
		if (pthread_create(&thread, NULL, hold, NULL))
			abort();
		a = account_of(wait_for_lock, STALE_NS);
		pthread_join(thread, NULL);
		CHECK(a->nvcsw && least(a->blocked_ns, 30 * MS) && a->on_cpu_ns < a->blocked_ns);
	}
	TEST("a span that moves to another CPU is marked as migrated, and its error stays within the documented bound")
	{
		a = account_of(move, MXBPF_ACCOUNT_SLACK_NS);
		CHECK(a->flags == MXBPF_ACCOUNT_MIGRATED && spans[0].cpu == cpus[0] && a->end_cpu == cpus[1]);
	}
	TEST("an operator that ends on another thread has the account of its first thread and the CPU of the other")
	{
		const struct mxbpf_span *s;

		watch(end_elsewhere);
		s = &spans[nspans - 1];
		a = &s->account;
		CHECK(nspans == 3 && s->cls == MXBPF_CLASS_OPERATOR && s->flags & MXBPF_SPAN_ASYNC);
		CHECK(s->tid != s->end_tid && s->cpu == cpus[0] && a->end_cpu == cpus[1]);
		CHECK(a->flags == MXBPF_ACCOUNT_PART && least(a->on_cpu_ns, 10 * MS));
		CHECK(least(s->dur_ns - a->on_cpu_ns - a->runq_ns - a->blocked_ns, 20 * MS));
	}
}

static void test_without(void)
{
	TEST("a session without accounts records none")
	{
		account = false;
		body = nothing;
		watch(one_call);
		CHECK(nspans == 1 && !spans[0].flags && sizes[0] == MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN) &&
		      !spans[0].account.on_cpu_ns);
	}
}

static bool find_cpus(void)
{
	cpu_set_t set;
	int cpu, n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return false;
	for (cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			cpus[n++] = cpu;
	return n == 2;
}

int main(void)
{
	struct err e = {0};

	if (!att_pick(NULL, &e) || !find_cpus()) {
		char name[600];

		snprintf(name, sizeof(name), "accounts of spans # SKIP %s", e.why[0] ? e.why : "needs two CPUs");
		TEST(name)
		{
		}
		UNIT_MAIN_END;
	}
	emulated = getenv("MXBPF_TEST_EMULATED");
	make_plan();
	pin(cpus[0]);
	test_alone();
	test_with_others();
	test_without();
	leave_session();
	UNIT_MAIN_END;
}
