/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server for a few pages. A thread of its own reads requests with libmicrohttpd, refuses those that are wrong,
 * and sends replies. The caller's thread makes the replies, so that what they show needs no locks.
 *
 * A client may be anybody who reaches the address. A request has no body, a connection carries one request, and every
 * amount has a limit: 32 connections, of which 8 from one other machine; 16 KiB for the head of a request; 10 s until
 * it has arrived, and 60 s until its reply has been read; 16 requests that wait; 16 MiB of replies that clients have
 * not read. Beyond a limit the connection that has been idle for longest is closed, or the client gets 503.
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define SRV_LISTEN_DEFAULT "127.0.0.1:9464"

struct srv;

struct srv_route {
	const char *path; /* the whole path, such as "/metrics"; compared as it is, with %XX decoded */
	bool post;	  /* the method is POST with a token; otherwise GET or HEAD */
};

/* All pointers are borrowed until srv_close(). */
struct srv_opts {
	/*
	 * "127.0.0.1:9464", "[::1]:9464", "localhost:9464", ":9464" (all addresses of the machine) or
	 * "unix:/run/mxbpf.sock". Port 0 takes a free one. A request that comes through a loopback address must be to
	 * a name of it, because a web page can make a browser send others (DNS rebinding). NULL: SRV_LISTEN_DEFAULT.
	 */
	const char *listen;
	/*
	 * Who sends `Authorization: Bearer TOKEN` may POST. The file is read for each POST, so the token can be
	 * exchanged at any time. NULL: every POST is refused.
	 */
	const char *token_file;
	const struct srv_route *routes; /* ends with path NULL */
	/*
	 * Without srv_answer() for so long, requests get 503: those that wait and those that come. 0: they wait for
	 * ever.
	 */
	uint64_t silent_ns;
	uint64_t request_ns; /* a client has so long to send its request; 0: 10 s */
	uint64_t reply_ns;   /* and so long to read the reply; 0: 60 s */
};

struct srv_request {
	const struct srv_route *route; /* borrowed from the options */
	const char *query;	       /* for srv_query() */
	const char *accept;	       /* value of the header Accept; "": none */
};

struct srv_reply {
	unsigned status;  /* 200 to 599; 0: 200. 503 comes with Retry-After */
	const char *type; /* Content-Type, a constant; NULL: text/plain in UTF-8 */
	const char *csp;  /* Content-Security-Policy, a constant; NULL: the strictest one, which loads nothing */
	struct buf body;  /* passes to the server. It is sent compressed to a client that accepts gzip */
};

/* Returns 0, or -errno with e set. */
int srv_open(struct srv **out, const struct srv_opts *o, struct err *e);
/* Borrowed: "127.0.0.1:9464" with the port that was taken, "[::1]:9464", or "unix:/run/mxbpf.sock". */
const char *srv_address(const struct srv *s);
/* Readable from the arrival of a request until srv_answer(): for the caller's epoll. */
int srv_fd(const struct srv *s);
/*
 * Calls fn for each request that waits. fn returns false to leave it waiting for the next call; a request that it has
 * left does not make srv_fd() readable. fn must not call functions of the server but srv_query().
 */
typedef bool (*srv_answer_fn)(void *ctx, const struct srv_request *q, struct srv_reply *a);
void srv_answer(struct srv *s, srv_answer_fn fn, void *ctx);
/*
 * Returns the value of the first parameter of this name in the query ("" if it has none), or NULL. Borrowed from the
 * request. It has no control characters, but otherwise it is what the client has sent.
 */
const char *srv_query(const struct srv_request *q, const char *name);
/* Takes what went wrong meanwhile, to be told to the user: a token file that cannot be used. False: nothing new. */
bool srv_trouble(struct srv *s, struct err *e);
/* Requests that wait get 503, replies have 200 ms to be read. NULL is legal. */
void srv_close(struct srv *s);

#endif
