// SPDX-License-Identifier: Apache-2.0
/*
 * Reads any bytes as the configuration of `mxbpf serve`, as words of a command line (a newline stands between two), as
 * a condition of --on and as a limit of --fail-on.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/opts.h"
#include "cmd/serve/config.h"
#include "compare/compare.h"
#include "trigger/trigger.h"

#define WORDS_MAX 32

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	cmd_init_options();
	return 0;
}

static void try_config(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct cmd_opts given = {0}, o;
	struct config f;
	struct err e = {0};
	char path[32];

	if (fd < 0 || fchmod(fd, 0600) || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (config_read(&f, &given, path, &o, &e) && !e.why[0])
		abort();
	config_fini(&f);
	close(fd);
}

static void try_words(char *text)
{
	char *argv[WORDS_MAX + 2] = {"mxbpf"}, *next = text;
	const struct cmd *c;
	struct cmd_opts o;
	struct err e = {0};
	int n = 1;

	while (next && n <= WORDS_MAX)
		argv[n++] = strsep(&next, "\n");
	if (cmd_parse(n, argv, &c, &o, &e) && !e.why[0])
		abort();
}

static void try_conditions(const char *text)
{
	struct cmp_limit l;
	struct err e = {0};
	struct trg *t = NULL;

	if (trg_parse(text, &t, &e) && !e.why[0])
		abort();
	trg_free(t);
	e = (struct err){0};
	if (cmp_limit_parse(text, &l, &e) && !e.why[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = size ? malloc(size) : NULL; /* its end is the end of the memory */

	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	copy[size - 1] = '\0';
	switch (*data % 3) {
	case 0:
		try_config(data + 1, size - 1);
		break;
	case 1:
		try_words(copy);
		break;
	default:
		try_conditions(copy);
	}
	free(copy);
	return 0;
}
