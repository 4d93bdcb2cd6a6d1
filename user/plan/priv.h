/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared inside this room: from a function to its probes, and families of functions. */
#ifndef PLAN_PRIV_H
#define PLAN_PRIV_H

#include "insn/cut.h"
#include "mxbpf_args.h"
#include "plan/plan.h"

/*
 * Opens the results of earlier plans for the runtime's library. plan_cut() and the functions below it use them and add
 * to them. Returns NULL if the library has no build-id, or without memory.
 */
struct known *known_open(const struct tgt_lib *lib, struct elf *elf);
/* Does what plan_make() does, using the results in *known, which is opened if it is NULL. */
int plan_make_by(struct known **known, struct tgt *t, const struct plan_opts *o, struct plan *out, struct err *e);

/* Does what cut_find() does. */
int plan_cut(struct plan *plan, struct elf *elf, uint64_t va, struct cut *out);
/* Does what elf_each_func() does. */
typedef int (*plan_func_fn)(void *ctx, const char *name, const struct elf_sym *sym);
int plan_each_func(struct plan *plan, struct elf *elf, const char *prefix, plan_func_fn fn, void *ctx);
/* Does what elf_each_string() does for the strings of one kind. All calls have the same `is`. */
typedef int (*plan_text_fn)(void *ctx, const char *text, size_t len);
int plan_each_text(struct plan *plan, struct elf *elf, bool (*is)(const char *text, size_t len), plan_text_fn fn,
		   void *ctx);

/* Stores why a probe is refused. Returns -ENOENT. */
int plan_refuse(struct plan_probe *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A function of a row. */
struct plan_func {
	uint64_t va, entry_off;
	const char *name;   /* name of its spans; NULL: none */
	const char *schema; /* "base.overload(Type name, ...) -> Type"; NULL: unknown */
	const char *symbol;
};

/*
 * Numbers a function and adds its probes: the entry and, for a span that ends by a cut, the cut. Copies the strings.
 * Returns 0 or -ENOMEM.
 */
int plan_add_func(struct plan *plan, struct plan_probe *p, struct elf *elf, const struct plan_func *f);

/*
 * Returns where a function with this schema gets its arguments. The result has n == 0 if the schema cannot be parsed.
 */
struct mxbpf_func_args plan_args(const struct adp *adp, const struct plan_func *f);

/* Numbers a function that is recognized by its call and has no probe of its own. Returns 0 or -ENOMEM. */
int plan_add_caller(struct plan *plan, const struct plan_probe *p, const struct caller *c, const char *name);

/*
 * Sets the structure offsets of a row of an unknown build in the plan's row. Returns 0, or -ENOENT with p->reason set.
 */
int plan_calibrate(struct plan *plan, struct plan_probe *p, struct elf *elf, const struct elf_sym *func);

/* Plans a row with teams. Returns like plan_family(). */
int plan_team(struct tgt *t, struct plan *plan, struct plan_probe *p);

uint64_t plan_cut_cookie(uint64_t func, const struct cut_point *c);

/* Adds a probe that belongs to no numbered function. */
int plan_add_site(struct plan *plan, const struct plan_probe *p, uint64_t off);

/* Plans every function of the row's family. Returns 0, -ENOENT with p->reason set, or -ENOMEM. */
int plan_family(struct plan *plan, struct plan_probe *p, struct elf *elf);

/* Finds in this build and process what the details read. Removes details that are not found from the rows. */
void plan_details(struct tgt *t, struct plan *plan);

/* Finds the objects of user annotations. If that fails, rows that make spans of them are refused. */
void plan_app_marks(struct plan *plan);

bool plan_hides(const struct adp *a, const char *name);

/* Removes the probes of a row from the plan. */
void plan_drop_sites(struct plan *plan, const struct plan_probe *p);

/*
 * Makes the plan fit into probes_max probes: removes ends first, then optional rows, and then rows that need a removed
 * one.
 */
void plan_fit(struct plan *plan);
/*
 * Merges the two probes of a function that both ends iterations and has a span. The kernel does not define the order of
 * two probes at one place.
 */
void plan_merge_iteration_ends(struct plan *plan);

/* Sorts ends before entries, because an entry without its end would open a span that nothing closes. */
void plan_order_sites(struct plan *plan);

/* Returns the number of a library with named objects, or 0 if the table is full. */
unsigned plan_image(struct plan *plan, struct tgt_lib *lib);
/* Finds the addresses of these libraries in the process of the plan. */
void plan_place_images(struct plan *plan, struct tgt *t);

#endif
