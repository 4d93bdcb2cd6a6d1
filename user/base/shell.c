// SPDX-License-Identifier: Apache-2.0
#include "base/shell.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

void shell_put_quoted(struct buf *b, const char *word)
{
	const bool plain = word[0] && !word[strspn(word, PLAIN)];

	buf_printf(b, "%s", plain ? "" : "'");
	for (; *word; word++)
		buf_printf(b, *word == '\'' ? "'\\''" : "%c", *word);
	buf_printf(b, "%s", plain ? "" : "'");
}

bool shell_hidden_from_sudo(char *path, size_t size)
{
	static const char *const searched[] = {"/usr/bin", "/usr/sbin",	     "/bin",
					       "/sbin",	   "/usr/local/bin", "/usr/local/sbin"};
	const ssize_t n = readlink("/proc/self/exe", path, size - 1);
	size_t i, len;

	path[n < 0 ? 0 : n] = '\0';
	if (strchr(program_invocation_name, '/') || path[0] != '/')
		return false;
	len = (size_t)(strrchr(path, '/') - path);
	for (i = 0; i < sizeof(searched) / sizeof(searched[0]); i++)
		if (strlen(searched[i]) == len && !strncmp(path, searched[i], len))
			return false;
	return true;
}
