// SPDX-License-Identifier: Apache-2.0
/* The token file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open_now.h"
#include "serve/priv.h"

/* Files of root, of the user, and of the user who called sudo. */
static bool is_ours(uid_t uid)
{
	const char *caller = geteuid() == 0 ? getenv("SUDO_UID") : NULL;

	return uid == 0 || uid == geteuid() || (caller && *caller && strtoul(caller, NULL, 10) == uid);
}

static int check_file(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set(e, ERR_RUNTIME, -errno, "cannot read the token file %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_RUNTIME, -EINVAL, "the token file %s is no plain file", path);
	if (!is_ours(st.st_uid))
		return err_set(e, ERR_RUNTIME, -EPERM,
			       "the token file %s belongs to another user, who can read and change it: chown root %s",
			       path, path);
	if (st.st_mode & 077)
		return err_set(e, ERR_RUNTIME, -EPERM,
			       "the token file %s has mode %04o, so others than its owner can use it: chmod 600 %s",
			       path, (unsigned)st.st_mode & 07777, path);
	return 0;
}

/* Checks what was read, and returns the length without the line's end. */
static int check_token(char *text, size_t n, const char *path, struct err *e)
{
	size_t i;

	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n] = '\0';
	for (i = 0; i < n && text[i] > ' ' && text[i] < 0x7f; i++)
		;
	if (i < n || n < SRV_TOKEN_MIN || n > SRV_TOKEN_MAX)
		return err_set(e, ERR_RUNTIME, -EINVAL,
			       "the token file %s must have one line of %d to %d ASCII characters without blanks: "
			       "(umask 077; openssl rand -hex 32 >%s)",
			       path, SRV_TOKEN_MIN, SRV_TOKEN_MAX, path);
	return (int)n;
}

int srv_token_read(const char *path, char token[SRV_TOKEN_MAX + 1], struct err *e)
{
	char text[SRV_TOKEN_MAX + 4]; /* with the end of the line, a byte that shows that there is more, and a NUL */
	int fd = open_now(AT_FDCWD, path);
	ssize_t n;
	int ret;

	if (fd < 0)
		return err_set(e, ERR_RUNTIME, -errno, "cannot read the token file %s: %s", path, strerror(errno));
	ret = check_file(fd, path, e);
	if (!ret) {
		n = read(fd, text, sizeof(text) - 1);
		ret = n < 0 ? err_set(e, ERR_RUNTIME, -errno, "cannot read the token file %s: %s", path,
				      strerror(errno))
			    : check_token(text, (size_t)n, path, e);
	}
	if (ret > 0)
		memcpy(token, text, (size_t)ret + 1);
	explicit_bzero(text, sizeof(text));
	close(fd);
	return ret;
}

bool srv_token_same(const char *token, size_t len, const char *given)
{
	const size_t n = strlen(given);
	volatile unsigned char differs = n != len;
	size_t i;

	for (i = 0; i < n; i++)
		differs |= (unsigned char)(given[i] ^ token[i % len]);
	return !differs;
}
