/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KINETO_PRIV_H
#define KINETO_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/buf.h"
#include "kineto/kineto.h"
#include "target/target.h"

/* ---- wire.c: the datagrams, as libkineto's ipcfabric/FabricManager.h and Utils.h define them */

#define KIN_TYPE_BYTES 32
#define KIN_PIDS_MAX   1024 /* a process and its ancestors */

struct kin_head {
	uint64_t size; /* of what follows */
	char type[KIN_TYPE_BYTES];
};

struct kin_context {
	int32_t gpu, pid;
	int64_t job;
};

struct kin_request {
	int32_t type; /* KIN_ACTIVITIES, if the profiler is free */
	int32_t n;
	int64_t job;
	int32_t pids[];
};
#define KIN_ACTIVITIES 2

#define KIN_DATAGRAM_MAX (sizeof(struct kin_head) + sizeof(struct kin_request) + KIN_PIDS_MAX * sizeof(int32_t))

enum kin_kind {
	KIN_MALFORMED,
	KIN_CONTEXT, /* a process has started */
	KIN_REQUEST, /* a process asks for its configuration */
	KIN_BUSY,    /* likewise, while its profiler is in use */
};
enum kin_kind kin_parse(const void *data, size_t bytes);

/* Appends an answer: its head, and the bytes. 0 or -ENOMEM. */
int kin_answer(struct buf *b, const char *type, const void *data, size_t bytes);
/* Appends the text that makes Kineto write a trace to path. 0 or -ENOMEM. */
int kin_config(struct buf *b, const struct kin_opts *o, const char *path, bool gpu);
/* Returns true if Kineto reads a line with this path as it was meant. */
bool kin_path_fits(const char *path);

/* ---- sockets.c: who asks, and who answers */

#define KIN_DIR_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/* The socket of Kineto in a process. */
struct kin_client {
	pid_t pid;
	uint64_t ino;
	char dir[KIN_DIR_BYTES]; /* KINETO_IPC_SOCKET_DIR, as the process spells it; "": the names are abstract */
};

/* Returns true if a process has such a socket. */
bool kin_client_find(pid_t pid, struct kin_client *c);
/* Returns the process that owns the daemon's name as the client sees it; 0: it is not visible. */
pid_t kin_owner(const struct kin_client *c);
/*
 * Fills the address of the daemon. The kernel compares abstract names by their whole length, and the client ends its
 * process if an answer comes from a path that does not begin with its own dir, so the bytes must be these.
 */
socklen_t kin_address(const char *dir, struct sockaddr_un *a);

/* ---- place.c: the socket, and a directory for the files */

struct kin_place {
	pid_t helper; /* 0: none */
	int link;     /* the helper cleans up when this is closed */
	int dir, sock;
	uid_t uid;	     /* of the job */
	bool path;	     /* the socket has a path */
	char name[PATH_MAX]; /* of the directory, as the job sees it */
};

/* 0, or -errno with e set and nothing to close. */
int kin_place_open(struct kin_place *p, struct tgt *t, const struct kin_client *c, struct err *e);
void kin_place_close(struct kin_place *p);

/* ---- file.c */

/* Looks for a file in the directory. Follows nothing and opens nothing. 0 or -errno. */
int kin_file_look(int dir, const char *name, struct stat *st);
/* Opens a trace, if it is a plain file of the user with one name and not too large. Returns an fd, or -errno. */
int kin_file_open(int dir, const char *name, uid_t uid, uint64_t *bytes, struct err *e);
int kin_file_copy(int fd, uint64_t bytes, struct out *out, struct err *e);

#endif
