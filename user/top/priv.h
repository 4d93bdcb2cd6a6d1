/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files that make the text of a screen. */
#ifndef TOP_PRIV_H
#define TOP_PRIV_H

#include "top/top.h"

struct top_lines {
	struct buf *out;
	unsigned width, lines;
	int err;
};
/* Appends a line, made safe and cut at the width. */
void top_line(struct top_lines *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* details.c: appends at most max lines about a row. */
void top_table_details(struct top_lines *f, const struct top *t, const struct top_row *row, unsigned max);
void top_details(struct top_lines *f, const struct top *t, enum top_view v, const struct top_row *row, unsigned max);

#endif
