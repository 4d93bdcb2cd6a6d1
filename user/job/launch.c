// SPDX-License-Identifier: Apache-2.0
#include "job/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/launch_env.h"

/* The user who called sudo. */
struct who {
	bool other; /* another user than mxbpf runs as */
	uid_t uid;
	gid_t gid;
	const struct passwd *pw; /* NULL: the user has no name */
};

static struct who invoking_user(void)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	struct who who = {0};

	if (geteuid() || !uid || !gid)
		return who;
	who.uid = (uid_t)strtoul(uid, NULL, 10);
	who.gid = (gid_t)strtoul(gid, NULL, 10);
	who.other = who.uid != 0;
	who.pw = getpwuid(who.uid);
	return who;
}

/* In the child: drops all privileges of mxbpf. 0 or -errno. */
static int become(const struct who *who)
{
	if (who->pw ? initgroups(who->pw->pw_name, who->gid) : setgroups(1, &who->gid))
		return -errno;
	if (setresgid(who->gid, who->gid, who->gid) || setresuid(who->uid, who->uid, who->uid))
		return -errno;
	return setuid(0) ? 0 : -EPERM;
}

/* In the child: executes the command, or ends. */
static void run_command(const struct launch *l, char **argv, const struct who *who, char **env)
{
	char go;
	int err = 0;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (geteuid())
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (who->other)
		err = become(who);
	if (l->in_child)
		l->in_child(env);
	if (read(l->go, &go, 1) != 1)
		_exit(127);
	if (!err) {
		environ = env; /* execvpe() would search the PATH of mxbpf */
		execvp(argv[0], argv);
		err = -errno;
	}
	if (write(l->failed, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(err == -ENOENT ? 127 : 126);
}

int launch_prepare(struct launch *l, char **argv, bool to_stderr, struct err *e)
{
	int go[2] = {-1, -1}, failed[2] = {-1, -1}, err;
	struct who who = invoking_user();
	char **env = launch_env(who.pw, who.other);

	if (!env)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
		goto fail;
	l->pid = fork();
	if (l->pid < 0)
		goto fail;
	if (!l->pid) {
		close(go[1]);
		l->go = go[0];
		l->failed = failed[1];
		if (to_stderr)
			dup2(STDERR_FILENO, STDOUT_FILENO);
		run_command(l, argv, &who, env);
	}
	close(go[0]);
	close(failed[1]);
	l->go = go[1];
	l->failed = failed[0];
	l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
	return l->pidfd < 0 ? err_set(e, ERR_RUNTIME, -errno, "pidfd_open: %s", strerror(errno)) : 0;
fail:
	err = err_set(e, ERR_RUNTIME, -errno, "cannot start the command: %s", strerror(errno));
	close(go[0]);
	close(go[1]);
	close(failed[0]);
	close(failed[1]);
	l->pid = 0;
	return err;
}

int launch_go(struct launch *l, const char *name, struct err *e)
{
	int err = 0;
	ssize_t n;

	if (write(l->go, "", 1) != 1)
		err = -errno;
	close(l->go);
	l->go = -1;
	n = read(l->failed, &err, sizeof(err)); /* end of file means that the command runs */
	close(l->failed);
	l->failed = -1;
	if (!n && !err)
		return 0;
	return err_set(e, ERR_TARGET, err ? err : -EIO, "cannot run '%s': %s", name, strerror(err ? -err : EIO));
}

void launch_forward(const struct launch *l, const struct signalfd_siginfo *sig)
{
	if (sig->ssi_code <= 0) /* sent by a process; the terminal signals the whole group */
		syscall(SYS_pidfd_send_signal, l->pidfd, sig->ssi_signo, NULL, 0);
}

int launch_wait(struct launch *l, int signals)
{
	struct pollfd fds[] = {{.fd = l->pidfd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	struct signalfd_siginfo sig;
	int status;

	while (poll(fds, 2, -1) < 0 || !fds[0].revents)
		if (fds[1].revents && read(signals, &sig, sizeof(sig)) == sizeof(sig))
			launch_forward(l, &sig);
	while (waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
		;
	l->pid = 0;
	close(l->pidfd);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void launch_fini(struct launch *l)
{
	if (!l->pid)
		return;
	if (l->go >= 0) { /* the child waits for a byte, and exits at the end of file */
		close(l->go);
		waitpid(l->pid, NULL, 0);
	}
	if (l->failed >= 0)
		close(l->failed);
	close(l->pidfd);
}
