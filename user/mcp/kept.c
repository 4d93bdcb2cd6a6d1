// SPDX-License-Identifier: Apache-2.0
/* Between calls the server keeps the results of `look` in a private folder, and the rest of long answers in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mcp/priv.h"

#define SLACK 200 /* a text that is longer by so little is not cut; neither is the line behind a page */

int mcp_make_dir(struct mcp *m, struct err *e)
{
	const char *tmp = getenv("TMPDIR");

	if (m->dir[0])
		return 0;
	snprintf(m->dir, sizeof(m->dir), "%s/mxbpf-mcp-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	if (mkdtemp(m->dir)) /* mode 0700 */
		return 0;
	err_set(e, ERR_RUNTIME, -errno, "cannot make the folder %s: %s", m->dir, strerror(errno));
	m->dir[0] = 0;
	return e->code;
}

static void forget(struct mcp_kept *k)
{
	if (k->path[0])
		unlink(k->path);
	buf_fini(&k->text);
	*k = (struct mcp_kept){0};
}

unsigned mcp_keep_result(struct mcp *m, const char *suffix, char path[PATH_MAX])
{
	const unsigned nr = ++m->nresults;
	struct mcp_kept *k = &m->results[nr % MCP_KEPT];

	forget(k);
	k->nr = nr;
	if (snprintf(k->path, sizeof(k->path), "%s/r%u%s", m->dir, nr, suffix) >= (int)sizeof(k->path))
		k->path[0] = 0;
	memcpy(path, k->path, PATH_MAX);
	return nr;
}

struct mcp_kept *mcp_find_kept(struct mcp *m, const char *handle)
{
	struct mcp_kept *of = handle[0] == 'r' ? m->results : handle[0] == 'a' ? m->answers : NULL;
	char *end;
	unsigned long nr;

	if (!of || handle[1] < '1' || handle[1] > '9')
		return NULL;
	nr = strtoul(handle + 1, &end, 10);
	of += nr % MCP_KEPT;
	return !*end && of->nr == nr ? of : NULL;
}

/* Returns the end of the page: behind a line, or between two characters of UTF-8. */
static size_t page_end(const struct buf *text, size_t from)
{
	size_t end = from + MCP_ANSWER_BYTES, at;

	if (text->len <= end + SLACK)
		return text->len;
	for (at = end; at > from + MCP_ANSWER_BYTES / 2; at--)
		if (text->data[at - 1] == '\n')
			return at;
	while (end > from && ((unsigned char)text->data[end] & 0xc0) == 0x80)
		end--;
	return end;
}

void mcp_put_page(struct mcp *m, struct buf *to, struct buf *text, unsigned nr, size_t from)
{
	size_t end = page_end(text, from), left = text->len - end;
	struct mcp_kept *k;

	buf_put(to, text->data + from, end - from);
	if (!left)
		return;
	if (!nr) {
		nr = ++m->nanswers;
		k = &m->answers[nr % MCP_KEPT];
		forget(k);
		k->nr = nr;
		k->text = *text;
		*text = (struct buf){0};
	}
	buf_printf(to, "%zu bytes are left: more {\"handle\":\"a%u\",\"offset\":%zu}\n", left, nr, end);
}

void mcp_forget_all(struct mcp *m)
{
	unsigned i;

	for (i = 0; i < MCP_KEPT; i++) {
		forget(&m->results[i]);
		forget(&m->answers[i]);
	}
	if (m->dir[0] && rmdir(m->dir))
		fprintf(stderr, "mxbpf: warning: cannot remove %s: %s\n", m->dir, strerror(errno));
}
