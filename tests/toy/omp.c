// SPDX-License-Identifier: Apache-2.0
/*
 * A toy PyTorch, like torch.c, whose operators use OpenMP teams and measure the CPU time of their threads themselves.
 *
 * usage: libtorch_cpu.so THREADS ROUNDS [hold]
 * Prints "ready PID", waits for SIGUSR1, and calls these operators: `even`, whose threads all do the same work;
 * `skewed`, whose master does four times as much; `outer`, which calls `even` and has a region of its own; `nested`,
 * in whose region each thread opens another one; then `left` and `right`, which run the same code, from two threads at
 * the same time. Prints the regions of each operator and the CPU time in them as one line of JSON, and exits. With
 * "hold" it waits for another SIGUSR1 before it exits.
 */
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPERATOR(mangled, body)                                                                                        \
	__asm__(".text\n.globl " mangled "\n.type " mangled ", @function\n" mangled ":\n"                              \
		".cfi_startproc\n"                                                                                     \
		"push %rbx\n"                                                                                          \
		".cfi_def_cfa_offset 16\n"                                                                             \
		"call " body "\n"                                                                                      \
		"test %eax, %eax\n"                                                                                    \
		"je 1f\n"                                                                                              \
		"xor %eax, %eax\n"                                                                                     \
		"1: pop %rbx\n"                                                                                        \
		".cfi_def_cfa_offset 8\n"                                                                              \
		"ret\n"                                                                                                \
		".cfi_endproc\n.size " mangled ", . - " mangled "\n")

OPERATOR("_ZN2at4_ops4even4callEv", "work_even");
OPERATOR("_ZN2at4_ops6skewed4callEv", "work_skewed");
OPERATOR("_ZN2at4_ops5outer4callEv", "work_outer");
OPERATOR("_ZN2at4_ops6nested4callEv", "work_nested");
OPERATOR("_ZN2at4_ops4left4callEv", "work_left");
OPERATOR("_ZN2at4_ops5right4callEv", "work_right");

int even(void) __asm__("_ZN2at4_ops4even4callEv");
int skewed(void) __asm__("_ZN2at4_ops6skewed4callEv");
int outer(void) __asm__("_ZN2at4_ops5outer4callEv");
int nested(void) __asm__("_ZN2at4_ops6nested4callEv");
int left(void) __asm__("_ZN2at4_ops4left4callEv");
int right(void) __asm__("_ZN2at4_ops5right4callEv");

struct sum {
	const char *name;
	long regions, cpu_ns;
};
static struct sum sums[] = {{"even", 0, 0},   {"skewed", 0, 0}, {"outer", 0, 0},
			    {"nested", 0, 0}, {"left", 0, 0},	{"right", 0, 0}};
enum { EVEN, SKEWED, OUTER, NESTED, LEFT, RIGHT };

static int threads, rounds;

static long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void burn(struct sum *s, long ns)
{
	long began = cpu_ns(), now = began;

	while (now - began < ns)
		now = cpu_ns();
	__atomic_fetch_add(&s->cpu_ns, now - began, __ATOMIC_RELAXED);
}

static int region(struct sum *s, int n, long master_ns, long ns)
{
	__atomic_fetch_add(&s->regions, 1, __ATOMIC_RELAXED);
#pragma omp parallel num_threads(n)
	burn(s, omp_get_thread_num() ? ns : master_ns);
	return 1;
}

__attribute__((used)) int work_even(void)
{
	return region(&sums[EVEN], threads, 1000000, 1000000);
}

__attribute__((used)) int work_skewed(void)
{
	return region(&sums[SKEWED], threads, 4000000, 1000000);
}

__attribute__((used)) int work_outer(void)
{
	even();
	return region(&sums[OUTER], threads, 1000000, 1000000);
}

__attribute__((used)) int work_nested(void)
{
	sums[NESTED].regions++;
#pragma omp parallel num_threads(2)
	region(&sums[NESTED], 2, 1000000, 1000000);
	return 1;
}

__attribute__((used)) int work_left(void)
{
	return region(&sums[LEFT], 2, 1000000, 1000000);
}

__attribute__((used)) int work_right(void)
{
	return region(&sums[RIGHT], 2, 2000000, 2000000);
}

static void *master(void *op)
{
	for (int i = 0; i < rounds; i++)
		((int (*)(void))op)();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;
	sigset_t set;
	int sig;

	threads = argc > 1 ? atoi(argv[1]) : 2;
	rounds = argc > 2 ? atoi(argv[2]) : 20;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	sigwait(&set, &sig);
	master(even);
	master(skewed);
	master(outer);
	omp_set_max_active_levels(2);
	master(nested);
	omp_set_max_active_levels(1);
	pthread_create(&other, NULL, master, right);
	master(left);
	pthread_join(other, NULL);
	printf("{");
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		printf("%s\"%s\": {\"regions\": %ld, \"cpu_ns\": %ld}", i ? ", " : "", sums[i].name, sums[i].regions,
		       sums[i].cpu_ns);
	printf("}\n");
	fflush(stdout);
	if (argc > 3)
		sigwait(&set, &sig);
	return 0;
}
