// SPDX-License-Identifier: Apache-2.0
/*
 * A program on the toy MXNet beside it that hangs until it is told to go on: an operator waits for a lock that the
 * main thread holds, and a thread of the program ("caller") waits for the operator.
 *
 * usage: hang
 * Prints "ready PID", waits for SIGUSR1, hangs, prints "hung", waits for SIGUSR2, goes on, prints the counts of its
 * calls as one line of JSON, and exits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *lib;

static void *sym(const char *name)
{
	void *s = dlsym(lib, name);

	if (!s)
		abort();
	return s;
}

static void load(void)
{
	char path[PATH_MAX] = "", file[PATH_MAX + 16];

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		abort();
	snprintf(file, sizeof(file), "%s/libmxnet.so", dirname(path));
	lib = dlopen(file, RTLD_NOW);
	if (!lib)
		abort();
}

static void *call(void *arg)
{
	int (*create)(size_t bytes, void **out) = sym("MXNDArrayCreate");
	int (*invoke)(const void *op, unsigned serial, void *array) = sym("MXImperativeInvoke");
	int (*wait)(void *array) = sym("MXNDArrayWaitToRead");
	const struct {
		const char *name;
	} gated = {"gated"};
	void *array;

	if (create(1000, &array))
		abort();
	pthread_setname_np(pthread_self(), "caller"); /* the threads of the engine keep the old name */
	if (invoke(&gated, 0, array) || wait(array))
		abort();
	return arg;
}

/* Waits until another thread waits for the lock that is held here. */
static void await_waiter(const pthread_mutex_t *lock)
{
	while (__atomic_load_n(&lock->__data.__lock, __ATOMIC_SEQ_CST) != 2)
		usleep(1000);
}

int main(void)
{
	pthread_mutex_t *gate;
	pthread_t caller;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	load();
	gate = sym("toy_gate");
	printf("ready %d\n", getpid());
	fflush(stdout);
	sigwait(&set, &sig);
	pthread_mutex_lock(gate);
	if (pthread_create(&caller, NULL, call, NULL))
		abort();
	await_waiter(gate);
	puts("hung");
	fflush(stdout);
	sigwait(&set, &sig);
	pthread_mutex_unlock(gate);
	pthread_join(caller, NULL);
	((void (*)(FILE *))sym("toy_print_counts"))(stdout);
	return 0;
}
