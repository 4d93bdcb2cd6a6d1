// SPDX-License-Identifier: Apache-2.0
#include "cmd/bar.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fmt.h"
#include "cmd/cmd.h"

#define COLUMNS	 40
#define DELAY_NS 500000000ull /* what is shorter shows nothing */
#define EVERY_NS 100000000ull

struct bar bar_start(const struct cmd_opts *o, const char *doing)
{
	return (struct bar){
		.doing = doing,
		.next_ns = clock_ns(CLOCK_MONOTONIC) + DELAY_NS,
		.shown = !o->quiet && isatty(STDERR_FILENO),
	};
}

void bar_draw(void *ctx, uint64_t done, uint64_t of)
{
	struct bar *b = ctx;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	double part = of ? (double)done / (double)of : 0;
	char count[32];
	int fill;

	if (!b->shown || now < b->next_ns)
		return;
	part = part < 1 ? part : 1;
	fill = (int)(part * COLUMNS);
	if (of)
		fprintf(stderr, "\r\033[K%s [%.*s%*s] %3d %%", b->doing, fill,
			"########################################", COLUMNS - fill, "", (int)(part * 100));
	else
		fprintf(stderr, "\r\033[K%s: %s events", b->doing, fmt_count(done, count));
	b->next_ns = now + EVERY_NS;
	b->drawn = true;
}

void bar_clear(struct bar *b)
{
	if (b->drawn)
		fputs("\r\033[K", stderr);
	b->drawn = false;
}
