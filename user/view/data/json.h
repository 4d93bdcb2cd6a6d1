/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write the one JSON document share. */
#ifndef VIEW_JSON_H
#define VIEW_JSON_H

#include "view/priv.h"
#include "view/sheet.h"

struct json {
	struct view s;
	bool tables;	    /* one stands already */
	bool several;	    /* processes: each has rows of its own */
	const char *member; /* its object is open still, for another list; NULL: none is */
	bool closed;	    /* the tables have their end: what follows are members beside them */
};

/* "key": "text" */
void json_text(struct view *s, const char *key, const char *text);
/* A comma before it; nothing without a text. */
void json_optional(struct view *s, const char *key, const char *text);
void json_put_device(struct view *s, uint32_t device);
void json_device(struct view *s, uint32_t device); /* with its key */
void json_process(struct view *s, uint32_t tgid);  /* a comma before it; nothing unless there are several */
void json_domain(struct view *s, uint64_t name_id);
uint64_t json_unix_ns(const struct view *s, uint64_t mono_ns);
/* A row, or an object in one. */
void json_put_object(struct view *s, const struct view_column *columns, const void *table, const void *row);
void json_open_table(struct view *s, const char *title); /* its list */
/* Before the first member beside the tables. */
void json_close_tables(struct view *s);

#endif
