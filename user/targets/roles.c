// SPDX-License-Identifier: Apache-2.0
/* The role and the rank of a process in a distributed job, by its initial environment. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "session/priv.h"
#include "targets/targets.h"

#define ROLE_BYTES 32

/* NULL: the runtime has no roles, or the environment names an unknown one. */
static const struct adp_role *roles_role_of(const struct adp *a, const struct tgt *t)
{
	const struct adp_role *r = a->roles;
	char text[ROLE_BYTES];

	if (!a->role_env || !tgt_env_text(t, a->role_env, text, sizeof(text)))
		return NULL;
	while (r->role && strcmp(r->role, text))
		r++;
	return r->role ? r : NULL;
}

bool ses_role_fits(const struct session *ses, const struct tgt *t)
{
	const struct adp *const *a;
	const struct adp_role *r;

	for (a = adapters; ses->o->role && *a; a++) {
		r = roles_role_of(*a, t);
		if (r)
			return !strcmp(r->role, ses->o->role);
	}
	return !ses->o->role;
}

/* Numbers processes of a role that do not know their rank. */
static uint32_t next_of(const struct mdl_session *s, const char *role)
{
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < s->nprocesses; i++)
		n += !strcmp(s->processes[i].role, role);
	return n;
}

static int process_add(struct mdl_session *s, uint32_t pid, const char *role, int32_t rank, int32_t of)
{
	struct mdl_process *all = realloc(s->processes, (s->nprocesses + 1) * sizeof(*all)), *p;

	if (!all)
		return -ENOMEM;
	s->processes = all;
	p = &all[s->nprocesses];
	*p = (struct mdl_process){.pid = pid, .of = of > 0 ? (uint32_t)of : 0, .by_order = rank < 0};
	p->rank = rank < 0 ? next_of(s, role) : (uint32_t)rank;
	p->role = strdup(role);
	p->hostname = strdup(s->hostname);
	s->nprocesses++;
	return p->role && p->hostname ? 0 : -ENOMEM;
}

int ses_role_note(struct session *ses, const struct tgt *t)
{
	const struct adp_role *r = roles_role_of(ses->targets[0].plan.adp, t);
	int32_t rank, of;

	if (!r)
		return 0;
	rank = r->rank_env ? tgt_env_number(t, r->rank_env) : 0;
	of = r->count_env ? tgt_env_number(t, r->count_env) : 1;
	return process_add(&ses->about, (uint32_t)tgt_pid(t), r->role, rank, of);
}

/* Data loaders inherit the environment of the process whose rank it has, and come anew in each epoch. */
static bool is_ranked(const struct mdl_session *s, int32_t rank)
{
	size_t i;

	if (!s->nprocesses)
		return s->world_size && s->rank == (uint32_t)rank;
	for (i = 0; i < s->nprocesses; i++)
		if (s->processes[i].rank == (uint32_t)rank && !kill((pid_t)s->processes[i].pid, 0))
			return true;
	return false;
}

/* Adds a further process of a job without roles. The session has the rank of the first process. */
static int note_rank(struct session *ses, const struct tgt *t)
{
	const struct adp *a = ses->targets[0].plan.adp;
	struct mdl_session *s = &ses->about;
	int32_t rank, of;
	int err = 0;

	if (a->role_env || !a->rank_env)
		return 0;
	rank = tgt_env_number(t, a->rank_env);
	of = tgt_env_number(t, a->world_size_env);
	if (rank < 0 || rank >= of || is_ranked(s, rank))
		return 0;
	if (!s->nprocesses && s->world_size)
		err = process_add(s, s->pid, "", (int32_t)s->rank, (int32_t)s->world_size);
	return err ? err : process_add(s, (uint32_t)tgt_pid(t), "", rank, of);
}

void ses_role_join(struct session *ses, uint32_t tgid, uint32_t parent)
{
	struct tgt *t;

	if (tgid == (uint32_t)tgt_pid(ses->targets[0].tgt))
		return;
	if (tgt_open((pid_t)tgid, &t, NULL)) {
		ses_labels_gone(ses, tgid, parent);
		return;
	}
	ses_role_note(ses, t);
	note_rank(ses, t);
	ses_labels_note(ses, t);
	tgt_close(t);
}

/* Reads the model of the first CPU. */
static void read_cpu_model(char *model, size_t max)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *text;

	while (f && !*model && fgets(line, sizeof(line), f)) {
		text = strchr(line, ':');
		if (!text || strncmp(line, "model name", 10))
			continue;
		text += 1 + strspn(text + 1, " ");
		snprintf(model, max, "%.*s", (int)strcspn(text, "\n"), text);
	}
	if (f)
		fclose(f);
}

/* Identifies the host, so that recordings of several hosts can be merged and those of different machines are known. */
int ses_describe_host(struct mdl_session *s)
{
	struct timex clock = {0};
	struct utsname kernel = {0};
	char id[64] = "", how[96] = "", cpu[256] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f && !fgets(id, sizeof(id), f))
		id[0] = '\0';
	if (f)
		fclose(f);
	id[strcspn(id, "\n")] = '\0';
	if (adjtimex(&clock) >= 0)
		snprintf(how, sizeof(how),
			 clock.status & STA_UNSYNC ? "not synchronised" : "within %ld us of its source",
			 clock.maxerror);
	read_cpu_model(cpu, sizeof(cpu));
	uname(&kernel);
	s->boot_id = strdup(id);
	s->host_clock = strdup(how);
	s->cpu_model = strdup(cpu);
	s->kernel = strdup(kernel.release);
	return s->boot_id && s->host_clock && s->cpu_model && s->kernel ? 0 : -ENOMEM;
}
