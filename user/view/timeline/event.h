/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks, slices, instants, arrows and counters: everything in a timeline except the spans of calls. A feature fills in
 * these structs, and the form writes them, as Chrome's JSON (event.c) or as Perfetto's packets (pftrace.c). Times are
 * those of the recording.
 */
#ifndef VIEW_EVENT_H
#define VIEW_EVENT_H

#include "view/sheet.h"

struct view_trace;

/* A thread, a process, or what a viewer draws as one. Texts are plain; those that are NULL are left out. */
struct view_track {
	uint32_t pid, tid;
	bool thread; /* else it is the process, and tid does not matter */
	const char *name;
	const char *label; /* of a process */
	bool placed;
	int64_t place; /* among the others, if placed */
};

/* The name is what stands inside of a JSON string. Members that are 0 are left out. */
struct view_event {
	char letter; /* of Chrome's format: X a slice, i an instant, s the start of an arrow, f its end */
	uint32_t pid, tid;
	uint64_t ts_ns, dur_ns;
	const char *category;
	struct view_text name;
	char scope;  /* of an instant, how far its line goes: t its thread, p its process, g everything */
	uint64_t id; /* of an arrow, for both ends */
	bool fixed;  /* category and name are constants of the program */
};

/* A counter has this value from now on. A viewer shows "name unit". The name is inside of a JSON string. */
struct view_counter {
	uint32_t pid, tid;
	uint64_t ts_ns;
	const char *category; /* NULL: none */
	struct view_text name;
	const char *unit;
	const char *value; /* a number of JSON */
	/* Counters with the same pid, id and unit are one; the unit is then a constant of the program. 0: not known. */
	uint32_t id;
};

/* A number in the args of an event. The key is a constant of the program. */
struct view_arg {
	const char *key;
	uint64_t value;
	bool is_signed; /* the value is an int64_t */
};

struct view_event_ops {
	void (*track)(struct view_trace *t, const struct view_track *k);
	void (*begin)(struct view_trace *t, const struct view_event *e);
	void (*args)(struct view_trace *t, const struct view_arg *args, unsigned n);
	void (*end)(struct view_trace *t, const struct view_event *e);
	void (*counter)(struct view_trace *t, const struct view_counter *c);
};

void view_track(struct view_trace *t, const struct view_track *k);
/* A track that is neither thread nor lane. place: its sort index. */
void view_trace_name_track(struct view_trace *t, uint32_t pid, uint32_t tid, const char *name, int64_t place);
/*
 * Between the two, the caller writes the event's args: view_args(), or members as JSON, with a comma between them. An
 * arrow has none.
 */
void view_event_begin(struct view_trace *t, const struct view_event *e);
void view_args(struct view_trace *t, const struct view_arg *args, unsigned n);
void view_event_end(struct view_trace *t, const struct view_event *e);
void view_event(struct view_trace *t, const struct view_event *e); /* without args */
void view_counter(struct view_trace *t, const struct view_counter *c);

static inline struct view_text view_text_of(const char *text)
{
	return (struct view_text){text, strlen(text)};
}

static inline bool view_event_is_arrow(const struct view_event *e)
{
	return e->letter == 's' || e->letter == 'f';
}

#endif
