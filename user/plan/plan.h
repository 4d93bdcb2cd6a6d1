/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters x target x ELF -> resolved probes, each with the reason if it is refused. Touches nothing. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stddef.h>

#include "base/err.h"
#include "insn/insn.h"
#include "plan/probe.h"
#include "target/target.h"

/* The words of --probes; ends with name == NULL. */
struct plan_group {
	const char *name;
	enum probe_group group;
	bool listed; /* may be asked for by name */
};
extern const struct plan_group plan_groups[];
const char *plan_group_name(enum probe_group g);

struct plan_probe {
	const struct adp_probe *row;
	const char *symbol; /* the alternative that exists; NULL if none */
	uint64_t va;	    /* of the function */
	uint64_t off;	    /* file offset of the probe; meaningful while !reason[0] */
	uint64_t cookie;
	struct insn_entry entry;
	bool wanted;	  /* its group was asked for */
	char reason[256]; /* why it is refused; "" if it will be attached */
};

struct plan {
	const struct adp *adp;
	struct tgt_lib *lib;	   /* borrowed from the target */
	const char *version;	   /* "1.9.1"; NULL for an unknown build */
	struct plan_probe *probes; /* owned */
	size_t nprobes;
	unsigned nattach; /* probes that will be attached */
};

/*
 * groups: mask of enum probe_group. ERR_TARGET if no adapter's library is mapped (says what was looked for), or if a
 * required probe of a wanted group is refused; ERR_USAGE if a group lacks the one it needs. With `lenient` (for
 * `check`) refusals stay in the rows.
 */
int plan_make(struct tgt *t, unsigned groups, bool lenient, struct plan *out, struct err *e);
/* Of a library whose build-id is known (tgt_lib_elf() has succeeded); NULL for an unknown build. */
const char *plan_version(const struct adp *a, const struct tgt_lib *lib);
/* Groups that need no structure offsets: they work on builds that are not known. */
unsigned plan_groups_any_build(const struct adp *a);
/* The name of a NAMED_COOKIE span; NULL if id is none of the plan. */
const char *plan_span_name(const struct plan *p, uint64_t id);
void plan_fini(struct plan *p);

#endif
