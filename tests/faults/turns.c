// SPDX-License-Identifier: Apache-2.0
/* LD_PRELOAD: at SIGUSR2 the process executes another program: sleep, or that of TURNS_INTO. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void turn(int signal)
{
	const char *program = getenv("TURNS_INTO");

	(void)signal;
	unsetenv("LD_PRELOAD");
	execl(program ? program : "/bin/sleep", "sleep", "1000", (char *)NULL);
	_exit(1);
}

__attribute__((constructor)) static void begin(void)
{
	signal(SIGUSR2, turn);
}
