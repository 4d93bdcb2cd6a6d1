/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes the user means: those with given numbers, those of their jobs, or all that have a name or are in a
 * control group, now or later. Everything is read from /proc; no process is asked.
 */
#ifndef JOB_CHOOSE_H
#define JOB_CHOOSE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define JOB_PIDS_MAX 256

/* The processes that the user chose on the command line. The texts are borrowed. */
struct job_choice {
	pid_t pids[JOB_PIDS_MAX];
	unsigned npids;	    /* 0: processes are chosen by host, or by comm and cgroup */
	bool job;	    /* with pids: all processes of the jobs to which they belong */
	bool host;	    /* without pids: all processes of this machine that map a runtime */
	const char *comm;   /* a glob of the names of processes; NULL: any */
	const char *cgroup; /* the path of a control group, or a glob of one part of a path; NULL: any */
};

struct job;

/*
 * Looks at the processes that the choice has numbers of, because they tell what their job is. ERR_TARGET if there is
 * none with such a number. c is borrowed until job_free().
 */
int job_new(const struct job_choice *c, struct job **out, struct err *e);
void job_free(struct job *j); /* NULL is legal */

/* Returns true if processes may come that belong to the choice, so that new ones have to be looked at. */
bool job_grows(const struct job *j);

/*
 * Returns true if a process belongs to the choice. Processes are of one job if their label `job` is the same, or, if
 * they have none, if they are in the same process group, which a shell makes for each command line.
 */
bool job_has(const struct job *j, pid_t pid);

/* Appends the pid_t of each process that belongs to the choice now, those with given numbers first. 0 or -errno. */
int job_list(const struct job *j, struct buf *pids);

/*
 * Appends the pid_t of each rank that a launcher, such as torchrun or a script that runs it, has started: the nearest
 * of its descendants that have a rank or a role which it does not have itself. 0 or -errno.
 */
int job_ranks_of(pid_t launcher, struct buf *pids);

/* Adds processes to those that are chosen by numbers, each once. -E2BIG: there are more than JOB_PIDS_MAX. */
int job_choose(struct job_choice *c, const struct buf *pids);

/* "the 2 processes", "the processes named python*": for messages. Returns buf. */
const char *job_words(const struct job *j, char buf[160]);

#endif
