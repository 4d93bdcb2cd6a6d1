// SPDX-License-Identifier: Apache-2.0
#include "cmd/serve/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/opts.h"

#define FILE_BYTES_MAX (64u << 10)

static int config_read_all(const char *path, struct buf *text, struct err *e)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = 0;
	char *to;

	if (fd < 0 || fstat(fd, &st))
		err_set(e, ERR_USAGE, -errno, "cannot read %s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX)
		err_set(e, ERR_USAGE, -EINVAL, "%s is no plain file of at most 64 KiB", path);
	else if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & (S_IWGRP | S_IWOTH))
		err_set(e, ERR_USAGE, -EPERM,
			"%s can be changed by others, who could so command mxbpf: chown root and chmod go-w make it "
			"safe",
			path);
	else if (!(to = buf_add(text, (size_t)st.st_size + 1)))
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else if ((n = read(fd, to, (size_t)st.st_size)) < 0)
		err_set(e, ERR_USAGE, -errno, "cannot read %s: %s", path, strerror(errno));
	else
		to[n] = '\0';
	if (fd >= 0)
		close(fd);
	return e->code;
}

static char *trim(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	for (n = strlen(text); n && isspace((unsigned char)text[n - 1]);)
		text[--n] = '\0';
	return text;
}

/* Appends --NAME or --NAME=VALUE, which the caller of config_fini() frees. */
static int config_add(struct config *f, const char *name, const char *value)
{
	char *arg;

	if (asprintf(&arg, "--%s%s%s", name, value ? "=" : "", value ? value : "") < 0)
		return -ENOMEM;
	if (!buf_put(&f->argv, &arg, sizeof(arg)))
		return 0;
	free(arg);
	return -ENOMEM;
}

static int add_line(struct config *f, char *line)
{
	char *value = strchr(line, '=');

	if (value)
		*value++ = '\0';
	line = trim(line);
	return *line && *line != '#' ? config_add(f, line, value ? trim(value) : NULL) : 0;
}

static int add_word(struct config *f, const char *word)
{
	char *copy = strdup(word);

	return copy && !buf_put(&f->argv, &copy, sizeof(copy)) ? 0 : (free(copy), -ENOMEM);
}

static int config_fill(struct config *f, const struct cmd_opts *given)
{
	int err = add_word(f, "mxbpf") || add_word(f, "serve");
	char *line = f->text.data, *end;
	unsigned i;

	for (; line && !err; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		err = add_line(f, line);
	}
	for (i = 0; i < given->ngiven && !err; i++)
		if (strcmp(given->given[i].opt->name, "config"))
			err = config_add(f, given->given[i].opt->name, given->given[i].value);
	return err ? -ENOMEM : 0;
}

int config_read(struct config *f, const struct cmd_opts *given, const char *path, struct cmd_opts *o, struct err *e)
{
	const struct cmd *c = NULL;
	struct err wrong = {0};
	char *end = NULL;
	size_t n;

	*f = (struct config){0};
	if (config_read_all(path, &f->text, e))
		return e->code;
	if (config_fill(f, given) || buf_put(&f->argv, &end, sizeof(end)))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	n = buf_count(&f->argv, char *) - 1;
	if (cmd_parse((int)n, (char **)(void *)f->argv.data, &c, o, &wrong))
		return err_set(e, wrong.cls, wrong.code, "%s: %s", path, wrong.why);
	if (o->instead)
		return err_set(e, ERR_USAGE, -EINVAL, "%s: help and version are for the command line", path);
	return 0;
}

void config_fini(struct config *f)
{
	char **argv = (char **)(void *)f->argv.data;
	size_t i;

	for (i = 0; i < buf_count(&f->argv, char *); i++)
		free(argv[i]);
	buf_fini(&f->argv);
	buf_fini(&f->text);
}
