/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads traces in the JSON of Chrome's trace viewer, plain or compressed with gzip, as a stream (libyajl): memory does
 * not depend on the size of the file. Files that profilers write are not always JSON: numbers that are not finite
 * become null, bytes that are no UTF-8 and escapes that do not exist stay as they are, and a file may end anywhere.
 */
#ifndef IMPORT_JSON_H
#define IMPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A text, not terminated; any bytes. */
struct json_text {
	const char *at; /* NULL: there is none */
	size_t len;
};

/* A member of "args". The text of a string without its quotes; of any other value, its JSON without blanks. */
struct json_arg {
	struct json_text key, value;
	bool string;
};

/* An element of "traceEvents". Texts are borrowed until the hook returns. */
struct json_event {
	char ph; /* first letter of "ph"; 0: none */
	struct json_text name, cat, id;
	struct json_text pid, tid; /* as they are written; most are numbers */
	bool timed;		   /* ts_ns is known */
	uint64_t ts_ns, dur_ns;	   /* of "ts" and "dur", which are in us; dur_ns is 0 if there is none */
	const struct json_arg *args;
	size_t nargs;
};

struct json_hooks {
	/* A member of the outermost object, except for the list of events, with its value as that of an argument. */
	int (*member)(void *ctx, const struct json_arg *member);
	int (*event)(void *ctx, const struct json_event *e);
	/* Elements of a top-level array, or those of "traceEvents", are events. Other files give members alone. */
};

/* How the reading ended. */
struct json_end {
	uint64_t events;
	uint64_t bytes; /* that were read, after decompression */
	char why[160];	/* empty: the file is complete; else where and why the rest could not be read */
};

/*
 * Reads the file from its start. Returns 0, also if only a part could be read, or the first error of a hook, or -errno
 * with e set if nothing could be read.
 */
int json_each(int fd, const struct json_hooks *hooks, void *ctx, struct json_end *end, struct err *e);

/* The number at the start of a text. Returns false if there is none that fits. */
bool json_u64_of(struct json_text t, uint64_t *n);
bool json_i64_of(struct json_text t, int64_t *n);
/* Decimal us as ns, without rounding through a double. Returns false if it is no such number, or negative. */
bool json_ns_of(struct json_text t, uint64_t *ns);
/* The value of an argument; at is NULL if there is no such argument. */
struct json_text json_arg_of(const struct json_event *e, const char *key);
bool json_is(struct json_text t, const char *text);
bool json_begins(struct json_text t, const char *text);

#endif
