// SPDX-License-Identifier: Apache-2.0
/*
 * The agent as a client of CUPTI, with the mock of tests/gpu/double, which ends a process that breaks a rule. Each
 * test runs in a process of its own, because libraries keep their state. This program takes the part of mxbpf: it sets
 * what is wanted in the shared memory. Where the records count, they go into a file.
 */
#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "../gpu/double/double.h"
#include "mxbpf_agent.h"
#include "sandbox/sandbox.h"
#include "unit.h"

#define ALL	(MXBPF_GPU_WANT_KERNELS | MXBPF_GPU_WANT_CALLS | MXBPF_GPU_WANT_DRIVER)
#define WAIT_S	20
#define PATH	400
#define LOG_MAX (4 << 20)

static char dir[PATH / 2], work[] = "/tmp/test_gpu_agent.XXXXXX";
static struct mxbpf_gpu_shared *gpu;
static volatile uint16_t *heard;
static struct double_account *account;

/* ---- libraries of the mock */

static uint64_t (*launch)(const char *name, uint64_t ns, unsigned stream);
static void (*burst)(long n);
static uint64_t (*launch_torch)(const char *name, uint64_t ns, unsigned stream);
static int (*query)(unsigned stream);
static int (*sync_all)(void), (*sync_driver)(void);
static int (*kineto_start)(void);
static long (*kineto_stop)(void);
static long (*kineto_foreign)(void), (*kineto_absurd)(void);
static void (*kineto_mode)(int mode);

static void *open_lib(const char *name)
{
	char path[PATH];
	void *lib;

	snprintf(path, sizeof(path), "%s/gpu/%s", dir, name);
	lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!lib)
		printf("# %s\n", dlerror());
	return lib;
}

static void get(void *lib, const char *name, void *to)
{
	void *at = lib ? dlsym(lib, name) : NULL;

	if (!at) {
		printf("# no %s\n", name);
		_exit(3);
	}
	memcpy(to, &at, sizeof(at));
}

static void open_ops(void)
{
	void *ops = open_lib("libgpuops.so");
	struct double_account *(*account_of)(void);

	get(ops, "double_account", &account_of);
	account = account_of();
	get(ops, "gpuops_launch", &launch);
	get(ops, "gpu_burst", &burst);
	get(ops, "gpuops_sync", &sync_all);
	get(ops, "gpuops_sync_driver", &sync_driver);
	get(ops, "gpuops_launch_torch", &launch_torch);
	get(ops, "gpuops_query", &query);
}

static const char *kineto_name = "libkineto_double.so";

static void open_kineto(void)
{
	void *lib = open_lib(kineto_name);

	get(lib, "kineto_start", &kineto_start);
	get(lib, "kineto_stop", &kineto_stop);
	get(lib, "kineto_mode", &kineto_mode);
	get(lib, "kineto_foreign", &kineto_foreign);
	get(lib, "kineto_absurd", &kineto_absurd);
}

/* ---- the agent */

static void *agent_lib(void)
{
	char path[PATH];
	void *lib;

	snprintf(path, sizeof(path), "%s/gen/agent.so", dir);
	lib = dlopen(path, RTLD_NOW);
	if (!lib)
		printf("# %s\n", dlerror());
	return lib;
}

static void open_agent(void)
{
	void *lib = agent_lib();
	struct mxbpf_agent_config *config;
	long (*start)(uint64_t modules);

	get(lib, MXBPF_AGENT_START, &start);
	get(lib, MXBPF_AGENT_CONFIG, &config);
	get(lib, MXBPF_AGENT_SWITCH, &heard);
	*heard = 1;
	CHECK(!start(MXBPF_AGENT_MODULE_GPU));
	gpu = &((struct mxbpf_agent_shared *)(uintptr_t)config->shared)->gpu;
}

static void want(uint32_t what)
{
	__atomic_store_n(&gpu->want, what, __ATOMIC_RELEASE);
	syscall(SYS_futex, &gpu->want, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(void)
{
	const struct timespec t = {.tv_nsec = 2000000};

	nanosleep(&t, NULL);
}

static bool reach(uint32_t state)
{
	const double until = now() + WAIT_S;

	while (__atomic_load_n(&gpu->state, __ATOMIC_ACQUIRE) != state && now() < until)
		nap();
	if (gpu->state != state)
		printf("# state %u, failed %u, result %u\n", gpu->state, gpu->failed, gpu->result);
	return gpu->state == state;
}

static bool want_all(uint32_t state)
{
	want(ALL);
	return reach(state);
}

/* Opens a window, and closes it again. */
static bool begin(void)
{
	return want_all(MXBPF_GPU_ON);
}

static bool end(void)
{
	want(0);
	return reach(MXBPF_GPU_OFF);
}

/* Starts the agent in a process that has launched a kernel. Returns CUPTI. */
static void *open_job(void)
{
	void *cupti;

	open_ops();
	cupti = open_lib("libcupti.so.12");
	launch("a", 1000, 1);
	open_agent();
	return cupti;
}

static void open_window(void)
{
	open_job();
	CHECK(begin());
}

/* ---- the mock's log of calls */

static char log_text[LOG_MAX];

static const char *read_log(void)
{
	char path[PATH];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/log", work);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? 0 : read(fd, log_text, sizeof(log_text) - 1);
	log_text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return log_text;
}

static unsigned calls_of(const char *function)
{
	char what[96];
	const char *at = read_log();
	unsigned n = 0;

	snprintf(what, sizeof(what), " %s(", function);
	for (; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* ---- tests: each runs in its process */

static int run(void (*test)(void), const char *words, const char *version);

static void test_window(void)
{
	open_ops();
	open_lib("libcupti.so.12");
	launch("before", 1000, 1);
	open_agent();
	CHECK(!calls_of("cuptiSubscribe") && gpu->state == MXBPF_GPU_OFF);
	CHECK(begin());
	launch("in it", 1000, 1);
	sync_all();
	CHECK(end());
	CHECK(gpu->subscriptions == 1 && gpu->records >= 3);
	CHECK(calls_of("cuptiSubscribe") == 1 && calls_of("cuptiUnsubscribe") == 1);
	CHECK(begin());
	CHECK(end());
	CHECK(calls_of("cuptiSubscribe") == 2 && calls_of("cuptiUnsubscribe") == 2);
	CHECK(!calls_of("cuptiFinalize"));
}

static void test_windows(void)
{
	int (*get_type)(int *type), (*set_type)(int type), type;
	unsigned i;
	void *lib;

	open_ops();
	lib = open_lib("libcupti.so.12");
	get(lib, "cuptiGetThreadIdType", &get_type);
	get(lib, "cuptiSetThreadIdType", &set_type);
	launch("a", 1000, 1);
	open_agent();
	for (i = 0; i < 10; i++) {
		set_type(i & 1);
		CHECK(begin());
		burst(100);
		CHECK(end());
		CHECK(!account->left_functions && !account->left_enabled);
		CHECK(!get_type(&type) && type == (int)(i & 1));
		burst(100);
	}
	CHECK(gpu->subscriptions == 10 && !account->idle_callbacks);
	CHECK(calls_of("cuptiActivityEnableAllSyncRecords") == 20);
	CHECK(strstr(log_text, "AllSyncRecords(0)") < strstr(log_text, "AllSyncRecords(1)"));
	CHECK(account->delivered[KIND_KERNEL] && account->delivered[KIND_RUNTIME] && account->delivered[KIND_DRIVER]);
}

/* What PyTorch calls for a launch: that of the runtime and that of the driver in it have records, and no others. */
static void test_few_calls(void)
{
	unsigned i;

	open_window();
	for (i = 0; i < 100; i++)
		launch_torch("a", 1000, 1);
	sync_driver();
	CHECK(end());
	CHECK(account->delivered[KIND_KERNEL] == 100 && account->delivered[KIND_RUNTIME] == 100);
	CHECK(account->delivered[KIND_DRIVER] == 101); /* with cuCtxSynchronize_v2 */
}

/* mxbpf is killed: the kernel clears the switch, and nobody changes what is wanted. */
static void test_killed(void)
{
	open_window();
	*heard = 0;
	CHECK(reach(MXBPF_GPU_OFF));
	CHECK(calls_of("cuptiUnsubscribe") == 1);
	*heard = 1;
	want(0);
	CHECK(begin());
	CHECK(end());
}

static void trace(int mode)
{
	open_ops();
	open_lib("libcupti.so.12");
	open_kineto();
	kineto_mode(mode);
	launch("a", 1000, 1);
	open_agent();
	CHECK(begin());
	burst(100);
	CHECK(!kineto_start());
	CHECK(gpu->state == MXBPF_GPU_YIELDED && gpu->others);
	burst(1000);
	sync_all();
	CHECK(kineto_stop() == 1000);
	CHECK(!calls_of("cuptiFinalize"));
}

static void test_kineto_new(void)
{
	trace(1);
	gpu->again_ms = 50;
	CHECK(reach(MXBPF_GPU_ON)); /* it is asked for again, and Kineto has left */
	burst(100);
	CHECK(end());
	CHECK(!kineto_start()); /* and Kineto works afterwards */
	burst(50);
	sync_all();
	CHECK(kineto_stop() == 50);
}

static void test_kineto_old(void)
{
	trace(0);
	gpu->again_ms = 50;
	CHECK(reach(MXBPF_GPU_BUSY)); /* Kineto keeps it */
	CHECK(gpu->result == 39);
	CHECK(!kineto_start());
	burst(70);
	sync_all();
	CHECK(kineto_stop() == 70);
	want(0);
	CHECK(reach(MXBPF_GPU_OFF));
}

static void test_kineto_first(void)
{
	open_ops();
	open_lib("libcupti.so.12");
	open_kineto();
	launch("a", 1000, 1);
	CHECK(!kineto_start());
	open_agent();
	CHECK(want_all(MXBPF_GPU_BUSY));
	burst(500);
	sync_all();
	CHECK(kineto_stop() == 500);
	CHECK(!gpu->subscriptions && calls_of("cuptiActivityRegisterCallbacks") == 1);
}

#include "gpu_orders.h"
#include "gpu_hooks.h"

static void test_holder(void)
{
	open_job();
	CHECK(want_all(MXBPF_GPU_BUSY));
	CHECK(!strcmp(gpu->holder, "nsys"));
}

static void test_no_calls(void)
{
	open_window();
	burst(100);
	CHECK(end());
	CHECK(!calls_of("cuptiActivityRegisterTimestampCallback") && !calls_of("cuptiFinalize"));
	CHECK(!strstr(read_log(), "cuptiActivityEnable(51)") && !strstr(log_text, "cuptiActivityEnable(3)"));
	CHECK(strstr(log_text, "cuptiActivityEnable(10)"));
}

static void test_cuinit(void)
{
	open_ops();
	open_lib("libcupti.so.12");
	open_agent();
	CHECK(want_all(MXBPF_GPU_NO_CUDA));
	CHECK(!*read_log());
	launch("a", 1000, 1);
	CHECK(reach(MXBPF_GPU_ON));
	CHECK(gpu->ndevices && gpu->devices[0].multiprocessors && gpu->devices[0].name[0]);
	CHECK(end());
}

/* CUPTI hands buffers over late, so it asks for more than there are. */
static void test_buffers(void)
{
	open_job();
	gpu->buffers_max = 1;
	CHECK(begin());
	burst(30000);
	sync_all();
	CHECK(end());
	CHECK(gpu->version < 27 ? gpu->scrapped : gpu->dropped);
}

/* Kernels of 60 ms are queued for 300 ms and more when the window closes, and no call waits for them. */
static void test_queue(void)
{
	int i;

	open_window();
	for (i = 0; i < 6; i++)
		launch("queued", 60000000, 1);
	CHECK(end());
	CHECK(gpu->records >= 18 && !gpu->unreadable);
	CHECK(calls_of("cuptiActivityFlushAll") == gpu->flushes);
}

/*
 * One kernel runs until the end of each buffer at least, as in every program that always has work queued. What was
 * launched first must not wait for what is launched last.
 */
static void test_held_back(void)
{
	double until;
	int i;

	open_window();
	until = now() + 0.7;
	for (i = 0; i < 1400; i++)
		launch("queued", 500000, 1);
	while (!__atomic_load_n(&gpu->records, __ATOMIC_RELAXED) && now() < until)
		nap();
	CHECK(gpu->records > 0 && gpu->records < 3 * 1400 && gpu->oldest_ns);
	CHECK(end());
	CHECK(!gpu->oldest_ns);
}

/* A kernel runs longer than the window, and CUPTI cannot say how many records are behind its own. */
static void test_unreadable(void)
{
	uint64_t all;
	int i;

	open_window();
	for (i = 0; i < 50; i++)
		launch("before", 1000, 1);
	launch("long", 3600000000000ull, 2);
	for (i = 0; i < 100; i++)
		launch("behind", 1000, 1);
	CHECK(end());
	all = gpu->records + gpu->unreadable + gpu->unknown;
	CHECK(gpu->records >= 100 && gpu->records <= 153);
	CHECK(gpu->unreadable > 200 && all > 400 && all < 500); /* of 453 and CUPTI's own */
	CHECK(!gpu->dropped && !gpu->scrapped);
}

static void *subscribe_too(void *result)
{
	*(int *)result = kineto_start();
	return NULL;
}

static void test_slow(void)
{
	pthread_t thread;
	int result = -1;

	open_ops();
	open_lib("libcupti.so.12");
	open_kineto();
	launch("a", 1000, 1);
	open_agent();
	CHECK(want_all(MXBPF_GPU_SUBSCRIBING));
	launch("while it subscribes", 1000, 1); /* nobody waits for the agent */
	CHECK(gpu->state == MXBPF_GPU_SUBSCRIBING);
	pthread_create(&thread, NULL, subscribe_too, &result);
	pthread_join(thread, NULL);
	CHECK(!result && gpu->state == MXBPF_GPU_YIELDED);
	burst(10);
	sync_all();
	CHECK(kineto_stop() == 10);
}

/* The process ends while CUPTI does not return. */
static void test_exit(void)
{
	open_job();
	CHECK(want_all(MXBPF_GPU_SUBSCRIBING));
	exit(unit_bad ? 1 : 0);
}

static void test_anew(void)
{
	const double until = now() + WAIT_S;

	open_job();
	gpu->records_max = 5000;
	CHECK(begin());
	while (gpu->subscriptions < 3 && now() < until)
		burst(1000);
	CHECK(gpu->subscriptions >= 3);
	CHECK(reach(MXBPF_GPU_ON));
	CHECK(end());
}

/* The object that the last walk through the list of objects came to; the agent's walks pass here, too. */
static uint32_t walked;

struct walk {
	int (*callback)(struct dl_phdr_info *info, size_t bytes, void *ctx);
	void *ctx;
	uint32_t objects;
};

static int on_walk(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	struct walk *w = ctx;

	w->objects++;
	return w->callback(info, bytes, w->ctx);
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *info, size_t bytes, void *ctx), void *ctx)
{
	int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
	struct walk w = {callback, ctx, 0};
	int result;

	get(RTLD_NEXT, "dl_iterate_phdr", &next);
	result = next(on_walk, &w);
	__atomic_store_n(&walked, w.objects, __ATOMIC_RELAXED);
	return result;
}

static void test_walk(void)
{
	const double until = now() + WAIT_S;

	open_ops();
	open_kineto();
	launch("a", 1000, 1);
	open_agent();
	CHECK(begin());
	while (__atomic_load_n(&walked, __ATOMIC_RELAXED) != 1 && now() < until)
		nap();
	CHECK(walked == 1);
	CHECK(end());
}

static void test_library(void)
{
	char path[PATH];

	open_ops();
	launch("a", 1000, 1);
	open_agent();
	snprintf(path, sizeof(path), "%s/gpu/libcupti.so.12", dir);
	memcpy(gpu->library, path, strlen(path) + 1);
	CHECK(begin());
	CHECK(!strcmp(gpu->path, path));
	CHECK(end());
}

static void test_no_library(void)
{
	open_ops();
	launch("a", 1000, 1);
	open_agent();
	memcpy(gpu->library, "/nowhere/libcupti.so", 21);
	CHECK(want_all(MXBPF_GPU_FAILED));
	CHECK(gpu->failed == MXBPF_GPU_AT_LIBRARY);
}

static void test_threads(void)
{
	open_window();
	CHECK(gpu->foreign_tids);
	CHECK(end());
}

static uint32_t expected;

static void test_code(void)
{
	open_job();
	CHECK(want_all(expected == 39 ? MXBPF_GPU_BUSY : MXBPF_GPU_FAILED));
	CHECK(gpu->result == expected);
	CHECK(!gpu->subscriptions && calls_of("cuptiUnsubscribe") <= 1);
}

/* ---- processes */

static int run(void (*test)(void), const char *words, const char *version)
{
	char path[PATH];
	pid_t child;
	int status;

	snprintf(path, sizeof(path), "%s/log", work);
	unlink(path);
	fflush(stdout);
	child = fork();
	if (!child) {
		setenv("MXBPF_DOUBLE", words, 1);
		setenv("MXBPF_DOUBLE_VERSION", version ? version : "130001", 1);
		setenv("MXBPF_DOUBLE_LOG", path, 1);
		unit_bad = 0;
		test();
		fflush(stdout);
		_exit(unit_bad ? 1 : 0);
	}
	waitpid(child, &status, 0);
	if (status)
		printf("# status %x\n", status);
	return status;
}

static const struct {
	const char *word;
	uint32_t code;
} codes[] = {
	{"permissions", 35},
	{"permissions-virtual", 40},
	{"virtual", 33},
	{"mig", 43},
	{"mps", 31},
	{"confidential", 41},
	{"cmp", 42},
	{"sli", 44},
	{"wsl", 45},
	{"old-profiler", 36},
	{"legacy-device", 38},
	{"incompatible", 14},
	{"not-supported", 27},
	{"hardware-busy", 26},
	{"out-of-memory", 8},
	{"compute-sanitizer", 39},
	{"other-tool", 39},
	{"version", 34},
	{"not-initialized", 15},
	{"unknown", 999},
	{"no-privilege-subscribe", 35},
};

int main(int argc, char **argv)
{
	unsigned i;

	snprintf(dir, sizeof(dir), "%.*s/..", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	(void)argc;
	CHECK(mkdtemp(work) != NULL);
	TEST("CUPTI is held only while a window is open, and is never finalised")
	CHECK(!run(test_window, "", NULL) &&
	      !run(test_window, "", "139900")); /* a version that is not known yet, too */
	TEST("After ten windows CUPTI runs at no call of CUDA, and numbers threads as before")
	CHECK(!run(test_windows, "", NULL));
	CHECK(!run(test_windows, "", "26"));
	TEST("Only calls that launch, wait or allocate have records, those of CUDA 13 as well")
	CHECK(!run(test_few_calls, "", NULL));
	TEST("CUPTI is let go when mxbpf is killed, and held again by the next mxbpf")
	CHECK(!run(test_killed, "", NULL));
	TEST("A profiler that subscribes at each trace gets CUPTI with all its kernels, and mxbpf comes back after it")
	CHECK(!run(test_kineto_new, "", NULL));
	TEST("A profiler that subscribes once gets CUPTI with all its kernels, and keeps it")
	CHECK(!run(test_kineto_old, "", NULL));
	TEST("A profiler that was there first loses nothing, and its callbacks are not replaced")
	CHECK(!run(test_kineto_first, "", NULL));
	TEST("In every order of a window, a trace of the job's profiler and a second subscriber, mxbpf changes nothing "
	     "for "
	     "them, and has all kernels or says why it has none")
	CHECK(run_orders());
	TEST("dlsym() gives other objects what it gave them before, but for the functions of CUPTI that the agent "
	     "watches")
	CHECK(!run(test_dlsym, "", NULL));
	TEST("mxbpf comes back when other clients have disabled what they had enabled, kinds and single functions")
	CHECK(!run(test_functions, "", NULL));
	TEST("A client that unsubscribes does not end the trace of another one")
	CHECK(!run(test_unsubscribe, "", NULL));
	TEST("If a client looks up functions of another libcupti, the agent has left before it gets them, and stays "
	     "away")
	CHECK(!run(test_elsewhere, "", NULL));
	TEST("In a process with a profiler that brings its own libcupti, the agent leaves CUPTI alone")
	CHECK(!run(test_proton, "", NULL));
	TEST_IF(!sbx_disturbs(),
		"If the agent has no memory for its thread, it says so, and the next start tries again",
		"a sanitizer needs the memory itself")
	CHECK(!run(test_start, "", NULL));
	TEST("A forked child has an agent of its own when mxbpf attaches to it, and the parent's goes on")
	CHECK(!run(test_forked, "", NULL));
	TEST("The holder of CUPTI is named if CUPTI tells it")
	CHECK(!run(test_holder, "busy,holder=nsys", "130500"));
	TEST("A version without names of holders is busy without a name")
	CHECK(!run(test_kineto_first, "", "18"));
	TEST("No timestamp callback is registered, nothing is finalised, no graph level and no serial kernels are "
	     "enabled")
	CHECK(!run(test_no_calls, "", NULL));
	TEST("Nothing of CUPTI is called before the process initialises CUDA")
	CHECK(!run(test_cuinit, "", NULL));
	TEST("CUPTI always gets a buffer in versions that crash without one, and what is lost is counted")
	CHECK(!run(test_buffers, "late", "18") && !run(test_buffers, "late", "130001"));
	TEST("Work that is queued when the window closes is recorded")
	CHECK(!run(test_queue, "", NULL));
	TEST("CUPTI hands records over while the program always has work queued")
	CHECK(!run(test_held_back, "", NULL));
	TEST("Records that are incomplete at the end of a window are counted, and those behind them")
	CHECK(!run(test_unreadable, "", NULL));
	TEST("While subscribing takes seconds, nobody waits but another client, which then gets CUPTI")
	CHECK(!run(test_slow, "slow-subscribe=1", NULL));
	TEST("A process ends at most a second later although CUPTI does not return to the agent")
	{
		const double begun = now();

		CHECK(!run(test_exit, "slow-subscribe=60", NULL));
		CHECK(now() - begun < 30);
	}
	TEST("After a number of records the agent subscribes anew")
	CHECK(!run(test_anew, "", NULL));
	TEST("Without a libcupti in the process, the one that mxbpf names is loaded")
	CHECK(!run(test_library, "", NULL));
	TEST("While no object comes or goes, the agent does not hold the loader's lock for the whole list of objects")
	CHECK(!run(test_walk, "", NULL));
	TEST("A libcupti that cannot be loaded is reported")
	CHECK(!run(test_no_library, "", NULL));
	TEST("If CUPTI does not number threads as the system does, mxbpf learns it")
	CHECK(!run(test_threads, "cuptiSetThreadIdType=1", NULL));
	TEST("Every error of CUPTI is reported with its code, and leaves no subscription")
	{
		for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
			expected = codes[i].code;
			if (run(test_code, codes[i].word, NULL)) {
				printf("# %s\n", codes[i].word);
				CHECK(false);
			}
		}
	}
	snprintf(log_text, sizeof(log_text), "rm -rf %s", work);
	CHECK(!system(log_text));
	return unit_end();
}
