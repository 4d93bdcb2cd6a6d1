/* SPDX-License-Identifier: Apache-2.0 */
/* The result of `mxbpf now`, for the functions that print it. */
#ifndef CMD_NOW_H
#define CMD_NOW_H

#include "cmd/run.h"
#include "now/now.h"

struct now_view {
	const struct cmd_opts *o;
	struct session *ses;
	struct now *now;
	uint64_t at_ns;	  /* when the stacks were taken */
	struct buf opens; /* struct mxbpf_open that were open then; the innermost of a thread first */
};

/* The *n open calls of a thread, innermost first. Borrowed. */
const struct mxbpf_open *now_opens(const struct now_view *v, pid_t tid, size_t *n);
/* The last call of a thread that ended in the window; NULL: none did. Borrowed. */
const struct mxbpf_span *now_last(const struct now_view *v, pid_t tid);

/* Print on stdout. Return 0, or -errno with e set. */
int now_print_text(const struct now_view *v, struct err *e);
int now_print_json(const struct now_view *v, struct err *e);

#endif
