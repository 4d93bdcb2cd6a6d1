// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a Python program inside a program of its own.
 *
 * usage: embeds HOW FILE [ARG...]
 * HOW: main     Py_RunMain() in the main thread
 *      thread   in a thread that is not the main one, which waits
 *      late     as thread; it prints "ready PID", and starts Python after SIGUSR1
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <signal.h>

static int program_argc, status;
static char **program_argv;

static int run(void)
{
	PyConfig config;
	PyStatus err;

	PyConfig_InitPythonConfig(&config);
	err = PyConfig_SetBytesArgv(&config, program_argc, program_argv);
	if (!PyStatus_Exception(err))
		err = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	if (PyStatus_Exception(err))
		Py_ExitStatusException(err);
	return Py_RunMain();
}

static void *thread(void *unused)
{
	(void)unused;
	status = run();
	return NULL;
}

int main(int argc, char **argv)
{
	sigset_t ours;
	pthread_t t;
	int got;

	if (argc < 3)
		return 2;
	program_argc = argc - 1;
	program_argv = argv + 1;
	if (!strcmp(argv[1], "main"))
		return run();
	sigemptyset(&ours);
	sigaddset(&ours, SIGUSR1);
	sigaddset(&ours, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &ours, NULL); /* Python's threads handle them */
	if (!strcmp(argv[1], "late")) {
		printf("ready %d\n", (int)getpid());
		fflush(stdout);
		sigwait(&ours, &got);
	}
	if (pthread_create(&t, NULL, thread, NULL))
		return 2;
	pthread_join(t, NULL);
	return status;
}
