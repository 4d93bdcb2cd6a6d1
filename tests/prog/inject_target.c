// SPDX-License-Identifier: Apache-2.0
/*
 * usage: inject_target FD THREADS [MODE]
 * The threads call work() without pause and allocate memory of odd sizes in between. All registers have known values
 * across each call, including those that a called function may change, because work() changes none. The file FD is a
 * struct of two numbers: calls made and damages found. Prints "ready". Modes:
 * idle: nobody calls work()
 * waits: the first thread waits in system calls of each kind in turn and checks their results
 * signals: a handler runs every 50 us
 * errno, deadly: a seccomp filter refuses memfd_create(), or kills the process for it; a newer one permits everything
 * permits, many: two and 65 seccomp filters permit everything
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 64

/* r8 to r15, rax, rbx, rcx, rdx, rsi, rdi, then ymm0 to ymm15. */
struct registers {
	uint64_t general[14];
	uint64_t flags;
	uint64_t pad;
	uint64_t vectors[16][4];
};

static struct {
	volatile uint64_t calls, damages;
} * shared;

void work(void);
__asm__(".globl work\n"
	".type work, @function\n"
	"work:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size work, . - work\n");

void call_work(const struct registers *in, struct registers *out);
#define VECTORS(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define LOAD(i)	   "	vmovups 128+32*" #i "(%rdi), %ymm" #i "\n"
#define STORE(i)   "	vmovups %ymm" #i ", 128+32*" #i "(%rdi)\n"
__asm__(".globl call_work\n"
	".type call_work, @function\n"
	"call_work:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n	push "
	"%rsi\n" VECTORS(
		LOAD) "	mov 0(%rdi), %r8\n	mov 8(%rdi), %r9\n	mov 16(%rdi), %r10\n	mov 24(%rdi), %r11\n"
		      "	mov 32(%rdi), %r12\n	mov 40(%rdi), %r13\n	mov 48(%rdi), %r14\n	mov 56(%rdi), %r15\n"
		      "	mov 64(%rdi), %rax\n	mov 72(%rdi), %rbx\n	mov 80(%rdi), %rcx\n	mov 88(%rdi), %rdx\n"
		      "	mov 96(%rdi), %rsi\n	mov 104(%rdi), %rdi\n"
		      "	stc\n"
		      "	call work\n"
		      "	push %rdi\n	pushfq\n	mov 16(%rsp), %rdi\n	pop 112(%rdi)\n	pop 104(%rdi)\n"
		      "	mov %r8, 0(%rdi)\n	mov %r9, 8(%rdi)\n	mov %r10, 16(%rdi)\n	mov %r11, 24(%rdi)\n"
		      "	mov %r12, 32(%rdi)\n	mov %r13, 40(%rdi)\n	mov %r14, 48(%rdi)\n	mov %r15, 56(%rdi)\n"
		      "	mov %rax, 64(%rdi)\n	mov %rbx, 72(%rdi)\n	mov %rcx, 80(%rdi)\n	mov %rdx, 88(%rdi)\n"
		      "	mov %rsi, 96(%rdi)\n" VECTORS(STORE) "	vzeroupper\n"
							     "	pop %rsi\n	pop %r15\n	pop %r14\n	pop "
							     "%r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
							     "	ret\n"
							     ".size call_work, . - call_work\n");

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 11;
}

static void fill(struct registers *r, uint64_t *seed)
{
	uint64_t *word = (uint64_t *)r;
	size_t i;

	for (i = 0; i < sizeof(*r) / sizeof(*word); i++)
		word[i] = next(seed);
}

static void check_registers(uint64_t *seed)
{
	struct registers in, out;

	fill(&in, seed);
	out = in;
	call_work(&in, &out);
	if (memcmp(in.general, out.general, sizeof(in.general)) ||
	    memcmp(in.vectors, out.vectors, sizeof(in.vectors)) || !(out.flags & 1))
		__sync_fetch_and_add(&shared->damages, 1);
	__sync_fetch_and_add(&shared->calls, 1);
}

/* Each thread must keep its own signal mask and its own alternate stack. */
static void check_signals(const sigset_t *mask, const stack_t *stack)
{
	sigset_t mask_now;
	stack_t stack_now;

	sigaltstack(NULL, &stack_now);
	pthread_sigmask(SIG_SETMASK, NULL, &mask_now);
	if (memcmp(mask, &mask_now, 8) || stack->ss_sp != stack_now.ss_sp || stack->ss_size != stack_now.ss_size ||
	    stack->ss_flags != stack_now.ss_flags)
		__sync_fetch_and_add(&shared->damages, 1);
}

static void *loop(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1, sums[BLOCKS] = {0};
	stack_t stack = {.ss_size = 65536};
	unsigned char *blocks[BLOCKS] = {0};
	size_t sizes[BLOCKS] = {0}, i, k;
	sigset_t mask;

	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (;;) {
		i = next(&seed) % BLOCKS;
		for (k = 0; k < sizes[i]; k += 97)
			sums[i] -= blocks[i][k];
		if (sums[i])
			__sync_fetch_and_add(&shared->damages, 1);
		free(blocks[i]);
		sizes[i] = 1 + next(&seed) % 9001;
		blocks[i] = malloc(sizes[i]);
		for (k = sums[i] = 0; k < sizes[i]; k++) {
			blocks[i][k] = (unsigned char)(k * 31 + i);
			sums[i] += k % 97 ? 0 : blocks[i][k];
		}
		check_registers(&seed);
		check_signals(&mask, &stack);
	}
	return NULL;
}

/* ---- waits */

static int bell[2], epoll;
static sem_t posted;

static void *ring(void *arg)
{
	const struct timespec pause = {.tv_nsec = 300000};

	(void)arg;
	for (;;) {
		nanosleep(&pause, NULL);
		if (write(bell[1], "", 1) != 1)
			__sync_fetch_and_add(&shared->damages, 1);
		sem_post(&posted);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int start_waits(void)
{
	struct epoll_event wanted = {.events = EPOLLIN};
	pthread_t t;

	if (pipe(bell) || sem_init(&posted, 0, 0) || pthread_create(&t, NULL, ring, NULL))
		return -1;
	epoll = epoll_create1(0);
	return epoll_ctl(epoll, EPOLL_CTL_ADD, bell[0], &wanted);
}

/* The bell rings during each wait; no system call may return because of a signal. */
static bool wait_once(unsigned how)
{
	const struct timespec pause = {.tv_nsec = 500000};
	struct timeval minute = {.tv_sec = 60};
	struct pollfd p = {.fd = bell[0], .events = POLLIN};
	struct epoll_event seen;
	fd_set set;
	char c;

	FD_ZERO(&set);
	FD_SET(bell[0], &set);
	switch (how % 5) {
	case 0:
		return poll(&p, 1, -1) == 1 && read(bell[0], &c, 1) == 1;
	case 1:
		return epoll_wait(epoll, &seen, 1, -1) == 1 && read(bell[0], &c, 1) == 1;
	case 2:
		return select(bell[0] + 1, &set, NULL, NULL, &minute) == 1 && read(bell[0], &c, 1) == 1;
	case 3:
		return !sem_wait(&posted);
	default:
		return !nanosleep(&pause, NULL);
	}
}

static void wait_on(void)
{
	unsigned i;

	for (i = 0;; i++) {
		__sync_fetch_and_add(wait_once(i) ? &shared->calls : &shared->damages, 1);
		free(malloc(i % 9001 + 1));
	}
}

static void on_alarm(int sig)
{
	(void)sig;
	__asm__ volatile("vzeroall" ::: "memory");
}

static int start_signals(void)
{
	struct itimerval every = {{0, 50}, {0, 50}};
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

	return sigaction(SIGALRM, &sa, NULL) || setitimer(ITIMER_REAL, &every, NULL);
}

static int filter_memfd(unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int permit(unsigned filters)
{
	int err = 0;

	while (!err && filters--)
		err = filter_memfd(SECCOMP_RET_ALLOW);
	return err;
}

static int enter(const char *mode)
{
	if (!strcmp(mode, "signals"))
		return start_signals();
	if (!strcmp(mode, "waits"))
		return start_waits();
	if (!strcmp(mode, "errno"))
		return filter_memfd(SECCOMP_RET_ERRNO | 1) || permit(1);
	if (!strcmp(mode, "deadly"))
		return filter_memfd(SECCOMP_RET_KILL_PROCESS) || permit(1);
	if (!strcmp(mode, "permits"))
		return permit(2);
	if (!strcmp(mode, "many"))
		return permit(65);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 3 ? argv[3] : "";
	int i, busy = strcmp(mode, "idle"), threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t t;

	if (argc < 3)
		return 2;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
	if (shared == MAP_FAILED || enter(mode))
		return 1;
	for (i = 1; busy && i < threads; i++)
		if (pthread_create(&t, NULL, loop, (void *)(intptr_t)i))
			return 1;
	puts("ready");
	fflush(stdout);
	if (!strcmp(mode, "waits"))
		wait_on();
	else if (busy)
		loop(NULL);
	for (;;)
		pause();
}
