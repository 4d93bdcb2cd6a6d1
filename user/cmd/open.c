// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"

/* O_NONBLOCK: a fifo must not hold us before we see that it is one. */
static int open_plain(const char *path, struct err *e)
{
	struct stat st;
	int fd, err;

	if (!strcmp(path, "-"))
		return err_set(e, ERR_USAGE, -EINVAL, "a recording is read from a file, '-' does not work here");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		err = -errno;
		return err_set(e, ERR_RUNTIME, err, "cannot open %s: %s", path, strerror(-err));
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(e, ERR_RUNTIME, -EINVAL, "cannot read %s: not a plain file", path);
	}
	return fd;
}

int cmd_open_recording(const char *path, struct rec_reader **r, struct mdl **m, struct err *e)
{
	struct err why = {0};
	int fd, err;

	*r = NULL;
	*m = NULL;
	fd = open_plain(path, e);
	if (fd < 0)
		return fd;
	err = rec_reader_open(fd, r, &why);
	close(fd);
	if (err)
		goto out;
	*m = mdl_new();
	err = *m ? rec_reader_model(*r, *m, &why) : -ENOMEM;
out:
	if (err) {
		err_set(e, why.cls, err, "%s: %s", path, why.why[0] ? why.why : strerror(-err));
		mdl_free(*m);
		rec_reader_close(*r);
		return err;
	}
	if (rec_reader_session(*r)->incomplete)
		cmd_warn("%s is incomplete: it ends before its session did; what follows covers what is left", path);
	return 0;
}
