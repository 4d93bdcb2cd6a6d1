// SPDX-License-Identifier: Apache-2.0
/* mxbpf as a child, with the command line of a call. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "mcp/priv.h"

uint64_t mcp_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A child ends with the server, as at Ctrl-C, however the server ends. */
static void run_child(struct mcp_call *c, pid_t server, int out, int err)
{
	int null = open("/dev/null", O_RDONLY);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGINT);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (getppid() != server || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(err, STDERR_FILENO) < 0)
		_exit(127);
	execv("/proc/self/exe", (char **)c->argv);
	_exit(127);
}

int mcp_spawn(struct mcp *m, struct mcp_call *c, struct err *e)
{
	const pid_t self = getpid();
	int out[2] = {-1, -1}, err[2] = {-1, -1};

	c->argv[c->argc] = NULL;
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		goto fail;
	c->pid = fork();
	if (!c->pid)
		run_child(c, self, out[1], err[1]);
	if (c->pid < 0)
		goto fail;
	close(out[1]);
	close(err[1]);
	c->out = out[0];
	c->err = err[0];
	return 0;
fail:
	err_set(e, ERR_RUNTIME, -errno, "cannot run mxbpf: %s", strerror(errno));
	c->pid = 0;
	if (out[0] >= 0) {
		close(out[0]);
		close(out[1]);
	}
	if (err[0] >= 0) {
		close(err[0]);
		close(err[1]);
	}
	return e->code;
}

void mcp_call_free(struct mcp_call *c)
{
	if (c->out >= 0)
		close(c->out);
	if (c->err >= 0)
		close(c->err);
	buf_fini(&c->output);
	buf_fini(&c->errors);
	cJSON_Delete(c->id);
	cJSON_Delete(c->args);
	cJSON_Delete(c->token);
	cJSON_Delete(c->words);
	*c = (struct mcp_call){.out = -1, .err = -1};
}
