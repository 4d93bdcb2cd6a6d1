// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "base/memory.h"
#include "cmd/opts.h"

/*
 * Opens fds 0, 1 and 2 if they are closed. Otherwise the next file opened would receive what is printed there. The
 * fillers are not writable, so that lost output is an error, and a launched command does not inherit them.
 */
static void fill_std_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Closes stdout and reports an error, because some file systems report a failed write only at close(). */
static int close_stdout(int rc)
{
	struct err e = {0};
	bool failed;
	int why;

	errno = 0;
	failed = fflush(stdout) || ferror(stdout);
	why = errno;
	if (fclose(stdout) && !failed) {
		failed = true;
		why = errno;
	}
	if (!failed)
		return rc;
	err_set(&e, ERR_RUNTIME, -EIO, "cannot write standard output: %s", strerror(why ? why : EIO));
	return rc ? (cmd_fail(&e), rc) : cmd_fail(&e);
}

int main(int argc, char **argv)
{
	struct cmd_opts o;
	struct err e = {0};
	const struct cmd *c;

	cmd_init_options();
	fill_std_fds();
	fmt_use_locale();
	signal(SIGPIPE, SIG_IGN); /* a closed pipe and a full file become errors of write() */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		cmd_print_usage();
		return CMD_USAGE;
	}
	if (cmd_parse(argc, argv, &c, &o, &e))
		return cmd_fail(&e);
	/* The kernel maps a ring twice, one copy behind the other, and both count as memory of this process. */
	mem_limit(o.max_memory ? o.max_memory : MEM_LIMIT_DEFAULT + 2 * o.ses.ring_bytes);
	if (!o.instead && !cmd_is_session(c))
		cmd_limit(&o);
	return close_stdout(o.instead ? o.instead(c) : c->run(&o));
}
