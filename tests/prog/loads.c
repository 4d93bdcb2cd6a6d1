// SPDX-License-Identifier: Apache-2.0
/* Loads the library in its argument, prints "ready PID", and waits. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2 || !dlopen(argv[1], RTLD_NOW)) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: loads LIBRARY");
		return 1;
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	pause();
	return 0;
}
