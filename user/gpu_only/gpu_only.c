// SPDX-License-Identifier: Apache-2.0
#include "gpu_only/gpu_only.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/image.h"
#include "base/fmt.h"
#include "base/out.h"
#include "feature/activity/activity.h"
#include "feature/kernels/kernels.h"
#include "mxbpf_agent.h"
#include "session/priv.h"
#include "source/gpu_file.h"
#include "targets/targets.h"

#define AGENT	   "agent.so"
#define RECORDS	   "gpu"
#define INJECTION  "CUDA_INJECTION64_PATH"
#define STOP_MS	   2000
#define PATH_BYTES 4096

/* A file of the agent. */
struct part {
	pid_t pid;
	int fd;
};

struct gpu_only {
	const struct ses_opts *o;
	struct ses_ui ui;
	struct launch launch;
	char dir[PATH_BYTES]; /* "": there is none */
	int dir_fd, parent_fd;
	struct buf parts; /* struct part by rising pid */
	struct mdl *model;
	struct rec_writer *writer;
	struct mdl_session about;
	struct mxbpf_loss loss;
};

__attribute__((format(printf, 2, 3))) static void warn(const struct gpu_only *g, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (g->ui.tell)
		g->ui.tell(g->ui.ctx, SES_WARNING, text);
}

/* ---- the directory with the agent and its files */

static int write_agent(const struct gpu_only *g)
{
	const int fd = openat(g->dir_fd, AGENT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	size_t done = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (done < agent_image_bytes && n > 0) {
		n = write(fd, agent_image + done, agent_image_bytes - done);
		done += n > 0 ? (size_t)n : 0;
	}
	n = n < 0 ? -errno : n;
	if (close(fd) && n > 0)
		n = -errno;
	return n < 0 ? (int)n : done < agent_image_bytes ? -ENOSPC : 0;
}

static int make_dir(struct gpu_only *g, struct err *e)
{
	const char *slash = strrchr(g->o->recording, '/');
	int len = slash ? (int)(slash - g->o->recording) + 1 : 0, bytes, err;
	char here[PATH_BYTES] = "", dir[PATH_BYTES], name[64];
	struct statvfs fs;

	if (g->o->recording[0] != '/' && (!getcwd(here, sizeof(here)) || strlen(here) + 2 > sizeof(here)))
		return err_set(e, ERR_RUNTIME, -errno, "cannot find the current directory: %s", strerror(errno));
	if (*here)
		strcat(here, "/");
	len = snprintf(dir, sizeof(dir), "%s%.*s", here, len, g->o->recording);
	bytes = len + OUT_BESIDE_BYTES + (int)strlen("/" AGENT);
	if (bytes > MXBPF_AGENT_PATH_MAX)
		return err_set(
			e, ERR_RUNTIME, -ENAMETOOLONG,
			"the agent's path beside the recording has %d bytes, and CUDA's driver ignores one of more "
			"than %d; write the recording into another directory with -o FILE",
			bytes, MXBPF_AGENT_PATH_MAX);
	g->dir_fd = out_dir_beside(dir, name, &g->parent_fd, e);
	if (g->dir_fd < 0)
		return e->code;
	snprintf(g->dir, sizeof(g->dir), "%.*s%s", len, dir, name);
	if (fstatvfs(g->dir_fd, &fs))
		return err_set(e, ERR_RUNTIME, -errno, "%s: %s", g->dir, strerror(errno));
	if (fs.f_flag & ST_NOEXEC)
		return err_set(
			e, ERR_RUNTIME, -EPERM,
			"no library can be loaded from the file system of %s, because it is mounted with noexec; "
			"write the recording elsewhere with -o FILE",
			g->o->recording);
	err = write_agent(g);
	return err ? err_set(e, ERR_RUNTIME, err, "cannot write the agent into %s: %s", g->dir, strerror(-err)) : 0;
}

static void remove_dir(struct gpu_only *g)
{
	DIR *d = g->dir_fd >= 0 ? fdopendir(g->dir_fd) : NULL;
	struct dirent *f;

	if (d)
		rewinddir(d);
	while (d && (f = readdir(d)))
		if (f->d_name[0] != '.')
			unlinkat(dirfd(d), f->d_name, 0);
	if (d)
		closedir(d);
	if (g->parent_fd >= 0) {
		unlinkat(g->parent_fd, strrchr(g->dir, '/') + 1, AT_REMOVEDIR);
		close(g->parent_fd);
	}
	g->dir_fd = g->parent_fd = -1;
	*g->dir = '\0';
}

/* ---- the command */

/* The command inherits the environment of mxbpf. */
static int set_variables(const struct gpu_only *g)
{
	const struct ses_metrics *m = &g->o->metrics;
	char agent[PATH_BYTES + 16], records[PATH_BYTES + 16], metrics[sizeof(m->pattern) + 32];

	snprintf(agent, sizeof(agent), "%s/" AGENT, g->dir);
	snprintf(records, sizeof(records), "%s/" RECORDS, g->dir);
	snprintf(metrics, sizeof(metrics), "%u:%d:%s", m->each, m->replay, m->pattern);
	if (*m->pattern && setenv("MXBPF_KERNEL_METRICS", metrics, 1))
		return -1;
	return setenv(INJECTION, agent, 1) || setenv("MXBPF_AGENT_FILE", records, 1) ||
	       setenv("MXBPF_CUPTI", g->o->cupti ? g->o->cupti : "", 1);
}

int gpu_only_open(const struct ses_opts *o, const struct ses_ui *ui, struct gpu_only **out, struct err *e)
{
	struct gpu_only *g = *out = calloc(1, sizeof(*g));

	if (!g)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	g->o = o;
	g->ui = *ui;
	g->dir_fd = g->parent_fd = -1;
	if (getenv(INJECTION))
		return err_set(e, ERR_USAGE, -EBUSY,
			       INJECTION " is set to %s, and --no-bpf needs it for itself; unset it",
			       getenv(INJECTION));
	if (make_dir(g, e))
		return e->code;
	if (set_variables(g))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	launch_prepare(&g->launch, o->command, o->command_to_stderr, e);
	unsetenv(INJECTION);
	unsetenv("MXBPF_AGENT_FILE");
	unsetenv("MXBPF_CUPTI");
	unsetenv("MXBPF_KERNEL_METRICS");
	return e->code;
}

/* The command may have ended already. */
static int describe_command(struct gpu_only *g)
{
	const char *slash = strrchr(g->o->command[0], '/');
	struct tgt *t = NULL;
	struct err e = {0};

	if (tgt_open(g->launch.pid, &t, &e))
		t = NULL;
	g->about.pid = (uint32_t)g->launch.pid;
	g->about.comm = strdup(t ? tgt_comm(t) : slash ? slash + 1 : g->o->command[0]);
	g->about.cmdline = strdup(t ? tgt_cmdline(t) : g->o->command[0]);
	tgt_close(t);
	return g->about.comm && g->about.cmdline ? 0 : -ENOMEM;
}

int gpu_only_run(struct gpu_only *g, int signals, struct err *e)
{
	int status;

	g->about.start_mono_ns = clock_ns(CLOCK_MONOTONIC);
	g->about.start_unix_ns = clock_ns(CLOCK_REALTIME);
	if (launch_go(&g->launch, g->o->command[0], e))
		return launch_wait(&g->launch, signals);
	if (describe_command(g))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	status = launch_wait(&g->launch, signals);
	g->about.duration_ns = clock_ns(CLOCK_MONOTONIC) - g->about.start_mono_ns;
	return status;
}

/* ---- the agent's files */

static int by_pid(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* The command could put a link to somebody else's file there, and mxbpf writes to the agent's files. */
static bool is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == out_owner();
}

/* Opens the file of each process. The directory may belong to another user. */
static void find_parts(struct gpu_only *g)
{
	const int copy = fcntl(g->dir_fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *f;
	struct part p;

	while (d && (f = readdir(d))) {
		if (strncmp(f->d_name, RECORDS ".", strlen(RECORDS ".")) != 0)
			continue;
		p.pid = (pid_t)strtol(f->d_name + strlen(RECORDS "."), NULL, 10);
		p.fd = openat(g->dir_fd, f->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (p.fd >= 0 && (!is_own(p.fd) || buf_put(&g->parts, &p, sizeof(p)))) {
			warn(g, "the records of process %d are not read: their file is not one that the agent made",
			     p.pid);
			close(p.fd);
		} else if (p.fd < 0) {
			warn(g, "the records of process %d cannot be read: %s", p.pid, strerror(errno));
		}
	}
	if (d)
		closedir(d);
	if (g->parts.len)
		qsort(g->parts.data, buf_count(&g->parts, struct part), sizeof(struct part), by_pid);
}

static int add_notes(struct gpu_only *g, const struct gpu_file *f, pid_t pid)
{
	const struct mxbpf_gpu_shared *gpu = gpu_file_shared(f);
	char of[32] = "", why[512], metrics[1024], subscribe[24], enable[24], stop[24];
	struct mxbpf_gpu_account a;
	int err = 0;

	gpu_file_account(f, &a);
	if (buf_count(&g->parts, struct part) > 1)
		snprintf(of, sizeof(of), "process %d: ", pid);
	if (a.subscriptions)
		err = ses_add_note(
			&g->about, "gpu", "%sCUPTI %u, %.255s; subscribing took %s, enabling %s, letting go took %s",
			of, gpu->version, gpu->path, fmt_ns(gpu->subscribe_ns, subscribe),
			fmt_ns(gpu->enable_ns, enable), gpu->stop_ns ? fmt_ns(gpu->stop_ns, stop) : "an unknown time");
	if (!err && a.subscriptions && *g->o->metrics.pattern) {
		err = ses_add_note(&g->about, "gpu", "%s%s", of, ses_metrics_note(gpu, metrics));
		if (!gpu->metrics.measured)
			warn(g, "%s%s", of, metrics);
	}
	if (!err && gpu->state != MXBPF_GPU_FAILED && gpu->failed == MXBPF_GPU_AT_THREAD)
		err = ses_add_note(
			&g->about, "gpu",
			"%sthe agent could not start its thread: %s; CUPTI was held since CUDA was initialised, "
			"and handed records over when its buffers were full or the process ended",
			of, strerror((int)gpu->result));
	if (!err && gpu->state == MXBPF_GPU_ON)
		err = ses_add_note(&g->about, "gpu",
				   "%sthe process ended without a regular exit, or still runs: the records of its last "
				   "moments are missing",
				   of);
	else if (!err && gpu->state != MXBPF_GPU_OFF)
		err = ses_add_note(&g->about, "gpu", "%s%s", of, ses_gpu_why(gpu, why));
	if (!err && a.unjoined)
		err = ses_add_note(&g->about, "gpu", "%s%s", of, ses_gpu_unjoined(gpu, a.unjoined, why));
	if (!err && a.unsent)
		err = ses_add_note(
			&g->about, "gpu",
			"%s%llu records are missing in the agent's file: it was killed while it wrote them, or "
			"the disk was full",
			of, (unsigned long long)a.unsent);
	return err;
}

/* Adds a part to the recording. */
static int write_recs(struct gpu_only *g, struct gpu_convert *c)
{
	int err = mdl_fold_all(g->model, c->texts.data, c->texts.len);

	if (!err)
		err = mdl_fold_all(g->model, c->recs.data, c->recs.len);
	if (!err && c->recs.len)
		err = rec_writer_append(g->writer, c->recs.data, c->recs.len, g->model, &g->loss);
	c->texts.len = c->recs.len = 0;
	return err;
}

static int write_part(struct gpu_only *g, const struct part *p)
{
	struct mxbpf_gpu_account a;
	struct err e = {0};
	struct gpu_file *f;
	int err = gpu_file_open(p->fd, (uint32_t)p->pid, &f, &e), more = 1;

	if (err == -ENOMEM)
		return err;
	if (err) {
		warn(g, "process %d: %s", p->pid, e.why);
		return ses_add_note(&g->about, "gpu", "process %d: %s", p->pid, e.why);
	}
	if (gpu_file_shared(f)->state == MXBPF_GPU_ON && (!kill(p->pid, 0) || errno == EPERM))
		gpu_file_stop(f, STOP_MS);
	while (!err && more) {
		more = gpu_file_next(f);
		err = more < 0 ? more : write_recs(g, gpu_file_convert(f));
	}
	gpu_file_account(f, &a);
	g->loss.stored += gpu_file_convert(f)->stored + 1; /* with the account itself */
	g->loss.dropped += a.dropped + a.scrapped + a.unreadable + a.unsent + a.unmeasured;
	g->loss.attempted = g->loss.stored + g->loss.dropped;
	err = err ? err : add_notes(g, f, p->pid);
	gpu_file_close(f);
	return err;
}

/* ---- the recording */

static int gpu_only_describe(struct gpu_only *g)
{
	struct mdl_session *s = &g->about;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	s->mxbpf_version = strdup(MXBPF_VERSION);
	s->hostname = strdup(host);
	s->trace_form = strdup("");
	s->class_title[MXBPF_CLASS_CUDA] = strdup("CUDA call");
	if (!s->mxbpf_version || !s->hostname || !s->trace_form || !s->class_title[MXBPF_CLASS_CUDA] ||
	    ses_describe_host(s))
		return -ENOMEM;
	return ses_add_note(s, "no-bpf", "no probes: operators are not recorded, nor is anything else but CUDA");
}

static int describe_loss(struct gpu_only *g)
{
	struct mdl_session *s = &g->about;

	s->loss = g->loss;
	s->sources = calloc(1, sizeof(*s->sources));
	if (!s->sources)
		return -ENOMEM;
	s->sources[0] = (struct mdl_source){.name = strdup("gpu"), .loss = g->loss};
	s->nsources = 1;
	return s->sources[0].name ? 0 : -ENOMEM;
}

static int open_writer(struct gpu_only *g, struct err *e)
{
	int fd;

	g->model = mdl_new();
	if (!g->model || gpu_only_describe(g))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	fd = out_create(g->o->recording, e);
	return fd < 0 ? fd : rec_writer_open(fd, g->o->max_bytes, &g->about, &g->writer, e);
}

int gpu_only_write(struct gpu_only *g, struct err *e)
{
	size_t i;
	int err = 0;

	find_parts(g);
	remove_dir(g); /* what is open stays readable */
	if (open_writer(g, e))
		return e->code;
	for (i = 0; !err && i < buf_count(&g->parts, struct part); i++) {
		struct part *p = buf_at(&g->parts, struct part, i);

		err = write_part(g, p);
		p->fd = -1;
	}
	if (!i && !err) {
		warn(g,
		     "no process of the command initialised CUDA, or its driver did not load the agent, as in a setuid "
		     "program; nothing was recorded");
		err = ses_add_note(&g->about, "gpu",
				   "no record of the GPU: no process initialised CUDA and loaded the agent");
	}
	err = err ? err : describe_loss(g);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "cannot write %s: %s", g->o->recording, strerror(-err));
	g->about.cut_records = rec_writer_cut_records(g->writer);
	return rec_writer_finish(g->writer, g->model, &g->about, e);
}

const struct mdl_session *gpu_only_about(const struct gpu_only *g)
{
	return &g->about;
}

void gpu_only_free(struct gpu_only *g)
{
	size_t i;

	if (!g)
		return;
	launch_fini(&g->launch);
	for (i = 0; i < buf_count(&g->parts, struct part); i++)
		if (buf_at(&g->parts, struct part, i)->fd >= 0)
			close(buf_at(&g->parts, struct part, i)->fd);
	remove_dir(g);
	rec_writer_free(g->writer);
	mdl_free(g->model);
	mdl_session_fini(&g->about);
	buf_fini(&g->parts);
	free(g);
}
