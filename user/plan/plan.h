/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan turns an adapter, a target process and its ELF files into probes. A refused probe has a reason. Planning
 * changes nothing in the process.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "insn/insn.h"
#include "insn/layout.h"
#include "mxbpf_agent.h"
#include "plan/probe.h"
#include "target/target.h"

/* The words of --probes. The last row has name == NULL. */
struct plan_group {
	const char *name;
	enum probe_group group;
	const char *help; /* NULL: users cannot ask for it by name */
};
extern const struct plan_group plan_groups[];
const char *plan_group_name(enum probe_group g);

/* A row of the adapter and the result of planning it. */
struct plan_probe {
	const struct adp_probe *row;
	struct tgt_lib *lib; /* borrowed; NULL if it is not mapped */
	const char *symbol;  /* the first alternative that exists, or the family's prefix; NULL if none */
	bool hidden;	     /* the library does not name it: symbol is the first alternative */
	uint64_t off;	     /* file offset of the (first) function's entry; valid if reason is empty */
	struct insn_entry entry;
	unsigned nfuncs;      /* number of probed functions: 1, or those of the family */
	uint32_t first_func;  /* number of the first function */
	bool returns;	      /* spans end by return probes */
	unsigned nendless;    /* functions without a cut: their spans end at the next event of their thread */
	unsigned nleft;	      /* functions that --ops excludes */
	bool calibrated;      /* its structure offsets were read from the code of this build */
	bool wanted;	      /* the user asked for its group, and no other row replaces it */
	bool spare;	      /* not resolved, because the row that it would replace is there */
	const char *stand_in; /* if refused: name of the row that replaces it; NULL: none */
	char reason[256];     /* why it is refused; "": it will be attached */
};

/* A span name that the plan knows. */
struct plan_name {
	uint64_t id; /* the hash that BPF computes */
	char *text;  /* owned */
};

/* One probe: a place in a library and the action of a hit. */
struct plan_site {
	const struct plan_probe *probe;
	const struct mxbpf_row *row; /* action of a hit: that of the row, or the end of its span */
	struct tgt_lib *lib;
	uint64_t off; /* file offset */
	uint64_t cookie;
};

/* Returns true if the probe runs when the function at its offset returns. */
static inline bool plan_at_return(const struct plan_site *s)
{
	return s->probe && s->probe->returns && s->row->action == MXBPF_ACT_CLOSE_CUT;
}

/* A function that BPF recognizes by the return address of a call. */
struct plan_caller {
	uint64_t return_va;
	uint64_t cookie; /* as for a cut: the function, and how to compute the frame address at the call */
};

/* The user's choice of probes for a process. */
struct plan_opts {
	unsigned groups;     /* mask of enum probe_group */
	const char *ops;     /* patterns of operator names; NULL: all operators */
	bool iterations;     /* also probe the ends of iterations; an error if there are none */
	bool slices;	     /* also probe the ends of iterations; no error if there are none */
	bool agent;	     /* do not probe what the agent sees */
	bool returns;	     /* the backend has return probes */
	bool needs_api;	     /* with PROBE_WORK: refuse a runtime without a C API */
	const char *runtime; /* name of the runtime; NULL: the one that is mapped */
	bool lenient;	     /* for `check`: a refused probe is no error */
	unsigned probes_max; /* limit of the backend; 0: no limit */
};

/* Collects the seen names that are nearest to the patterns, such as "conv1d, conv2d". Zero-initialise it. */
struct plan_near {
	const char *patterns;
	struct {
		unsigned distance;
		char name[64];
	} best[4];
	unsigned n;
	size_t seen;
};

/* With opts.agent: where the agent sees memory. */
struct plan_agent_memory {
	uint64_t hooked[MXBPF_AGENT_HOOK_KINDS]; /* for struct mxbpf_agent_config: addresses in the process */
	struct mxbpf_agent_hook hooks[MXBPF_AGENT_HOOKS];
	unsigned nhooks;
	bool works;	/* for the rows with by_agent_memory */
	struct err why; /* why it does not work; code 0: it works, or nobody looked */
	/* Why probes see the reports of a library; code 0: there is no such library. */
	struct err unhooked;
};

struct plan {
	const struct adp *adp;
	struct tgt_lib *lib;	       /* the runtime's library; borrowed from the target */
	const struct adp *beside;      /* another runtime that the process has mapped; NULL: none */
	struct tgt_lib *omp_unseen;    /* with PROBE_OMP: a library whose teams have no probes; borrowed, NULL: none */
	const char *version;	       /* "1.9.1"; NULL: unknown build */
	const struct adp_array *array; /* layout of its arrays; NULL: unknown */
	struct plan_probe *probes;     /* owned, one per row of the adapter */
	uint32_t first_func;	       /* number of funcs[0] */
	size_t nprobes;
	struct buf sites;   /* of struct plan_site: every probe to attach, ends before entries */
	struct buf names;   /* of struct plan_name, each text once */
	struct buf funcs;   /* of uint64_t: name ids by number of the function; 0: the plan gives no name */
	struct buf args;    /* of struct mxbpf_func_args, by number of the function */
	struct buf callers; /* of struct plan_caller: for rows with by_caller */
	uint64_t hidden[MXBPF_HIDDEN_MAX];	  /* name ids; 0: end */
	uint64_t lenders[MXBPF_LENDERS_MAX];	  /* name ids; 0: end */
	struct mxbpf_row *rows;			  /* owned: the rows of the probes, adapted to the target */
	struct mxbpf_row *iteration_ends;	  /* owned: the rows for functions that also end an iteration */
	struct mxbpf_row *endless;		  /* owned: the rows for functions without a cut */
	struct mxbpf_target target;		  /* addresses in this process, for BPF */
	struct tgt_lib *images[MXBPF_IMAGES_MAX]; /* libraries with named objects; borrowed, NULL: none */
	unsigned details;			  /* enum mxbpf_detail: details that its spans can have */
	int32_t number_off,
		of_thread_off; /* with opts.agent, unless no_seq is set: offsets in the object that identifies a call */
	unsigned napi;	       /* with PROBE_WORK: functions of the runtime's C API */
	struct err no_seq, no_args; /* why they are refused; code 0: they work, or the runtime has none */
	uint32_t tensor_keys_off, tensor_storage_off; /* for MXBPF_DETAIL_ARGS; tensor_storage_off 0: unknown */
	/* With opts.agent, for MXBPF_DETAIL_ARGS: see struct mxbpf_agent_details. */
	uint32_t inputs_off;
	struct layout_list list;
	uint64_t mark_vtables[MXBPF_MARK_CLASSES]; /* vtables of TASK, FRAME and EVENT, in the file; 0: unknown */
	unsigned nargless; /* functions with a schema that mxbpf cannot parse: their spans have no arguments */
	struct plan_agent_memory agent_memory;
	struct plan_opts opts; /* opts.ops is borrowed */
	struct plan_near near; /* names that opts.ops excludes */
	struct known *known;   /* only during planning: results of earlier plans; NULL: none */
	char known_said[96];   /* for users: whether these were used; "": there was nothing to look for */
};

/*
 * Makes a plan for a process. Returns ERR_TARGET if no library of a runtime is mapped (the message names those it
 * looked for) or if a required probe of a requested group is refused. Returns ERR_USAGE if a group lacks the group that
 * it needs, or if the runtime does not have a group that the user named.
 */
int plan_make(struct tgt *t, const struct plan_opts *o, struct plan *out, struct err *e);

/* Compares the build-ids of two libraries. If these are unknown, it compares the files. */
bool plan_same_build(const struct tgt_lib *a, const struct tgt_lib *b);

/* Fills in where the agent sees memory in a process that fits the plan. m->why says if it cannot. */
void plan_agent_entries(const struct plan *p, struct tgt *t, struct plan_agent_memory *m);

/*
 * Checks that a plan fits another process, which must have the same files mapped. Sets out to the addresses in that
 * process. Returns 0 or -ENOENT.
 */
int plan_fits(const struct plan *p, struct tgt *t, struct mxbpf_target *out);

#define PLAN_PATTERN_BYTES_MAX 256 /* includes the NUL */

/*
 * Returns true if a name, or its part after the last "::" or ": ", matches one of the comma-separated shell patterns.
 * Case matters.
 */
bool plan_ops_match(const char *patterns, const char *name);
void plan_near_try(struct plan_near *n, const char *name);
const char *plan_near_text(const struct plan_near *n, char buf[300]);

/* With PROBE_OMP, returns the probe that stands for parallel regions of OpenMP. Otherwise returns NULL. */
const struct plan_probe *plan_teams(const struct plan *p);
/* Says why a probe is off, refused or limited; "" if it is none of these. Borrowed from the probe or buf. */
#define PLAN_WHY_BYTES 320
const char *plan_why(const struct plan_probe *p, char buf[PLAN_WHY_BYTES]);
/*
 * Returns the number of operator functions that match plan_opts.ops, and in *left the number of those that do not.
 * Counts only operators with a known name.
 */
unsigned plan_ops_matched(const struct plan *p, unsigned *left);
/*
 * With PROBE_WORK, returns the number of probed functions of the C API, and in *left the number of the others.
 * Otherwise both are 0.
 */
unsigned plan_api_probed(const struct plan *p, unsigned *left);

/*
 * Gives the plan the rows and function numbers of another plan for the same build, whose process has other libraries
 * mapped. Returns 0, or -ENOTSUP if the plans differ in more than that.
 */
int plan_like(struct plan *p, const struct plan *other);
/*
 * Makes a plan for one library of a probe with each_lib. It has the rows of p, and numbers its functions from
 * first_func on. Returns 0, -ENOENT if the library has nothing to probe, or another -errno. Call plan_fini() in any
 * case.
 */
int plan_late(const struct plan *p, const struct plan_probe *probe, struct tgt *t, struct tgt_lib *lib,
	      uint32_t first_func, struct plan *out, struct err *e);
/* Returns true if the probe is for this library of the process: see each_lib, with_lib and unless_lib. */
bool plan_is_late(const struct plan_probe *probe, struct tgt *t, const struct tgt_lib *lib);
/* Returns the name of a function in the tables, or the name of the probe. */
const char *plan_func_name(const struct plan *p, const struct plan_probe *probe, uint32_t func);
/* Returns true if the probe stays where detail is recorded in slices: see adp_probe.always. */
bool plan_is_always(const struct plan *p, const struct plan_site *s);
/* Returns the name id of the function of a site. 0: it has none, or the plan gives it no name. */
uint64_t plan_func_id(const struct plan *p, const struct plan_site *s);
/*
 * guard.c: sets guards[] by the number of the site, to the address of a byte in the process that is 0 as long as nobody
 * has called the function; 0: nothing tells. t: a process with the libraries of the plan. Returns 0 or -errno.
 */
int plan_guards(const struct plan *p, struct tgt *t, uint64_t *guards);
/* Sets set[] for those of n guards whose bytes are not 0 now. Returns 0, -E2BIG if they are too far apart, or -errno.
 */
int plan_guards_read(struct tgt *t, const uint64_t *guards, size_t n, bool *set);
/* Reads the state (`runs` and `paused`) of the runtime's own profiler. Returns 0, or -errno with e set. */
int plan_app_state(const struct plan *p, struct tgt *t, struct mxbpf_app *out, struct err *e);
/* Returns the version of a library whose build-id was read by tgt_lib_elf(), or NULL for an unknown build. */
const char *plan_version(const struct adp *a, const struct tgt_lib *lib);
/*
 * Checks that the process runs the code in the library's file. A packed library unpacks itself into anonymous memory,
 * where no probe can be attached. `agent` leaves out functions that the agent sees. Returns 0 or -ENOTSUP.
 */
int plan_check_packed(struct tgt *t, const struct adp *a, struct tgt_lib *lib, bool agent, struct err *e);
/*
 * Returns the mask of groups that a runtime has. Without known_build, it has only those that work on an unknown build.
 */
unsigned plan_groups_of(const struct adp *a, bool known_build);
/*
 * Returns the mask of groups that work, for a plan made leniently with all groups: at least one probe of each is there,
 * and no probe that it requires is refused.
 */
unsigned plan_groups_left(const struct plan *p);
/* Returns true if mxbpf can read structure offsets of unknown builds from their code. */
bool plan_calibrates(const struct adp *a);
/*
 * Returns the id of a name, as BPF hashes it. plan_text_id() is for a text of len bytes that BPF reads with `tag` (0
 * for most names).
 */
uint64_t plan_hash(const char *name);
uint64_t plan_text_id(unsigned tag, const char *text, size_t len);
/* Returns the name of a NAMED_COOKIE span, or NULL if the plan does not have this id. */
const char *plan_span_name(const struct plan *p, uint64_t id);
void plan_fini(struct plan *p);

/*
 * Finds the instruction at a function's entry where a probe may go, and its file offset. Returns 0, or -errno with e
 * set.
 */
int plan_place(struct elf *elf, const struct elf_sym *sym, struct insn_entry *entry, uint64_t *off, struct err *e);

#endif
