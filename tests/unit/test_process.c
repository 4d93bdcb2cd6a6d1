/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the processes of a session and the table of the phases of their lives (targets/process.c). */
#include "unit.h"

#include <stdarg.h>
#include <string.h>

#include "session/priv.h"

static char said[512];
static unsigned nsaid;

static void tell(void *ctx, enum ses_level level, const char *text)
{
	snprintf(said, sizeof(said), "%s", text);
	nsaid++;
}

/* Adds all phases that a process can come to from those in `seen`. */
static unsigned reach(unsigned seen)
{
	unsigned from, to;

	for (from = 0; from < SES_PHASES; from++)
		for (to = 0; to < SES_PHASES; to++)
			if (seen & 1u << from && ses_phase_follows(from, to))
				seen |= 1u << to;
	return seen;
}

static void move_all(struct session *ses, uint32_t tgid, const enum ses_phase *phases, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		ses_process_move(ses, ses_process_add(ses, tgid), phases[i]);
}
#define MOVE(ses, tgid, ...)                                                                                           \
	move_all(ses, tgid, (const enum ses_phase[]){__VA_ARGS__},                                                     \
		 sizeof((const enum ses_phase[]){__VA_ARGS__}) / sizeof(enum ses_phase))

int main(void)
{
	static struct session ses = {.lock = PTHREAD_MUTEX_INITIALIZER, .ui.tell = tell};
	struct ses_target of[2] = {{.build = &ses.builds[0]}, {.build = &ses.builds[1]}};
	const struct ses_place place = {.at.static_base = 42};
	const uint32_t order[] = {2, 3, 4, 1};
	struct ses_process *p;
	unsigned i;

	ses.first = &ses.builds[0];
	ses.nbuilds = 2;
	TEST("a process can come to every phase, can execute another program and end in each until it has ended, and "
	     "has ended for good unless its number comes back")
	{
		CHECK(reach(reach(1u << SES_SEEN)) == (1u << SES_PHASES) - 1);
		for (i = 0; i < SES_ENDED; i++)
			CHECK(ses_phase_follows(i, SES_SEEN) && ses_phase_follows(i, SES_ENDED) &&
			      !ses_phase_follows(i, SES_GONE) && !ses_phase_follows(SES_ENDED, i));
		for (i = 0; i < SES_GONE; i++)
			CHECK(ses_phase_follows(SES_GONE, i) == (i == SES_SEEN));
		CHECK(!ses_phase_follows(SES_SEEN, SES_WATCHED) && !ses_phase_follows(SES_WAITS, SES_WATCHED));
	}

	TEST("lives of processes make no mistake: one that is found with its runtime, one that gets it late, one that "
	     "is refused and gets room after an exec")
	{
		MOVE(&ses, 1, SES_PLANNED, SES_WATCHED, SES_ENDED);
		MOVE(&ses, 2, SES_WAITS, SES_WAITS, SES_HALF, SES_PLANNED, SES_LATER, SES_PLANNED, SES_WATCHED);
		MOVE(&ses, 3, SES_WAITS, SES_NO_ROOM, SES_SEEN, SES_PLANNED, SES_WAITS, SES_PLANNED, SES_WATCHED);
		CHECK(!ses.processes.wrong && !nsaid);
	}

	TEST("a move that the table does not have is made, counted, and told once")
	{
		MOVE(&ses, 4, SES_WATCHED);
		CHECK(ses.processes.wrong == 1 && ses_process_of(&ses, 4)->phase == SES_WATCHED);
		CHECK(!strcmp(said, "mistake of mxbpf: process 4 is \"watched\" after \"seen\""));
		MOVE(&ses, 4, SES_GONE);
		CHECK(ses.processes.wrong == 2 && nsaid == 1);
	}

	TEST("processes are listed in the order in which they were found, also after one has ended")
	{
		ses_process_end(&ses, ses_process_of(&ses, 1));
		CHECK(!ses_process_of(&ses, 1) && ses_process_add(&ses, 1));
		for (p = ses.processes.first, i = 0; p; p = p->next, i++)
			CHECK(p->tgid == order[i] && (!p->next || p->next->prev == p));
		CHECK(i == 4 && ses.processes.last->tgid == 1);
	}

	TEST("a process that has ended is forgotten, but late records of one of a further build still find their build")
	{
		ses.processes.wrong = 0;
		for (i = 0; i < 2; i++) {
			p = ses_process_add(&ses, 10 + i);
			CHECK(!ses_process_plan(&ses, p, &of[i], &place) && p->place->at.static_base == 42);
			MOVE(&ses, 10 + i, SES_WATCHED, SES_ENDED);
			ses_process_end(&ses, p);
		}
		CHECK(!ses_process_of(&ses, 10) && ses_build_of(&ses, 10) == &ses.builds[0]);
		p = ses_process_of(&ses, 11);
		CHECK(p && p->phase == SES_GONE && !p->place && ses_build_of(&ses, 11) == &ses.builds[1]);
		CHECK(ses_process_add(&ses, 11)->phase == SES_SEEN && !ses.processes.wrong);
	}
	ses_processes_free(&ses);
	return unit_end();
}
