/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as text, as JSON, as a page, and in Markdown. */
#ifndef COMPARE_SHOW_H
#define COMPARE_SHOW_H

#include "base/out.h"
#include "compare/compare.h"

/* Writes a comparison with at most `top` rows (0: all). Returns 0, or -errno with e set. */
typedef int cmp_put(struct out *out, const struct cmp_result *r, const struct cmp_sides *of, unsigned top,
		    struct err *e);
cmp_put cmp_put_text, cmp_put_json, cmp_put_html, cmp_put_markdown;

/* The formats of the result. */
enum cmp_form_nr { CMP_FORM_TEXT, CMP_FORM_JSON, CMP_FORM_HTML, CMP_FORM_MARKDOWN, CMP_NFORMS };
struct cmp_form {
	const char *name;   /* of --format */
	const char *suffix; /* of files */
	unsigned top;	    /* rows unless the user says how many; 0: all */
	cmp_put *put;
};
extern const struct cmp_form cmp_forms[CMP_NFORMS];
/* Names and suffixes by number; NULL after the last. */
const char *cmp_form_name(unsigned i);
const char *cmp_form_suffix(unsigned i);
/* The first line in Markdown, by which mxbpf knows its files, and a program its comment of a review. */
#define CMP_MARKDOWN_MAGIC "<!-- mxbpf diff -->"

/* "aten::bmm", "aten::bmm in layer x", "kernel<4x1x1>", safe to print. Returns buf. */
#define CMP_NAME_BYTES 512
const char *cmp_name(const struct cmp_row *row, char buf[CMP_NAME_BYTES]);
/* The texts of a row in tables for people; "" or "-" where it has none. */
struct cmp_cells {
	char name[CMP_NAME_BYTES];
	char value[CMP_SIDES][24], percent[24], noise[24], calls[48];
	const char *mark; /* how certain it is */
};
void cmp_cells(const struct cmp_row *row, struct cmp_cells *c);
/* Calls fn for the rows of tables for people, of at most `top` if it is not 0, and for the peak. Returns how many are
 * left. */
size_t cmp_each_row(const struct cmp_result *r, unsigned top, void (*fn)(void *, const struct cmp_row *), void *ctx);
/* The sentences before the table, in one form for people and for programs: "" if there is none of this number. */
#define CMP_SENTENCES 3
void cmp_sentence(const struct cmp_result *r, unsigned nr, struct buf *b);
/* A line that says what the operators have in common, which is taken out of their changes, or that it is not known. */
void cmp_put_common(struct out *out, const struct cmp_result *r);
/* Lines: of how many iterations all this is, the one of cmp_put_common(), and what is missing. */
void cmp_put_notes(struct out *out, const struct cmp_result *r, const struct cmp_sides *of);
/* A sentence: what the times contain. */
const char *cmp_about_times(const struct cmp_result *r);
/* "+5.0%" */
const char *cmp_percent(double share, char buf[24]);
/* A text in a column of NAME_COLUMNS or more, shortened at its end if it is longer. */
void cmp_put_name(struct out *out, char *name, size_t columns);

#endif
