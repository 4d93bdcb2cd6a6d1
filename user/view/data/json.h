/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write the JSON document share. */
#ifndef VIEW_JSON_H
#define VIEW_JSON_H

#include "view/priv.h"
#include "view/sheet.h"

struct json {
	struct view s;
	bool tables;	    /* one has been written */
	bool several;	    /* several processes were seen: each row has its pid */
	const char *member; /* its object is still open for another list; NULL: none is open */
	bool deep;	    /* the sheet has a line for each text of a list */
	bool closed;	    /* the object of the tables has ended; other members follow */
};

/* Writes "key": "text". */
void json_text(struct view *s, const char *key, const char *text);
/* Writes a comma and "key": "text"; nothing if text is NULL. */
void json_optional(struct view *s, const char *key, const char *text);
void json_put_device(struct view *s, uint32_t device);
uint64_t json_unix_ns(const struct view *s, uint64_t mono_ns);
/* Writes a row, or an object of a row. */
void json_put_object(struct view *s, const struct view_column *columns, const void *table, const void *row);
void json_open_table(struct view *s, const char *title); /* and its list */
/* To be called before each member behind the tables. */
void json_close_tables(struct view *s);

#endif
