/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write the one JSON document share. */
#ifndef SINK_JSON_H
#define SINK_JSON_H

#include "sink/priv.h"

struct json {
	struct snk s;
	bool tables;  /* one stands already */
	bool several; /* processes: each has rows of its own */
	bool closed;  /* the tables have their end: what follows are members beside them */
};

/* "key": "text" */
void json_text(struct snk *s, const char *key, const char *text);
/* A comma before it; nothing without a text. */
void json_optional(struct snk *s, const char *key, const char *text);
void json_device(struct snk *s, uint32_t device);
void json_process(struct snk *s, uint32_t tgid); /* a comma before it; nothing unless there are several */
void json_domain(struct snk *s, uint64_t name_id);
uint64_t json_unix_ns(const struct snk *s, uint64_t mono_ns);
/* Before the first member beside the tables. */
void json_close_tables(struct snk *s);

/* json_runtime.c */
int json_held(struct snk *s, const struct snk_held *t);
int json_iterations(struct snk *s, const struct snk_iterations *t);
int json_lives(struct snk *s, const struct snk_lives *t);
int json_kvs(struct snk *s, const struct snk_kvs *t);
int json_activities(struct snk *s, const struct snk_activities *t);
int json_marks(struct snk *s, const struct snk_marks *t);

#endif
