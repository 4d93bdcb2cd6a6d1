/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of test_gpu_agent.c that has the job's own profiler, a second subscriber and a window of mxbpf in every
 * order. It uses what stands before.
 */
#ifndef TEST_GPU_ORDERS_H
#define TEST_GPU_ORDERS_H

/*
 * W a window opens, C it closes, S the trace of the job's profiler starts, E it ends, X another client subscribes, Y it
 * unsubscribes. mxbpf attaches at the first W, or before all letters (A). Kernels are launched after each letter. What
 * S, E, X and Y give, and whether CUPTI is free for mxbpf, is first found out without mxbpf; that it is there must not
 * change anything.
 */
#define PAIRS	 6    /* letters */
#define ORDERS	 90   /* of three pairs: 6! / 2!^3 */
#define ALONE	 6    /* orders of S, E, X and Y: 4! / 2!^2 */
#define TRACE	 "SE" /* comes after all letters: the profiler still works, and mxbpf gives way once more */
#define STEPS	 PAIRS
#define BURST	 20
#define AT_ONCE	 64 /* processes */
#define NEVER_MS 3600000
#define SOON_MS	 1
#define CHANCES	 3

/*
 * Older Kineto, which subscribes once; under dynolog it does not. Newer Kineto does not; with TEARDOWN_CUPTI it does.
 * XLA does so, too, and has no imports of CUPTI.
 */
static const struct client {
	const char *lib, *name;
	int mode;
} clients[] = {
	{"libkineto_double.so", "", 0},
	{"libkineto_double.so", "KINETO_USE_DAEMON", 0},
	{"libkineto_double.so", "", 3},
	{"libkineto_double.so", "TEARDOWN_CUPTI", 3},
	{"libkineto_dlsym.so", "TEARDOWN_CUPTI", 3},
};
#define CLIENTS (sizeof(clients) / sizeof(clients[0]))

/* What the letters of an order gave without mxbpf. */
struct alone {
	char order[STEPS + 1];
	struct {
		int result;
		bool is_free;
	} steps[STEPS];
};

static struct alone (*alone)[ALONE]; /* of each client; shared by all processes */

static int (*second_subscribe)(void), (*second_leave)(void);
static int (*raw_subscribe)(void **handle, void *callback, void *data), (*raw_unsubscribe)(void *handle);

/* The state of one process. */
static struct {
	bool traced, open, seen, unseen; /* seen: a window was open. unseen: the trace began before that */
	uint64_t kernels;		 /* that a client must have had */
} order;

static void open_client(const struct client *c)
{
	void *cupti, *lib;

	if (*c->name)
		setenv(c->name, "1", 1);
	open_ops();
	cupti = open_lib("libcupti.so.12");
	get(cupti, "cuptiSubscribe", &raw_subscribe);
	get(cupti, "cuptiUnsubscribe", &raw_unsubscribe);
	kineto_name = c->lib;
	open_kineto();
	lib = open_lib(c->lib);
	get(lib, "kineto_second_subscribe", &second_subscribe);
	get(lib, "kineto_second_leave", &second_leave);
	kineto_mode(c->mode);
	launch("a", 1000, 1);
}

/* Returns the error of a letter of the clients. The trace has all its kernels with the right times. */
static int do_client(char letter)
{
	int err;

	switch (letter) {
	case 'S':
		err = kineto_start();
		order.traced = !err;
		order.unseen = !err && !order.seen;
		account->launched[KIND_KERNEL] = 0;
		return err;
	case 'E':
		if (!order.traced)
			return kineto_stop() == -1 ? -1 : 1;
		order.traced = order.unseen = false;
		order.kernels += account->launched[KIND_KERNEL];
		if (kineto_stop() == (long)account->launched[KIND_KERNEL] && !kineto_foreign() && !kineto_absurd())
			return 0;
		printf("# the trace has not the %lu kernels, or not with their times\n",
		       (unsigned long)account->launched[KIND_KERNEL]);
		return 1;
	case 'X':
		return second_subscribe();
	default:
		return second_leave();
	}
}

static void do_kernels(void)
{
	burst(BURST);
	sync_all();
}

static void run_alone(const struct client *c, struct alone *a)
{
	void *handle;
	unsigned i;

	open_client(c);
	do_kernels();
	for (i = 0; a->order[i]; i++) {
		a->steps[i].result = do_client(a->order[i]);
		CHECK(a->order[i] != 'E' || a->steps[i].result <= 0);
		a->steps[i].is_free = !order.traced && !raw_subscribe(&handle, NULL, NULL);
		CHECK(!a->steps[i].is_free || !raw_unsubscribe(handle));
		do_kernels();
	}
	CHECK(account->delivered[KIND_KERNEL] == order.kernels);
}

/* ---- with mxbpf */

/* The agent asks again after this time. It learns that at once, for it sleeps on `want`. */
static void again_in(uint32_t ms)
{
	__atomic_store_n(&gpu->again_ms, ms, __ATOMIC_RELAXED);
	syscall(SYS_futex, &gpu->want, FUTEX_WAKE, 1, NULL, NULL, 0);
	nap();
}

static bool is_told(void)
{
	const uint32_t state = __atomic_load_n(&gpu->state, __ATOMIC_ACQUIRE);

	return state == MXBPF_GPU_YIELDED || (state == MXBPF_GPU_BUSY && (gpu->holder[0] || gpu->result == 39));
}

/*
 * CUPTI delivers records to mxbpf if it is free, and else mxbpf says why it has none although it could ask again. If
 * the agent cannot know that the trace goes on, it does not ask, because time alone decides there.
 */
static void settle(bool is_free)
{
	const double until = now() + WAIT_S;
	unsigned i;

	if (!order.open)
		return;
	for (i = 0; !is_free && i < CHANCES; i++)
		again_in(order.unseen ? NEVER_MS : SOON_MS);
	while (!(is_free ? gpu->state == MXBPF_GPU_ON : is_told()) && now() < until)
		again_in(order.unseen ? NEVER_MS : SOON_MS);
	CHECK(is_free ? gpu->state == MXBPF_GPU_ON : is_told());
	order.kernels += is_free ? BURST : 0;
	again_in(NEVER_MS);
}

static void do_window(char letter)
{
	order.open = letter == 'W';
	order.seen |= order.open;
	if (!gpu)
		open_agent();
	again_in(NEVER_MS);
	if (letter == 'A')
		return;
	if (order.open)
		want(ALL);
	else
		CHECK(end());
}

static void run_order(const struct client *c, const char *letters, const struct alone *a)
{
	bool is_free = true;
	unsigned i, k = 0;

	open_client(c);
	do_kernels();
	for (i = 0; letters[i]; i++) {
		if (strchr("AWC", letters[i])) {
			do_window(letters[i]);
		} else {
			CHECK(do_client(letters[i]) == a->steps[k].result);
			is_free = a->steps[k++].is_free;
		}
		settle(is_free);
		do_kernels();
		if (unit_bad) {
			printf("# at letter %u\n", i);
			return;
		}
	}
	CHECK(account->delivered[KIND_KERNEL] == order.kernels && !account->lost[KIND_KERNEL]);
	CHECK(!account->finalized && !account->mixed_versions && account->timestamp_registrations < 2);
	CHECK(!account->mixed_clocks);
	CHECK(!account->left_functions && !account->idle_callbacks);
}

/* ---- all of them */

/* Finds the next order of these letters, of which each is there twice. Returns false after the last. */
static bool next_order(char *s, unsigned n)
{
	unsigned i = n - 1, k = n - 1;
	char c;

	while (i && s[i - 1] >= s[i])
		i--;
	if (!i)
		return false;
	while (s[k] <= s[i - 1])
		k--;
	c = s[i - 1], s[i - 1] = s[k], s[k] = c;
	for (k = n - 1; i < k; i++, k--)
		c = s[i], s[i] = s[k], s[k] = c;
	return true;
}

/* "SSWXWX" -> "SEWXCY", or without the window "SEXY". */
static void name_letters(const char *twice, bool window, char *to)
{
	static const char pairs[] = "SEWCXY";
	unsigned i;

	for (i = 0; twice[i]; i++)
		if (window || twice[i] != 'W')
			*to++ = memchr(twice, twice[i], i) ? strchr(pairs, twice[i])[1] : twice[i];
	*to = '\0';
}

static struct alone *find_alone(unsigned c, const char *letters)
{
	unsigned i;

	for (i = 0; i < ALONE && strncmp(alone[c][i].order, letters, PAIRS - 2) != 0; i++)
		;
	return &alone[c][i];
}

/* Waits until less than `most` processes run. Returns false if one has failed. */
static bool await(unsigned *running, unsigned most)
{
	bool good = true;
	int status;

	for (; *running >= most && wait(&status) > 0; --*running)
		good &= !status;
	return good;
}

/* A process for an order of one client, with mxbpf or, without letters, alone. */
static void start_order(unsigned c, const char *letters, struct alone *a)
{
	fflush(stdout);
	if (fork())
		return;
	setenv("MXBPF_DOUBLE", "", 1);
	setenv("MXBPF_DOUBLE_VERSION", "130001", 1);
	unsetenv("MXBPF_DOUBLE_LOG");
	unit_bad = 0;
	if (letters)
		run_order(&clients[c], letters, a);
	else
		run_alone(&clients[c], a);
	if (unit_bad)
		printf("# %s, mode %d %s: %s\n", clients[c].lib, clients[c].mode, clients[c].name,
		       letters ? letters : a->order);
	fflush(stdout);
	_exit(unit_bad ? 1 : 0);
}

/* A pointer to a function that dlsym() gave before mxbpf attached leads past the agent. */
static const char *end_of(const struct client *c, const char *letters)
{
	const bool early = strchr(letters, 'S') < strchr(letters, 'W');

	return early && strstr(c->lib, "dlsym") ? "WC" : "W" TRACE "C";
}

static bool run_orders(void)
{
	const size_t bytes = CLIENTS * sizeof(*alone);
	char twice[] = "SSXX", all[] = "SSWWXX", letters[32], shortened[8];
	unsigned c, n, running = 0, orders = 0;
	bool good = true;

	alone = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	n = 0;
	do {
		for (c = 0; c < CLIENTS; c++) {
			name_letters(twice, false, alone[c][n].order);
			strcat(alone[c][n].order, TRACE);
			good &= await(&running, AT_ONCE);
			start_order(c, NULL, &alone[c][n]);
			running++;
		}
		n++;
	} while (next_order(twice, sizeof(twice) - 1));
	good &= await(&running, 1);
	do {
		for (n = 0; good && n < 2 * CLIENTS; n++) {
			c = n / 2;
			strcpy(letters, "A");
			name_letters(all, true, letters + n % 2);
			name_letters(all, false, shortened);
			strcat(letters, end_of(&clients[c], letters));
			good &= await(&running, AT_ONCE);
			start_order(c, letters, find_alone(c, shortened));
			running++;
			orders++;
		}
	} while (next_order(all, sizeof(all) - 1));
	good &= await(&running, 1);
	munmap(alone, bytes);
	return good && orders == 2 * ORDERS * CLIENTS;
}

#endif
