// SPDX-License-Identifier: Apache-2.0
/*
 * A program on the toy MXNet beside it, which it loads late, as Python would.
 *
 * usage: toy [ROUNDS [THREADS [hold | fork]]]
 * Prints "ready PID", waits for SIGUSR1, works, prints "caught N" (failed calls) and the counts of its calls as one
 * line of JSON, and exits. With "hold" it waits for another SIGUSR1 before it exits. ROUNDS and THREADS determine
 * every count. With "fork" it forks THREADS children one after the other instead of starting threads; each child
 * creates and frees an array in each round. It prints "done" after all have ended, repeats this at each SIGUSR1, and
 * ends at SIGTERM.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	int (*create)(size_t bytes, void **out);
	int (*free)(void *array);
	int (*invoke)(const void *op, unsigned serial, void *array);
	int (*wait)(void *array);
	int (*wait_all)(void);
	void (*print_counts)(FILE *f);
} mx;

static const struct {
	const char *name;
	void *to;
} functions[] = {
	{"MXNDArrayCreate", &mx.create},   {"MXNDArrayFree", &mx.free},	       {"MXImperativeInvoke", &mx.invoke},
	{"MXNDArrayWaitToRead", &mx.wait}, {"MXNDArrayWaitAll", &mx.wait_all}, {"toy_print_counts", &mx.print_counts},
};

static unsigned rounds = 100, threads = 2;
static atomic_uint failed;

static void load(void)
{
	char path[PATH_MAX] = "", lib[PATH_MAX + 16];
	void *handle;
	unsigned i;

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		abort();
	snprintf(lib, sizeof(lib), "%s/libmxnet.so", dirname(path));
	handle = dlopen(lib, RTLD_NOW);
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		*(void **)functions[i].to = handle ? dlsym(handle, functions[i].name) : NULL;
		if (*(void **)functions[i].to)
			continue;
		fprintf(stderr, "toy: %s\n", dlerror());
		exit(1);
	}
}

static void *work(void *arg)
{
	static const struct {
		const char *name;
	} ops[] = {{"dot"}, {"relu"}, {"a name that is too long for the string's own room"}}, sum = {"sum"};
	unsigned i;

	for (i = 0; i < rounds; i++) {
		void *array;

		failed += !!mx.create(1000 + i, &array);
		failed += !!mx.invoke(&ops[i % 3], i, array);
		failed += !!mx.invoke(&sum, i, array);
		failed += !!mx.wait(array);
		failed += !!mx.free(array);
	}
	return arg;
}

static void be_child(void)
{
	void *array;
	unsigned i;

	for (i = 0; i < rounds; i++)
		if (mx.create(8, &array) || mx.free(array))
			_exit(1);
	_exit(0);
}

static void fork_children(const sigset_t *set)
{
	int sig, status;
	unsigned i;
	pid_t pid;

	for (;; sigwait(set, &sig)) {
		for (i = 0; i < threads; i++) {
			pid = fork();
			if (!pid)
				be_child();
			if (waitpid(pid, &status, 0) != pid || status)
				abort();
		}
		printf("done\n");
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	pthread_t *ids;
	sigset_t set;
	unsigned i;
	int sig;

	rounds = argc > 1 ? (unsigned)atoi(argv[1]) : rounds;
	threads = argc > 2 ? (unsigned)atoi(argv[2]) : threads;
	ids = calloc(threads, sizeof(*ids));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	load();
	printf("ready %d\n", getpid());
	fflush(stdout);
	sigwait(&set, &sig);
	if (argc > 3 && !strcmp(argv[3], "fork"))
		fork_children(&set);
	for (i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, NULL))
			abort();
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	failed += !!mx.wait_all();
	free(ids);
	printf("caught %u\n", failed);
	mx.print_counts(stdout);
	fflush(stdout);
	if (argc > 3)
		sigwait(&set, &sig);
	return 0;
}
