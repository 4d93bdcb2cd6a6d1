/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the serve room and its fuzzer. */
#ifndef SERVE_PRIV_H
#define SERVE_PRIV_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/types.h>

#include "serve/serve.h"

#define SRV_CONNS	 32	       /* connections at a time */
#define SRV_SPARE	 8	       /* further ones, while the oldest are being closed */
#define SRV_CONNS_CLIENT 8	       /* connections of an address that is not of this machine */
#define SRV_WAITING	 16	       /* requests that wait for an answer */
#define SRV_HEAD_BYTES	 (16u << 10)   /* memory of a connection, for the heads of the request and the reply */
#define SRV_HELD_BYTES	 (16ull << 20) /* replies that clients have not read */
#define SRV_REQUEST_NS	 10000000000ull
#define SRV_REPLY_NS	 60000000000ull
#define SRV_GRACE_NS	 100000000ull /* a connection is not closed for a newer one before that */
#define SRV_CLOSE_NS	 200000000ull
#define SRV_ACCEPT_BYTES 1024
#define SRV_QUERY_BYTES	 2048
#define SRV_QUERY_ARGS	 16
#define SRV_TOKEN_MIN	 16
#define SRV_TOKEN_MAX	 256

/* ---- where it listens (listen.c) */

struct srv_place {
	int fd;	       /* the listening socket; -1: none, or libmicrohttpd has it */
	bool local;    /* a Unix socket */
	char *address; /* owned: the form of srv_address() */
	int dirfd;     /* owned, O_PATH: directory of the Unix socket; -1: none */
	char base[256];
	dev_t dev; /* the socket's file, so that only that one is deleted */
	ino_t ino;
};

int srv_listen(struct srv_place *p, const char *address, struct err *e); /* 0, or -errno with e set */
/*
 * Writes the socket's address without the port, IPv6 in brackets, "" for a Unix socket. Returns whether it is one of
 * this machine alone.
 */
bool srv_own_address(int fd, char text[64], unsigned *port);
void srv_unlisten(struct srv_place *p); /* deletes the Unix socket */

/* ---- the token (token.c) */

/* Reads the token file, and checks who else can read it. Returns the length, or -errno with e set. */
int srv_token_read(const char *path, char token[SRV_TOKEN_MAX + 1], struct err *e);
/* Compares in a time that does not depend on the bytes of the token. */
bool srv_token_same(const char *token, size_t len, const char *given);

/* ---- requests and replies */

struct srv_conn {
	bool used, ended; /* ended: its socket is shut down, and libmicrohttpd will close it */
	int fd;		  /* of libmicrohttpd */
	enum srv_phase { SRV_READS, SRV_WAITS, SRV_SENDS } phase;
	uint64_t since_ns; /* start of the phase */
	struct in6_addr client;
	bool far;      /* the client is on another machine */
	char own[64];  /* the address that the client has connected to; IPv6 in brackets */
	bool loopback; /* it is one of this machine alone */
};

/* A request that waits, or whose reply is being sent. */
struct srv_ask {
	struct srv_ask *next;
	struct MHD_Connection *mc;
	struct srv_conn *conn;
	uint64_t number;
	bool gzip; /* the client accepts it */
	struct srv_request q;
	struct srv_reply a;
	size_t held; /* what it takes of SRV_HELD_BYTES */
	char accept[SRV_ACCEPT_BYTES];
	char query[SRV_QUERY_BYTES]; /* "name\0value\0name\0value\0\0" */
};

struct srv_list {
	struct srv_ask *head, **tail;
};

struct srv {
	struct srv_opts o;
	struct srv_place place;
	struct MHD_Daemon *daemon;
	int epoll_fd;  /* of libmicrohttpd */
	int ready_fd;  /* owned: wakes the caller */
	int wake_fd;   /* owned: wakes the thread */
	int spare_fd;  /* owned: closed for a moment when the process has no descriptor left; -1: none */
	int listen_fd; /* of libmicrohttpd */
	bool running;
	pthread_t thread;
	/* Only for the thread. */
	struct srv_conn conns[SRV_CONNS + SRV_SPARE];
	unsigned nconns;
	struct err token_err; /* what is wrong with the token file, as far as it was told */
	/* Under the lock. */
	pthread_mutex_t lock;
	struct srv_list waiting, done; /* done: answered, but not given to libmicrohttpd yet */
	unsigned nwaiting;
	uint64_t number;    /* of the last request */
	uint64_t answer_ns; /* last srv_answer() */
	size_t held;	    /* bytes of replies that are not sent yet */
	bool stop;
	struct err trouble;
};

/*
 * Checks a request (check.c). Returns 0 with q's fields filled, or the status of the refusal. *allow gets the methods
 * of the path if the method is wrong.
 */
unsigned srv_check(struct srv *s, struct srv_ask *r, const char *path, const char *method, const char **allow);

/* Sends a refusal, or the reply of r, whose body it takes (reply.c). */
enum MHD_Result srv_refuse(struct MHD_Connection *mc, unsigned status, const char *allow);
enum MHD_Result srv_send(struct srv *s, struct srv_ask *r);
/* Says whether the value of a header Accept-Encoding allows gzip. */
bool srv_accepts_gzip(const char *accept);

/* Waiting requests (answer.c). */
void srv_list_init(struct srv_list *l);
void srv_list_add(struct srv_list *l, struct srv_ask *r);
bool srv_ask_wait(struct srv *s, struct srv_ask *r); /* false: too many wait, or nobody answers */
/* In silence, or with `all`, answers every request that waits with 503. Returns when the silence begins, or 0. */
uint64_t srv_ask_refuse(struct srv *s, bool all);
struct srv_ask *srv_ask_done(struct srv *s); /* the next request that has been answered, or NULL */
void srv_ask_free(struct srv *s, struct srv_ask *r);

/* ---- the thread (serve.c) */

/* srv_open() without the thread. */
int srv_make(struct srv **out, const struct srv_opts *o, struct err *e);
/* Does what has happened or is due; with `wait`, waits for it before. */
void srv_turn(struct srv *s, bool wait);

#endif
