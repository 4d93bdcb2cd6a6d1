/* SPDX-License-Identifier: Apache-2.0 */
/* The part of test_gpu_agent.c about the functions that the agent puts in the place of others. It uses what stands
 * before. */
#ifndef TEST_GPU_HOOKS_H
#define TEST_GPU_HOOKS_H

#include <sys/resource.h>

/* ---- dlsym */

static void *cupti_lib, *ops_lib;

static const struct {
	void *handle, **lib;
	const char *name;
	bool hooked;
} looked_up[] = {
	{NULL, &cupti_lib, "cuptiSubscribe", true},
	{NULL, &cupti_lib, "cuptiActivityDisable", true},
	{RTLD_DEFAULT, NULL, "cuptiSubscribe", true},
	{RTLD_NEXT, NULL, "cuptiSubscribe", false},
	{NULL, &ops_lib, "cuptiSubscribe", false}, /* not in this library */
	{NULL, &cupti_lib, "cuptiGetVersion", false},
	{NULL, &cupti_lib, "cuptiNowhere", false},
	{RTLD_DEFAULT, NULL, "cuptiNowhere", false},
	{RTLD_NEXT, NULL, "cuptiNowhere", false},
	{NULL, &cupti_lib, "cupti", false},
	{NULL, &cupti_lib, "cup", false},
	{NULL, &cupti_lib, "", false},
	{NULL, &ops_lib, "gpuops_launch", false},
	{NULL, &ops_lib, "nowhere", false},
	{RTLD_DEFAULT, NULL, "dl_iterate_phdr", false}, /* this program's */
	{RTLD_NEXT, NULL, "dl_iterate_phdr", false},	/* libc's */
	{RTLD_DEFAULT, NULL, "dlsym", false},
	{RTLD_NEXT, NULL, "nowhere", false},
};
#define LOOKED_UP (sizeof(looked_up) / sizeof(looked_up[0]))

struct found {
	void *at;
	char error[200];
};

static void look_up(struct found found[LOOKED_UP])
{
	const char *error;
	unsigned i;

	for (i = 0; i < LOOKED_UP; i++) {
		dlsym(ops_lib, "an error that nobody has asked for");
		found[i].at = dlsym(looked_up[i].lib ? *looked_up[i].lib : looked_up[i].handle, looked_up[i].name);
		error = dlerror();
		snprintf(found[i].error, sizeof(found[i].error), "%s", error ? error : "none");
		CHECK(!dlerror());
	}
}

static void test_dlsym(void)
{
	static struct found before[LOOKED_UP], after[LOOKED_UP];
	void *version = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	unsigned i;

	open_ops();
	cupti_lib = open_lib("libcupti.so.12");
	ops_lib = open_lib("libgpuops.so");
	launch("a", 1000, 1);
	open_agent();
	look_up(before);
	CHECK(begin());
	look_up(after);
	for (i = 0; i < LOOKED_UP; i++) {
		const bool same = before[i].at == after[i].at;

		if (same == looked_up[i].hooked || strcmp(before[i].error, after[i].error) ||
		    !before[i].at != !after[i].at) {
			printf("# %u %s: %p, %s; %p, %s\n", i, looked_up[i].name, before[i].at, before[i].error,
			       after[i].at, after[i].error);
			CHECK(false);
		}
	}
	CHECK(before[0].at != after[0].at && before[0].at == after[3].at);
	CHECK(before[14].at && before[15].at && before[14].at != before[15].at);
	CHECK(version && version == dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
	CHECK(!dlvsym(cupti_lib, "cuptiSubscribe", "nowhere") && dlerror());
	CHECK(end());
	CHECK(dlsym(cupti_lib, "cuptiSubscribe") == after[0].at); /* as the import tables, it stays */
}

/* ---- a start that fails */

static void test_start(void)
{
	struct rlimit before, none = {0};
	struct mxbpf_agent_config *config;
	long (*start)(uint64_t modules);
	void *lib = agent_lib();

	open_ops();
	open_lib("libcupti.so.12");
	launch("a", 1000, 1);
	get(lib, MXBPF_AGENT_START, &start);
	get(lib, MXBPF_AGENT_CONFIG, &config);
	get(lib, MXBPF_AGENT_SWITCH, &heard);
	*heard = 1;
	CHECK(!start(0));
	gpu = &((struct mxbpf_agent_shared *)(uintptr_t)config->shared)->gpu;
	CHECK(!getrlimit(RLIMIT_AS, &before));
	none.rlim_max = before.rlim_max;
	CHECK(!setrlimit(RLIMIT_AS, &none)); /* no memory for the stack of a thread */
	CHECK(start(MXBPF_AGENT_MODULE_GPU));
	CHECK(!setrlimit(RLIMIT_AS, &before));
	CHECK(!gpu->thread && gpu->state == MXBPF_GPU_FAILED && gpu->failed == MXBPF_GPU_AT_THREAD && gpu->result);
	CHECK(!start(MXBPF_AGENT_MODULE_GPU));
	CHECK(begin() && !gpu->failed && !gpu->result);
	CHECK(end());
}

/* ---- a forked child has neither the agent's thread nor what that holds */

static bool child_is_new(void)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child) {
		waitpid(child, &status, 0);
		return !status;
	}
	unit_bad = 0;
	burst(10); /* fails, and nobody records it */
	open_agent();
	CHECK(gpu->state == MXBPF_GPU_OFF && !gpu->others);
	CHECK(want_all(MXBPF_GPU_NO_CUDA)); /* set by the thread of this process; CUDA does not work here */
	CHECK(end() && !gpu->subscriptions && !gpu->records);
	fflush(stdout);
	_exit(unit_bad ? 1 : 0);
}

static void test_forked(void)
{
	open_window();
	CHECK(child_is_new());
	burst(100);
	sync_all();
	CHECK(child_is_new());
	CHECK(gpu->state == MXBPF_GPU_ON && end());
	CHECK(account->delivered[KIND_KERNEL] == 100 && gpu->records >= 300);
	CHECK(child_is_new());
	CHECK(begin() && end());
}

/* ---- what other clients have enabled */

static struct {
	int (*enable)(int kind), (*disable)(int kind);
	int (*driver)(uint32_t cbid, uint8_t on), (*runtime)(uint32_t cbid, uint8_t on);
} other;

/* Each function here is called after others have, so that the agent has let go. */
static void twice_off_once(void)
{
	other.enable(KIND_KERNEL);
	other.enable(KIND_KERNEL);
	other.driver(307, 1);
	other.driver(307, 1);
	other.runtime(211, 1);
	other.driver(307, 0);
	other.runtime(211, 0);
}

static void end_twice(void)
{
	other.disable(KIND_KERNEL);
}

static void functions_only(void)
{
	other.driver(307, 1);
	other.driver(652, 0); /* was not enabled */
	other.runtime(211, 1);
	other.runtime(10, 0);
	other.runtime(211, 0);
}

static void end_kind(void)
{
	other.disable(KIND_DRIVER);
}

static void all_functions(void)
{
	other.driver(307, 1);
	other.driver(652, 1);
	other.runtime(211, 1);
	other.disable(KIND_DRIVER);
}

static void end_function(void)
{
	other.runtime(211, 0);
}

static void test_functions(void)
{
	static void (*const traces[][2])(void) = {
		{twice_off_once, end_twice}, {functions_only, end_kind}, {all_functions, end_function}};
	uint32_t subscriptions;
	unsigned i, n;
	void *lib;

	lib = open_job();
	gpu->again_ms = 20;
	CHECK(begin());
	get(lib, "cuptiActivityEnable", &other.enable);
	get(lib, "cuptiActivityDisable", &other.disable);
	get(lib, "cuptiActivityEnableDriverApi", &other.driver);
	get(lib, "cuptiActivityEnableRuntimeApi", &other.runtime);
	for (i = 0; i < sizeof(traces) / sizeof(traces[0]); i++) {
		traces[i][0]();
		CHECK(gpu->state == MXBPF_GPU_YIELDED);
		subscriptions = gpu->subscriptions;
		for (n = 0; n < 100; n++) /* ten times as long as the agent would wait */
			nap();
		CHECK(gpu->subscriptions == subscriptions);
		traces[i][1]();
		CHECK(reach(MXBPF_GPU_ON));
	}
	CHECK(end());
}

/* A client that only subscribes comes and goes while another one has a trace, which began before mxbpf attached. */
static void test_unsubscribe(void)
{
	int (*subscribe)(void **handle, void *callback, void *data), (*unsubscribe)(void *handle);
	const double again = 0.15;
	void *lib, *handle;
	double begun;

	open_ops();
	lib = open_lib("libcupti.so.12");
	open_kineto();
	launch("a", 1000, 1);
	CHECK(!kineto_start());
	open_agent();
	gpu->again_ms = (uint32_t)(again * 1000);
	CHECK(want_all(MXBPF_GPU_BUSY));
	get(lib, "cuptiSubscribe", &subscribe);
	get(lib, "cuptiUnsubscribe", &unsubscribe);
	CHECK(!subscribe(&handle, NULL, NULL) && !unsubscribe(handle));
	begun = now();
	while (now() < begun + 3 * again)
		nap();
	CHECK(!gpu->subscriptions || now() > begun + 12 * again); /* then a trace counts as ended */
}

/* Proton looks functions up in the libcupti of Triton, not in that of PyTorch. */
static void test_elsewhere(void)
{
	void *lib, *theirs;

	open_ops();
	open_lib("libcupti.so.12");
	lib = open_lib("old/libcupti.so.11.8");
	theirs = dlsym(lib, "cuptiUnsubscribe");
	launch("a", 1000, 1);
	open_agent();
	gpu->again_ms = 20;
	CHECK(begin());
	CHECK(!dlsym(lib, "cuptiNone") && gpu->state == MXBPF_GPU_ON);
	CHECK(theirs && dlsym(lib, "cuptiUnsubscribe") == theirs && gpu->state != MXBPF_GPU_ON);
	CHECK(account->subscriptions == 1 && account->unsubscriptions == 1);
	CHECK(reach(MXBPF_GPU_BUSY) && gpu->failed == MXBPF_GPU_AT_ELSEWHERE && account->subscriptions == 1);
}

static void test_proton(void)
{
	char command[2 * PATH];

	snprintf(command, sizeof(command), "cp '%s/gpu/libgpucost.so' %s/libproton.so", dir, work);
	CHECK(!system(command));
	open_ops();
	open_lib("libcupti.so.12");
	snprintf(command, sizeof(command), "%s/libproton.so", work);
	CHECK(dlopen(command, RTLD_NOW));
	launch("a", 1000, 1);
	open_agent();
	CHECK(want_all(MXBPF_GPU_BUSY) && gpu->failed == MXBPF_GPU_AT_ELSEWHERE && !account->subscriptions);
}

#endif
