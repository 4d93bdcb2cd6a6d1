/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the adapters' constant tables, from which plans are made. */
#ifndef PLAN_PROBE_H
#define PLAN_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "insn/caller.h"
#include "insn/members.h"
#include "mxbpf_config.h"
#include "mxbpf_event.h"

#define PROBE_SYMBOLS_MAX 3

/* The groups of --probes, in the order of --help. */
enum probe_group {
	PROBE_OP = 1 << 0,
	PROBE_API = 1 << 1,
	PROBE_MEM = 1 << 2,
	PROBE_WAIT = 1 << 3,
	PROBE_INSIDE = 1 << 4,	/* operators inside bulks and segments */
	PROBE_CUSTOM = 1 << 5,	/* operators written in the program's language */
	PROBE_MARK = 1 << 6,	/* user annotations, and the program's calls of the built-in profiler */
	PROBE_DATA = 1 << 7,	/* fetching the next batch of data */
	PROBE_KV = 1 << 8,	/* parameters sent to or received from other devices and hosts */
	PROBE_CUDA = 1 << 9,	/* calls of CUDA's libraries */
	PROBE_LINK = 1 << 10,	/* arrows; only for a trace or a recording */
	PROBE_WORK = 1 << 11,	/* instead of PROBE_API: only the calls that do work */
	PROBE_ITER = 1 << 12,	/* ends of iterations that no other group probes */
	PROBE_OMP = 1 << 13,	/* parallel regions of OpenMP */
	PROBE_STEP = 1 << 14,	/* calls that make iterations */
	PROBE_LIFE = 1 << 15,	/* operators from push to start, and waits of the program for them */
	PROBE_POOL = 1 << 16,	/* owners of memory: pools, scopes */
	PROBE_OUTPUT = 1 << 17, /* arrays that pushed operators write, for the Python stacks of owners of memory */
	PROBE_LAUNCH = 1 << 18, /* instead of PROBE_CUDA: only count launches */
};

/* A member function of a family and the operator that it calls. */
struct adp_member {
	const char *function, *name; /* NULL: end of table */
};

/*
 * Functions that share a row. There are five ways to name them:
 *  - prefix, with or without method: all functions whose mangled names are prefix, or prefix <length><name> method.
 *    Without method and span_name, the prefix is the begin of their names, which their spans have, too.
 *  - With schema also set, <name> is that of a constant string "base.overload(" or "base(" of the library with '.'
 *    written as '_', and the span's name is schema + base. With members also set, only these functions count and the
 *    table names them; functions that only call another one are left out.
 *  - list: those of its functions that exist. Their spans have the names in the list.
 *  - members alone: those of its functions that exist. The table names their spans.
 *  - calls: with a prefix, the probe goes to the entry of the function `calls`, through which all these functions pass,
 *    and the return address tells which one it was (row.by_caller). Without a prefix, for libraries without these
 * names, all functions without a name that call that function and have the given shape.
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

/*
 * Parallel regions of OpenMP in each library with such a name. `opens` is a function that opens a region, runs its part
 * of it and leaves it. `ends` is one that leaves it.
 */
struct adp_team {
	const char *lib_globs[4]; /* basenames; ends with NULL */
	const char *opens, *ends;
	const char *forks, *invokes; /* as in struct fork_names; NULL: found by the shape of a pool */
};

/*
 * The place of a function without a name in a build: its address in the file, where an entry of the unwind table
 * begins.
 */
struct adp_place {
	const char *version; /* NULL: end of table */
	uint64_t va;
};

/* Ways to find a function that the library does not name. The first that is set is used. */
struct adp_hidden {
	const char *class_name; /* mangled name of a class; `slot` is a place in its virtual table */
	unsigned slot;
	const char *text;		/* text that only this function refers to */
	const char *taken_by;		/* an earlier row: the function of that row takes the address of this one */
	const struct adp_place *places; /* known builds */
};

/* The row for builds with other structures. */
struct adp_layout {
	const char *version; /* one of adp.builds; NULL: end of table */
	struct mxbpf_row row;
	const char *bulk; /* the text of row.bulk_id; NULL: 0 */
};

/* The code that shows the structure offsets of a row in unknown builds; see plan/calibrate.c. */
enum adp_shown {
	ADP_SHOWN_NOT = 0,	   /* no such code */
	ADP_SHOWN_BLOCK = 1,	   /* the function itself, whose argument is a block with an operator */
	ADP_SHOWN_HANDLE = 2,	   /* the function itself, whose argument is the address of an allocation's handle */
	ADP_SHOWN_HANDLE_COPY = 3, /* the function itself, whose argument is a copy of the handle */
};

/* One row of an adapter: a function of the runtime, or a family of functions, and the meaning of a hit. */
struct adp_probe {
	const char *name; /* "operator.start"; in reports, `check` and JSON */
	enum probe_group group;
	unsigned needs;	      /* spans end with those of one of these groups; 0: none */
	unsigned pair_inside; /* if one of these groups is probed, spans end with its first span in them */
	bool by_agent;	      /* the agent, if there is one, sees these calls */
	bool by_agent_memory; /* the agent sees them if plan.agent_memory works */
	/*
	 * The calls cost little and say much: iterations, waits, exchanges. They are recorded even where detail is
	 * recorded in slices. Ends with NULL: functions; "*": all of the row. NULL: none.
	 */
	const char *const *always;
	bool ended;		/* functions of the family whose end cannot be probed are left out */
	bool optional;		/* may be missing; a missing required row refuses the group */
	bool expendable;	/* left out first if few probes can be attached */
	const char *ends;	/* name of an earlier row whose spans this row ends; refused together with it */
	const char *instead_of; /* name of an earlier row; this row is used only if that one is refused */
	const char *lib_glob;	/* basename of its library; NULL: that of the runtime */
	const char *each_lib;	/* or every library with such a path, even later; its name is added to span_name */
	/* With each_lib: only, or not, in a process that has mapped a library with such a basename. */
	const char *with_lib, *unless_lib;
	bool beside; /* with each_lib: a library is probed by this row as well as by others of the group */
	/*
	 * With each_lib: functions of a C API that call nothing of the program. If the library shows no trace of
	 * exceptions, a return probe ends their spans.
	 */
	bool returns;
	const char *const *versions;	  /* those of adp.builds where its offsets hold; ends with NULL. NULL: all */
	const struct adp_layout *layouts; /* builds where the row is another */
	enum adp_shown shown;		  /* how to find the offsets in an unknown build */
	bool any_build; /* its recipes follow the C++ ABI, not a layout of one build; alt_name may: see alt_readers */
	const char *symbols[PROBE_SYMBOLS_MAX]; /* alternatives; the first that exists counts */
	struct adp_hidden hidden;		/* used if none of the symbols exists */
	struct adp_family family;		/* used instead of symbols */
	const struct adp_team *teams;		/* used instead of symbols; ends with one without a library */
	const char *alt_lib_glob, *alt_vtable;	/* NAMED_OBJECT: objects with this vtable are named by row.alt_name */
	/*
	 * Methods of these objects that read the name as alt_name does; their code shows its place. NULL: the place in
	 * known builds.
	 */
	const char *alt_readers[PROBE_SYMBOLS_MAX];
	const char *only;      /* only calls with this name, by row.name; the span's name is row.alt_name */
	const char *iteration; /* calls whose name starts so end an iteration; "*": all; NULL: none */
	/*
	 * Number of the C++ argument that is the address of a vector of tensors, or of boxed values, in the layout of
	 * the build. 0: none; the schema describes the arguments.
	 */
	uint8_t tensors_arg, values_arg;
	uint8_t tensors_opt; /* offset of the byte that says whether the vector of tensors_arg is set; 0: always set */
	const char *title;   /* with each_lib: of the table, if the runtime has no title for the class */
	const char *span_name; /* NAMED_COOKIE: the span's name. NAMED_OBJECT: prefix of the class's name */
	struct mxbpf_row row;
};

/* A type in the runtime's schemas and how the ABI passes it: in registers if there are enough, else on the stack. */
struct adp_type {
	const char *base, *suffix; /* "int", "[]?"; "[N]": N items, which is "[]" without a row of its own */
	uint8_t kind;		   /* enum mxbpf_arg_kind */
	uint8_t gp, fp;		   /* number of registers of each kind */
	uint8_t stack;		   /* number of words that are always passed on the stack */
	uint8_t opt, opt_off;	   /* as in struct mxbpf_arg, from its start; values of fp registers come first there */
};

/* Tables for MXBPF_DETAIL_ARGS. */
struct adp_args {
	const struct adp_type *types; /* ends with base == NULL */
	const char *const *dtypes;    /* names of element types by number */
	unsigned ndtypes;
	const char *keys_symbol;			   /* function that joins the key sets of two tensors */
	const char *undefined_lib_glob, *undefined_symbol; /* the tensor that stands for no tensor */
	/*
	 * The place of the storage in known layouts, by the offset of the key set. In other layouts every tensor counts
	 * as having strides.
	 */
	const struct adp_storage {
		uint32_t keys_off, storage_off;
	} * storages; /* ends with 0 */
};

/* A device type of the runtime and its written form. */
struct adp_device {
	uint16_t type;
	const char *name;
	bool numbered; /* true: "cpu/0"; false: "cpu pinned/" */
};

/* How many dimensions of an array (at most 8) are in the array object itself, and the size of the object. */
struct adp_array {
	const char *version; /* version prefix; NULL: end of table */
	uint8_t dims_here;
	uint16_t bytes;
};

/* The role of a process in a distributed job. */
struct adp_role {
	const char *role;		  /* NULL: end of table */
	const char *rank_env, *count_env; /* variables with its rank and the number of them; NULL: one */
};

/* A build for which the offsets in the rows were verified. */
struct adp_build {
	const char *build_id; /* hex */
	const char *version;  /* "1.9.1" */
};

/*
 * For MXBPF_DETAIL_SEQ: functions whose code reads the next sequence number of a thread, and the thread's own number.
 * The offsets of an autograd node, for rows with seq and seq_thread, come from the code of the function that opens
 * MXBPF_SPAN_BACKWARD.
 */
struct adp_seq {
	const char *next_symbol, *thread_symbol;
};

/* User annotations, and the runtime's own profiler. */
struct adp_marks {
	const char *classes[MXBPF_MARK_CLASSES]; /* classes of TASK, FRAME and EVENT objects, as in their type_info */
	const char *profiler;	   /* function that returns the profiler object from a variable of the library */
	const char *autostart_env; /* if this environment variable is set, the profiler records from its creation on */
	const char *set_state;	   /* method that turns recording on and off */
};

#define ADP_AGENT_CLEARS  2
#define ADP_AGENT_BEFORES 2
#define ADP_AGENT_INPUTS  2
#define ADP_AGENT_ENTRIES 2

#define ADP_MEET_ENVS	  2
#define ADP_AGENT_REPORTS 2

/* What the agent inside a process needs of the runtime's library. No entries: the runtime has no agent. */
struct adp_agent {
	/* Operator calls enter it, without any lock of the allocator or the loader; the first that exists counts. */
	const char *entries[ADP_AGENT_ENTRIES];
	/* To record operators; NULL: only the GPU. */
	const char *add_callback, *remove_callback, *name;
	const char *step_callbacks; /* reads the changed list of callbacks; may be missing */
	/*
	 * Functions whose code shows where a call has its number: they construct such an object and pass it the number.
	 * A build has one of `before`.
	 */
	const char *constructor, *before[ADP_AGENT_BEFORES];
	/*
	 * To record arguments: functions whose code shows where a call has its arguments (a build has one of them), and
	 * what a list is.
	 */
	const char *inputs[ADP_AGENT_INPUTS], *list;
	/*
	 * To record memory: a library, and functions that it calls through its import table; NULL: it cannot. Then a
	 * function of it that allocators in other libraries call, by its names.
	 */
	const char *memory_lib, *alloc, *free;
	const char *report[ADP_AGENT_REPORTS];
	const char *clear[ADP_AGENT_CLEARS]; /* functions that remove all callbacks, including the agent's; or NULL */
};

#define ADP_COLLECTIVE_NUMBERS 3

/*
 * Members of a process group, from QUEUE_NUMBER on those of a work in its queue, and from QUEUE_RECORDED on those of a
 * recorder that is among the group's hooks. Tables and trees are those of libstdc++.
 */
enum adp_queue_member {
	QUEUE_AT,	/* the queue */
	QUEUE_RANK,	/* the process's rank, and behind it the number of ranks */
	QUEUE_NAME,	/* name of the group */
	QUEUE_NUMBER,	/* number of the work in its group */
	QUEUE_SINCE,	/* when it was called, by CLOCK_MONOTONIC */
	QUEUE_STATUS,	/* 32 bits */
	QUEUE_OP,	/* a byte: its operation */
	QUEUE_KEY,	/* what the recorder calls the work */
	QUEUE_HOOKS,	/* in the group: number of entries of the table of hooks */
	QUEUE_RECORDED, /* number of entries of the table that has the recorder's own number for a key */
	QUEUE_CALLS,	/* tree of calls by this number */
	QUEUE_CALL_OP,	/* in a node of the tree: a byte, the operation */
	QUEUE_MEMBERS,
};
#define QUEUE_FOR_OP QUEUE_OP /* from here on: members that say the operation, and nothing else */

/* Where a member is: a function's code says it. */
struct adp_member_at {
	const char *symbol; /* NULL: there is no such member */
	const char *lib_glob;
	enum members_how how;
	const char *of;
};

/*
 * A process group that keeps its works in a queue, from the call until a thread of its own has seen that the GPU has
 * done them. That thread sleeps in `function`, and has a pointer to the group, or to an object with one, on its stack.
 */
struct adp_queue {
	const char *function;	 /* part of its name */
	const char *group, *via; /* mangled names of the classes; via NULL: the group itself is on the stack */
	const char *work;	 /* the class of a work, or of the block of a shared pointer to it, begins like this */
	bool streams;		 /* a queue for each stream in a hash table (libstdc++); otherwise a list of works */
	uint32_t done;		 /* QUEUE_STATUS from this on: it has ended */
	const char *recorder;	 /* the class of the block of a shared pointer to it begins like this */
	const char *const *ops;	 /* names of operations by number; NULL-terminated; "": none that is known */
	struct adp_member_at at[QUEUE_MEMBERS];
};

/*
 * How `now` finds the collective in which a rank waits: a thread that executes it or waits for it has a pointer to an
 * object on its stack, whose class says what it is. No entries: the runtime has no collectives.
 */
struct adp_collective {
	const char *const *functions;  /* such a thread has one of them on its stack; parts of names; NULL-terminated */
	const char *scope, *word;      /* the mangled name of the class begins with `scope` and contains `word` */
	const char *const (*names)[2]; /* part of the name of the class, and name of the collective; NULL-terminated */
	/* Virtual functions that return the member with its number in the group. */
	const char *numbers[ADP_COLLECTIVE_NUMBERS];
	/* The object points to one whose class begins with `group_scope` and contains `group_word`: rank, then size. */
	const char *group_scope, *group_word;
	unsigned rank_off;
	const struct adp_queue *queues; /* the last one has no function; NULL: none */
};

struct adp {
	const char *name;     /* its name in options, in lower case */
	const char *title;    /* its name in text */
	const char *lib_glob; /* basename of the runtime's library */
	const struct adp_probe *probes;
	unsigned nprobes;
	const struct adp_device *devices;
	unsigned ndevices;
	const struct adp_build *builds; /* known builds; in other builds, rows with offsets are refused */
	unsigned nbuilds;
	const char *class_title[MXBPF_CLASS_MAX]; /* table titles; NULL: no such class */
	const char *mem_title;
	const char *c_api;	     /* beginning of the names of the functions of its C API; NULL: it has none */
	const char *iteration_title; /* what ends an iteration, such as "the step of an optimizer" */
	const char *trace_form;	     /* form of its timelines (view/registry.c); NULL: the general form */
	struct adp_seq seq;	     /* in the runtime's library */
	struct adp_args args;	     /* in the runtime's library */
	struct adp_marks marks;	     /* in the runtime's library */
	const char *rank_env, *world_size_env; /* rank in a distributed job, and its size; NULL: none */
	const char *meet_env[ADP_MEET_ENVS];   /* where the ranks of a job meet: all have the same; NULL: none */
	const struct adp_array *arrays;	       /* for rows with kv or outputs_off; NULL: layout unknown */
	const char *role_env; /* variable with the role of the process; NULL: all processes have the same role */
	const struct adp_role *roles;
	const char *job_backend; /* library by which the processes of such a job communicate; NULL: there are several */
	const char *const *hidden; /* names of calls that the runtime's own profiler does not record; NULL-terminated */
	/* Operators that allocate on behalf of their caller, who owns the memory; NULL-terminated */
	const char *const *lenders;
	const char *object_scope; /* NAMED_OBJECT: this scope is removed from names of classes; NULL: none */
	const char *call_end;	  /* function at the end of calls that never throws and does no work; NULL: none */
	const char *module_file;  /* Python file whose frames are between a module's call and its work; NULL: none */
	struct adp_agent agent;
	struct adp_collective collective;
};

#endif
