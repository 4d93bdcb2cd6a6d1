// SPDX-License-Identifier: Apache-2.0
#include "attach/backend.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <bpf/libbpf.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/apart.h"
#include "base/namespace.h"
#include "base/thread.h"

#define CLOSERS_MAX	  32  /* number of processes that close links */
#define DESCRIPTORS_LEAST 160 /* if a process may have fewer open, EINVAL of libbpf has no clear cause */

const struct att_backend *const att_backends[] = {&att_backend_multi, &att_backend_perf, NULL};

const struct att_backend *att_pick(const char *name, struct err *e)
{
	struct err first = {0}, why = {0};
	int i;

	for (i = 0; att_backends[i]; i++) {
		if (name && strcmp(att_backends[i]->name, name))
			continue;
		why = (struct err){0};
		if (!att_backends[i]->supported(&why))
			return att_backends[i];
		if (!first.code)
			first = why;
		if (first.code != -ENOTSUP) /* another backend would fail for the same reason */
			break;
	}
	if (!strcmp(first.why, why.why))
		err_set(e, why.cls, why.code, "%s", why.why);
	else
		err_set(e, why.cls, why.code, "%s, and %s", first.why, why.why);
	return NULL;
}

int backend_trial_prog(int attach_type, struct err *e)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = (enum bpf_attach_type)attach_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "mxbpf_try", "GPL", insns, 2, &o);

	if (fd == -EPERM || fd == -EACCES)
		return err_set(e, ERR_PRIVILEGE, fd,
			       "loading BPF programs is not permitted: run with sudo, or with CAP_BPF, CAP_PERFMON and "
			       "CAP_SYS_PTRACE");
	if (fd < 0)
		return err_set(e, ERR_PRIVILEGE, fd, "the kernel does not load a BPF program: %s", strerror(-fd));
	return fd;
}

void backend_namespace(__u64 *dev, __u64 *ino)
{
	struct stat own;

	if (stat("/proc/self/ns/pid", &own) || namespace_is_first("pid"))
		return;
	*dev = (__u64)major(own.st_dev) << 20 | minor(own.st_dev); /* in the kernel's own encoding of dev_t */
	*ino = own.st_ino;
}

/*
 * libbpf takes a feature that it could not try for want of a descriptor for one that the kernel lacks, and loads
 * programs in a form that the kernel refuses.
 */
static bool has_few_descriptors(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < DESCRIPTORS_LEAST;
}

int backend_errno(int err)
{
	if (err == -EINVAL && has_few_descriptors())
		return -EMFILE;
	return err == -LIBBPF_ERRNO__LIBELF ? -ENOMEM : err;
}

int backend_load_failed(int err, struct err *e)
{
	const char *missing;

	err = backend_errno(err);
	if (err == -EPERM) /* -EACCES comes from the verifier */
		return err_set(e, ERR_PRIVILEGE, err,
			       "the kernel refused the BPF programs: run with sudo, or with CAP_BPF, CAP_PERFMON and "
			       "CAP_SYS_PTRACE");
	if (err == -ESRCH && !access("/sys/kernel/btf/vmlinux", R_OK)) /* libbpf returns this whatever the reason is */
		return err_set(e, ERR_PRIVILEGE, err,
			       "cannot read the kernel's types (BTF): there is not enough memory (-v shows more)");
	/* Without descriptors or memory, no feature can be tried. */
	missing = err == -EMFILE || err == -ENFILE || err == -ENOMEM ? NULL : features_missing();
	if (missing)
		return err_set(e, ERR_PRIVILEGE, err, "this kernel has no %s (`sudo mxbpf check` lists what it has)",
			       missing);
	return err_set(e, ERR_PRIVILEGE, err, "the kernel did not load the BPF programs: %s (-v shows its log)",
		       strerror(-err));
}

static void close_all(struct buf *fds)
{
	apart_close(fds, CLOSERS_MAX);
	buf_fini(fds);
}

/* One thread closes the links of all processes, because a thousand may end at once. */
static struct {
	pthread_mutex_t lock;
	struct buf fds;
	bool runs;
	uint64_t nhanded, nclosed;
} later = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *close_later(void *arg)
{
	struct buf fds;
	size_t n = 0;

	for (;;) {
		pthread_mutex_lock(&later.lock);
		later.nclosed += n;
		fds = later.fds;
		n = buf_count(&fds, int);
		later.fds = (struct buf){0};
		later.runs = fds.len;
		pthread_mutex_unlock(&later.lock);
		if (!fds.len)
			return arg;
		close_all(&fds);
	}
}

/* Gives the fds to the thread that closes links. Returns false if there is none. */
static bool hand_over(const struct buf *fds)
{
	pthread_t thread;
	bool given;

	pthread_mutex_lock(&later.lock);
	given = !buf_put(&later.fds, fds->data, fds->len);
	if (given && !later.runs) {
		given = later.runs = !thread_start(&thread, close_later, NULL);
		if (given)
			pthread_detach(thread);
		else
			later.fds.len = 0;
	}
	if (given)
		later.nhanded += buf_count(fds, int);
	pthread_mutex_unlock(&later.lock);
	return given;
}

uint64_t backend_handed(void)
{
	uint64_t n;

	pthread_mutex_lock(&later.lock);
	n = later.nhanded;
	pthread_mutex_unlock(&later.lock);
	return n;
}

bool backend_has_closed(uint64_t nhanded)
{
	bool closed;

	pthread_mutex_lock(&later.lock);
	closed = later.nclosed >= nhanded;
	pthread_mutex_unlock(&later.lock);
	return closed;
}

void backend_close(struct buf *fds, bool wait)
{
	if (!wait && fds->len && hand_over(fds))
		buf_fini(fds);
	else
		close_all(fds);
}

static int silent(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

void backend_quiet(void)
{
	libbpf_set_print(silent);
}

void backend_grace(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}
