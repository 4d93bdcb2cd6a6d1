// SPDX-License-Identifier: Apache-2.0
/* The loop: one thread reads requests and the output of children. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mcp/priv.h"

#define BEAT_NS	    1000000000ull  /* between notifications of progress */
#define LAST_NS	    10000000000ull /* that children have at the end to detach */
#define ERROR_BYTES 8192	   /* of what a child says on stderr */

/* Answers each complete line. What is behind them stays. */
static void take_lines(struct mcp *m)
{
	char *start = m->in.data, *end;
	const char *const limit = start + m->in.len;

	while (start < limit && (end = memchr(start, '\n', (size_t)(limit - start)))) {
		if (!m->skipping)
			mcp_take_line(m, start, (size_t)(end - start));
		m->skipping = false;
		start = end + 1;
	}
	m->in.len = (size_t)(limit - start);
	memmove(m->in.data, start, m->in.len);
	if (m->in.len <= MCP_LINE_BYTES)
		return;
	if (!m->skipping)
		mcp_error(NULL, -32700, "the line is longer than 4 MiB", NULL);
	m->skipping = true;
	m->in.len = 0;
}

static void read_requests(struct mcp *m)
{
	char chunk[65536];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0 || buf_put(&m->in, chunk, (size_t)n)) {
		m->quit = true;
		return;
	}
	take_lines(m);
}

/* Of more than `max` bytes the first ones are kept. */
static void read_child(int *fd, struct buf *to, size_t max)
{
	char chunk[65536];
	ssize_t n = read(*fd, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		close(*fd);
		*fd = -1;
	} else if (to->len < max) {
		buf_put(to, chunk, (size_t)n);
	}
}

/* A call is done when its child has ended and both pipes are empty. */
static void reap(struct mcp *m)
{
	struct mcp_call *c;

	for (c = m->calls; c < m->calls + MCP_CALLS; c++) {
		if (c->pid && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
			c->pid = -1;
		if (!c->tool || c->pid >= 0 || c->out >= 0 || c->err >= 0)
			continue;
		c->pid = 0;
		mcp_finish(m, c);
	}
}

static bool is_running(const struct mcp *m)
{
	unsigned i;

	for (i = 0; i < MCP_CALLS; i++)
		if (m->calls[i].pid)
			return true;
	return false;
}

static void turn(struct mcp *m, bool requests)
{
	struct pollfd fds[2 + 2 * MCP_CALLS] = {{.fd = requests ? STDIN_FILENO : -1, .events = POLLIN},
						{.fd = m->signals, .events = POLLIN}};
	struct signalfd_siginfo got;
	struct mcp_call *c;
	unsigned i;

	for (i = 0; i < MCP_CALLS; i++) {
		fds[2 + 2 * i] = (struct pollfd){.fd = m->calls[i].tool ? m->calls[i].out : -1, .events = POLLIN};
		fds[3 + 2 * i] = (struct pollfd){.fd = m->calls[i].tool ? m->calls[i].err : -1, .events = POLLIN};
	}
	if (poll(fds, sizeof(fds) / sizeof(fds[0]), is_running(m) ? 1000 : -1) < 0)
		return;
	for (i = 0; i < MCP_CALLS; i++) {
		c = &m->calls[i];
		if (fds[2 + 2 * i].revents)
			read_child(&c->out, &c->output, MCP_OUTPUT_BYTES);
		if (fds[3 + 2 * i].revents)
			read_child(&c->err, &c->errors, ERROR_BYTES);
		if (c->tool && !c->cancelled && (mcp_now() - c->started) / BEAT_NS > c->beats)
			mcp_say_progress(c, mcp_now());
	}
	if (fds[1].revents && read(m->signals, &got, sizeof(got)) == sizeof(got))
		m->quit |= got.ssi_signo != SIGCHLD;
	if (fds[0].revents)
		read_requests(m);
	reap(m);
}

/* Ends all children as Ctrl-C does, so that they detach; what does not end is killed. */
static void end_children(struct mcp *m)
{
	const uint64_t start = mcp_now();
	unsigned i;

	for (i = 0; i < MCP_CALLS; i++) {
		m->calls[i].cancelled = true;
		if (m->calls[i].pid > 0)
			kill(m->calls[i].pid, SIGINT);
	}
	while (is_running(m) && mcp_now() - start < LAST_NS)
		turn(m, false);
	for (i = 0; i < MCP_CALLS; i++) {
		if (m->calls[i].pid > 0) {
			kill(m->calls[i].pid, SIGKILL);
			waitpid(m->calls[i].pid, NULL, 0);
		}
		mcp_call_free(&m->calls[i]);
	}
}

int mcp_serve(const struct mcp_opts *o, struct err *e)
{
	struct mcp m = {.o = o};
	sigset_t set;
	unsigned i;

	for (i = 0; i < MCP_CALLS; i++)
		m.calls[i].out = m.calls[i].err = -1;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	m.signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (m.signals < 0)
		return err_set(e, ERR_RUNTIME, -errno, "cannot receive signals: %s", strerror(errno));
	while (!m.quit)
		turn(&m, true);
	end_children(&m);
	mcp_forget_all(&m);
	buf_fini(&m.in);
	close(m.signals);
	return 0;
}
