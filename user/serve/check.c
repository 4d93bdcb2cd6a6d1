// SPDX-License-Identifier: Apache-2.0
/* Which requests are refused. Everything here was sent by somebody unknown. */
#include <string.h>
#include <strings.h>

#include "serve/priv.h"

struct heads {
	const char *host, *authorization, *accept, *encoding; /* NULL: none */
	unsigned nhost, nauthorization;
	bool origin; /* a web page has made the browser send the request */
	bool body;
};

static enum MHD_Result see_head(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct heads *h = ctx;

	value = value ? value : "";
	if (!strcasecmp(name, MHD_HTTP_HEADER_HOST)) {
		h->host = value;
		h->nhost++;
	} else if (!strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION)) {
		h->authorization = value;
		h->nauthorization++;
	} else if (!strcasecmp(name, MHD_HTTP_HEADER_ACCEPT)) {
		h->accept = value;
	} else if (!strcasecmp(name, MHD_HTTP_HEADER_ACCEPT_ENCODING)) {
		h->encoding = value;
	} else if (!strcasecmp(name, MHD_HTTP_HEADER_ORIGIN)) {
		h->origin = true;
	} else if (!strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
		h->body = true;
	} else if (!strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
		h->body |= strspn(value, "0") != strlen(value);
	}
	return MHD_YES;
}

/* ---- the name of the host */

/*
 * A page on evil.com can have that name point to 127.0.0.1 after it was loaded (DNS rebinding). The browser then takes
 * this server for a part of evil.com, and lets the page read it, but it still sends the name. Any port is right,
 * because one that is forwarded (ssh -L, kubectl port-forward) has another number at the client.
 */
static bool is_host_ours(const struct srv_conn *c, const char *host)
{
	const char *names[] = {"localhost", "127.0.0.1", "[::1]", c->own};
	const char *port;
	size_t i, n;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		n = strlen(names[i]);
		if (strncasecmp(host, names[i], n))
			continue;
		port = host + n;
		if (!*port || (*port == ':' && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1)))
			return true;
	}
	return false;
}

/* HTTP/1.0 has no Host; libmicrohttpd refuses a request of HTTP/1.1 without it. */
static bool is_host_allowed(const struct srv_conn *c, const struct heads *h)
{
	return h->nhost <= 1 && (!c->loopback || !h->host || is_host_ours(c, h->host));
}

/* ---- the right to POST */

/* Keeps what is wrong with the token file, once, for srv_trouble(). */
static void keep_trouble(struct srv *s, const struct err *e)
{
	if (!strcmp(e->why, s->token_err.why))
		return;
	s->token_err = *e;
	pthread_mutex_lock(&s->lock);
	s->trouble = *e;
	pthread_mutex_unlock(&s->lock);
}

/* Reads the file even if the request cannot be allowed, so that time tells nothing about the other conditions. */
static bool may_post(struct srv *s, const struct heads *h)
{
	static const char scheme[] = "Bearer ";
	char token[SRV_TOKEN_MAX + 1];
	const char *given = "";
	struct err e = {0};
	bool may;
	int len;

	if (!s->o.token_file)
		return false;
	len = srv_token_read(s->o.token_file, token, &e);
	keep_trouble(s, &e);
	if (len < 0)
		return false;
	if (h->nauthorization == 1 && !strncasecmp(h->authorization, scheme, strlen(scheme)))
		given = h->authorization + strlen(scheme);
	may = srv_token_same(token, (size_t)len, given) && !h->origin;
	explicit_bzero(token, sizeof(token));
	return may;
}

/* ---- the query */

struct args {
	char *at, *end;
	unsigned n;
	bool bad;
};

/* Control characters have no use, and disturb a terminal that shows them. */
static bool check_put_text(struct args *a, const char *text, size_t n)
{
	size_t i;

	if (n >= (size_t)(a->end - a->at))
		return false;
	for (i = 0; i < n; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
		*a->at++ = text[i];
	}
	*a->at++ = '\0';
	return true;
}

static enum MHD_Result see_arg(void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
			       size_t value_len)
{
	struct args *a = ctx;

	if (!name_len) /* "?&&" */
		return MHD_YES;
	a->bad |= ++a->n > SRV_QUERY_ARGS || !check_put_text(a, name, name_len) ||
		  !check_put_text(a, value, value ? value_len : 0);
	return a->bad ? MHD_NO : MHD_YES;
}

static bool read_query(struct srv_ask *r)
{
	struct args a = {.at = r->query, .end = r->query + sizeof(r->query) - 1}; /* less the last NUL */

	MHD_get_connection_values_n(r->mc, MHD_GET_ARGUMENT_KIND, see_arg, &a);
	r->q.query = r->query;
	return !a.bad;
}

/* ---- */

static const struct srv_route *find_route(const struct srv *s, const char *path)
{
	const struct srv_route *route;

	for (route = s->o.routes; route->path; route++)
		if (!strcmp(route->path, path))
			return route;
	return NULL;
}

static bool is_method_of(const struct srv_route *route, const char *method)
{
	if (route->post)
		return !strcmp(method, MHD_HTTP_METHOD_POST);
	return !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
}

/* A value that is too long is dropped, because its rest would have another meaning. */
static void keep_accept(struct srv_ask *r, const char *accept)
{
	if (accept && strlen(accept) < sizeof(r->accept))
		strcpy(r->accept, accept);
	r->q.accept = r->accept;
}

unsigned srv_check(struct srv *s, struct srv_ask *r, const char *path, const char *method, const char **allow)
{
	struct heads h = {0};

	MHD_get_connection_values(r->mc, MHD_HEADER_KIND, see_head, &h);
	if (!is_host_allowed(r->conn, &h))
		return MHD_HTTP_MISDIRECTED_REQUEST;
	r->q.route = find_route(s, path);
	if (!r->q.route)
		return MHD_HTTP_NOT_FOUND;
	if (!is_method_of(r->q.route, method)) {
		*allow = r->q.route->post ? "POST" : "GET, HEAD";
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	}
	if (r->q.route->post && !may_post(s, &h))
		return MHD_HTTP_FORBIDDEN;
	if (h.body)
		return MHD_HTTP_CONTENT_TOO_LARGE;
	if (!read_query(r))
		return MHD_HTTP_BAD_REQUEST;
	keep_accept(r, h.accept);
	r->gzip = h.encoding && srv_accepts_gzip(h.encoding);
	return 0;
}
