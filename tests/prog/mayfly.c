// SPDX-License-Identifier: Apache-2.0
/* A process that exits while it is being attached to. mayfly MS: says "ready", exits MS milliseconds later. */
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
