// SPDX-License-Identifier: Apache-2.0
/* Parallel regions: where a master opens and leaves one, and where the other threads of its team begin and end. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "adapter/adapter.h"
#include "elf/unwind.h"
#include "insn/cut.h"
#include "insn/worker.h"
#include "plan/early.h"
#include "plan/priv.h"

static const struct mxbpf_row rows[] = {
	{.action = MXBPF_ACT_TEAM_OPEN},  {.action = MXBPF_ACT_TEAM_BEGIN}, {.action = MXBPF_ACT_TEAM_WAIT},
	{.action = MXBPF_ACT_TEAM_CLOSE}, {.action = MXBPF_ACT_TEAM_JOIN},  {.action = MXBPF_ACT_TEAM_LEAVE},
};

/* Other libraries of OpenMP, whose teams are not seen. */
static const char *const others[] = {"libiomp5.so*", "libomp*.so*"};

struct lib_plan {
	struct plan *plan;
	struct plan_probe *probe;
	struct tgt_lib *lib;
	struct elf *elf;
	struct err why;
};

static int add(struct lib_plan *p, enum mxbpf_action action, uint64_t off, uint64_t cookie)
{
	struct plan_site site = {p->probe, &rows[action - MXBPF_ACT_TEAM_OPEN], p->lib, off, cookie};

	return buf_put(&p->plan->sites, &site, sizeof(site));
}

static int add_entry(struct lib_plan *p, enum mxbpf_action action, uint64_t va)
{
	struct elf_sym sym = {.va = va, .type = ELF_SYM_FUNC};
	struct insn_entry entry;
	struct elf_fde fde;
	uint64_t off;
	int err = elf_fde_find(p->elf, va, &fde, &p->why);

	sym.size_bytes = err ? 0 : fde.end_va - va;
	err = err ? err : plan_place(p->elf, &sym, &entry, &off, &p->why);
	if (err)
		return err;
	if (!p->probe->nfuncs++) {
		p->probe->entry = entry;
		p->probe->off = off;
	}
	return add(p, action, off, 0);
}

static int add_cut(struct lib_plan *p, enum mxbpf_action action, uint64_t va)
{
	uint64_t off;
	struct cut cut;
	unsigned i;
	int err = cut_find(p->elf, va, &cut, &p->why);

	for (i = 0; !err && i < cut.npoints; i++) {
		if (cut.points[i].cfa_base == CUT_CFA_AT_RBP)
			return err_set(&p->why, ERR_TARGET, -ENOTSUP, "its frame is told by a word of the stack");
		err = elf_exec_off(p->elf, cut.points[i].va, &off);
		err = err ? err : add(p, action, off, plan_cut_cookie(0, &cut.points[i]));
	}
	return err;
}

/*
 * Behind all that open a region stands one function, which is given what the team shall do and wakes it: where it comes
 * back, the master's own part begins.
 */
static int add_start(struct lib_plan *p, const char *opens)
{
	struct elf_sym sym;
	uint64_t va;
	int err = elf_find_sym(p->elf, opens, &sym, &p->why);

	err = err ? err : worker_find_start(p->elf, sym.va, &va, &p->why);
	err = err ? err : add_entry(p, MXBPF_ACT_TEAM_OPEN, va);
	return err ? err : add_cut(p, MXBPF_ACT_TEAM_BEGIN, va);
}

/* And one behind all that end it, whose entry is the end of the master's part. */
static int add_end(struct lib_plan *p, const char *ends)
{
	struct elf_sym sym;
	uint64_t va;
	int err = elf_find_sym(p->elf, ends, &sym, &p->why);

	err = err ? err : worker_find_end(p->elf, sym.va, &va, &p->why);
	err = err ? err : add_entry(p, MXBPF_ACT_TEAM_WAIT, va);
	return err ? err : add_cut(p, MXBPF_ACT_TEAM_CLOSE, va);
}

static int add_workers(struct lib_plan *p)
{
	struct worker w;
	unsigned i;
	int err = worker_find(p->elf, &w, &p->why);

	for (i = 0; !err && i < w.npoints; i++) {
		const struct worker_point *at = &w.points[i];
		uint64_t off, cookie = (uint64_t)at->fn << MXBPF_WORKER_FN_SHIFT |
				       (uint64_t)at->data << MXBPF_WORKER_DATA_SHIFT |
				       (uint64_t)at->cond << MXBPF_CUT_COND_SHIFT |
				       (at->cond_taken ? MXBPF_CUT_TAKEN : 0);

		err = elf_exec_off(p->elf, at->va, &off);
		err = err ? err : add(p, at->begins ? MXBPF_ACT_TEAM_JOIN : MXBPF_ACT_TEAM_LEAVE, off, cookie);
	}
	return err;
}

/* All of it or nothing: a team of which only a part is seen would look idle. */
static int plan_lib(struct tgt *t, struct lib_plan *p)
{
	const struct adp_team *team = &p->probe->row->team;
	size_t before = p->plan->sites.len;
	int err = tgt_lib_elf(t, p->lib, &p->elf, &p->why);

	err = err ? err : add_start(p, team->opens);
	err = err ? err : add_end(p, team->ends);
	err = err ? err : add_workers(p);
	if (err)
		p->plan->sites.len = before;
	return err;
}

static struct tgt_lib *find_other(struct tgt *t)
{
	struct tgt_lib *lib = NULL;
	size_t i;

	for (i = 0; !lib && i < sizeof(others) / sizeof(others[0]); i++)
		lib = tgt_find_lib(t, others[i]);
	return lib;
}

bool plan_has_openmp(struct tgt *t)
{
	return tgt_find_lib(t, adapter_openmp.lib_glob) || find_other(t);
}

int plan_team(struct tgt *t, struct plan *plan, struct plan_probe *p)
{
	unsigned seen = 0;
	size_t i;
	int err;

	p->first_func = 0; /* no functions of the plan: their cookies stay as they are */
	plan->omp_beside = find_other(t);
	for (i = 0; i < tgt_nlibs(t); i++) {
		struct lib_plan lib = {.plan = plan, .probe = p, .lib = tgt_lib(t, i)};
		const char *base = strrchr(lib.lib->path, '/');

		if (fnmatch(p->row->lib_glob, base ? base + 1 : lib.lib->path, 0))
			continue;
		seen++;
		err = plan_lib(t, &lib);
		if (err == -ENOMEM)
			return err;
		if (err)
			return plan_refuse(p, "%.100s: %.140s", lib.lib->path, lib.why.why);
		p->lib = p->lib ? p->lib : lib.lib;
		p->symbol = p->row->team.opens;
	}
	if (!seen && plan->omp_beside)
		return plan_refuse(p, "OpenMP here is %.120s, whose teams cannot be seen; those of %s can",
				   plan->omp_beside->path, p->row->lib_glob);
	return seen ? 0 : plan_refuse(p, "no %s is mapped", p->row->lib_glob);
}
