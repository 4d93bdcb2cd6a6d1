// SPDX-License-Identifier: Apache-2.0
/* Tests the child process that reads what need not answer. A device of 0 is unknown, so the child is asked. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/far.h"
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
	UNIT_MAIN_END;
}
