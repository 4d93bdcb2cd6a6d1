/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: one HTML file that needs nothing else. Text, tables and findings can be read without JavaScript; a script
 * sorts and searches tables and draws the data of data.c. frame.h says why nothing of the target is markup.
 */
#ifndef VIEW_PAGE_H
#define VIEW_PAGE_H

#include "view/page/frame.h"
#include "view/priv.h"
#include "view/sheet.h"

void page_raw(struct view *s, const char *markup);

/* Writes a text, which may be hostile. */
void page_words(struct view *s, struct view_text text);
/* Return the cell of a column, which the sheet must have. */
struct view_text page_text(const struct view_sheet *sh, const void *row, const char *key);
uint64_t page_number(const struct view_sheet *sh, const void *row, const char *key);

/* data.c: writes the JSON object that the script draws. */
void page_data(struct view *s);

/* idle.c: writes what GPUs did, and a place for it; nothing if there were none. Returns 0 or -ENOMEM. */
int page_idle(struct view *s);

/* strip.c: what threads and streams did over time. Zero-initialise it. */
#define PAGE_SLICES 1600
struct page_strip {
	struct hash places; /* of a thread or stream -> struct lane *, owned */
	size_t nlanes;
	uint64_t start_ns, slice_ns, left_out;
};
void page_strip_begin(struct page_strip *p, const struct mdl_session *s);
void page_strip_take(struct page_strip *p, const struct mxbpf_rec *r); /* any record */
void page_strip_put(struct page_strip *p, struct view *s);	       /* a JSON object */
void page_strip_fini(struct page_strip *p);

/* memory.c: memory over time, and its holders. Zero-initialise it. */
struct page_memory {
	struct hash places; /* (tgid, device) -> struct curve *, owned */
};
/* An allocation; `time` was begun. */
void page_memory_take(struct page_memory *p, const struct page_strip *time, const struct mxbpf_alloc *a);
void page_memory_put(struct page_memory *p, struct view *s, const struct page_strip *time); /* a JSON object */
/* Writes the holders of each device of each process. Returns 0 or -ENOMEM. */
int page_memory_holders(struct view *s);
void page_memory_fini(struct page_memory *p);

/* assets.c: style sheets and scripts, as they go into the page. NUL-terminated. */
extern const char page_style[], page_script[];

#endif
