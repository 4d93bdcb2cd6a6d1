// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (1 << 20)
#define TICK_US	    25000
#define ANSWER_MS   1000
#define WAITS_MAX   3
#define BUDGET	    400 /* points */

/* Statuses of the process that demangles. A signal counts as TOO_SLOW. */
enum { CLOSED, TOO_SLOW, TOO_LONG };
#define COST_SLOW 20
#define COST_LONG 1

/* Numbers join answers to names. A name that got no answer in time may get one later. */
struct request {
	uint32_t number;
	char name[DEMANGLE_NAME_BYTES + 1];
};

struct answer {
	uint32_t number; /* 0: the process that demangled has died */
	uint32_t bytes;	 /* of the text; 0 if the name stays mangled */
	char text[DEMANGLE_TEXT_BYTES];
};

#define ANSWER_HEAD offsetof(struct answer, text)

/* ---- the process that demangles; the socket is its file 0 */

static struct request asked;
static struct answer answered;
static volatile sig_atomic_t working, counted, counted_before; /* counted: names that were begun */

/* Ends the process at a text that is too long, because the library would write the rest of it to its end. */
static void add_text(const char *text, size_t bytes, void *arg)
{
	if (bytes > sizeof(answered.text) - answered.bytes) {
		syscall(SYS_exit, TOO_LONG);
		return;
	}
	memcpy(answered.text + answered.bytes, text, bytes);
	answered.bytes += bytes;
}

/* Runs after each TICK_US of CPU. A name that was there at the last tick has had enough. */
static void on_tick(int sig)
{
	if (working && counted == counted_before)
		syscall(SYS_exit, TOO_SLOW);
	counted_before = counted;
}

static void answer_one(void)
{
	answered.number = asked.number;
	answered.bytes = 0;
	counted++;
	working = 1;
	/* Without the library's own limit on names, which is 1 KiB, because this stack has an end of its own. */
	if (!cplus_demangle_v3_callback(asked.name, DMGL_PARAMS | DMGL_TYPES | DMGL_NO_RECURSE_LIMIT, add_text, NULL))
		answered.bytes = 0;
	working = 0;
}

/*
 * The kernel ends the process at any system call but read, write, exit, and a signal handler's return. This is
 * seccomp's strict mode as a filter, because a process whose parent has a filter cannot enter that mode.
 */
static int become_strict(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int serve(void *arg)
{
	struct sigaction sa = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct itimerval tick = {.it_interval.tv_usec = TICK_US, .it_value.tv_usec = TICK_US};
	sigset_t set;
	ssize_t n;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	if (sigaction(SIGPROF, &sa, NULL) || sigprocmask(SIG_UNBLOCK, &set, NULL) ||
	    setitimer(ITIMER_PROF, &tick, NULL) || become_strict())
		syscall(SYS_exit, TOO_SLOW);
	while ((n = read(0, &asked, sizeof(asked) - 1)) > (ssize_t)sizeof(asked.number)) {
		((char *)&asked)[n] = '\0';
		answer_one();
		n = (ssize_t)(ANSWER_HEAD + answered.bytes);
		if (write(0, &answered, (size_t)n) != n)
			break;
	}
	syscall(SYS_exit, CLOSED);
	return 0;
}

/* ---- its parent, which replaces it; it reads no name */

/*
 * The stack has a guard as large as itself below. A frame that reaches beyond the guard overwrites other memory of this
 * process alone, whose answers are not trusted.
 */
static int start_server(char *stack)
{
	return clone(serve, stack + 2 * STACK_BYTES, SIGCHLD, NULL);
}

static void keep_server(void)
{
	const struct answer died = {.number = 0};
	char *stack = mmap(NULL, 2 * STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int status, spent = 0;

	if (stack == MAP_FAILED || mprotect(stack + STACK_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE))
		return;
	while (spent <= BUDGET) {
		int pid = start_server(stack);

		if (pid < 0 || waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status) == CLOSED))
			return;
		spent += WIFEXITED(status) && WEXITSTATUS(status) == TOO_LONG ? COST_LONG : COST_SLOW;
		if (write(0, &died, ANSWER_HEAD) < 0)
			return;
	}
}

static pid_t start_keeper(int socket)
{
	pid_t pid = fork();
	sigset_t all;

	if (pid)
		return pid;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "mxbpf-demangle");
	dup2(socket, 0);
	close_range(1, ~0u, 0);
	keep_server();
	_exit(0);
}

/* ---- mxbpf */

static struct {
	pthread_mutex_t lock;
	bool started;
	int socket; /* -1: all names stay mangled */
	pid_t keeper;
	uint32_t number;
	unsigned waits;
	struct request request;
	struct answer answer;
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};

static void start_once(void)
{
	const struct timeval answer = {.tv_sec = ANSWER_MS / 1000, .tv_usec = ANSWER_MS % 1000 * 1000};
	int ends[2];

	if (client.started)
		return;
	client.started = true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	client.keeper = start_keeper(ends[1]);
	close(ends[1]);
	if (client.keeper < 0 || setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &answer, sizeof(answer)))
		close(ends[0]);
	else
		client.socket = ends[0];
}

/* The end of this socket ends the processes. Nobody waits for them, because they may be frozen. */
static void give_up(void)
{
	close(client.socket);
	client.socket = -1;
	waitpid(client.keeper, NULL, WNOHANG);
}

/* Reads the answer to this request, or that its process has died. Skips late answers to earlier ones. */
static bool read_answer(void)
{
	struct answer *a = &client.answer;
	ssize_t n;

	do {
		n = recv(client.socket, a, sizeof(*a), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)ANSWER_HEAD) {
			if (n >= 0 || errno != EAGAIN || ++client.waits >= WAITS_MAX)
				give_up();
			return false;
		}
	} while (n < 0 || (a->number && a->number != client.number));
	return a->number && a->bytes && a->bytes == (size_t)n - ANSWER_HEAD;
}

static char *ask(const char *symbol, size_t bytes)
{
	struct request *r = &client.request;

	start_once();
	if (client.socket < 0)
		return NULL;
	client.number += 1 + !(client.number + 1); /* never 0 */
	r->number = client.number;
	memcpy(r->name, symbol, bytes);
	if (send(client.socket, r, sizeof(r->number) + bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno != EAGAIN)
			give_up();
		return NULL;
	}
	return read_answer() ? strndup(client.answer.text, client.answer.bytes) : NULL;
}

void demangle_start(void)
{
	pthread_mutex_lock(&client.lock);
	start_once();
	pthread_mutex_unlock(&client.lock);
}

char *demangle(const char *symbol)
{
	size_t bytes = strnlen(symbol, DEMANGLE_NAME_BYTES + 1);
	char *text;

	if (strncmp(symbol, "_Z", 2) || bytes > DEMANGLE_NAME_BYTES)
		return NULL;
	pthread_mutex_lock(&client.lock);
	text = ask(symbol, bytes);
	pthread_mutex_unlock(&client.lock);
	return text;
}
