// SPDX-License-Identifier: Apache-2.0
/*
 * A toy PyTorch that is its own program, built with frame pointers under the name of PyTorch's library. Its operators
 * `heavy` and `light` only use CPU time, for moments of random length, and the program measures how much each of them
 * has used. A second thread uses CPU time outside of all operators and never hits a probe.
 *
 * Prints "ready PID", waits for SIGUSR1, uses the given milliseconds of CPU time, prints the times used in ns as one
 * line of JSON, and exits.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define OPERATOR(mangled, function)                                                                                    \
	__asm__(".text\n.globl " mangled "\n.type " mangled ", @function\n" mangled ":\n"                              \
		".cfi_startproc\n"                                                                                     \
		"push %rbp\n"                                                                                          \
		".cfi_def_cfa_offset 16\n"                                                                             \
		".cfi_offset rbp, -16\n"                                                                               \
		"mov %rsp, %rbp\n"                                                                                     \
		".cfi_def_cfa_register rbp\n"                                                                          \
		"call " function "\n"                                                                                  \
		"test %eax, %eax\n"                                                                                    \
		"je 1f\n"                                                                                              \
		"xor %eax, %eax\n"                                                                                     \
		"1: pop %rbp\n"                                                                                        \
		".cfi_def_cfa rsp, 8\n"                                                                                \
		"ret\n"                                                                                                \
		".cfi_endproc\n.size " mangled ", . - " mangled "\n")

OPERATOR("_ZN2at4_ops5heavy4callEv", "burn_heavy");
OPERATOR("_ZN2at4_ops5light4callEv", "burn_light");

int heavy(void) __asm__("_ZN2at4_ops5heavy4callEv");
int light(void) __asm__("_ZN2at4_ops5light4callEv");

static uint64_t heavy_ns, light_ns, idle_thread_ns, seed = 1;
static volatile uint64_t sink;

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static void spin(void)
{
	int i;

	for (i = 0; i < 20000; i++)
		sink += (uint64_t)i;
}

/* Uses CPU time of the thread, and returns how much it was. */
__attribute__((noinline)) static uint64_t burn(uint64_t ns)
{
	uint64_t began = cpu_ns(CLOCK_THREAD_CPUTIME_ID), now;

	do {
		spin();
		now = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	} while (now - began < ns);
	return now - began;
}

/* Returns random lengths, so that no clock can be in step with them. */
static uint64_t moment_ns(uint64_t mean_us)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % (2 * mean_us) * 1000;
}

__attribute__((used, noinline)) int burn_heavy(void)
{
	heavy_ns += burn(moment_ns(7000));
	return 0;
}

__attribute__((used, noinline)) int burn_light(void)
{
	light_ns += burn(moment_ns(3000));
	return 0;
}

static void *burn_beside(void *ns)
{
	idle_thread_ns = burn(*(uint64_t *)ns);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t ns = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1000) * 1000000, beside_ns = ns / 4;
	pthread_t beside;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	sigwait(&set, &sig);
	if (pthread_create(&beside, NULL, burn_beside, &beside_ns))
		return 1;
	while (heavy_ns + light_ns < ns && !heavy() && !light())
		;
	pthread_join(beside, NULL);
	printf("{\"heavy\": %llu, \"light\": %llu, \"beside\": %llu, \"process\": %llu}\n",
	       (unsigned long long)heavy_ns, (unsigned long long)light_ns, (unsigned long long)idle_thread_ns,
	       (unsigned long long)cpu_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
