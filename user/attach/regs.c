// SPDX-License-Identifier: Apache-2.0
#include "attach/regs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/backend.h"
#include "regs.skel.h"

#define READ_BYTES 65536

struct regs {
	struct regs_bpf *skel;
	struct bpf_link *link;
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

int regs_read(const struct regs *r, struct buf *out)
{
	int fd = bpf_iter_create(bpf_link__fd(r->link)), err = fd < 0 ? -errno : regs_read_all(fd, out);

	if (fd >= 0)
		close(fd);
	return err;
}

/* Since Linux 6.1 an iterator can be of one process. An older kernel refuses that, and then it visits all threads. */
static struct bpf_link *regs_attach(const struct bpf_program *prog, pid_t tgid)
{
	union bpf_iter_link_info info = {.task.pid = (__u32)tgid};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(prog, &opts);

	return link ? link : bpf_program__attach_iter(prog, NULL);
}

int regs_open(pid_t tgid, struct regs **out, struct err *e)
{
	struct regs *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	r->skel = regs_bpf__open();
	err = r->skel ? 0 : -errno;
	if (!err) {
		r->skel->rodata->cfg_tgid = (__u32)tgid;
		backend_namespace(&r->skel->rodata->cfg_pidns_dev, &r->skel->rodata->cfg_pidns_ino);
		err = regs_bpf__load(r->skel);
	}
	if (!err) {
		r->link = regs_attach(r->skel->progs.each_task, tgid);
		err = r->link ? 0 : -errno;
	}
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
	regs_bpf__destroy(r->skel);
	free(r);
}
