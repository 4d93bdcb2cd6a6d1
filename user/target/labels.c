// SPDX-License-Identifier: Apache-2.0
#include "target/labels.h"

#include <ctype.h>
#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/priv.h"

#define CGROUP_MAX_BYTES (64u << 10)
#define STATUS_MAX_BYTES (64u << 10)
#define PASSWD_LINE	 4096
#define POD_UID_DIGITS	 32
#define VARIABLES	 3

struct env {
	const char *text;
	size_t bytes;
};

/*
 * Variables of one launcher. A rank belongs to the size that the same launcher has set: Slurm may have started
 * torchrun, which has started the ranks.
 */
static const struct launcher {
	const char *role; /* of a process that it applies to; NULL: processes without a role */
	const char *rank, *local_rank, *world_size, *group_rank;
} launchers[] = {
	{"worker", "DMLC_WORKER_ID", NULL, "DMLC_NUM_WORKER", NULL},
	{"worker", "DMLC_RANK", NULL, "DMLC_NUM_WORKER", NULL},
	{"server", "DMLC_SERVER_ID", NULL, "DMLC_NUM_SERVER", NULL},
	{"server", "DMLC_RANK", NULL, "DMLC_NUM_SERVER", NULL},
	{NULL, "RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK"},
	{NULL, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
	{NULL, "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", NULL},
	{NULL, "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NODEID"},
};
#define NLAUNCHERS (sizeof(launchers) / sizeof(launchers[0]))

/* Texts that are the value of a variable. */
static const struct text_label {
	size_t at, max;			  /* in struct tgt_labels, and its bytes */
	const char *variables[VARIABLES]; /* the first that is set counts */
} texts[] = {
	{offsetof(struct tgt_labels, role), TGT_LABEL_BYTES, {"DMLC_ROLE"}},
	{offsetof(struct tgt_labels, pod_name), TGT_LABEL_BYTES, {"POD_NAME"}},
	{offsetof(struct tgt_labels, pod_namespace), TGT_LABEL_BYTES, {"POD_NAMESPACE"}},
	{offsetof(struct tgt_labels, own_hostname), TGT_LABEL_BYTES, {"HOSTNAME"}},
	{offsetof(struct tgt_labels, slurm_job), TGT_LABEL_BYTES, {"SLURM_JOB_ID", "SLURM_JOBID"}},
};

/* Where the processes of a job meet. */
static const struct {
	const char *address, *port;
} meetings[] = {
	{"MASTER_ADDR", "MASTER_PORT"},
	{"DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"},
};

static const char *value_of(const struct env *e, const char *name)
{
	return name ? tgt_env_find(e->text, e->bytes, name) : NULL;
}

static int32_t number_of(const struct env *e, const char *name)
{
	const char *value = value_of(e, name);

	return value ? tgt_number(value) : -1;
}

static void set_texts(const struct env *e, struct tgt_labels *l)
{
	const char *value;
	size_t i, k;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		for (k = 0, value = NULL; k < VARIABLES && !value; k++)
			value = value_of(e, texts[i].variables[k]);
		if (value)
			snprintf((char *)l + texts[i].at, texts[i].max, "%s", value);
	}
	if (l->slurm_job[strspn(l->slurm_job, "0123456789")])
		*l->slurm_job = '\0';
}

static void set_ranks(const struct env *e, struct tgt_labels *l)
{
	const struct launcher *of;

	for (of = launchers; of < launchers + NLAUNCHERS && l->rank < 0; of++) {
		if (of->role ? strcmp(of->role, l->role) : *l->role)
			continue;
		l->rank = number_of(e, of->rank);
		if (l->rank < 0)
			continue;
		l->rank_variable = of->rank;
		l->local_rank = number_of(e, of->local_rank);
		l->world_size = number_of(e, of->world_size);
		l->group_rank = number_of(e, of->group_rank);
	}
}

/* ---- control groups */

/* Copies the uid that begins here: 32 digits, with dashes or with the underscores that systemd needs instead. */
static void take_pod_uid(const char *p, char uid[TGT_POD_UID_BYTES])
{
	size_t n = strspn(p, "0123456789abcdef-_"), digits = 0, i;

	for (i = 0; i < n; i++)
		digits += isxdigit((unsigned char)p[i]) != 0;
	if (n >= TGT_POD_UID_BYTES || digits != POD_UID_DIGITS || (p[n] && p[n] != '/' && p[n] != '.'))
		return;
	for (i = 0; i < n; i++)
		uid[i] = p[i] == '_' ? '-' : p[i];
	uid[n] = '\0';
}

/* "/kubepods/burstable/podUID/ID", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/..." */
static void take_pod(const char *line, char uid[TGT_POD_UID_BYTES])
{
	const char *p = strstr(line, "kubepods");

	for (; p && (p = strstr(p + 1, "pod"));)
		if (p[-1] == '/' || p[-1] == '-')
			take_pod_uid(p + strlen("pod"), uid);
}

/* "/slurm/uid_1000/job_123/step_0", "/system.slice/slurmstepd.scope/job_123/step_0/user/task_0" */
static void take_slurm_job(const char *line, char job[TGT_LABEL_BYTES])
{
	const char *p = strstr(line, "slurm");
	size_t n;

	for (; p && (p = strstr(p, "/job_"));) {
		p += strlen("/job_");
		n = strspn(p, "0123456789");
		if (n && n < TGT_LABEL_BYTES && (!p[n] || p[n] == '/'))
			snprintf(job, TGT_LABEL_BYTES, "%.*s", (int)n, p);
	}
}

/* A line is "N:CONTROLLERS:/PATH". The innermost pod, job and container count, so the last ones. */
static void set_by_cgroup(const char *text, struct tgt_labels *l)
{
	char line[4096];
	size_t n;

	tgt_cgroup_container(text, l->container);
	for (; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)n, text);
		take_pod(line, l->pod_uid);
		take_slurm_job(line, l->slurm_job);
	}
}

/* ---- names that Kubernetes gives */

/* Names of pods and namespaces have no underscore, and the id behind the last dash begins with the container's. */
static bool take_names(const char *link, struct tgt_labels *l)
{
	const char *id = strrchr(link, '-'), *space = strchr(link, '_'),
		   *container = space ? strchr(space + 1, '_') : NULL;

	if (!id || !container || id < container || strncmp(id + 1, l->container, strlen(l->container)))
		return false;
	snprintf(l->pod_name, sizeof(l->pod_name), "%.*s", (int)(space - link), link);
	snprintf(l->pod_namespace, sizeof(l->pod_namespace), "%.*s", (int)(container - space - 1), space + 1);
	snprintf(l->container_name, sizeof(l->container_name), "%.*s", (int)(id - container - 1), container + 1);
	return true;
}

void tgt_labels_kubelet(const char *folder, struct tgt_labels *l)
{
	DIR *d = *l->container ? opendir(folder) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (take_names(e->d_name, l))
			break;
	if (d)
		closedir(d);
}

/* ---- the job and the user */

static void set_job(const struct env *e, struct tgt_labels *l)
{
	const char *address, *port;
	size_t i;

	if (*l->slurm_job)
		snprintf(l->job, sizeof(l->job), "slurm %.64s", l->slurm_job);
	else if (*l->pod_uid)
		snprintf(l->job, sizeof(l->job), "pod %s", l->pod_uid);
	else if (*l->container)
		snprintf(l->job, sizeof(l->job), "container %s", l->container);
	for (i = 0; i < sizeof(meetings) / sizeof(meetings[0]) && !*l->job; i++) {
		address = value_of(e, meetings[i].address);
		port = value_of(e, meetings[i].port);
		if (address && *address && port) /* a long address leaves room for the port, in which jobs may differ */
			snprintf(l->job, sizeof(l->job), "%.80s:%.8s", address, port);
	}
}

void tgt_labels_parse(const char *env, size_t env_bytes, const char *cgroup, struct tgt_labels *l)
{
	const struct env e = {env, env_bytes};

	*l = (struct tgt_labels){.rank = -1, .local_rank = -1, .world_size = -1, .group_rank = -1};
	set_texts(&e, l);
	set_ranks(&e, l);
	set_by_cgroup(cgroup, l);
	set_job(&e, l);
}

/*
 * Reads /etc/passwd itself. getpwuid() would load modules of the machine and may ask a server in the network, for which
 * a process that is being followed would have to wait.
 */
static void name_user(unsigned long uid, char *user, size_t max)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd one, *found = NULL;
	char line[PASSWD_LINE];

	snprintf(user, max, "%lu", uid);
	while (f && !fgetpwent_r(f, &one, line, sizeof(line), &found) && found->pw_uid != uid)
		found = NULL;
	if (found)
		snprintf(user, max, "%s", found->pw_name);
	if (f)
		fclose(f);
}

/* "Uid:\tREAL\tEFFECTIVE\tSAVED\tFILES" */
static void set_user(const char *status, struct tgt_labels *l)
{
	const char *uids = tgt_status_field(status, "Uid");
	unsigned long effective;

	if (uids && sscanf(uids, "%*u %lu", &effective) == 1)
		name_user(effective, l->user, sizeof(l->user));
}

void tgt_labels(const struct tgt *t, struct tgt_labels *l)
{
	struct buf env = {0}, cgroup = {0}, status = {0};
	const bool has_env = !tgt_environ(t->wary ? t->far : NULL, t->procfd, t->pid, &env);
	const bool has_cgroup = !tgt_slurp(t->procfd, "cgroup", CGROUP_MAX_BYTES, &cgroup);

	tgt_labels_parse(has_env ? env.data : "", has_env ? env.len : 0, has_cgroup ? cgroup.data : "", l);
	tgt_labels_kubelet(TGT_KUBELET_LINKS, l);
	tgt_job_name(t, has_env ? env.data : "", has_env ? env.len : 0, has_cgroup ? cgroup.data : "", l);
	if (!tgt_slurp(t->procfd, "status", STATUS_MAX_BYTES, &status))
		set_user(status.data, l);
	buf_fini(&env);
	buf_fini(&cgroup);
	buf_fini(&status);
}

void tgt_peek_labels(pid_t pid, struct tgt_labels *l)
{
	struct buf env = {0}, cgroup = {0};
	const bool has_env = !tgt_peek_environ(pid, &env), has_cgroup = !tgt_peek_cgroup(pid, &cgroup);

	tgt_labels_parse(has_env ? env.data : "", has_env ? env.len : 0, has_cgroup ? cgroup.data : "", l);
	buf_fini(&env);
	buf_fini(&cgroup);
}
