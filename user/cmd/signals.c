// SPDX-License-Identifier: Apache-2.0
/*
 * Before the window begins there are no results: INT, TERM and HUP end mxbpf at once, and the kernel removes the
 * probes. In the window they end the window, and the results are written. After that only a second INT ends mxbpf
 * before it has written everything. mxbpf forwards these signals to a command that it launched, and waits for its end.
 *
 * A shell without job control starts background programs with INT ignored. mxbpf handles INT even then, because Ctrl-C
 * and kill -INT are meant for it. An ignored HUP (nohup) stays ignored.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/run.h"

/* Signal handlers belong to the process, not to a session, so this state is static. */
static char last_words[2200]; /* printed by a second INT */
static volatile sig_atomic_t interrupts;

static void say(const char *text)
{
	ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

	(void)ignored; /* a handler cannot report that writing failed */
}

static void end_early(int sig)
{
	say("\nmxbpf: interrupted before recording began; no event was recorded\n");
	_exit(CMD_NOTHING_SEEN); /* the kernel removes the probes with the file descriptors */
}

static void end_late(int sig)
{
	if (!interrupts++) { /* the first INT came just after the window had ended by itself */
		say("\nmxbpf: writing the results; another Ctrl-C aborts\n");
		return;
	}
	say(last_words);
	_exit(CMD_ABORTED);
}

static sigset_t ending_signals(void)
{
	struct sigaction hup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	return set;
}

int signals_open(bool launched, struct err *e)
{
	struct sigaction early = {.sa_handler = end_early};
	sigset_t ending = ending_signals(), pausing, all = ending;
	int sig, fd;

	/* With a command, mxbpf must not end early: it reads the signals and forwards them. */
	for (sig = 1; !launched && sig < NSIG; sig++)
		if (sigismember(&ending, sig) == 1)
			sigaction(sig, &early, NULL);
	pthread_sigmask(launched ? SIG_BLOCK : SIG_UNBLOCK, &ending, NULL);
	sigemptyset(&pausing);
	sigaddset(&pausing, SIGUSR1);
	sigaddset(&pausing, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &pausing, NULL);
	sigaddset(&all, SIGUSR1);
	sigaddset(&all, SIGUSR2);
	fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_set(e, ERR_RUNTIME, -errno, "cannot wait for signals (signalfd): %s", strerror(errno)) : fd;
}

void signals_hold(void)
{
	sigset_t set = ending_signals();

	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void signals_took(int sig)
{
	interrupts += sig == SIGINT;
}

void signals_results(const struct run *r, enum signals_done done)
{
	struct sigaction sa = {.sa_handler = end_late};
	char lost[1024] = "", safe[1024] = "";
	sigset_t set;
	size_t len;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	len = snprintf(lost, sizeof(lost), "%s",
		       r->so.recording || done >= SIGNALS_PRINTED ? ""
		       : r->ntables				  ? "the last tables"
		       : r->o->output				  ? r->o->output
								  : "the tables");
	if (r->so.trace && len < sizeof(lost))
		snprintf(lost + len, sizeof(lost) - len, "%s%s", len ? ", " : "", r->so.trace);
	fmt_safe(safe, sizeof(safe), lost, strlen(lost));
	len = snprintf(last_words, sizeof(last_words), "\nmxbpf: aborted");
	if (*safe)
		len += snprintf(last_words + len, sizeof(last_words) - len, "; not written: %s", safe);
	if (r->so.recording) {
		fmt_safe(safe, sizeof(safe), r->so.recording, strlen(r->so.recording));
		len += snprintf(last_words + len, sizeof(last_words) - len, "; %s %s", safe,
				done >= SIGNALS_RECORDED ? "is complete" : "is readable, and incomplete");
	}
	snprintf(last_words + len, sizeof(last_words) - len, "\n");
	sigaction(SIGINT, &sa, NULL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
