// SPDX-License-Identifier: Apache-2.0
/*
 * Looks at the TCP connections of ranks. /proc/PID/net/tcp lists those of the network namespace of a process, so that
 * one list has all ranks in it. What a connection has sent without an answer, less what its other end has not read yet,
 * is on its way.
 */
#include "feature/lines/load_network.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "mxbpf_lines.h"

#define PROCESSES_MAX	  64
#define SPACES_MAX	  16
#define CONNECTIONS_MAX	  65536 /* of a namespace, that are read */
#define DESCRIPTORS_MAX	  4096	/* of a process, that are read */
#define OWNERS_MAX	  65536 /* sockets of all processes */
#define PAIRS_MAX	  4096	/* ends of connections that are told apart */
#define READ_ONE	  20	/* reading takes one part of so many of the time of a CPU, at most */
#define FLIGHT_BYTES	  65536 /* more than one segment of any interface, whose answer may come later */
#define STATE_ESTABLISHED 1
#define END_BYTES	  40 /* "0100007F:1F90", or as long as IPv6 needs */

/* A network namespace. */
struct space {
	uint64_t ino;
	pid_t pid;	  /* of a process in it; 0: none is watched */
	uint64_t next_ns; /* when its connections are read again */
	uint64_t sent, resent, bytes;
};

struct connection {
	char local[END_BYTES], remote[END_BYTES];
	uint32_t address;
	pid_t pid;	  /* that has it open, if it is watched; 0 */
	uint64_t out, in; /* bytes without an answer, bytes that nobody has read */
};

struct network {
	struct hash owners; /* (inode of a socket, 0) -> process */
	struct space spaces[SPACES_MAX];
	unsigned nspaces;
	unsigned watched;
	uint64_t next_ns, watch_ns; /* when the descriptors are read again; CPU time that it took so far */
	struct hash pairs;	    /* (pid and peer, address) of the records so far */
	struct hash ends;	    /* (hash of local and remote end, 0) -> 1 + place in connections */
	struct buf connections;
};

struct network *network_new(void)
{
	return calloc(1, sizeof(struct network));
}

void network_free(struct network *n)
{
	if (!n)
		return;
	hash_fini(&n->owners);
	hash_fini(&n->ends);
	hash_fini(&n->pairs);
	buf_fini(&n->connections);
	free(n);
}

/* Returns when something is read again that took so much CPU time. */
static uint64_t again_ns(uint64_t cost_ns)
{
	return clock_ns(CLOCK_MONOTONIC) + cost_ns * READ_ONE;
}

bool network_forget(struct network *n)
{
	unsigned i;

	if (!n || clock_ns(CLOCK_MONOTONIC) < n->next_ns)
		return false;
	hash_clear(&n->owners);
	n->watched = 0;
	n->watch_ns = 0;
	for (i = 0; i < n->nspaces; i++)
		n->spaces[i].pid = 0;
	return true;
}

static struct space *network_space(struct network *n, pid_t pid)
{
	struct stat st;
	char path[64];
	unsigned i, place;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	if (stat(path, &st))
		return NULL;
	for (i = 0; i < n->nspaces; i++)
		if (n->spaces[i].ino == st.st_ino)
			return &n->spaces[i];
	for (place = n->nspaces == SPACES_MAX ? 0 : n->nspaces; place < n->nspaces && n->spaces[place].pid; place++)
		;
	if (place == SPACES_MAX)
		return NULL;
	n->nspaces += place == n->nspaces;
	n->spaces[place] = (struct space){.ino = st.st_ino};
	return &n->spaces[place];
}

static void take_sockets(struct network *n, pid_t pid)
{
	char path[64], to[64];
	unsigned descriptors = 0;
	struct dirent *d;
	uint64_t *at, ino;
	ssize_t len;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && descriptors++ < DESCRIPTORS_MAX && n->owners.len < OWNERS_MAX && (d = readdir(dir))) {
		len = readlinkat(dirfd(dir), d->d_name, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = '\0';
		if (sscanf(to, "socket:[%" SCNu64 "]", &ino) != 1)
			continue;
		at = hash_put(&n->owners, ino, 0);
		if (at)
			*at = (uint64_t)pid;
	}
	if (dir)
		closedir(dir);
}

void network_watch(struct network *n, pid_t pid)
{
	struct space *space = n && n->watched < PROCESSES_MAX ? network_space(n, pid) : NULL;
	const uint64_t from_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (!space)
		return;
	space->pid = pid;
	n->watched++;
	take_sockets(n, pid);
	n->watch_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns;
	n->next_ns = again_ns(n->watch_ns);
}

static FILE *open_net(const struct space *s, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/net/%s", s->pid, name);
	return fopen(path, "re");
}

/* ---- counters of a namespace */

static void read_segments(const struct space *s, uint64_t *sent, uint64_t *resent)
{
	FILE *f = open_net(s, "snmp");
	char line[1024];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tcp: %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64, sent, resent) ==
		    2)
			break;
	if (f)
		fclose(f);
}

static uint64_t read_bytes(const struct space *s)
{
	FILE *f = open_net(s, "dev");
	uint64_t sum = 0, bytes;
	char line[1024];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " %*[^:]: %" SCNu64, &bytes) == 1)
			sum += bytes;
	if (f)
		fclose(f);
	return sum;
}

static uint64_t rise(uint64_t *from, uint64_t to)
{
	const uint64_t by = *from && to > *from ? to - *from : 0;

	*from = to;
	return by;
}

static void count(struct space *s, struct mxbpf_network *r)
{
	uint64_t sent = 0, resent = 0;

	read_segments(s, &sent, &resent);
	r->sent = rise(&s->sent, sent);
	r->resent = rise(&s->resent, resent);
	r->bytes = rise(&s->bytes, read_bytes(s));
}

/* ---- connections */

static uint64_t hash_ends(const char *local, const char *remote)
{
	return hash_text(hash_text(HASH_SEED, local, strlen(local)), remote, strlen(remote));
}

static void take_line(struct network *n, const char *line)
{
	struct connection c = {.pid = 0};
	const uint64_t *owner;
	unsigned state;
	uint64_t ino, *at;
	const char *colon;

	if (sscanf(line, " %*d: %39s %39s %x %" SCNx64 ":%" SCNx64 " %*s %*s %*s %*s %" SCNu64, c.local, c.remote,
		   &state, &c.out, &c.in, &ino) != 6 ||
	    state != STATE_ESTABLISHED)
		return;
	owner = hash_get(&n->owners, ino, 0);
	if (!owner)
		return;
	c.pid = (pid_t)*owner;
	colon = strchr(c.remote, ':');
	if (colon && colon - c.remote >= 8)
		c.address = (uint32_t)strtoul(colon - 8, NULL, 16);
	at = hash_put(&n->ends, hash_ends(c.local, c.remote), 0);
	if (at && !buf_put(&n->connections, &c, sizeof(c)))
		*at = buf_count(&n->connections, c);
}

static void list_connections(struct network *n, const struct space *s, const char *name)
{
	FILE *f = open_net(s, name);
	char line[512];
	unsigned lines = 0;

	while (f && lines++ < CONNECTIONS_MAX && fgets(line, sizeof(line), f))
		take_line(n, line);
	if (f)
		fclose(f);
}

static bool is_on_its_way(const struct connection *c, const struct connection *other)
{
	return c->out > FLIGHT_BYTES + (other ? other->in : 0);
}

/* Returns false if too many others have records. */
static bool is_told_apart(struct network *n, const struct mxbpf_network *one)
{
	const uint64_t pids = (uint64_t)one->h.tgid << 32 | one->peer;

	return hash_get(&n->pairs, pids, one->address) ||
	       (n->pairs.len < PAIRS_MAX && hash_put(&n->pairs, pids, one->address));
}

static void look_at_space(struct network *n, struct space *s, struct buf *recs)
{
	struct mxbpf_network all = {.h = {.kind = MXBPF_NETWORK, .size = sizeof(all), .tgid = (uint32_t)s->pid}}, one;
	const struct connection *c, *other;
	const uint64_t *at;
	size_t i;

	n->connections.len = 0;
	hash_clear(&n->ends);
	list_connections(n, s, "tcp");
	list_connections(n, s, "tcp6");
	all.h.ts_ns = clock_ns(CLOCK_MONOTONIC);
	all.looks = 1;
	for (i = 0; i < buf_count(&n->connections, *c); i++) {
		c = buf_at(&n->connections, struct connection, i);
		at = hash_get(&n->ends, hash_ends(c->remote, c->local), 0);
		other = at && *at ? buf_at(&n->connections, struct connection, *at - 1) : NULL;
		if (other && other->pid == c->pid)
			continue;
		one = (struct mxbpf_network){.h = all.h,
					     .looks = 1,
					     .flights = is_on_its_way(c, other),
					     .address = c->address,
					     .peer = other ? (uint32_t)other->pid : 0};
		one.h.tgid = (uint32_t)c->pid;
		all.flights |= one.flights;
		if (one.flights && is_told_apart(n, &one))
			buf_put(recs, &one, sizeof(one));
	}
	count(s, &all);
	buf_put(recs, &all, sizeof(all));
}

void network_look(struct network *n, struct buf *recs)
{
	uint64_t from_ns;
	struct space *s;

	for (s = n ? n->spaces : NULL; s && n->watched > 1 && s < n->spaces + n->nspaces; s++) {
		if (!s->pid || clock_ns(CLOCK_MONOTONIC) < s->next_ns)
			continue;
		from_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		look_at_space(n, s, recs);
		s->next_ns = again_ns(clock_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns);
	}
}
