/* SPDX-License-Identifier: Apache-2.0 */
/* The agent in the first process of a session, and its records, which agent.c joins with those of probes. */
#ifndef SESSION_AGENT_H
#define SESSION_AGENT_H

#include "agent/agent.h"
#include "base/buf.h"
#include "base/err.h"
#include "source/agent.h"

struct session;
struct ses_target;

/* The last windows of --iterations. The agent also records calls outside these windows; the session drops those. */
#define SES_CUTS_MAX 64
struct ses_cuts {
	struct {
		uint64_t from_ns, to_ns; /* to_ns UINT64_MAX: the window is open */
	} last[SES_CUTS_MAX];		 /* window n is at n % SES_CUTS_MAX */
	unsigned n;
	unsigned left; /* iterations until the last window closes */
};

/*
 * What agent.c has of it. The main thread sets all members for which nothing else is said. Threads of sources read
 * them, too, but no pointer changes while records come.
 */
struct ses_agent {
	struct agt *first;	   /* of the first process; NULL: not requested, or not loaded yet */
	struct err failed;	   /* why the agent was not loaded; read it after the sources have ended */
	bool came;		   /* atomic: loading the agent, for which the session waits, has succeeded or failed */
	bool memory;		   /* the agent records memory */
	bool gpu_late;		   /* the first process gets the agent when it has mapped CUDA */
	bool records;		   /* the agent was told to record */
	struct src *source;	   /* NULL: the agent records no operators */
	struct acc *accounts;	   /* accounts of the agent's calls; only the hub's thread uses them; NULL: no agent */
	struct agent_costs *costs; /* hub's thread: costs of the agent's calls; NULL: no agent */
	struct calls *calls;	   /* finds the agent's call that a record was in; NULL: no record needs it */
	uint64_t stopped_ns;	   /* atomic: when the agent was last told to stop; 0: never */
	uint64_t callless;	   /* atomic: records whose call was not known in time */
	struct ses_cuts cuts;	   /* --iterations, hub's thread */
	/* Hub's thread: ends of iterations and memory that probes see, which wait for the agent's records. */
	struct buf behind;
	uint64_t nbehind;  /* their number */
	uint64_t lent;	   /* how many of them are in the agent's batch */
	struct buf joined; /* the agent's batch with accounts */
};

/*
 * ses_agent: checks that the runtime has an agent. ses_agent_open: loads the agent, which does not record yet, and adds
 * its source to the hub. ses_agent_await: if the agent could not be loaded yet, waits until it is. They return 0, also
 * without --agent, or -errno with e set. ses_agent_take: starts or stops recording by the agent.
 */
int ses_agent(struct session *ses, const struct ses_target *of, struct err *e);
bool ses_agent_could(const struct session *ses); /* true if the agent can be used in the first target */
int ses_agent_open(struct session *ses, struct err *e);
struct agt_opts ses_agent_opts(const struct session *ses); /* those of all processes */
/* With --py-stacks: an address in the interpreter of a process, see agt_opts. 0: it has none. */
uint64_t ses_agent_is_finalizing(struct session *ses, uint32_t tgid);
int ses_agent_await(struct session *ses, struct err *e);
void ses_agent_take(struct session *ses, bool on);
struct src_agent_counts ses_agent_counts(const struct session *ses); /* see src_agent_counts() */
/*
 * Lets go of a process that has broken the agent's contract, and says so; the session ends if it has no other process.
 * Called each second, and after the last record.
 */
void ses_agent_check(struct session *ses);
/* Call after ses_agent_take(ses, false), when the end of the window is known. */
void ses_agent_settle(struct session *ses);
/* Warns, and adds a note to every output. */
__attribute__((format(printf, 2, 3))) void ses_agent_tell(struct session *ses, const char *format, ...);
/* With the agent: puts the operator that a record of BPF was in into the record. */
void ses_agent_fill(struct session *ses, struct mxbpf_rec *r);
/* Call after the last record. Warns about calls that the agent could not see. */
void ses_agent_end(struct session *ses);
/*
 * Prepares a batch of a source: the agent's calls get their accounts from records of the other sources, which are kept
 * for that. Returns true if the batch has to be folded. *recs is borrowed until the next call.
 */
bool ses_agent_join(struct session *ses, unsigned number, void **recs, size_t *bytes);
void ses_agent_free(struct session *ses); /* also the other agents; after the hub */

#endif
