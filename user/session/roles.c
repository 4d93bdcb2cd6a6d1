// SPDX-License-Identifier: Apache-2.0
/* The role of a process in a distributed job, by its initial environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "session/priv.h"

#define ROLE_BYTES 32

/* NULL: the runtime has no roles, or the environment names an unknown one. */
static const struct adp_role *role_of(const struct adp *a, const struct tgt *t)
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
		r = role_of(*a, t);
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

int ses_role_note(struct session *ses, const struct tgt *t)
{
	const struct adp *a = ses->targets[0].plan.adp;
	const struct adp_role *r = role_of(a, t);
	struct mdl_session *s = &ses->about;
	struct mdl_process *all, *p;
	int32_t rank, of;

	if (!r)
		return 0;
	all = realloc(s->processes, (s->nprocesses + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	s->processes = all;
	rank = r->rank_env ? tgt_env_number(t, r->rank_env) : 0;
	of = r->count_env ? tgt_env_number(t, r->count_env) : 1;
	p = &all[s->nprocesses];
	*p = (struct mdl_process){.pid = (uint32_t)tgt_pid(t), .of = of > 0 ? (uint32_t)of : 0, .by_order = rank < 0};
	p->rank = rank < 0 ? next_of(s, r->role) : (uint32_t)rank;
	p->role = strdup(r->role);
	p->hostname = strdup(s->hostname);
	s->nprocesses++;
	return p->role && p->hostname ? 0 : -ENOMEM;
}

void ses_role_join(struct session *ses, uint32_t tgid)
{
	struct tgt *t;

	if (tgid == (uint32_t)tgt_pid(ses->targets[0].tgt) || tgt_open((pid_t)tgid, &t, NULL))
		return;
	ses_role_note(ses, t);
	tgt_close(t);
}

/* Identifies the host, so that recordings of several hosts can be merged. */
int ses_describe_host(struct mdl_session *s)
{
	struct timex clock = {0};
	char id[64] = "", how[96] = "";
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
	s->boot_id = strdup(id);
	s->host_clock = strdup(how);
	return s->boot_id && s->host_clock ? 0 : -ENOMEM;
}
