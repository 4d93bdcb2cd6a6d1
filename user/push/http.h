/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One POST at a time by libcurl. The library is loaded when it is first needed, because it and its 30 libraries would
 * take 6 MiB and double the time to start of every command, and root had their code in its process for nothing.
 */
#ifndef PUSH_HTTP_H
#define PUSH_HTTP_H

#include "push/push.h"

#define HTTP_ANSWER_BYTES 4096 /* of an answer that are kept */

struct http;

struct http_answer {
	unsigned status; /* 0: none came */
	size_t len;
	char body[HTTP_ANSWER_BYTES];
};

/* Returns 0, or -errno with e set. */
int http_open(struct http **out, const struct push_opts *o, struct err *e);
const char *http_place(const struct http *h);
/* Returns 0 with the answer, whatever its status is, or -errno with why set, which has no secrets. */
int http_post(struct http *h, const struct push_request *q, struct http_answer *a, struct err *e);
/* Ends the request under way and all that come, with -ECANCELED. From any thread. */
void http_stop(struct http *h);
void http_close(struct http *h); /* NULL is legal */

#endif
