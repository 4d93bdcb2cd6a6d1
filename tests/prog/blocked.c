// SPDX-License-Identifier: Apache-2.0
/*
 * usage: blocked FD
 * One thread for each row of a table blocks in a system call. Prints "ready" when all threads have begun. On SIGUSR1
 * the first thread gives each what it waits for, and each checks that its call returns what it would have returned if
 * nobody had interrupted it. The file FD is the struct of blocked.h. work() is never called.
 */
#define _GNU_SOURCE
#include "blocked.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

void work(void);
__attribute__((noinline, visibility("default"))) void work(void)
{
	__asm__ volatile("" ::: "memory");
}

static struct blocked *shared;

struct job {
	int fd, peer; /* the thread waits on fd; what is done to peer ends the wait */
	int other;    /* fills a listener's queue */
	pid_t child;
	pthread_t thread;
	struct sockaddr_storage addr;
	socklen_t addr_bytes;
	char bytes[16];
};

/* ---- pipes, counters, terminals */

static bool open_pipe(struct job *j)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return false;
	j->fd = ends[0];
	j->peer = ends[1];
	return true;
}

static bool put(struct job *j, const char *text)
{
	return write(j->peer, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool got(const struct job *j, ssize_t n, const char *text)
{
	return n == (ssize_t)strlen(text) && !memcmp(j->bytes, text, (size_t)n);
}

static bool put_four(struct job *j)
{
	return put(j, "four");
}

static bool read_four(struct job *j)
{
	return got(j, read(j->fd, j->bytes, sizeof(j->bytes)), "four");
}

static bool readv_four(struct job *j)
{
	struct iovec parts[] = {{j->bytes, 1}, {j->bytes + 1, 15}};

	return got(j, readv(j->fd, parts, 2), "four");
}

static bool open_fifo(struct job *j)
{
	char path[] = "/tmp/blocked.XXXXXX";
	bool made = mkdtemp(path) && !rmdir(path) && !mkfifo(path, 0600);

	j->fd = made ? open(path, O_RDWR | O_CLOEXEC) : -1;
	j->peer = j->fd;
	unlink(path);
	return j->fd >= 0;
}

static bool open_event(struct job *j)
{
	j->fd = j->peer = eventfd(0, EFD_CLOEXEC);
	return j->fd >= 0;
}

static bool put_event(struct job *j)
{
	return !eventfd_write(j->peer, 7);
}

static bool read_event(struct job *j)
{
	eventfd_t n = 0;

	return !eventfd_read(j->fd, &n) && n == 7;
}

static bool open_timer(struct job *j)
{
	j->fd = j->peer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return j->fd >= 0;
}

static bool set_timer(struct job *j)
{
	return !timerfd_settime(j->peer, 0, &(struct itimerspec){.it_value = {.tv_nsec = 1}}, NULL);
}

static bool read_timer(struct job *j)
{
	uint64_t n = 0;

	return read(j->fd, &n, sizeof(n)) == sizeof(n) && n == 1;
}

static bool open_terminal(struct job *j)
{
	j->peer = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (j->peer < 0 || grantpt(j->peer) || unlockpt(j->peer))
		return false;
	j->fd = open(ptsname(j->peer), O_RDWR | O_NOCTTY | O_CLOEXEC);
	return j->fd >= 0;
}

static bool put_line(struct job *j)
{
	return put(j, "a li") && put(j, "ne\n");
}

static bool read_line(struct job *j)
{
	return got(j, read(j->fd, j->bytes, sizeof(j->bytes)), "a line\n");
}

/* The terminal gives two bytes at least, of which one is there. */
static bool open_raw_terminal(struct job *j)
{
	struct termios t;

	if (!open_terminal(j) || tcgetattr(j->fd, &t))
		return false;
	cfmakeraw(&t);
	t.c_cc[VMIN] = 2;
	return !tcsetattr(j->fd, TCSANOW, &t) && put(j, "t");
}

static bool put_one(struct job *j)
{
	return put(j, "o");
}

static bool read_two(struct job *j)
{
	return got(j, read(j->fd, j->bytes, sizeof(j->bytes)), "to");
}

static bool fill_pipe(struct job *j)
{
	static char many[1 << 20];

	return open_pipe(j) && fcntl(j->peer, F_SETPIPE_SZ, sizeof(many)) > 0 &&
	       write(j->peer, many, sizeof(many) - 4096) > 0;
}

static bool write_many(struct job *j)
{
	static char many[8192];

	return write(j->peer, many, sizeof(many)) == sizeof(many);
}

static bool drain_pipe(struct job *j)
{
	static char many[1 << 20];

	return read(j->fd, many, sizeof(many)) > 0;
}

static bool open_signals(struct job *j)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGURG);
	j->fd = signalfd(-1, &set, SFD_CLOEXEC);
	return j->fd >= 0;
}

static bool send_signal(struct job *j)
{
	(void)j;
	return !kill(getpid(), SIGRTMIN);
}

static bool read_signal(struct job *j)
{
	struct signalfd_siginfo info;

	return read(j->fd, &info, sizeof(info)) == sizeof(info) && (int)info.ssi_signo == SIGRTMIN;
}

/* ---- sockets */

static bool open_pair(struct job *j, int type)
{
	int ends[2];

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends))
		return false;
	j->fd = ends[0];
	j->peer = ends[1];
	return true;
}

static bool open_stream(struct job *j)
{
	return open_pair(j, SOCK_STREAM);
}

static bool open_packets(struct job *j)
{
	return open_pair(j, SOCK_DGRAM);
}

static bool open_udp(struct job *j)
{
	struct sockaddr_in *in = (void *)&j->addr;

	j->addr_bytes = sizeof(*in);
	*in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	j->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	j->peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return !bind(j->fd, (void *)in, sizeof(*in)) && !getsockname(j->fd, (void *)in, &j->addr_bytes) &&
	       !connect(j->peer, (void *)in, sizeof(*in));
}

static bool recvfrom_four(struct job *j)
{
	struct sockaddr_in from = {0};
	socklen_t n = sizeof(from);

	return got(j, recvfrom(j->fd, j->bytes, sizeof(j->bytes), 0, (void *)&from, &n), "four") && n == sizeof(from) &&
	       from.sin_port;
}

/* A message with a file descriptor. */
static bool put_file(struct job *j)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec part = {(void *)(uintptr_t) "four", 4};
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &j->peer, sizeof(int));
	return sendmsg(j->peer, &m, 0) == 4;
}

static bool recvmsg_file(struct job *j)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec part = {j->bytes, sizeof(j->bytes)};
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	int fd = -1;

	if (!got(j, recvmsg(j->fd, &m, 0), "four") || m.msg_flags || !(c = CMSG_FIRSTHDR(&m)))
		return false;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fcntl(fd, F_GETFD) >= 0;
}

static bool open_limited(struct job *j)
{
	struct timeval minute = {.tv_sec = 60};

	return open_stream(j) && !setsockopt(j->fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
}

static bool open_low(struct job *j)
{
	int least = 4;

	return open_stream(j) && !setsockopt(j->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)) && put(j, "f");
}

static bool open_begun(struct job *j)
{
	return open_stream(j) && put(j, "f");
}

static bool put_rest(struct job *j)
{
	return put(j, "our");
}

static bool recv_all(struct job *j)
{
	return got(j, recv(j->fd, j->bytes, 4, MSG_WAITALL), "four");
}

static bool recv_many(struct job *j)
{
	struct iovec parts[] = {{j->bytes, 1}, {j->bytes + 1, 1}};
	struct mmsghdr m[] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
			      {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 1}}};

	return recvmmsg(j->fd, m, 2, 0, NULL) == 2 && !memcmp(j->bytes, "to", 2);
}

static bool open_half(struct job *j)
{
	return open_packets(j) && put(j, "t");
}

/* ---- connections */

/* The peer is the listener. */
static bool listen_unix(struct job *j)
{
	struct sockaddr_un *un = (void *)&j->addr;

	j->peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	un->sun_family = AF_UNIX;
	j->addr_bytes = sizeof(*un);
	/* The kernel gives it a name. */
	return !bind(j->peer, (void *)un, sizeof(sa_family_t)) && !getsockname(j->peer, (void *)un, &j->addr_bytes) &&
	       !listen(j->peer, 0);
}

/*
 * Two connections have room in the queue: without SYN cookies, some kernels, 6.8 is one, take no connection at all if
 * only one has room.
 */
static bool listen_tcp(struct job *j)
{
	struct sockaddr_in *in = (void *)&j->addr;

	*in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	j->addr_bytes = sizeof(*in);
	j->peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return !bind(j->peer, (void *)in, sizeof(*in)) && !getsockname(j->peer, (void *)in, &j->addr_bytes) &&
	       !listen(j->peer, 1);
}

static bool connect_job(struct job *j)
{
	return !connect(j->fd, (void *)&j->addr, j->addr_bytes);
}

/*
 * Puts a connection into the listener's queue. If no other one has room there, the next connect() waits. By TCP,
 * connect() returns before the connection is in the queue.
 */
static bool fill_queue(struct job *j)
{
	struct pollfd queue = {.fd = j->peer, .events = POLLIN};

	j->other = socket(j->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	j->fd = socket(j->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return j->fd >= 0 && !connect(j->other, (void *)&j->addr, j->addr_bytes) && poll(&queue, 1, -1) == 1;
}

static bool open_full_unix(struct job *j)
{
	return listen_unix(j) && fill_queue(j);
}

/* The listener says how many connections are in its queue. */
static bool open_full_tcp(struct job *j)
{
	struct tcp_info info = {0};
	socklen_t n = sizeof(info);
	int another = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!listen_tcp(j) || !fill_queue(j) || another < 0 || connect(another, (void *)&j->addr, j->addr_bytes))
		return false;
	while (info.tcpi_unacked < 2)
		if (getsockopt(j->peer, IPPROTO_TCP, TCP_INFO, &info, &n))
			return false;
	return true;
}

static bool take_other(struct job *j)
{
	int fd = accept(j->peer, NULL, NULL);

	return fd >= 0 && !close(fd);
}

static bool connect_and_ask(struct job *j)
{
	struct sockaddr_storage to;
	socklen_t n = sizeof(to);

	return connect_job(j) && !getpeername(j->fd, (void *)&to, &n) && n == j->addr_bytes &&
	       !memcmp(&to, &j->addr, n) && send(j->fd, "four", 4, MSG_NOSIGNAL) == 4;
}

static bool connect_later(struct job *j)
{
	j->fd = socket(j->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return connect_job(j) && send(j->fd, "four", 4, MSG_NOSIGNAL) == 4;
}

static bool took(struct job *j, int fd)
{
	return fd >= 0 && got(j, read(fd, j->bytes, sizeof(j->bytes)), "four");
}

static bool accept_four(struct job *j)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);

	return took(j, accept(j->peer, (void *)&from, &n)) && n && from.ss_family == j->addr.ss_family;
}

static bool accept4_four(struct job *j)
{
	int fd = accept4(j->peer, NULL, NULL, SOCK_CLOEXEC);

	return took(j, fd) && fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

/* ---- children and signals */

static bool start_child(struct job *j)
{
	char c;

	if (!open_pipe(j))
		return false;
	j->child = fork();
	if (!j->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(read(j->fd, &c, 1) == 1 ? 42 : 1);
	}
	return j->child > 0;
}

static bool wait_child(struct job *j)
{
	int status = 0;

	return waitpid(j->child, &status, 0) == j->child && WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

static bool waitid_child(struct job *j)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)j->child, &info, WEXITED) && info.si_pid == j->child &&
	       info.si_code == CLD_EXITED && info.si_status == 42;
}

/* mxbpf stops threads by signals with numbers between these. */
#define SIG_ENDS      SIGUSR2 /* its handler makes calls fail with EINTR */
#define SIG_ENDS_TOO  SIGIO   /* that of this one, too */
#define SIG_GOES_BACK SIGPWR  /* after the handler of this one, calls go on */

static __thread volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	handled = sig;
}

static bool handle_signals(void)
{
	struct sigaction ends = {.sa_handler = on_signal}, back = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	return !sigaction(SIG_ENDS, &ends, NULL) && !sigaction(SIG_ENDS_TOO, &ends, NULL) &&
	       !sigaction(SIG_GOES_BACK, &back, NULL);
}

static bool open_none(struct job *j)
{
	(void)j;
	return true;
}

static bool was_ended(long result, int by)
{
	return result == -1 && errno == EINTR && handled == by;
}

static bool pause_job(struct job *j)
{
	(void)j;
	return was_ended(pause(), SIG_ENDS);
}

static bool end_pause(struct job *j)
{
	return !pthread_kill(j->thread, SIG_ENDS);
}

static bool read_until_signal(struct job *j)
{
	return was_ended(read(j->fd, j->bytes, sizeof(j->bytes)), SIG_ENDS);
}

static bool read_beyond_signal(struct job *j)
{
	return read_four(j) && handled == SIG_GOES_BACK;
}

static bool poll_until_signal(struct job *j)
{
	struct pollfd p = {.fd = j->fd, .events = POLLIN};

	return was_ended(poll(&p, 1, -1), SIG_ENDS_TOO);
}

static bool epoll_until_signal(struct job *j)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return !epoll_ctl(fd, EPOLL_CTL_ADD, j->fd, &e) && was_ended(epoll_wait(fd, &e, 1, -1), SIG_ENDS_TOO);
}

/* ---- the table */

static const struct row {
	const char *name;
	bool refused; /* interrupting the call would change its result */
	bool (*open)(struct job *j);
	bool (*call)(struct job *j);
	bool (*end)(struct job *j);
	int signal; /* a handler runs for it as soon as the call is interrupted */
} rows[] = {
	{"read from a pipe", false, open_pipe, read_four, put_four},
	{"readv from a pipe", false, open_pipe, readv_four, put_four},
	{"read from a named pipe", false, open_fifo, read_four, put_four},
	{"read from an eventfd", false, open_event, read_event, put_event},
	{"read from a timerfd", false, open_timer, read_timer, set_timer},
	{"read of a terminal's line", false, open_terminal, read_line, put_line},
	{"read from a socket", false, open_stream, read_four, put_four},
	{"recvfrom of UDP", false, open_udp, recvfrom_four, put_four},
	{"recvmsg with a file", false, open_packets, recvmsg_file, put_file},
	{"accept", false, listen_unix, accept_four, connect_later},
	{"accept4 of TCP", false, listen_tcp, accept4_four, connect_later},
	{"connect", false, open_full_unix, connect_and_ask, take_other},
	{"connect by TCP", false, open_full_tcp, connect_and_ask, take_other},
	{"wait4", false, start_child, wait_child, put_one},
	{"waitid", false, start_child, waitid_child, put_one},
	{"pause", false, open_none, pause_job, end_pause},
	{"read that a signal ends", false, open_pipe, read_until_signal, open_none, SIG_ENDS},
	{"read that goes on after a signal", false, open_pipe, read_beyond_signal, put_four, SIG_GOES_BACK},
	{"poll that a signal ends", false, open_pipe, poll_until_signal, open_none, SIG_ENDS_TOO},
	{"epoll_wait that a signal ends", false, open_pipe, epoll_until_signal, open_none, SIG_ENDS_TOO},
	{"read from a terminal of two bytes", true, open_raw_terminal, read_two, put_one},
	{"read from a signalfd", true, open_signals, read_signal, send_signal},
	{"read from a socket with a time limit", true, open_limited, read_four, put_four},
	{"read from a socket with a low-water mark", true, open_low, read_four, put_rest},
	{"recvfrom of all bytes", true, open_begun, recv_all, put_rest},
	{"recvmmsg", true, open_half, recv_many, put_one},
	{"write to a full pipe", true, fill_pipe, write_many, drain_pipe},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
_Static_assert(ROWS <= BLOCKED_ROWS, "they fit into the shared struct");

static struct job jobs[ROWS];

static void *run(void *arg)
{
	const struct row *r = arg;
	size_t i = (size_t)(r - rows);

	shared->row[i].tid = gettid();
	errno = 0;
	if (!r->call(&jobs[i])) {
		fprintf(stderr, "# %s: wrong result (%s)\n", r->name, strerror(errno));
		__sync_fetch_and_add(&shared->damages, 1);
	}
	shared->row[i].done = 1;
	__sync_fetch_and_add(&shared->calls, 1);
	return NULL;
}

static bool start(void)
{
	size_t i;

	for (i = 0; i < ROWS; i++) {
		snprintf((char *)shared->row[i].name, sizeof(shared->row[i].name), "%s", rows[i].name);
		shared->row[i].refused = rows[i].refused;
		shared->row[i].signal = rows[i].signal;
		if (!rows[i].open(&jobs[i])) {
			fprintf(stderr, "# %s: %s\n", rows[i].name, strerror(errno));
			return false;
		}
	}
	for (i = 0; i < ROWS; i++)
		if (pthread_create(&jobs[i].thread, NULL, run, (void *)(uintptr_t)&rows[i]))
			return false;
	for (i = 0; i < ROWS; i++)
		while (!shared->row[i].tid)
			usleep(100);
	shared->rows = ROWS;
	return true;
}

static void end_all(void)
{
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (!rows[i].end(&jobs[i]))
			fprintf(stderr, "# %s: cannot end it: %s\n", rows[i].name, strerror(errno));
}

int main(int argc, char **argv)
{
	sigset_t set;
	int sig;

	if (argc < 2)
		return 2;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (shared == MAP_FAILED || !handle_signals() || !start())
		return 1;
	puts("ready");
	fflush(stdout);
	sigdelset(&set, SIGRTMIN);
	sigwait(&set, &sig);
	end_all();
	for (;;)
		pause();
}
