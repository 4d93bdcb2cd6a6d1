/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a plan: what an adapter writes down as const tables, and what planning makes of it. */
#ifndef PLAN_PROBE_H
#define PLAN_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "insn/caller.h"
#include "mxbpf_config.h"
#include "mxbpf_event.h"

#define PROBE_SYMBOLS_MAX 3

/* Groups of --probes, in the order of --help. */
enum probe_group {
	PROBE_OP = 1 << 0,
	PROBE_API = 1 << 1,
	PROBE_MEM = 1 << 2,
	PROBE_WAIT = 1 << 3,
	PROBE_INSIDE = 1 << 4, /* operators inside bulks and segments */
	PROBE_CUSTOM = 1 << 5, /* operators written in the program's language */
	PROBE_MARK = 1 << 6,   /* the program's own marks, and what it says to the built-in profiler */
	PROBE_DATA = 1 << 7,   /* the next batch of data */
	PROBE_KV = 1 << 8,     /* parameters to and from other devices and hosts */
	PROBE_LINK = 1 << 9,   /* arrows; only when a trace or recording is written */
	PROBE_WORK = 1 << 10,  /* instead of PROBE_API: only the calls that do work */
	PROBE_ITER = 1 << 11,  /* ends of iterations, where no other group probes them */
	PROBE_OMP = 1 << 12,   /* parallel regions of OpenMP's */
	PROBE_STEP = 1 << 13,  /* what iterations are told by */
	PROBE_LIFE = 1 << 14,  /* operators from being pushed to being started; whom the program waits for */
	PROBE_POOL = 1 << 15,  /* what holds memory: pools, scopes */
};

/* A member function of a family and the operator that it calls. */
struct adp_member {
	const char *function, *name; /* NULL: end of table */
};

/*
 * Functions that share a row: all whose mangled names are prefix, and if method is set prefix <length><name> method.
 * With schema set, <name> is that of a constant string "base.overload(" or "base(" of the library with '.' written '_',
 * and the span's name is schema + base; with members set as well, only these and as the table says, less those that
 * merely hand over to another. Or those in a list, as far as they exist, whose spans are named as they are.
 * With calls set and a prefix, they are not probed themselves, but where they all come by: the entry of the function of
 * that name; who came is told by the return address (row.by_caller). Without a prefix, for libraries that do not name
 * them: all without a name that call that function and are of the shape.
 * With members alone those functions, as far as they exist, whose spans are named as the table says.
 */
struct adp_family {
	const char *prefix; /* NULL: no family, a list, or calls */
	const char *method; /* "4callE" */
	const char *schema; /* "aten::" */
	const struct adp_member *members;
	const char *const *list; /* ends with NULL */
	const char *calls;	 /* exported by the same library */
	struct caller_shape shape;
};

/* Parallel regions of threads, in every library of such a name. `opens` is a function that opens one, does its part and
 * leaves, `ends` one that leaves. */
struct adp_team {
	const char *lib_globs[4]; /* basenames; ends with NULL */
	const char *opens, *ends;
	const char *forks, *invokes; /* as in struct fork_names; NULL: found by the shape of a pool's threads */
};

/* Where a function without a name lies in a build: its address in the file, which begins an entry of the unwind table.
 */
struct adp_place {
	const char *version; /* NULL: end of table */
	uint64_t va;
};

/* How a function is found that the library does not name; the first that is set. Without any: not at all. */
struct adp_hidden {
	const char *class_name; /* its place in the virtual table of a class, by that's name in its type_info */
	unsigned slot;
	const char *text;     /* the one function that refers to this text */
	const char *taken_by; /* the one whose address is taken by the function of this row, which stands before */
	const struct adp_place *places; /* known builds */
};

/* What a row is in a build whose structures are others. */
struct adp_layout {
	const char *version; /* of adp.builds; NULL: end of table */
	struct mxbpf_row row;
	const char *bulk; /* row.bulk_id; NULL: 0 */
};

/* Which code shows the offsets of a row in builds that are not known: see plan/calibrate.c. */
enum adp_shown {
	ADP_SHOWN_NOT = 0,	   /* none */
	ADP_SHOWN_BLOCK = 1,	   /* that of the function, which is handed a block with an operator */
	ADP_SHOWN_HANDLE = 2,	   /* likewise, the address of an allocation's handle */
	ADP_SHOWN_HANDLE_COPY = 3, /* a copy of it */
};

/* One row of an adapter: a function of the runtime, or a family of them, and what a hit means. */
struct adp_probe {
	const char *name; /* "operator.start": in reports, check and JSON */
	enum probe_group group;
	unsigned needs;	      /* its spans end with those of one of these groups; 0 none */
	unsigned pair_inside; /* where one of these groups is probed, its spans end with the first that opens in them */
	bool by_agent;	      /* where there is an agent, that sees these calls */
	bool optional;	      /* may be missing; otherwise the group is refused without it */
	const char *ends;     /* name of a row before it: refused with that, whose spans it ends */
	const char *instead_of; /* name of a row before it: used only where that one is refused */
	const char *lib_glob;	/* basename of its library; NULL: the runtime's */
	const char *each_lib;	/* instead: every library of such a path, whenever it is mapped; its spans are named
				 * span_name and the first part of the file's name */
	const char *const *versions; /* its offsets hold in these alone, of adp.builds; ends with NULL. NULL: in all */
	const struct adp_layout *layouts; /* and in these the row is another */
	enum adp_shown shown;		  /* its offsets, if its build is not known */
	bool any_build; /* its recipes follow the C++ ABI, not a layout of this build; alt_name may: see alt_readers */
	const char *symbols[PROBE_SYMBOLS_MAX]; /* alternatives, first that exists */
	struct adp_hidden hidden;		/* if there is none of them */
	struct adp_family family;		/* instead of symbols */
	const struct adp_team *teams;		/* likewise; ends with one without a library */
	const char *alt_lib_glob, *alt_vtable;	/* NAMED_OBJECT: objects of this vtable are named by row.alt_name */
	/* Their methods that read the name as alt_name does, which say where it is; without, it is as in known builds.
	 */
	const char *alt_readers[PROBE_SYMBOLS_MAX];
	const char *only;      /* calls of this name alone, by row.name; the span's is row.alt_name */
	const char *iteration; /* a call whose name begins so ends an iteration; "*" all; NULL none */
	/* Which C++ argument is the address of a vector of tensors, or of boxed values, whose layout is the build's; 0:
	 * none, the schema says what there is. */
	uint8_t tensors_arg, values_arg;
	const char *span_name; /* NAMED_COOKIE: the span's name. NAMED_OBJECT: before the class's */
	struct mxbpf_row row;
};

/* A type of the runtime's schemas, and how the ABI passes it: by registers if there are enough, else on the stack. */
struct adp_type {
	const char *base, *suffix; /* "int", "[]?"; "[N]": of a fixed number, which is "[]" where no row says so */
	uint8_t kind;		   /* enum mxbpf_arg_kind */
	uint8_t gp, fp;		   /* registers of each kind */
	uint8_t stack;		   /* words; never in registers */
	uint8_t opt, opt_off;	   /* as in struct mxbpf_arg, from its beginning, which fp registers come first in */
};

/* MXBPF_DETAIL_ARGS. */
struct adp_args {
	const struct adp_type *types; /* ends with base == NULL */
	const char *const *dtypes;    /* names of element types by number */
	unsigned ndtypes;
	const char *keys_symbol;			   /* function that joins the key sets of two tensors */
	const char *undefined_lib_glob, *undefined_symbol; /* the tensor that stands for none */
	/* Known layouts by the offset of the key set: where the storage is. Others: every tensor counts as having
	 * strides. */
	const struct adp_storage {
		uint32_t keys_off, storage_off;
	} * storages; /* ends with 0 */
};

/* A device type of the runtime and how it is written. */
struct adp_device {
	uint16_t type;
	const char *name;
	bool numbered; /* "cpu/0" or "cpu pinned/" */
};

/* How many dimensions of an array lie in the array itself, at most 8, and its bytes. */
struct adp_array {
	const char *version; /* that begins so; NULL: end of table */
	uint8_t dims_here;
	uint16_t bytes;
};

/* What a process is in a distributed job. */
struct adp_role {
	const char *role;		  /* NULL: end of table */
	const char *rank_env, *count_env; /* which of them, of how many; NULL: there is one */
};

/* Builds for which the offsets in the rows were verified. */
struct adp_build {
	const char *build_id; /* hex */
	const char *version;  /* "1.9.1" */
};

/* MXBPF_DETAIL_SEQ: functions whose code reads a thread's next number, and its own. Offsets of a node in rows with seq
 * and seq_thread are taken from the code of the function that opens a MXBPF_SPAN_BACKWARD. */
struct adp_seq {
	const char *next_symbol, *thread_symbol;
};

/* The program's own marks, and the profiler that the runtime itself has. */
struct adp_marks {
	const char *classes[MXBPF_MARK_CLASSES]; /* of objects of TASK, FRAME, EVENT, as in their type_info */
	const char *profiler;	   /* function whose result is its object, from a variable of the library */
	const char *autostart_env; /* set in the environment: it records from when it is made */
	const char *set_state;	   /* its method that is told whether to record; what pauses is a byte of its own */
};

#define ADP_AGENT_CLEARS  2
#define ADP_AGENT_BEFORES 2

/* What the agent inside a process needs of the runtime's library; entry NULL: there is no agent for it. */
struct adp_agent {
	const char *entry; /* every operator call enters it, and no lock of an allocator or a loader is held there */
	const char *add_callback, *remove_callback, *name;
	/* Functions whose code says where a call has its number: they make such an object, and hand it the number. Of
	 * the latter builds have one or another. */
	const char *constructor, *before[ADP_AGENT_BEFORES];
	const char *clear[ADP_AGENT_CLEARS]; /* functions that take out all callbacks, the agent's too; or NULL */
};

struct adp {
	const char *name;     /* "mxnet" */
	const char *title;    /* "MXNet" */
	const char *lib_glob; /* basename of the library that carries the runtime */
	const struct adp_probe *probes;
	unsigned nprobes;
	const struct adp_device *devices;
	unsigned ndevices;
	const struct adp_build *builds; /* known; another build's rows with offsets are refused */
	unsigned nbuilds;
	const char *class_title[MXBPF_CLASS_MAX]; /* table titles; NULL: no such class */
	const char *mem_title;
	const char *iteration_title;	       /* what ends one: "the step of an optimizer" */
	const char *trace_form;		       /* of its timelines (view/registry.c); NULL: the general one */
	struct adp_seq seq;		       /* of the runtime's library */
	struct adp_args args;		       /* likewise */
	struct adp_marks marks;		       /* likewise */
	const char *rank_env, *world_size_env; /* a process's place in a distributed job; NULL: none */
	const struct adp_array *arrays;	       /* of rows with kv or outputs_off; NULL: none are known */
	const char *role_env;		       /* NULL: all are the same */
	const struct adp_role *roles;
	const char *job_backend;   /* what such a job communicates by; NULL: many things */
	const char *const *hidden; /* names of calls that the runtime's own profiler leaves out; NULL-terminated */
	/* Operators that allocate for the one that calls them, whose the memory is; NULL-terminated */
	const char *const *lenders;
	const char *object_scope; /* NAMED_OBJECT: this scope is left out of the names of classes; NULL none */
	struct adp_agent agent;
};

#endif
