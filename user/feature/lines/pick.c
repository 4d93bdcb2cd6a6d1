// SPDX-License-Identifier: Apache-2.0
/* Which line of a stack a person wants to read. */
#include "feature/lines/lines.h"

#include <string.h>

/* Parts of paths of Python's own library and of installed packages. */
static const char *const foreign[] = {"/site-packages/", "/dist-packages/",   "/lib/python3",	   "<frozen ",
				      "/torch/_dynamo/", "/torch/_inductor/", "/torch/_functorch/"};
/* Code that is made while the program runs: by a package, or by the program itself. The file has no name of its own. */
static const char *const typed[] = {"<stdin>(", "<ipython-input-"}; /* what a person types is the program */
/* Files that PyTorch's compiler writes: "/tmp/torchinductor_me/ab/c" with 51 characters and ".py". */
#define MADE_DIR  "/torchinductor_"
#define MADE_NAME 52
/* Not a line: a call of a module, which stands among the lines of --py-stacks. */
#define MODULE "nn.Module: "

enum origin { NO_LINE, FOREIGN, MADE_CODE, PROGRAM };

/* "..." where a stack was cut, and a frame whose code is gone: nobody can look such a line up. */
static bool is_line(const char *line, size_t len)
{
	return len && *line != '[' && (len < 3 || memcmp(line, "...", 3));
}

/* The directory may be one of the user's own (TORCHINDUCTOR_CACHE_DIR). */
static bool is_made_file(const char *line, size_t len)
{
	const char *name, *end = memmem(line, len, ".py(", 4);
	size_t i;

	if (memmem(line, len, MADE_DIR, strlen(MADE_DIR)))
		return true;
	name = end ? memrchr(line, '/', (size_t)(end - line)) : NULL;
	if (!name || end - name != MADE_NAME + 1 || name[1] != 'c')
		return false;
	for (i = 1; i <= MADE_NAME; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz234567", name[i]))
			return false;
	return true;
}

static bool is_made(const char *line, size_t len)
{
	size_t i;

	if (*line != '<')
		return is_made_file(line, len);
	for (i = 0; i < sizeof(typed) / sizeof(typed[0]); i++)
		if (len >= strlen(typed[i]) && !memcmp(line, typed[i], strlen(typed[i])))
			return false;
	return memcmp(line, "<frozen ", len < 8 ? len : 8);
}

/* The path of an installed package stands without the directory of packages before it: "torch/nn/modules/module.py". */
static enum origin origin_of(const char *line, size_t len)
{
	size_t i;

	if (!is_line(line, len))
		return NO_LINE;
	if (is_made(line, len))
		return MADE_CODE;
	if ((*line != '/' && memchr(line, '/', len)) ||
	    (len >= strlen(MODULE) && !memcmp(line, MODULE, strlen(MODULE))))
		return FOREIGN;
	for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (memmem(line, len, foreign[i], strlen(foreign[i])))
			return FOREIGN;
	return PROGRAM;
}

/* A process that was forked has the frames of its parent outside of its own. */
static bool begins_process(const char *line, size_t len)
{
	return memmem(line, len, "multiprocessing/process.py(", 27) && memmem(line, len, "): _bootstrap", 13);
}

bool lines_is_program(const char *line, size_t len)
{
	return len && origin_of(line, len) == PROGRAM;
}

const char *lines_of_program(const struct mdl *m, uint64_t stack_id, size_t *len)
{
	size_t left;
	const char *text = stack_id ? mdl_text(m, MXBPF_NAME_STACK, stack_id, &left) : NULL;

	*len = 0;
	return text ? lines_pick(text, left, len) : NULL;
}

const char *lines_pick(const char *text, size_t left, size_t *len)
{
	size_t n, best_len = 0;
	const char *line, *end, *best = NULL;
	enum origin origin, found = NO_LINE;

	*len = 0;
	for (line = text; left && found != PROGRAM; line += n, left -= n) {
		end = memchr(line, '\n', left);
		*len = end ? (size_t)(end - line) : left;
		n = end ? *len + 1 : left;
		origin = origin_of(line, *len);
		if (origin > found) {
			best = line;
			best_len = *len;
			found = origin;
		}
		if (begins_process(line, *len))
			break;
	}
	*len = best_len;
	return best;
}
