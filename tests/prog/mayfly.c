// SPDX-License-Identifier: Apache-2.0
/* usage: mayfly MS. Prints "ready" and exits MS milliseconds later, so that it can exit while mxbpf attaches to it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	puts("ready");
	fflush(stdout);
	usleep(argc > 1 ? (useconds_t)atoi(argv[1]) * 1000 : 0);
	return 0;
}
