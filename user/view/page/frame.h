/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every page of mxbpf has: its head with style and script, and text that is no markup. Everything goes through
 * out_filter(), so no text of the target can become markup; only page_markup() writes markup. The
 * Content-Security-Policy lets the script run by a number that is drawn for each page, and nothing be loaded.
 */
#ifndef VIEW_PAGE_FRAME_H
#define VIEW_PAGE_FRAME_H

#include <stddef.h>

#include "base/err.h"
#include "base/out.h"

struct json;
struct mdl;

/* Writes markup, or text without a character that HTML would have to escape. */
void page_markup(struct out *out, const char *markup);
/* Writes a text, which may be hostile. */
void page_text_of(struct out *out, const char *text, size_t len);

/* Writes the head up to <body>, and switches the filter on. Returns 0 or -errno with e set. */
int page_begin(struct out *out, const char *title, size_t len, struct err *e);
void page_end(struct out *out); /* switches the filter off */

/* The page's script reads the JSON between these two calls. `class` tells it what the JSON is. */
void page_data_begin(struct out *out, const char *class);
void page_data_end(struct out *out);

/* data.c: members of the object that is open: stacks for flame graphs, at most max of each kind, and their lines. */
void page_stacks(struct json *j, struct mdl *m, size_t max);

#endif
