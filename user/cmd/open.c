// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/bar.h"
#include "cmd/cmd.h"
#include "import/import.h"
#include "source/recording.h"

/* With O_NONBLOCK, opening a fifo does not block before fstat() shows what it is. */
static int open_plain(const char *path, struct err *e)
{
	struct stat st;
	int fd, err;

	if (!strcmp(path, "-"))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "a recording must be a file; '-' (standard input) is not supported");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		err = -errno;
		return err_set(e, ERR_RUNTIME, err, "cannot open %s: %s", path, strerror(-err));
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(e, ERR_RUNTIME, -EINVAL, "cannot read %s: it is not a regular file", path);
	}
	return fd;
}

static int open_one(const struct cmd_opts *o, const char *path, bool events, bool *damaged, struct rec_reader **r,
		    struct err *e)
{
	struct bar bar = bar_start(o, "reading");
	const struct import_progress progress = {bar_draw, &bar};
	struct err why = {0};
	int fd, err;

	fd = open_plain(path, e);
	if (fd < 0)
		return fd;
	err = (import_format(fd) ? import_open(fd, path, bar.shown ? &progress : NULL, r, &why)
				 : rec_reader_open(fd, r, &why));
	bar_clear(&bar);
	close(fd);
	if (err)
		return err_set(e, why.cls, err, "%s: %s", path, why.why[0] ? why.why : strerror(-err));
	/* If the events are complete, only the end of the file is damaged, and a warning is enough. */
	if (rec_reader_verify(*r) && events && !rec_reader_session(*r)->incomplete) {
		err = err_set(e, ERR_RUNTIME, -EBADMSG, "%s: %s", path, rec_reader_damage(*r)->why);
		rec_reader_close(*r);
		*r = NULL;
		return err;
	}
	if (rec_reader_damage(*r)->code) {
		cmd_warn("%s: %s", path, rec_reader_damage(*r)->why);
		*damaged = true;
	} else if (rec_reader_session(*r)->incomplete)
		cmd_warn("%s is incomplete: it ends before its session did; the results cover only what was written",
			 path);
	return 0;
}

/* Opens all recordings as one. */
static int open_all(const struct cmd_opts *o, char *const *paths, unsigned n, bool events, bool *damaged,
		    struct rec_reader **r, struct err *e)
{
	struct rec_reader **parts = calloc(n, sizeof(*parts));
	unsigned i;
	int err = parts ? 0 : -ENOMEM;

	for (i = 0; i < n && !err; i++)
		err = open_one(o, paths[i], events, damaged, &parts[i], e);
	if (!err)
		err = rec_reader_merge(parts, n, r, e);
	else
		while (parts && i-- > 0)
			rec_reader_close(parts[i]);
	free(parts);
	return err;
}

int cmd_open_recordings(const struct cmd_opts *o, char *const *paths, unsigned n, bool events, struct rec_reader **r,
			struct mdl **m, struct err *e)
{
	struct err why = {0};
	bool damaged = false;
	int err;

	*r = NULL;
	*m = NULL;
	err = n == 1 ? open_one(o, paths[0], events, &damaged, r, e) : open_all(o, paths, n, events, &damaged, r, e);
	if (err)
		return err;
	*m = mdl_new();
	err = *m ? src_read_recording(*r, false, *m, &why) : -ENOMEM;
	if (err) {
		err_set(e, why.cls, err, "%s: %s", paths[0], why.why[0] ? why.why : strerror(-err));
		mdl_free(*m);
		rec_reader_close(*r);
		*m = NULL;
		*r = NULL;
		return err;
	}
	return damaged;
}
