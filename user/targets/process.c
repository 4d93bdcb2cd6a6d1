// SPDX-License-Identifier: Apache-2.0
/* The processes of a session, and the table of the phases of their lives. */
#include "targets/process.h"

#include <errno.h>
#include <stdlib.h>

#include "session/priv.h"

#define TO(phase) (1u << SES_##phase)
/* A process without probes can be looked at, execute another program, and end. */
#define LOOKED (TO(WAITS) | TO(HALF) | TO(LATER) | TO(NO_ROOM) | TO(PLANNED) | TO(SEEN) | TO(ENDED))

/* The phases that may follow each phase; it may follow itself. */
static const unsigned follows[SES_PHASES] = {
	[SES_SEEN] = LOOKED,
	[SES_WAITS] = LOOKED,
	[SES_HALF] = LOOKED,
	[SES_LATER] = LOOKED,
	[SES_NO_ROOM] = LOOKED,
	[SES_PLANNED] = TO(WATCHED) | TO(WAITS) | TO(LATER) | TO(SEEN) | TO(ENDED),
	[SES_WATCHED] = TO(SEEN) | TO(ENDED),
	[SES_ENDED] = TO(GONE),
	[SES_GONE] = TO(SEEN),
};

static const char *const names[SES_PHASES] = {"seen",	 "waits",   "half",  "later", "no room",
					      "planned", "watched", "ended", "gone"};

bool ses_phase_follows(enum ses_phase from, enum ses_phase to)
{
	return from == to || follows[from] & 1u << to;
}

void ses_process_move(struct session *ses, struct ses_process *p, enum ses_phase to)
{
	if (!ses_phase_follows(p->phase, to) && !ses->processes.wrong++)
		ses_warn(ses, "mistake of mxbpf: process %u is \"%s\" after \"%s\"", p->tgid, names[to],
			 names[p->phase]);
	p->phase = to;
}

struct ses_process *ses_process_of(const struct session *ses, uint32_t tgid)
{
	const uint64_t *at = hash_get(&ses->processes.of, tgid, 0);

	return at ? (struct ses_process *)(uintptr_t)*at : NULL;
}

struct ses_process *ses_process_add(struct session *ses, uint32_t tgid)
{
	struct ses_processes *all = &ses->processes;
	struct ses_process *p = ses_process_of(ses, tgid);
	uint64_t *at;

	if (p && p->phase == SES_GONE)
		ses_process_move(ses, p, SES_SEEN);
	if (p)
		return p;
	pthread_mutex_lock(&ses->lock);
	p = calloc(1, sizeof(*p));
	at = p ? hash_put(&all->of, tgid, 0) : NULL;
	if (at) {
		*at = (uintptr_t)p;
		*p = (struct ses_process){.tgid = tgid, .prev = all->last};
		*(p->prev ? &p->prev->next : &all->first) = p;
		all->last = p;
	} else {
		free(p);
		p = NULL;
	}
	pthread_mutex_unlock(&ses->lock);
	return p;
}

int ses_process_plan(struct session *ses, struct ses_process *p, struct ses_target *of, const struct ses_place *place)
{
	p->place = p->place ? p->place : malloc(sizeof(*p->place));
	if (!p->place)
		return -ENOMEM;
	*p->place = *place;
	if (p->phase != SES_ENDED)
		ses_process_move(ses, p, SES_PLANNED);
	pthread_mutex_lock(&ses->lock);
	p->of = of;
	pthread_mutex_unlock(&ses->lock);
	return 0;
}

void ses_process_unplan(struct ses_process *p)
{
	free(p->place);
	p->place = NULL;
	buf_fini(&p->late);
}

static void process_free(struct ses_processes *all, struct ses_process *p)
{
	*(p->prev ? &p->prev->next : &all->first) = p->next;
	*(p->next ? &p->next->prev : &all->last) = p->prev;
	hash_del(&all->of, p->tgid, 0, NULL);
	ses_process_unplan(p);
	free(p);
}

void ses_process_end(struct session *ses, struct ses_process *p)
{
	if (p->gpu.agt || (p->of && p->of->build != ses->first)) {
		ses_process_unplan(p);
		p->counted = p->told = false;
		ses_process_move(ses, p, SES_GONE);
		return;
	}
	pthread_mutex_lock(&ses->lock);
	process_free(&ses->processes, p);
	pthread_mutex_unlock(&ses->lock);
}

void ses_processes_free(struct session *ses)
{
	while (ses->processes.first)
		process_free(&ses->processes, ses->processes.first);
	hash_fini(&ses->processes.of);
}
