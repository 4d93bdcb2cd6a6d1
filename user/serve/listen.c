// SPDX-License-Identifier: Apache-2.0
/* Addresses and listening sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/out.h"
#include "serve/priv.h"

#define BACKLOG	   128
#define UNIX_BYTES 80 /* of a socket's name, so that its path through /proc/self/fd fits into sun_path */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

/* ---- IP addresses */

static int bad_address(const char *address, struct err *e)
{
	return err_set(
		e, ERR_USAGE, -EINVAL,
		"cannot listen on '%s': give an address and a port, such as 127.0.0.1:9464, [::1]:9464 or :9464, or "
		"a socket, such as unix:/run/mxbpf.sock",
		address);
}

static int parse_port(const char *text, in_port_t *port)
{
	unsigned long v;
	char *end;

	if (*text < '0' || *text > '9' || strlen(text) > 5)
		return -EINVAL;
	v = strtoul(text, &end, 10);
	if (*end || v > 65535)
		return -EINVAL;
	*port = htons((uint16_t)v);
	return 0;
}

/* Names are not looked up, but for localhost: which of their addresses is meant would be a guess. */
static int parse_ip(const char *text, union address *a)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	in_port_t port;
	size_t n;

	if (!colon || colon - text >= (ptrdiff_t)sizeof(host) || parse_port(colon + 1, &port))
		return -EINVAL;
	n = (size_t)(colon - text);
	memcpy(host, text, n);
	host[n] = '\0';
	memset(a, 0, sizeof(*a));
	if (!n) {
		a->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = port};
		return 0;
	}
	if (*host == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		a->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
		return inet_pton(AF_INET6, host + 1, &a->v6.sin6_addr) == 1 ? 0 : -EINVAL;
	}
	a->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
	return inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &a->v4.sin_addr) == 1 ? 0 : -EINVAL;
}

static int bind_ip(const union address *a)
{
	const socklen_t size = a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1, off = 0;
	int err = 0;

	if (fd < 0)
		return -errno;
	/* Otherwise the port of a server that has just ended could not be used for a minute. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, &a->any, size) || listen(fd, BACKLOG)) {
		err = -errno;
		close(fd);
	}
	return err ? err : fd;
}

static int ip_err(const char *address, int code, struct err *e)
{
	switch (code) {
	case -EADDRINUSE:
		return err_set(e, ERR_RUNTIME, code,
			       "%s is in use: another mxbpf serve? choose another address with --listen", address);
	case -EADDRNOTAVAIL:
	case -EAFNOSUPPORT:
		return err_set(e, ERR_USAGE, code, "cannot listen on %s: this machine has no such address", address);
	case -EACCES:
	case -EPERM:
		return err_set(e, ERR_PRIVILEGE, code,
			       "cannot listen on %s: %s; a port below 1024 needs root or CAP_NET_BIND_SERVICE", address,
			       strerror(-code));
	default:
		return err_set(e, ERR_RUNTIME, code, "cannot listen on %s: %s", address, strerror(-code));
	}
}

/* An IPv4 address at a socket for both has the form of IPv6. */
bool srv_own_address(int fd, char text[64], unsigned *port)
{
	union address a = {.any.sa_family = AF_UNSPEC};
	socklen_t size = sizeof(a);
	const void *v4 = &a.v4.sin_addr;
	char ip[INET6_ADDRSTRLEN] = "";

	*text = '\0';
	if (getsockname(fd, &a.any, &size) || (a.any.sa_family != AF_INET && a.any.sa_family != AF_INET6))
		return false;
	*port = ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
	if (a.any.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr)) {
		inet_ntop(AF_INET6, &a.v6.sin6_addr, ip, sizeof(ip));
		snprintf(text, 64, "[%s]", ip);
		return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
	}
	if (a.any.sa_family == AF_INET6)
		v4 = &a.v6.sin6_addr.s6_addr[12];
	inet_ntop(AF_INET, v4, ip, sizeof(ip));
	snprintf(text, 64, "%s", ip);
	return *(const uint8_t *)v4 == IN_LOOPBACKNET;
}

static int listen_ip(struct srv_place *p, const char *address, struct err *e)
{
	union address a;
	unsigned port = 0;
	char own[64];
	int fd;

	if (parse_ip(address, &a))
		return bad_address(address, e);
	fd = bind_ip(&a);
	if (*address == ':' && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)) { /* a machine without IPv6 */
		a.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = a.v6.sin6_port};
		fd = bind_ip(&a);
	}
	if (fd < 0)
		return ip_err(address, fd, e);
	p->fd = fd;
	srv_own_address(fd, own, &port);
	return asprintf(&p->address, "%s:%u", own, port) < 0 ? ip_err(address, -ENOMEM, e) : 0;
}

/* ---- Unix sockets */

/* Through the directory that was checked, so that nobody can exchange it meanwhile. */
static void unix_address(const struct srv_place *p, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%.*s", p->dirfd, UNIX_BYTES, p->base);
}

/* Says whether somebody accepts connections on the socket there. */
static bool answers(const struct srv_place *p)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a;
	bool dead;

	if (fd < 0)
		return true;
	unix_address(p, &a);
	dead = connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno == ECONNREFUSED;
	close(fd);
	return !dead;
}

/* Deletes the socket of a server that was killed. */
static int remove_stale(const struct srv_place *p, const char *path, struct err *e)
{
	struct stat st;

	if (fstatat(p->dirfd, p->base, &st, AT_SYMLINK_NOFOLLOW))
		return err_set(e, ERR_RUNTIME, -errno, "cannot listen on %s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(
			e, ERR_RUNTIME, -EEXIST,
			"cannot listen on %s: a file with that name exists, and it is no socket; choose another name",
			path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(e, ERR_RUNTIME, -EPERM, "cannot listen on %s: a socket of another user is there", path);
	if (answers(p))
		return err_set(e, ERR_RUNTIME, -EADDRINUSE,
			       "%s is in use: another mxbpf serve? choose another address with --listen", path);
	if (unlinkat(p->dirfd, p->base, 0) && errno != ENOENT)
		return err_set(e, ERR_RUNTIME, -errno, "cannot delete the old socket %s: %s", path, strerror(errno));
	return 0;
}

/* The file gets the mode of the socket, less the umask, so it is never open to others. */
static int bind_unix(struct srv_place *p)
{
	struct sockaddr_un a;

	unix_address(p, &a);
	return fchmod(p->fd, 0600) || bind(p->fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
}

static int listen_unix(struct srv_place *p, const char *path, struct err *e)
{
	struct stat st;
	int err;

	p->local = true;
	p->dirfd = out_open_dir(path, p->base, e);
	if (p->dirfd < 0)
		return p->dirfd;
	if (strlen(p->base) > UNIX_BYTES)
		return err_set(e, ERR_USAGE, -ENAMETOOLONG,
			       "cannot listen on %s: the name of the socket is longer than %d bytes", path, UNIX_BYTES);
	if (asprintf(&p->address, "unix:%s", path) < 0)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = p->fd < 0 ? -errno : bind_unix(p);
	if (err == -EADDRINUSE) {
		err = remove_stale(p, path, e);
		if (err)
			return err;
		err = bind_unix(p);
	}
	if (!err && fstatat(p->dirfd, p->base, &st, AT_SYMLINK_NOFOLLOW))
		err = -errno;
	if (!err) {
		p->dev = st.st_dev;
		p->ino = st.st_ino;
		err = listen(p->fd, BACKLOG) ? -errno : 0;
	}
	if (err)
		return err_set(e, err == -EACCES || err == -EPERM ? ERR_PRIVILEGE : ERR_RUNTIME, err,
			       "cannot listen on %s: %s", path, strerror(-err));
	return 0;
}

/* ---- */

int srv_listen(struct srv_place *p, const char *address, struct err *e)
{
	int err;

	*p = (struct srv_place){.fd = -1, .dirfd = -1};
	if (!strncmp(address, "unix:", 5))
		err = listen_unix(p, address + 5, e);
	else
		err = listen_ip(p, address, e);
	if (err)
		srv_unlisten(p);
	return err;
}

void srv_unlisten(struct srv_place *p)
{
	struct stat st;

	if (p->ino && !fstatat(p->dirfd, p->base, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == p->dev &&
	    st.st_ino == p->ino)
		unlinkat(p->dirfd, p->base, 0);
	if (p->fd >= 0)
		close(p->fd);
	if (p->dirfd >= 0)
		close(p->dirfd);
	free(p->address);
	*p = (struct srv_place){.fd = -1, .dirfd = -1};
}
