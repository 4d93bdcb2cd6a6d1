/* SPDX-License-Identifier: Apache-2.0 */
/* Returns the text that a view prints. */
#ifndef PRINTED_H
#define PRINTED_H

#include "read_file.h"
#include "view/view.h"

/* Returns what the view prints, or "" if it fails. The caller frees it. */
static inline char *printed(const struct view_ops *view, const struct view_input *in, const struct view_opts *opts)
{
	char path[] = "/tmp/mxbpf-test-XXXXXX", *text;
	struct err e = {0};
	struct out *o;

	CHECK(!close(mkstemp(path)) && !out_open(path, false, &o, &e));
	CHECK(!view_write(view, in, opts, o, &e) && !out_commit(o, &e));
	if (*e.why)
		printf("# %s\n", e.why);
	text = read_file(path);
	unlink(path);
	return text;
}

#endif
