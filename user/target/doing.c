// SPDX-License-Identifier: Apache-2.0
/* Reads from /proc what a thread is doing in the kernel, without stopping it. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "target/priv.h"

#define TRIES 3

static int slurp_task(pid_t pid, pid_t tid, const char *name, struct buf *out)
{
	char path[64];
	int err;

	out->len = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	err = tgt_slurp(AT_FDCWD, path, 65536, out);
	return err == -ENOENT ? -ESRCH : err;
}

static uint64_t number_of(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static int read_state(pid_t pid, pid_t tid, struct buf *text, char *state, uint64_t *switches)
{
	static const char key[] = "\nState:\t"; /* newlines in the name before it are escaped */
	int err = slurp_task(pid, tid, "status", text);
	const char *at = err ? NULL : strstr(text->data, key);

	if (!err && !at)
		err = -EBADMSG;
	*state = at ? at[strlen(key)] : '\0';
	*switches = err ? 0
			: number_of(text->data, "\nvoluntary_ctxt_switches:") +
				    number_of(text->data, "\nnonvoluntary_ctxt_switches:");
	return err;
}

/* Parses "running", or a system call number (-1: none) with arguments, stack pointer and program counter. */
static bool parse_syscall(const char *text, struct tgt_doing *d)
{
	unsigned long long v[8] = {0};
	int n = sscanf(text, "%d %llx %llx %llx %llx %llx %llx %llx %llx", &d->syscall, &v[0], &v[1], &v[2], &v[3],
		       &v[4], &v[5], &v[6], &v[7]);
	int i;

	if (n != 3 && n != 9)
		return false;
	for (i = 0; i < n - 3; i++)
		d->args[i] = v[i];
	d->sp = v[n - 3];
	d->pc = v[n - 2];
	return true;
}

static void read_wchan(pid_t pid, pid_t tid, struct buf *text, struct tgt_doing *d)
{
	if (slurp_task(pid, tid, "wchan", text) || !strcmp(text->data, "0"))
		return;
	snprintf(d->wchan, sizeof(d->wchan), "%s", text->data);
}

/*
 * The kernel shows the system call of a thread only while the thread is off the CPU. If two reads agree and the number
 * of switches did not change, the thread has not run in between.
 */
static int doing_look(pid_t pid, pid_t tid, struct buf *text, struct tgt_doing *d)
{
	struct tgt_doing again;
	int err = read_state(pid, tid, text, &d->state, &d->switches);

	if (err)
		return err;
	if (slurp_task(pid, tid, "syscall", text) || !parse_syscall(text->data, d)) {
		d->syscall = -1;
		return d->state == 'R' ? 0 : -EAGAIN;
	}
	read_wchan(pid, tid, text, d);
	if (slurp_task(pid, tid, "syscall", text) || !parse_syscall(text->data, &again) ||
	    read_state(pid, tid, text, &again.state, &again.switches))
		return -EAGAIN;
	return again.state == d->state && again.switches == d->switches ? 0 : -EAGAIN;
}

int tgt_peek_doing(pid_t pid, pid_t tid, struct tgt_doing *d)
{
	struct buf text = {0};
	int err = -EAGAIN, i;

	for (i = 0; i < TRIES && err == -EAGAIN; i++) {
		*d = (struct tgt_doing){.syscall = -1};
		err = doing_look(pid, tid, &text, d);
	}
	buf_fini(&text);
	if (err)
		*d = (struct tgt_doing){.state = err == -ESRCH ? '\0' : d->state, .syscall = -1};
	return err;
}

/* The first argument of the system call is a file that it reads or writes. */
static bool has_file(int32_t syscall)
{
	static const int32_t calls[] = {SYS_read,    SYS_write,	  SYS_readv,  SYS_writev,  SYS_sendto,	SYS_sendmsg,
					SYS_recvmsg, SYS_connect, SYS_accept, SYS_accept4, SYS_recvfrom};
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i] == syscall)
			return true;
	return false;
}

/* The kernel says "running" of a thread that runs or moves while it looks. */
struct tgt_call tgt_peek_call(pid_t pid, pid_t tid)
{
	struct tgt_call c = {.syscall = -1, .fd = -1};
	struct buf text = {0};
	uint64_t switches;
	char state;
	unsigned long long first = 0, limit = 0;
	int got = 0;

	if (!slurp_task(pid, tid, "syscall", &text)) {
		got = sscanf(text.data, "%d %llx %*x %*x %llx", &c.syscall, &first, &limit);
		c.state = got >= 1 ? 'S' : 'R';
		c.syscall = c.state == 'S' ? c.syscall : -1;
		c.untimed = got == 3 && c.syscall == SYS_futex && !limit;
		c.futex = c.untimed ? first : 0;
	}
	if (c.state == 'S' && got >= 2 && first <= INT_MAX && has_file(c.syscall))
		c.fd = (int)first;
	/* The thread may have moved since, and then it counts as asleep in what it was in. */
	if (c.state == 'S' && !read_state(pid, tid, &text, &state, &switches) && strchr("DTt", state))
		c.state = state;
	buf_fini(&text);
	return c;
}

int tgt_peek_cpu(pid_t pid, pid_t tid, uint64_t *cpu_ns, uint64_t *runq_ns)
{
	struct buf text = {0};
	int err = slurp_task(pid, tid, "schedstat", &text);

	if (!err && sscanf(text.data, "%" SCNu64 " %" SCNu64, cpu_ns, runq_ns) != 2)
		err = -EINVAL;
	buf_fini(&text);
	return err;
}

static void count_stopped(pid_t pid, pid_t tid, struct buf *text, struct tgt_stop *s)
{
	uint64_t switches;
	char state;

	if (read_state(pid, tid, text, &state, &switches))
		return;
	s->threads++;
	s->stopped += state == 'T' || state == 't';
	if (state == 't' && !s->tracer)
		s->tracer = (pid_t)number_of(text->data, "\nTracerPid:");
}

bool tgt_peek_stop(pid_t pid, struct tgt_stop *s)
{
	struct buf text = {0};
	const struct dirent *d;
	char path[64];
	DIR *tasks;

	*s = (struct tgt_stop){0};
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (d = readdir(tasks)))
		if (d->d_name[0] != '.')
			count_stopped(pid, (pid_t)atoi(d->d_name), &text, s);
	if (tasks)
		closedir(tasks);
	buf_fini(&text);
	if (s->tracer)
		tgt_peek_comm(s->tracer, s->tracer, s->tracer_comm);
	s->frozen = tgt_peek_frozen(pid);
	return s->stopped || s->frozen;
}
