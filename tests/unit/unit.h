/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit test program has TEST("promise") { CHECK(...); } blocks in main() and writes TAP to stdout. Each block is a
 * test named after its promise. A failed CHECK prints file and line, and the block continues. The headers of the C
 * library that many programs need are included here.
 */
#ifndef UNIT_H
#define UNIT_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int unit_n, unit_bad, unit_failed;
static const char *unit_name;

static inline void unit_close(void)
{
	if (!unit_name)
		return;
	printf("%sok %d - %s\n", unit_bad ? "not " : "", unit_n, unit_name);
	fflush(stdout);
	unit_failed += !!unit_bad;
	unit_name = NULL;
}

static inline int unit_open(const char *name)
{
	unit_close();
	unit_name = name;
	unit_bad = 0;
	unit_n++;
	return 1;
}

static inline int unit_end(void)
{
	unit_close();
	printf("1..%d\n", unit_n);
	return unit_failed ? 1 : 0;
}

/* Returns the path in this environment variable, or NULL. Only tests/setup.sh fetches those libraries. */
static inline const char *unit_library(const char *variable)
{
	const char *path = getenv(variable);

	return path && !access(path, R_OK) ? path : NULL;
}

/* FREED(function) in front of a variable: the function gets the variable's address at the end of its block. */
#define FREED(function) __attribute__((cleanup(function)))
/* Defines such a function for a pointer. */
#define FREES(name, type, function)                                                                                    \
	static inline void name(type **variable)                                                                       \
	{                                                                                                              \
		if (*variable)                                                                                         \
			function(*variable);                                                                           \
	}

static inline void memory_freed(void *variable)
{
	free(*(void **)variable);
}

FREES(file_closed, FILE, fclose)
FREES(pipe_closed, FILE, pclose)

struct mdl;
void mdl_free(struct mdl *m);
FREES(model_freed, struct mdl, mdl_free)

#define TEST(promise) if (unit_open(promise))
/* A test that is skipped with a reason unless the condition holds. Both texts must be literals. */
#define TEST_IF(cond, promise, why) if (unit_open((cond) ? promise : promise " # SKIP " why) && (cond))
#define NO_MXNET		    "no libmxnet.so in MXBPF_TEST_LIBMXNET: tests/setup.sh fetches it"
#define NO_TORCH		    "no libtorch_cpu.so in MXBPF_TEST_LIBTORCH: tests/setup.sh fetches it"
#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			unit_bad++;                                                                                    \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);                                            \
		}                                                                                                      \
	} while (0)
#define UNIT_MAIN_END return unit_end()

#endif
