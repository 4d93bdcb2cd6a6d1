// SPDX-License-Identifier: Apache-2.0
/* Replies: headers, compression, and the texts of refusals. */
#include <string.h>
#include <strings.h>

#include "base/gzip.h"
#include "base/memory.h"
#include "serve/priv.h"

#define GZIP_MIN     1024u /* bytes; less is not worth it */
#define RETRY_AFTER  "5"   /* seconds */
#define DEFAULT_TYPE "text/plain; charset=utf-8"
#define DEFAULT_CSP  "default-src 'none'; frame-ancestors 'none'"

/* ---- compression */

/* Says whether parameters of a coding have the weight 0: "q=0", "q=0.000". */
static bool is_weight_zero(const char *params, const char *end)
{
	const char *q = params;

	while (q < end && strchr("; \t", *q))
		q++;
	if (end - q < 3 || strncasecmp(q, "q=0", 3))
		return false;
	for (q += 3; q < end && strchr(".0 \t", *q); q++)
		;
	return q == end;
}

bool srv_accepts_gzip(const char *accept)
{
	const char *at = accept, *end;
	size_t n;

	while (*at) {
		at += strspn(at, ", \t");
		end = at + strcspn(at, ",");
		n = strcspn(at, ",; \t");
		if (n == 4 && !strncasecmp(at, "gzip", n))
			return !is_weight_zero(at + n, end);
		at = end;
	}
	return false;
}

/* Returns false if the text stays as it is. */
static bool compress_body(struct buf *b)
{
	return b->len >= GZIP_MIN && !gzip_buf(b);
}

/* ---- */

struct head {
	const char *name, *value; /* value NULL: none */
};

/*
 * Nobody keeps a copy, guesses the type, puts a page into a frame, or includes it in a page from elsewhere. The
 * connection ends, so a client holds one only for the time of a request.
 */
static enum MHD_Result send_response(struct MHD_Connection *mc, unsigned status, struct MHD_Response *response,
				     const struct head *more)
{
	const struct head all[] = {
		{MHD_HTTP_HEADER_CONNECTION, "close"},
		{MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{MHD_HTTP_HEADER_RETRY_AFTER, status == MHD_HTTP_SERVICE_UNAVAILABLE ? RETRY_AFTER : NULL},
	};
	enum MHD_Result ret = MHD_YES;
	size_t i;

	if (!response)
		return MHD_NO;
	for (i = 0; i < sizeof(all) / sizeof(all[0]) && ret == MHD_YES; i++)
		if (all[i].value)
			ret = MHD_add_response_header(response, all[i].name, all[i].value);
	for (; more->name && ret == MHD_YES; more++)
		if (more->value)
			ret = MHD_add_response_header(response, more->name, more->value);
	if (ret == MHD_YES)
		ret = MHD_queue_response(mc, status, response);
	MHD_destroy_response(response);
	return ret;
}

static const char *refusal(unsigned status)
{
	switch (status) {
	case MHD_HTTP_BAD_REQUEST:
		return "the query is too long, or has control characters\n";
	case MHD_HTTP_FORBIDDEN:
		return "refused\n";
	case MHD_HTTP_NOT_FOUND:
		return "there is no such page\n";
	case MHD_HTTP_METHOD_NOT_ALLOWED:
		return "this page has another method\n";
	case MHD_HTTP_CONTENT_TOO_LARGE:
		return "a request has no body\n";
	case MHD_HTTP_MISDIRECTED_REQUEST:
		return "this server does not have the name that the request is for; use localhost\n";
	case MHD_HTTP_SERVICE_UNAVAILABLE:
		return "busy; try again later\n";
	default:
		return "failed\n";
	}
}

enum MHD_Result srv_refuse(struct MHD_Connection *mc, unsigned status, const char *allow)
{
	const char *text = refusal(status);
	const struct head more[] = {{MHD_HTTP_HEADER_CONTENT_TYPE, DEFAULT_TYPE},
				    {MHD_HTTP_HEADER_CONTENT_SECURITY_POLICY, DEFAULT_CSP},
				    {MHD_HTTP_HEADER_ALLOW, allow},
				    {NULL, NULL}};

	return send_response(
		mc, status,
		MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT), more);
}

static void free_body(void *data)
{
	mem_free(data);
}

static void reply_hold(struct srv *s, struct srv_ask *r, size_t bytes)
{
	pthread_mutex_lock(&s->lock);
	s->held += bytes - r->held;
	pthread_mutex_unlock(&s->lock);
	r->held = bytes;
}

enum MHD_Result srv_send(struct srv *s, struct srv_ask *r)
{
	struct srv_reply *a = &r->a;
	const unsigned status = a->status ? a->status : MHD_HTTP_OK;
	struct MHD_Response *response;
	bool zipped;

	if (status < MHD_HTTP_OK || status > 599)
		return srv_refuse(r->mc, MHD_HTTP_INTERNAL_SERVER_ERROR, NULL);
	if (!a->body.len && status >= MHD_HTTP_BAD_REQUEST)
		return srv_refuse(r->mc, status, NULL);
	zipped = r->gzip && compress_body(&a->body);
	reply_hold(s, r, a->body.len);
	response = MHD_create_response_from_buffer_with_free_callback_cls(a->body.len, a->body.data, free_body,
									  a->body.data);
	if (response)
		a->body = (struct buf){0};
	return send_response(
		r->mc, status, response,
		(const struct head[]){{MHD_HTTP_HEADER_CONTENT_TYPE, a->type ? a->type : DEFAULT_TYPE},
				      {MHD_HTTP_HEADER_CONTENT_SECURITY_POLICY, a->csp ? a->csp : DEFAULT_CSP},
				      {MHD_HTTP_HEADER_CONTENT_ENCODING, zipped ? "gzip" : NULL},
				      {NULL, NULL}});
}
