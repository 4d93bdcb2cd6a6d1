/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the plan room: from a function to its sites, and families of functions. */
#ifndef PLAN_PRIV_H
#define PLAN_PRIV_H

#include "insn/cut.h"
#include "mxbpf_args.h"
#include "plan/plan.h"

/* Notes why; returns -ENOENT. */
int plan_refuse(struct plan_probe *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A function of a row. */
struct plan_func {
	uint64_t va, entry_off;
	const char *name;   /* of its spans; NULL none */
	const char *schema; /* "base.overload(Type name, ...) -> Type"; NULL: not known */
	const char *symbol;
};

/* Numbers a function and adds its sites: entry and, if its span ends by cut, the cut. Strings are copied. 0, -ENOMEM.
 */
int plan_add_func(struct plan *plan, struct plan_probe *p, struct elf *elf, const struct plan_func *f);

/* How a function of this schema is given its arguments; n 0 if it is not understood. */
struct mxbpf_func_args plan_args(const struct adp *adp, const struct plan_func *f);

/* The same of a function that is told by its call: not probed itself. */
int plan_add_caller(struct plan *plan, const struct plan_probe *p, const struct caller *c, const char *name);

/* Offsets of a row that an unknown build may have elsewhere, into its row of the plan. 0, -ENOENT with p->reason. */
int plan_calibrate(struct plan *plan, struct plan_probe *p, struct elf *elf, const struct elf_sym *func);

/* A row with team set. As plan_family(). */
int plan_team(struct tgt *t, struct plan *plan, struct plan_probe *p);

uint64_t plan_cut_cookie(uint64_t func, const struct cut_point *c);

/* A site that stands for no function of its own. */
int plan_add_site(struct plan *plan, const struct plan_probe *p, uint64_t off);

/* Every function of the row's family. 0, -ENOENT with p->reason, -ENOMEM. */
int plan_family(struct plan *plan, struct plan_probe *p, struct elf *elf);

/* What the details read in this build and process; takes from the rows those of which that is not known. */
void plan_details(struct tgt *t, struct plan *plan);

/* Which objects the program's own marks are; without that, rows of those that have spans are refused. */
void plan_app_marks(struct plan *plan);

bool plan_hides(const struct adp *a, const char *name);

/* Takes what was planned for a row out again. */
void plan_drop_sites(struct plan *plan, const struct plan_probe *p);

/* Gives up ends, then optional rows, until the plan is not larger than probes_max; then what lost its ends by that. */
void plan_fit(struct plan *plan);
/* A function that ends iterations and is probed for its span as well has one probe, as the order of two is not known.
 */
void plan_merge_iteration_ends(struct plan *plan);

/* Ends before entries: an entry without its end would open a span that nothing closes. */
void plan_order_sites(struct plan *plan);

/* The number of a library whose objects are named; 0: there is no room. */
unsigned plan_image(struct plan *plan, struct tgt_lib *lib);
/* Where those lie in the process of the plan. */
void plan_place_images(struct plan *plan, struct tgt *t);

#endif
