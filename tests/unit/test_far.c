// SPDX-License-Identifier: Apache-2.0
/* Tests the child process that reads what need not answer. A device of 0 is unknown, so the child is asked. */
#include <dirent.h>
#include <sys/prctl.h>

#include "target/far.h"
#include "target/target.h"
#include "unit.h"

#define ROUNDS 16

/* Opens this program with a child of its own, and ends the child. */
static int ask_once(void)
{
	struct far *far = far_new();
	struct far_file f;
	int err = far_open(far, AT_FDCWD, "/proc/self/exe", 0, &f);

	if (!err) {
		far_close(&f);
		close(f.fd);
	}
	far_free(far);
	return err;
}

/* Maps a memory file and memory that processes share: the kernel's own tmpfs. */
static void map_memory(void)
{
	const int fd = memfd_create("memory", 0);

	if (fd < 0 || ftruncate(fd, 4096) || mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ||
	    mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		abort();
}

/* Reads a process that is stopped, and returns how many children that took. Its program may lie on no disk itself. */
static int children_for(bool memory)
{
	struct tgt *t = NULL;
	pid_t pid = fork();
	siginfo_t info;
	int n = 0;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (memory)
			map_memory();
		for (;;)
			raise(SIGSTOP);
	}
	CHECK(!waitid(P_PID, (id_t)pid, &info, WSTOPPED));
	CHECK(!tgt_open(pid, &t, NULL));
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	n = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) ? 0 : 1; /* 0: there is none */
	tgt_close(t);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return n;
}

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

int main(void)
{
	const unsigned fds = open_fds();
	siginfo_t info;
	unsigned i, left = 0;

	TEST("children that ended are reaped by the next, and leave no descriptor")
	{
		for (i = 0; i < ROUNDS; i++) {
			CHECK(!ask_once());
			/* Waits until the child has ended, and leaves it for the next round. */
			while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) && errno == EINTR)
				;
		}
		while (waitpid(-1, NULL, 0) > 0)
			left++;
		CHECK(left <= 1);
		CHECK(open_fds() == fds);
	}
	TEST("memory files and shared memory of a process need no child, because the kernel's own tmpfs always answers")
	{
		CHECK(children_for(true) == children_for(false));
	}
	UNIT_MAIN_END;
}
