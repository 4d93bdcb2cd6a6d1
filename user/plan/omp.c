// SPDX-License-Identifier: Apache-2.0
/*
 * Probes of parallel regions: where a master opens and leaves a region, and where the other threads of its team begin
 * and end.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "adapter/adapter.h"
#include "elf/unwind.h"
#include "insn/cut.h"
#include "insn/fork.h"
#include "insn/worker.h"
#include "plan/early.h"
#include "plan/priv.h"

static const struct mxbpf_row rows[] = {
	{.action = MXBPF_ACT_OMP_OPEN},	 {.action = MXBPF_ACT_OMP_BEGIN}, {.action = MXBPF_ACT_OMP_WAIT},
	{.action = MXBPF_ACT_OMP_CLOSE}, {.action = MXBPF_ACT_OMP_JOIN},  {.action = MXBPF_ACT_OMP_LEAVE},
};

struct lib_plan {
	struct plan *plan;
	struct plan_probe *probe;
	struct tgt_lib *lib;
	struct elf *elf;
	struct err why;
};

static int omp_add(struct lib_plan *p, enum mxbpf_action action, uint64_t off, uint64_t cookie)
{
	struct plan_site site = {p->probe, &rows[action - MXBPF_ACT_OMP_OPEN], p->lib, off, cookie};

	return buf_put(&p->plan->sites, &site, sizeof(site));
}

static int add_entry(struct lib_plan *p, enum mxbpf_action action, uint64_t va, uint64_t cookie)
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
	return omp_add(p, action, off, cookie);
}

static int add_cut(struct lib_plan *p, enum mxbpf_action action, uint64_t va)
{
	uint64_t off;
	struct cut cut;
	unsigned i;
	int err = cut_find(p->elf, va, &cut, &p->why);

	for (i = 0; !err && i < cut.npoints; i++) {
		if (cut.points[i].cfa_base == CUT_CFA_AT_RBP)
			return err_set(&p->why, ERR_TARGET, -ENOTSUP,
				       "its frame address is stored on the stack, which is not supported");
		err = elf_exec_off(p->elf, cut.points[i].va, &off);
		err = err ? err : omp_add(p, action, off, plan_cut_cookie(0, &cut.points[i]));
	}
	return err;
}

/*
 * Finds the function that all functions opening a region call. It receives the work of the team and wakes the team. The
 * master's own part begins where it returns.
 */
static int add_start(struct lib_plan *p, const char *opens)
{
	struct elf_sym sym;
	uint64_t va;
	int err = elf_find_sym(p->elf, opens, &sym, &p->why);

	err = err ? err : worker_find_start(p->elf, sym.va, &va, &p->why);
	err = err ? err : add_entry(p, MXBPF_ACT_OMP_OPEN, va, 0);
	return err ? err : add_cut(p, MXBPF_ACT_OMP_BEGIN, va);
}

/* Finds the function that all functions ending a region call. Its entry is the end of the master's part. */
static int add_end(struct lib_plan *p, const char *ends)
{
	struct elf_sym sym;
	uint64_t va;
	int err = elf_find_sym(p->elf, ends, &sym, &p->why);

	err = err ? err : worker_find_end(p->elf, sym.va, &va, &p->why);
	err = err ? err : add_entry(p, MXBPF_ACT_OMP_WAIT, va, 0);
	return err ? err : add_cut(p, MXBPF_ACT_OMP_CLOSE, va);
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
		err = err ? err : omp_add(p, at->begins ? MXBPF_ACT_OMP_JOIN : MXBPF_ACT_OMP_LEAVE, off, cookie);
	}
	return err;
}

static int add_points(struct lib_plan *p, enum mxbpf_action action, const struct fork_points *points)
{
	/* At the return address the stack pointer is the CFA of the function that was called. */
	uint64_t off, cookie = plan_cut_cookie(0, &(struct cut_point){.cfa_base = CUT_CFA_RSP});
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < points->n; i++) {
		err = elf_exec_off(p->elf, points->va[i], &off);
		err = err ? err : omp_add(p, action, off, cookie);
	}
	return err;
}

static int add_forks(struct lib_plan *p, const struct adp_team *team)
{
	struct fork_names names = {team->forks, team->invokes, team->opens, team->ends};
	struct fork f;
	int err = fork_find(p->elf, &names, &f, &p->why);

	err = err ? err : add_entry(p, MXBPF_ACT_OMP_OPEN, f.fork_va, MXBPF_TEAM_FORK);
	err = err ? err : add_points(p, MXBPF_ACT_OMP_BEGIN, &f.forked);
	err = err ? err : add_entry(p, MXBPF_ACT_OMP_JOIN, f.invoke_va, MXBPF_TEAM_FORK);
	err = err ? err : add_points(p, MXBPF_ACT_OMP_LEAVE, &f.invoked);
	err = err ? err : add_entry(p, MXBPF_ACT_OMP_WAIT, f.join_va, 0);
	return err ? err : add_points(p, MXBPF_ACT_OMP_CLOSE, &f.joined);
}

static int add_pool(struct lib_plan *p, const struct adp_team *team)
{
	int err = add_start(p, team->opens);

	err = err ? err : add_end(p, team->ends);
	return err ? err : add_workers(p);
}

/* Plans all probes of a library or none. With only some of them the team would seem idle. */
static int plan_lib(struct tgt *t, struct lib_plan *p, const struct adp_team *team)
{
	size_t before = p->plan->sites.len, nfuncs = p->probe->nfuncs;
	int err = tgt_lib_elf(t, p->lib, &p->elf, &p->why);

	err = err ? err : team->forks ? add_forks(p, team) : add_pool(p, team);
	if (!err)
		return 0;
	p->plan->sites.len = before;
	p->probe->nfuncs = (uint32_t)nfuncs;
	return err;
}

/* Returns the kind of an OpenMP library, or NULL if it is none. */
static const struct adp_team *team_of(const struct adp_team *teams, const struct tgt_lib *lib)
{
	const char *base = strrchr(lib->path, '/');
	unsigned i;

	for (; teams->opens; teams++)
		for (i = 0; teams->lib_globs[i]; i++)
			if (!fnmatch(teams->lib_globs[i], base ? base + 1 : lib->path, 0))
				return teams;
	return NULL;
}

bool plan_has_openmp(struct tgt *t)
{
	size_t i;

	for (i = 0; i < tgt_nlibs(t); i++)
		if (team_of(adapter_openmp.teams, tgt_lib(t, i)))
			return true;
	return false;
}

int plan_team(struct tgt *t, struct plan *plan, struct plan_probe *p)
{
	const struct adp_team *team;
	struct err why = {0};
	size_t i;
	int err;

	p->first_func = 0; /* they belong to no function of the plan, so their cookies stay as they are */
	for (i = 0; i < tgt_nlibs(t); i++) {
		struct lib_plan lib = {.plan = plan, .probe = p, .lib = tgt_lib(t, i)};

		team = team_of(p->row->teams, lib.lib);
		if (!team)
			continue;
		err = plan_lib(t, &lib, team);
		if (err == -ENOMEM)
			return err;
		if (err && !plan->omp_unseen) {
			plan->omp_unseen = lib.lib;
			why = lib.why;
		} else if (!err && !p->lib) {
			p->symbol = team->opens;
			p->lib = lib.lib;
		}
	}
	if (p->lib)
		return 0;
	if (plan->omp_unseen)
		return plan_refuse(p, "%.100s: %.140s", plan->omp_unseen->path, why.why);
	return plan_refuse(p, "no OpenMP library is mapped (libgomp, libomp, libiomp5)");
}
