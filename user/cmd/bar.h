/* SPDX-License-Identifier: Apache-2.0 */
/* Shows how far a long command is, on a terminal, in one line that is redrawn. What is short shows nothing. */
#ifndef CMD_BAR_H
#define CMD_BAR_H

#include <stdbool.h>
#include <stdint.h>

struct cmd_opts;

struct bar {
	const char *doing; /* "writing" */
	uint64_t next_ns;  /* when it is drawn next */
	bool shown;	   /* stderr is a terminal, and the user wants to see it */
	bool drawn;
};

struct bar bar_start(const struct cmd_opts *o, const char *doing);
/* Draws the bar if it is time to. ctx: the bar. `of` 0: it is not known how much there is, and `done` is a number of
 * events. */
void bar_draw(void *ctx, uint64_t done, uint64_t of);
void bar_clear(struct bar *b);

#endif
