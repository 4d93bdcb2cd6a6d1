/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters x target x ELF -> resolved probes, each with the reason if it is refused. Touches nothing. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "insn/insn.h"
#include "plan/probe.h"
#include "target/target.h"

/* The words of --probes; ends with name == NULL. */
struct plan_group {
	const char *name;
	enum probe_group group;
	const char *help; /* NULL: not to be asked for by name */
};
extern const struct plan_group plan_groups[];
const char *plan_group_name(enum probe_group g);

/* A row of the adapter and what became of it. */
struct plan_probe {
	const struct adp_probe *row;
	struct tgt_lib *lib; /* borrowed; NULL if it is not mapped */
	const char *symbol;  /* the alternative that exists, or the family's prefix; NULL if none */
	bool hidden;	     /* it has no name in the library: symbol is the first alternative */
	uint64_t off;	     /* of the entry (of a family the first one); meaningful while !reason[0] */
	struct insn_entry entry;
	unsigned nfuncs;      /* functions that are probed: 1, or the family's */
	uint32_t first_func;  /* number of the first of them */
	unsigned nendless;    /* of these, functions without a cut: they end with the thread's next event */
	unsigned nleft;	      /* functions that --ops leaves out */
	bool calibrated;      /* its offsets are those that the code of this build shows */
	bool wanted;	      /* its group was asked for, and no other row does the same */
	bool spare;	      /* the row that it stands in for is there: it is not resolved */
	const char *stand_in; /* of a refused one: name of the row that does the same; NULL none */
	char reason[256];     /* why it is refused; "" if it will be attached */
};

/* A span name that the plan knows. */
struct plan_name {
	uint64_t id; /* as BPF would hash it */
	char *text;  /* owned */
};

/* One place where a probe goes. */
struct plan_site {
	const struct plan_probe *probe;
	const struct mxbpf_row *row; /* what a hit does: the probe's, or the end of its span */
	struct tgt_lib *lib;
	uint64_t off; /* file offset */
	uint64_t cookie;
};

/* A function that is told by where its call of another comes back to. */
struct plan_caller {
	uint64_t return_va;
	uint64_t cookie; /* as at a cut: function and frame address at the call */
};

/* What is wanted of a process. */
struct plan_opts {
	unsigned groups;     /* mask of enum probe_group */
	const char *ops;     /* of operators, only those whose names match these patterns; NULL: all */
	bool iterations;     /* their ends as well */
	bool agent;	     /* what the agent sees is not probed */
	const char *runtime; /* its name; NULL: whichever is mapped */
	bool lenient;	     /* for `check`: refusals stay in the rows */
	unsigned probes_max; /* what the backend can attach; 0: any number */
};

/* Of words that were seen, those nearest to the patterns: "conv1d, conv2d". Zero-initialise; text is for the caller. */
struct plan_near {
	const char *patterns;
	struct {
		unsigned distance;
		char name[64];
	} best[4];
	unsigned n;
	size_t seen;
};

struct plan {
	const struct adp *adp;
	struct tgt_lib *lib;	       /* the runtime's; borrowed from the target */
	const struct adp *beside;      /* another runtime that the process has mapped; NULL none */
	struct tgt_lib *omp_unseen;    /* with PROBE_OMP, a library whose teams are not seen; borrowed, NULL none */
	const char *version;	       /* "1.9.1"; NULL for an unknown build */
	const struct adp_array *array; /* how its arrays lie; NULL: not known */
	struct plan_probe *probes;     /* owned, one a row of the adapter */
	uint32_t first_func;	       /* number of funcs[0] */
	size_t nprobes;
	struct buf sites;   /* of struct plan_site: all that is wanted and not refused, ends before entries */
	struct buf names;   /* of struct plan_name, each text once */
	struct buf funcs;   /* of uint64_t: name ids by number of the function; 0: not named by the plan */
	struct buf args;    /* of struct mxbpf_func_args, likewise */
	struct buf callers; /* of struct plan_caller: of rows with by_caller */
	uint64_t hidden[MXBPF_HIDDEN_MAX];	  /* name ids; 0: none */
	uint64_t lenders[MXBPF_LENDERS_MAX];	  /* likewise */
	struct mxbpf_row *rows;			  /* owned: the probes' rows, made to fit the target */
	struct mxbpf_row *iteration_ends;	  /* owned: the same for functions that end an iteration as well */
	struct mxbpf_row *endless;		  /* owned: the same for functions without a cut */
	struct mxbpf_target target;		  /* what BPF must know of this process */
	struct tgt_lib *images[MXBPF_IMAGES_MAX]; /* libraries whose objects are named; borrowed, NULL none */
	unsigned details;			  /* enum mxbpf_detail: what its spans can have */
	int32_t number_off, of_thread_off;	  /* with opts.agent and without no_seq: in what a call is known by */
	struct err no_seq, no_args; /* why they are refused; code 0: they are not, or the runtime has none */
	uint32_t tensor_keys_off, tensor_storage_off; /* MXBPF_DETAIL_ARGS; the latter 0: not known */
	uint64_t mark_vtables[MXBPF_MARK_CLASSES]; /* what objects of TASK, FRAME, EVENT begin with, in the file; 0: not
						    * known
						    */
	unsigned nargless;     /* functions whose schema is not understood: their spans have no arguments */
	struct plan_opts opts; /* ops borrowed */
	struct plan_near near; /* names that ops leaves out */
};

/*
 * ERR_TARGET if no adapter's library is mapped (says what was looked for), or if a required probe of a wanted group is
 * refused; ERR_USAGE if a group lacks the one it needs, or the runtime has nothing that was asked for by name.
 */
int plan_make(struct tgt *t, const struct plan_opts *o, struct plan *out, struct err *e);

/* Of libraries whose build-ids are known; without one, the very same file. */
bool plan_same_build(const struct tgt_lib *a, const struct tgt_lib *b);

/*
 * Whether the plan is right for another process as it is: that has the very same files mapped. Then out is where things
 * lie there. 0, -ENOENT.
 */
int plan_fits(const struct plan *p, struct tgt *t, struct mxbpf_target *out);

#define PLAN_PATTERN_BYTES_MAX 256 /* with its NUL */

/*
 * Whether a name, or what stands behind its last "::" or ": ", matches one of the shell patterns in a list joined by
 * commas. Case counts.
 */
bool plan_ops_match(const char *patterns, const char *name);
void plan_near_try(struct plan_near *n, const char *name);
const char *plan_near_text(const struct plan_near *n, char buf[300]);

/* With PROBE_OMP, the probe that stands for parallel regions of OpenMP's; else NULL. */
const struct plan_probe *plan_teams(const struct plan *p);
/* Why a probe is off, refused or less than it could be; "" if it is none of these. Borrowed from the probe or buf. */
#define PLAN_WHY_BYTES 320
const char *plan_why(const struct plan_probe *p, char buf[PLAN_WHY_BYTES]);
/* Functions of operators that plan_opts.ops asks for, where names are known beforehand; *left: those that it leaves
 * out. */
unsigned plan_ops_matched(const struct plan *p, unsigned *left);

/*
 * Makes rows and numbers of functions those of another plan for the same build, whose process has other libraries
 * beside the runtime's. 0, -ENOTSUP: they differ in more than that.
 */
int plan_like(struct plan *p, const struct plan *other);
/*
 * What a probe with each_lib is in one such library: a plan of its own, with the rows of p and functions numbered from
 * first_func on. 0, -ENOENT: it has nothing to probe, else -errno. plan_fini() in any case.
 */
int plan_late(const struct plan *p, const struct plan_probe *probe, struct tgt *t, struct tgt_lib *lib,
	      uint32_t first_func, struct plan *out, struct err *e);
/* Whether a library is one of those. */
bool plan_is_late(const struct plan_probe *probe, const struct tgt_lib *lib);
/* What a function of the plan is called in the tables, or the probe's name. */
const char *plan_func_name(const struct plan *p, const struct plan_probe *probe, uint32_t func);
/* What the profiler that the runtime itself has was told last: `runs` and `paused`. 0, or -errno with e set. */
int plan_app_state(const struct plan *p, struct tgt *t, struct mxbpf_app *out, struct err *e);
/* Of a library whose build-id is known (tgt_lib_elf() has succeeded); NULL for an unknown build. */
const char *plan_version(const struct adp *a, const struct tgt_lib *lib);
/*
 * Whether what the process runs is the library's own file: one that was packed is unpacked into memory that no file is
 * behind, where nothing can be probed. agent: without the functions whose calls the agent sees. 0, -ENOTSUP.
 */
int plan_check_packed(struct tgt *t, const struct adp *a, struct tgt_lib *lib, bool agent, struct err *e);
/* Mask of the groups that a runtime has; without known_build, those that work on a build that is not known. */
unsigned plan_groups_of(const struct adp *a, bool known_build);
/* The same of a plan that was made leniently for all groups: those of which something is there, and nothing that they
 * need is refused. */
unsigned plan_groups_left(const struct plan *p);
/* Whether builds that are not known may have offsets that their code shows. */
bool plan_calibrates(const struct adp *a);
/* The id of a name, as BPF hashes it; of a text of len bytes that BPF would read with tag (0 of most names). */
uint64_t plan_hash(const char *name);
uint64_t plan_text_id(unsigned tag, const char *text, size_t len);
/* The name of a NAMED_COOKIE span; NULL if id is none of the plan. */
const char *plan_span_name(const struct plan *p, uint64_t id);
void plan_fini(struct plan *p);

/* Finds the instruction at a function's entry that may be probed, and its file offset. 0 or -errno with e set. */
int plan_place(struct elf *elf, const struct elf_sym *sym, struct insn_entry *entry, uint64_t *off, struct err *e);

#endif
