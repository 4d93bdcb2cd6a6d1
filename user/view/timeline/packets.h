/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of Perfetto's own format: tracks, slices, instants, counters and arrows. A file is a row of packets, so one
 * that is cut loads up to the cut. A text that comes again is written once and has a number from then on; when there
 * are too many of them, the numbers begin anew, so neither this program nor the reader needs more memory for a longer
 * trace. The names of fields are those of its own .proto files.
 */
#ifndef VIEW_PACKETS_H
#define VIEW_PACKETS_H

#include "base/hash.h"
#include "base/out.h"
#include "base/proto.h"

#define PACKETS_TEXTS_MAX  (1u << 16)  /* texts with a number at a time; they need 6 MB */
#define PACKETS_TEXT_BYTES (64u << 10) /* what is kept of a longer text */

/* Fields of DebugAnnotation: how an argument is written. */
enum packets_value {
	PACKETS_BOOL = 2,
	PACKETS_UINT = 3,
	PACKETS_INT = 4,
	PACKETS_DOUBLE = 5,
	PACKETS_STRING = 6,
};

/* Kinds of texts that get numbers: fields of InternedData. */
enum packets_kind {
	PACKETS_CATEGORY = 1,
	PACKETS_NAME = 2,
	PACKETS_KEY = 3,
	PACKETS_VALUE = 29,
};

/* Types of TrackEvent. LEGACY has a letter instead, as in Chrome's JSON. */
enum packets_type {
	PACKETS_LEGACY,
	PACKETS_BEGIN,
	PACKETS_END,
	PACKETS_INSTANT,
	PACKETS_COUNTER,
};

/* Zero-initialise it, set `out`, and call packets_fini() at the end. */
struct packets {
	struct out *out; /* borrowed */
	bool failed;	 /* there was no memory */

	/* Args of the next event, as fields of TrackEvent: append with packets_arg_...(). An event empties it. */
	struct proto args;
	unsigned generation; /* of the numbers: all are new when it changes */

	/* private */
	struct proto packet, interned;
	struct hash texts;  /* (hash, another hash and kind) -> number, or 1 more than UINT32_MAX: seen once */
	struct hash tracks; /* (pid, thread id + 1) -> id of the track; thread id + 1 is 0: the process */
	struct hash counters;
	uint32_t last_number;
	uint64_t ntracks;
	bool begun;
	struct {
		uint64_t pid, tid;
		uint64_t track;
	} last; /* track that was looked up last */
};

/*
 * Ids of processes and threads. The reader takes a process id as a signed number of 32 bits, so one that is larger
 * (none of the kernel's is) becomes smaller by 2^31.
 */
uint64_t packets_process(struct packets *p, uint32_t pid);
uint64_t packets_thread(struct packets *p, uint32_t pid, uint32_t tid);

/* The name of a track, and its place among the others. Each member is optional. */
struct packets_about {
	const char *name, *label;
	size_t name_len, label_len;
	bool placed;
	int64_t place;
};
void packets_about_process(struct packets *p, uint32_t pid, const struct packets_about *about);
void packets_about_thread(struct packets *p, uint32_t pid, uint32_t tid, const struct packets_about *about);
/* The track of a counter. */
uint64_t packets_counter(struct packets *p, uint32_t pid, const char *name, size_t len, bool bytes);

/* The number of a text. `at` must be valid UTF-8. */
uint32_t packets_number(struct packets *p, enum packets_kind kind, const char *at, size_t len);

/* An arg: its name has a number. */
void packets_arg_u64(struct packets *p, uint32_t key, enum packets_value how, uint64_t v);
void packets_arg_double(struct packets *p, uint32_t key, double v);
void packets_arg_text(struct packets *p, uint32_t key, const char *at, size_t len);
/* Fields of DebugAnnotation that hold others, for those who write a nested arg themselves into `args`. */
enum packets_nested {
	PACKETS_ARG = 4, /* the arg itself, in TrackEvent */
	PACKETS_MEMBER = 11,
	PACKETS_ITEM = 12,
	PACKETS_ARG_KEY = 1,
};
/* The text of an arg that has begun. */
void packets_value_text(struct packets *p, const char *at, size_t len);

/* An arrow that starts or ends at the slice that the next event begins. */
void packets_arrow(struct packets *p, bool starts, uint64_t id);

/* Fields of TrackEvent besides the track and the args. Those that are 0 are left out. */
struct packets_event {
	enum packets_type type;
	uint32_t category, name; /* numbers */
	char letter;		 /* of LEGACY */
	uint64_t id;		 /* of LEGACY: of an arrow */
	bool enclosing;		 /* of LEGACY: the arrow ends at the slice that encloses the time */
	unsigned scope;		 /* of LEGACY: of an instant, 1 global, 2 process, 3 thread */
	const double *value;	 /* of COUNTER */
};
void packets_event(struct packets *p, uint64_t track, uint64_t ts_ns, const struct packets_event *e);
/* The end of the slice on top of the track. */
void packets_end(struct packets *p, uint64_t track, uint64_t ts_ns);
/* A text about the whole trace. */
void packets_metadata(struct packets *p, const char *name, const char *text, size_t len);

void packets_fini(struct packets *p);

#endif
