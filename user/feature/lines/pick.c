// SPDX-License-Identifier: Apache-2.0
/* Which line of a stack a person wants to read. */
#include "feature/lines/lines.h"

#include <string.h>

/* Parts of paths of Python's own library and of installed packages. */
static const char *const foreign[] = {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen "};

/* The path of an installed package stands without the directory of packages before it: "torch/nn/modules/module.py". */
static bool is_foreign(const char *line, size_t len)
{
	size_t i;

	if (*line != '/' && memchr(line, '/', len))
		return true;
	for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (memmem(line, len, foreign[i], strlen(foreign[i])))
			return true;
	return false;
}

const char *lines_of_program(const struct mdl *m, uint64_t stack_id, size_t *len)
{
	size_t left, n;
	const char *text = stack_id ? mdl_text(m, MXBPF_NAME_STACK, stack_id, &left) : NULL, *line, *end;

	*len = 0;
	if (!text)
		return NULL;
	for (line = text; left; line += n, left -= n) {
		end = memchr(line, '\n', left);
		*len = end ? (size_t)(end - line) : left;
		if (*len && !is_foreign(line, *len))
			return line;
		n = end ? *len + 1 : left;
	}
	end = strchr(text, '\n'); /* all are foreign: the innermost one */
	*len = end ? (size_t)(end - text) : strlen(text);
	return text;
}
