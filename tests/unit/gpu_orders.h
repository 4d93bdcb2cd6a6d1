/* SPDX-License-Identifier: Apache-2.0 */
/* The part of test_gpu_agent.c that has the job's own profiler and mxbpf in every order. It uses what stands before. */
#ifndef TEST_GPU_ORDERS_H
#define TEST_GPU_ORDERS_H

/*
 * The profiler of the job and a window of mxbpf in every order: S the trace starts, E it ends, A mxbpf attaches, W a
 * window opens, C it closes, G CUPTI delivers records to mxbpf, N it does not and mxbpf says why. Kernels are launched
 * between the letters.
 */
static const struct {
	const char *order, *subscribing; /* `order` where Kineto's subscription does not outlive its trace */
} orders[] = {
	{"SEAWG", "SEAWN"},	{"SAWNEC", "SAWNEC"},	  {"SAWNEG", "SAWNEN"},	      {"AWGSNEG", "AWGSNEN"},
	{"AWGSNCE", "AWGSNCE"}, {"AWGCSEWG", "AWGCSEWN"}, {"AWGCSWNEC", "AWGCSWNEC"}, {"ASEWG", "ASEWN"},
};
static const char *order_now;
static int mode_now;

static bool is_told(void)
{
	return gpu->holder[0] || gpu->state == MXBPF_GPU_YIELDED || gpu->result == 39;
}

static void do_step(char letter)
{
	bool held;

	switch (letter) {
	case 'S':
		held = gpu && gpu->state == MXBPF_GPU_ON;
		CHECK(!kineto_start());
		/* The agent has read its records before the clock of CUPTI is another one. */
		CHECK(!held || strstr(read_log(), " cuptiUnsubscribe") <
				       strstr(log_text, " cuptiActivityRegisterTimestampCallback"));
		account->launched[KIND_KERNEL] = 0;
		break;
	case 'E':
		sync_all();
		CHECK(kineto_stop() == (long)account->launched[KIND_KERNEL]);
		CHECK(!kineto_foreign() && !kineto_absurd());
		break;
	case 'A':
		open_agent();
		gpu->again_ms = 20;
		break;
	case 'W':
		want(ALL);
		break;
	case 'C':
		CHECK(end());
		break;
	case 'G':
		CHECK(reach(MXBPF_GPU_ON));
		break;
	case 'N':
		CHECK((gpu->state == MXBPF_GPU_YIELDED || reach(MXBPF_GPU_BUSY)) && is_told());
		break;
	}
}

static void test_order(void)
{
	const char *at;

	open_ops();
	open_lib("libcupti.so.12");
	open_kineto();
	kineto_mode(mode_now);
	launch("a", 1000, 1);
	for (at = order_now; *at; at++) {
		do_step(*at);
		burst(200);
		sync_all();
	}
	CHECK(!account->finalized && !account->mixed_versions && account->timestamp_registrations < 2);
}

/*
 * Older Kineto, which subscribes once; under dynolog it does not. Newer Kineto does not; with TEARDOWN_CUPTI it does.
 * XLA does so, too, and has no imports of CUPTI.
 */
static bool run_orders(void)
{
	static const struct {
		const char *name;
		bool stays; /* its subscription outlives a trace */
		int mode;
		const char *lib;
	} clients[] = {
		{"", true, 0, "libkineto_double.so"},
		{"KINETO_USE_DAEMON", false, 0, "libkineto_double.so"},
		{"", false, 3, "libkineto_double.so"},
		{"TEARDOWN_CUPTI", false, 3, "libkineto_double.so"},
		{"TEARDOWN_CUPTI", false, 3, "libkineto_dlsym.so"},
	};
	const char *name;
	unsigned i, k;
	bool good = true;

	for (i = 0; i < sizeof(clients) / sizeof(clients[0]); i++)
		for (k = 0; k < sizeof(orders) / sizeof(orders[0]); k++) {
			name = clients[i].name;
			mode_now = clients[i].mode;
			kineto_name = clients[i].lib;
			order_now = clients[i].stays ? orders[k].subscribing : orders[k].order;
			if (*name)
				setenv(name, "1", 1);
			if (run(test_order, "", NULL)) {
				printf("# %s, mode %d %s: %s\n", kineto_name, mode_now, name, order_now);
				good = false;
			}
			unsetenv(*name ? name : "x");
		}
	kineto_name = clients[0].lib;
	return good;
}

#endif
