// SPDX-License-Identifier: Apache-2.0
#include "attach/regs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/backend.h"
#include "regs.skel.h"

#define READ_BYTES 65536

struct regs {
	struct regs_bpf *skel;
	struct bpf_link *link, *all; /* all: of all threads of the machine; NULL: link is */
	pid_t tgid;
};

static int regs_read_all(int fd, struct buf *out)
{
	ssize_t n;
	char *at;

	do {
		at = buf_add(out, READ_BYTES);
		if (!at)
			return -ENOMEM;
		n = read(fd, at, READ_BYTES);
		out->len -= READ_BYTES - (n > 0 ? (size_t)n : 0);
	} while (n > 0 || (n < 0 && errno == EINTR));
	out->len -= out->len % sizeof(struct mxbpf_regs);
	return n < 0 ? -errno : 0;
}

static int regs_iterate(const struct bpf_link *link, struct buf *out)
{
	int fd = bpf_iter_create(bpf_link__fd(link)), err = fd < 0 ? -errno : regs_read_all(fd, out);

	if (fd >= 0)
		close(fd);
	return err;
}

/* Returns the number of threads of a process. Each is a link of this folder, which has two more. */
static size_t regs_threads(pid_t tgid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)tgid);
	return !stat(path, &st) && st.st_nlink > 2 ? st.st_nlink - 2 : 0;
}

/* An iterator of one process ends early if the thread that it has come to ends. Then it is read from all threads. */
int regs_read(const struct regs *r, struct buf *out)
{
	const size_t before = out->len;
	int err = regs_iterate(r->link, out);

	if (err || !r->all || (out->len - before) / sizeof(struct mxbpf_regs) >= regs_threads(r->tgid))
		return err;
	out->len = before;
	return regs_iterate(r->all, out);
}

/* Since Linux 6.1 an iterator can be of one process. An older kernel refuses that, and then it visits all threads. */
static int regs_attach(struct regs *r)
{
	union bpf_iter_link_info info = {.task.pid = (__u32)r->tgid};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	r->link = bpf_program__attach_iter(r->skel->progs.each_task, NULL);
	if (!r->link)
		return -errno;
	r->all = r->link;
	r->link = bpf_program__attach_iter(r->skel->progs.each_task, &opts);
	if (!r->link) {
		r->link = r->all;
		r->all = NULL;
	}
	return 0;
}

int regs_open(pid_t tgid, struct regs **out, struct err *e)
{
	struct regs *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	r->tgid = tgid;
	r->skel = regs_bpf__open();
	err = r->skel ? 0 : -errno;
	if (!err) {
		r->skel->rodata->cfg_tgid = (__u32)tgid;
		backend_namespace(&r->skel->rodata->cfg_pidns_dev, &r->skel->rodata->cfg_pidns_ino);
		err = regs_bpf__load(r->skel);
	}
	err = err ? err : regs_attach(r);
	if (err) {
		err = backend_errno(err);
		regs_close(r);
		return err_set(e, ERR_PRIVILEGE, err, "cannot read the registers of threads: %s", strerror(-err));
	}
	*out = r;
	return 0;
}

void regs_close(struct regs *r)
{
	if (!r)
		return;
	bpf_link__destroy(r->link);
	bpf_link__destroy(r->all);
	regs_bpf__destroy(r->skel);
	free(r);
}
