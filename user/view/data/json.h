/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the JSON document, for the files that write it. */
#ifndef VIEW_JSON_H
#define VIEW_JSON_H

#include "base/json.h"
#include "view/priv.h"
#include "view/sheet.h"

struct document {
	struct view s;
	struct json json;
	bool several;	    /* several processes were seen: each row has its pid */
	const char *member; /* its object is still open for another list; NULL: none is open */
	bool deep;	    /* each text of a list gets a line of its own */
	bool closed;	    /* the object of the tables has ended; other members follow */
};

/* Call this before each member that follows the tables. */
void document_close_tables(struct document *d);

#endif
