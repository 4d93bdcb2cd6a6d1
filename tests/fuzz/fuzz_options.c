// SPDX-License-Identifier: Apache-2.0
/*
 * Reads any bytes as the configuration of `mxbpf serve`, as words of a command line (a newline stands between two), as
 * a condition of --on and as a limit of --fail-on; and as a command line of options that exist, by their numbers.
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

#define WORDS_MAX    40 /* more than any option that can be given several times */
#define OPTION_BYTES 400
#define BY_NUMBER    250 /* first bytes from here on: options by their numbers */

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

static unsigned count_words(const struct cmd_option *opt)
{
	unsigned n = 0;

	while (opt->word && opt->word(n))
		n++;
	return n;
}

/* Makes "--NAME=VALUE" of a line: the number of the option, and then its value, or 1 and the number of a word. */
static void put_option(char *to, const struct cmd_option *opt, const char *value)
{
	const unsigned n = count_words(opt);

	if (n && *value == 1)
		value = opt->word((uint8_t)value[1] % n);
	snprintf(to, OPTION_BYTES, opt->arg ? "--%s=%s" : "--%s", opt->name, value);
}

#define ANY_COMMAND 255 /* one that takes the first option */

static const struct cmd *command_of(unsigned byte, const struct cmd_option *first)
{
	const struct cmd *c = cmd_table;
	unsigned n = 0;

	while (cmd_table[n].run)
		n++;
	if (byte != ANY_COMMAND)
		return &cmd_table[byte % n];
	while (c->run && !(c->bit & first->commands))
		c++;
	return c;
}

/* The first byte is the command. */
static void try_options(char *text)
{
	static char options[WORDS_MAX][OPTION_BYTES];
	char *argv[WORDS_MAX + 4] = {"mxbpf"}, *next = text[0] ? text + 1 : NULL, *line;
	const struct cmd *c = NULL, *parsed;
	unsigned noptions = 0, k;
	struct cmd_opts o;
	struct err e = {0};
	int n = 1;

	while (cmd_options[noptions].name)
		noptions++;
	for (k = 0; next && k < WORDS_MAX; k++) {
		const struct cmd_option *opt;

		line = strsep(&next, "\n");
		opt = &cmd_options[(uint8_t)*line % noptions];
		put_option(options[k], opt, *line ? line + 1 : line);
		if (!c) {
			c = command_of((uint8_t)text[0], opt);
			if (c->name)
				argv[n++] = (char *)(uintptr_t)c->name;
		}
		argv[n++] = options[k];
	}
	argv[n++] = "operand";
	if (cmd_parse(n, argv, &parsed, &o, &e) && !e.why[0])
		abort();
}

static void try_conditions(const char *text)
{
	struct cmp_limit l;
	struct err e = {0};
	struct trg *t = NULL;

	if (trg_parse(text, &t, &e)) {
		if (!e.why[0] || t)
			abort();
	} else if (!*trg_word(t) || (trg_is_hang(t) && trg_slow(t))) {
		abort();
	}
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
	switch (*data < BY_NUMBER ? *data % 3 : 3) {
	case 0:
		try_config(data + 1, size - 1);
		break;
	case 1:
		try_words(copy);
		break;
	case 2:
		try_conditions(copy);
		break;
	default:
		try_options(copy);
	}
	free(copy);
	return 0;
}
