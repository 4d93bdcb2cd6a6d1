/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as text, as JSON, and as a page. */
#ifndef COMPARE_SHOW_H
#define COMPARE_SHOW_H

#include "base/out.h"
#include "compare/compare.h"

void cmp_put_text(struct out *out, const struct cmp_result *r, const struct cmp_sides *of, unsigned top);
void cmp_put_json(struct out *out, const struct cmp_result *r, const struct cmp_sides *of, unsigned top);
/* html.c: 0 or -errno with e set. */
int cmp_put_html(struct out *out, const struct cmp_result *r, const struct cmp_sides *of, unsigned top, struct err *e);
/* "aten::bmm", "aten::bmm in layer x", "kernel<4x1x1>", safe to print. Returns buf. */
#define CMP_NAME_BYTES 512
const char *cmp_name(const struct cmp_row *row, char buf[CMP_NAME_BYTES]);
/* The sentences before the table, in one form for people and for programs: "" if there is none of this number. */
#define CMP_SENTENCES 3
void cmp_sentence(const struct cmp_result *r, unsigned nr, struct buf *b);
/* A line that says what the operators have in common, which is taken out of their changes, or that it is not known. */
void cmp_put_common(struct out *out, const struct cmp_result *r);
/* "+5.0%" */
const char *cmp_percent(double share, char buf[24]);
/* A text in a column of NAME_COLUMNS or more, shortened at its end if it is longer. */
void cmp_put_name(struct out *out, char *name, size_t columns);

#endif
