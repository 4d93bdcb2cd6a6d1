/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes packets of events in Chrome's JSON. So what a feature adds to a timeline is the same in both formats, and a
 * feature knows one of them. Events are lines: the writers put no line break into an event.
 */
#ifndef VIEW_FROM_JSON_H
#define VIEW_FROM_JSON_H

#include "view/timeline/packets.h"

/* Zero-initialise it, set `to`, and call from_json_fini() at the end. */
struct from_json {
	struct packets *to; /* borrowed */
	bool failed;	    /* there was no memory */

	/* private */
	bool events;	    /* the lines are events, not what stands before them */
	struct buf line;    /* its start, until the rest comes */
	struct buf text;    /* of a string with escapes */
	struct hash starts; /* (track, start) of slices, not of all */
	struct {
		bool used, thread;
		uint32_t pid, tid;
		struct packets_about about;
		struct buf name, label;
	} track; /* events of metadata come one by one, and are written together */
	struct {
		bool used;
		uint64_t track, ts_ns;
	} end; /* of a slice: behind its arrows, which have the time of its start */
};

/* More of the file. ctx: the struct from_json. */
void from_json_take(void *ctx, const char *data, size_t n);
/* All events are complete that have been taken: writes what had to wait. */
void from_json_settle(struct from_json *f);
/* Members of an object, with a comma between them, in front or behind: args of the next event. */
void from_json_args(struct from_json *f, const char *text, size_t len);
/* The text of the inside of a JSON string. Borrowed until the next call. */
const char *from_json_text(struct from_json *f, const char *inside, size_t len, size_t *text_len);

void from_json_fini(struct from_json *f);

#endif
