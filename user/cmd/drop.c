// SPDX-License-Identifier: Apache-2.0
/* --drop-privileges: what is left to do when all probes are attached needs no privilege. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/attach.h"
#include "cmd/opts.h"
#include "cmd/run.h"
#include "sandbox/sandbox.h"

#define NOBODY 65534

static bool follows(const struct cmd_opts *o)
{
	return o->drop && !o->ses.no_follow;
}

static bool grows(const struct cmd_opts *o)
{
	return o->drop && (o->ses.command || o->ses.choice.npids != 1 || o->ses.choice.job || o->ses.wait);
}

static bool attaches(const struct cmd_opts *o)
{
	return o->drop && (o->ses.period || o->ses.follow_app || o->ses.counters || o->ses.no_bpf);
}

static bool opens(const struct cmd_opts *o)
{
	return o->drop && o->ses.trace_part_ns;
}

const struct cmd_conflict cmd_drop_conflicts[] = {
	{follows, "--drop-privileges cannot be used with --follow, which attaches to children when they start"},
	{grows, "--drop-privileges needs one process that runs, --pid PID, because nothing can be attached later"},
	{attaches, "--drop-privileges cannot be used with --iterations N/M, --follow-app, --counters and --no-bpf, "
		   "which attach during the window"},
	{opens, "--drop-privileges cannot be used with --trace-every, which opens files during the window"},
	{0},
};

int cmd_set_drop(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	o->drop = text ? text : "";
	o->ses.no_follow = true;
	o->ses.closed = true;
	return 0;
}

static int find_user(const struct run *r, uid_t *uid, gid_t *gid, struct err *e)
{
	const char *name = r->o->drop;
	const struct passwd *pw = NULL;
	char path[32];
	struct stat st;

	*uid = *gid = NOBODY;
	if (*name) {
		pw = getpwnam(name);
		if (!pw || !pw->pw_uid)
			return err_set(e, ERR_USAGE, -EINVAL, "--drop-privileges: '%s' is %s", name,
				       pw ? "root; name another user" : "no user");
	} else {
		snprintf(path, sizeof(path), "/proc/%d", tgt_pid(ses_target(r->ses)));
		if (stat(path, &st) || !st.st_uid)
			return 0;
		*uid = st.st_uid;
		*gid = st.st_gid;
		return 0;
	}
	*uid = pw->pw_uid;
	*gid = pw->pw_gid;
	return 0;
}

/* A result is created at the end, in its folder. */
static int check_folder(const char *file, uid_t uid, struct err *e)
{
	char path[PATH_MAX];
	int err;

	if (!file || !strcmp(file, "-"))
		return 0;
	snprintf(path, sizeof(path), "%s", file);
	err = faccessat(AT_FDCWD, dirname(path), W_OK | X_OK, AT_EACCESS) ? -errno : 0;
	if (!err)
		return 0;
	return err_set(e, ERR_PRIVILEGE, err,
		       "--drop-privileges: user %d could not write %s: %s; name another user with "
		       "--drop-privileges=USER, or another folder",
		       (int)uid, file, strerror(-err));
}

/* A recording is open already. */
static int check_folders(const struct run *r, uid_t uid, gid_t gid, struct err *e)
{
	const uid_t root = (uid_t)setfsuid(uid);
	const gid_t wheel = (gid_t)setfsgid(gid);

	if ((r->so.recording || !check_folder(r->o->output, uid, e)) && !check_folder(r->so.trace, uid, e))
		check_folder(r->o->html, uid, e);
	setfsgid(wheel);
	setfsuid(root);
	return e->code;
}

int run_drop(const struct run *r, struct err *e)
{
	uid_t uid;
	gid_t gid;

	if (!r->o->drop || find_user(r, &uid, &gid, e))
		return e->code;
	if (geteuid())
		return err_set(e, ERR_PRIVILEGE, -EPERM,
			       "--drop-privileges: only root can become another user; run mxbpf with sudo");
	if (check_folders(r, uid, gid, e))
		return e->code;
	tgt_end_reader(ses_target(r->ses)); /* a process, which would stay root's */
	/* The C library does this in all threads. The kernel takes all capabilities with the last user 0. */
	if (setgroups(1, &gid) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return err_set(e, ERR_RUNTIME, -errno, "--drop-privileges: cannot become user %d: %s", (int)uid,
			       strerror(errno));
	if (!att_maps_readable())
		return err_set(e, ERR_PRIVILEGE, -EPERM,
			       "--drop-privileges: this kernel lets only CAP_BPF read BPF maps "
			       "(kernel.unprivileged_bpf_disabled); Linux 5.19 or later does not need it");
	if (!r->o->no_seccomp && !sbx_disturbs() && sbx_enter(SBX_LOOK | SBX_MAPS, r->so.verbose, e))
		return e->code;
	if (!r->o->quiet)
		fprintf(stderr, "dropped all privileges; mxbpf goes on as user %d\n", (int)uid);
	return 0;
}
