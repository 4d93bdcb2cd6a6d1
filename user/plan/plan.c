// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "elf/hidden.h"
#include "elf/unwind.h"
#include "insn/cut.h"
#include "insn/layout.h"
#include "mxbpf_kv.h"
#include "plan/early.h"
#include "plan/priv.h"
#include "mxbpf_name.h"
#include "mxbpf_table.h"

/*
 * The branches of a longer function, or of one whose symbol has no size, are not all known. Its probe cannot slide
 * then.
 */
#define CODE_BYTES_MAX	   (1u << 20)
#define CODE_BYTES_UNSIZED 16
#define LATE_NAME_BYTES	   12

const struct plan_group plan_groups[] = {
	{"op", PROBE_OP, "operators"},
	{"api", PROBE_API, "calls of the C API"},
	{"mem", PROBE_MEM, "allocations"},
	{"wait", PROBE_WAIT, "waits for results"},
	{"inside", PROBE_INSIDE, "operators inside bulks"},
	{"custom", PROBE_CUSTOM, "operators written in Python"},
	{"mark", PROBE_MARK, "user annotations"},
	{"data", PROBE_DATA, "waits for data"},
	{"kv", PROBE_KV, "exchange of parameters"},
	{"cuda", PROBE_CUDA, "calls of CUDA's libraries"},
	{"link", PROBE_LINK, NULL},
	{"work", PROBE_WORK, NULL},
	{"iter", PROBE_ITER, NULL},
	{"team", PROBE_OMP, NULL},
	{"step", PROBE_STEP, NULL},
	{"life", PROBE_LIFE, NULL},
	{"held", PROBE_POOL, NULL},
	{"output", PROBE_OUTPUT, NULL},
	{"launch", PROBE_LAUNCH, NULL},
	{.name = NULL},
};

const char *plan_group_name(enum probe_group g)
{
	int i = 0;

	while (plan_groups[i].name && plan_groups[i].group != g)
		i++;
	return plan_groups[i].name ? plan_groups[i].name : "?";
}

static void hex(const uint8_t *id, size_t n, char *text)
{
	size_t i;

	for (i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", id[i]);
	text[2 * n] = 0;
}

const char *plan_version(const struct adp *a, const struct tgt_lib *lib)
{
	char id[2 * ELF_BUILD_ID_MAX + 1];
	unsigned i;

	hex(lib->build_id, lib->build_id_bytes, id);
	for (i = 0; i < a->nbuilds; i++)
		if (!strcmp(a->builds[i].build_id, id))
			return a->builds[i].version;
	return NULL;
}

/* Returns true if a row reads structures whose layout depends on the build. */
static bool row_has_offsets(const struct mxbpf_row *r)
{
	return r->name.nderef || r->key.nderef || r->device.nderef || r->size.nderef || r->link.nderef ||
	       r->guard.nderef || r->action == MXBPF_ACT_POOL || r->outputs_off;
}

static bool needs_known_build(const struct adp_probe *p)
{
	return !p->any_build && row_has_offsets(&p->row);
}

static const struct adp_layout *layout_in(const struct adp_probe *p, const char *version)
{
	const struct adp_layout *l = p->layouts;

	while (l && l->version && (!version || strcmp(l->version, version)))
		l++;
	return l && l->version ? l : NULL;
}

static bool holds_in(const struct adp_probe *p, const char *version)
{
	const char *const *v = p->versions;

	while (v && *v && strcmp(*v, version))
		v++;
	return !v || *v || layout_in(p, version);
}

/* Returns the groups of a runtime that remain without the bad ones and without those that need a bad one. */
static unsigned groups_without(const struct adp *a, unsigned bad)
{
	unsigned all = 0, i;

	for (i = 0; i < a->nprobes; i++) {
		all |= a->probes[i].group & ~(PROBE_WORK | PROBE_ITER | PROBE_STEP);
		if (a->probes[i].needs && !(a->probes[i].needs & ~bad))
			bad |= a->probes[i].group;
	}
	return all & ~bad;
}

unsigned plan_groups_of(const struct adp *a, bool known_build)
{
	unsigned bad = 0, must = 0, i;

	for (i = 0; i < a->nprobes; i++)
		must |= a->probes[i].optional ? 0 : a->probes[i].group;
	/* If all rows of a group are optional, too little of it would remain. */
	for (i = 0; i < a->nprobes; i++)
		if (needs_known_build(&a->probes[i]) && !known_build &&
		    (!a->probes[i].optional || !(must & a->probes[i].group)))
			bad |= a->probes[i].group;
	return groups_without(a, bad);
}

unsigned plan_groups_left(const struct plan *p)
{
	unsigned bad = 0, good = 0;
	size_t i;

	/* Rows of other libraries, which come after those of the runtime, say nothing of its build. */
	for (i = 0; i < p->adp->nprobes; i++) {
		if (!p->probes[i].reason[0])
			good |= p->probes[i].row->group;
		else if (!p->probes[i].row->optional && !p->probes[i].stand_in && !p->probes[i].spare)
			bad |= p->probes[i].row->group;
	}
	return groups_without(p->adp, bad) & good;
}

bool plan_calibrates(const struct adp *a)
{
	unsigned i = 0;

	while (i < a->nprobes && !a->probes[i].shown)
		i++;
	return i < a->nprobes;
}

int plan_refuse(struct plan_probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->reason, sizeof(p->reason), fmt, ap);
	va_end(ap);
	return -ENOENT;
}

static struct plan_probe *probe_named(const struct plan *plan, const char *name)
{
	size_t i;

	for (i = 0; i < plan->nprobes; i++)
		if (!strcmp(plan->probes[i].row->name, name))
			return &plan->probes[i];
	return NULL;
}

/* Finds a function whose address another function takes, and describes it by its unwind entry. */
static int find_taken(const struct plan *plan, const struct adp_hidden *h, struct elf *elf, struct elf_sym *sym,
		      struct err *e)
{
	const struct plan_probe *by = probe_named(plan, h->taken_by);
	struct elf_fde fde;
	struct elf_sym user;

	if (by->reason[0] || elf_off_va(elf, by->off - by->entry.delta_bytes, &user.va) ||
	    elf_fde_find(elf, user.va, &fde, e))
		return err_set(e, ERR_TARGET, -ENOENT, "%s, which takes its address, is not found", h->taken_by);
	user.size_bytes = fde.end_va - user.va;
	return elf_find_taken(elf, &user, sym, e);
}

static int find_place(const struct plan *plan, const struct adp_place *p, struct elf *elf, struct elf_sym *sym,
		      struct err *e)
{
	struct elf_fde fde;

	while (p->version && (!plan->version || strcmp(p->version, plan->version)))
		p++;
	if (!p->version)
		return err_set(e, ERR_TARGET, -ENOENT, "its address in this build is unknown");
	if (elf_fde_find(elf, p->va, &fde, e) || fde.start_va != p->va)
		return err_set(e, ERR_TARGET, -ENOENT, "no function begins at its address in this build");
	*sym = (struct elf_sym){fde.start_va, fde.end_va - fde.start_va, ELF_SYM_FUNC};
	return 0;
}

/* Finds a function without a symbol by the other means of its row. */
static int find_hidden(const struct plan *plan, struct plan_probe *p, struct elf *elf, struct elf_sym *sym)
{
	const struct adp_hidden *h = &p->row->hidden;
	struct err why = {0};
	int err = -ENOENT;

	if (h->class_name)
		err = elf_find_virtual(elf, h->class_name, h->slot, sym, &why);
	else if (h->text)
		err = elf_find_text_user(elf, h->text, sym, &why);
	else if (h->taken_by)
		err = find_taken(plan, h, elf, sym, &why);
	else if (h->places)
		err = find_place(plan, h->places, elf, sym, &why);
	if (err && err != -ENOENT && !why.why[0])
		return plan_refuse(p, "cannot read the library: %s", strerror(-err));
	if (err)
		return plan_refuse(p, "no symbol %.100s in the library%s%s", p->row->symbols[0], why.why[0] ? "; " : "",
				   why.why);
	p->symbol = p->row->symbols[0];
	p->hidden = true;
	return 0;
}

static int find_symbol(const struct plan *plan, struct plan_probe *p, struct elf *elf, struct elf_sym *sym)
{
	int i, err = -ENOENT;

	for (i = 0; i < PROBE_SYMBOLS_MAX && p->row->symbols[i]; i++) {
		err = elf_find_sym(elf, p->row->symbols[i], sym, NULL);
		if (err != -ENOENT)
			break;
	}
	if (err == -ENOENT)
		return find_hidden(plan, p, elf, sym);
	if (err)
		return plan_refuse(p, "cannot read the symbols of the library: %s", strerror(-err));
	p->symbol = p->row->symbols[i];
	return 0;
}

/* A symbol may lie. The unwind tables, which exceptions need, tell independently of it where functions start. */
static bool is_inside(struct elf *elf, uint64_t va)
{
	struct elf_fde fde;

	return !elf_fde_find(elf, va, &fde, NULL) && fde.start_va != va;
}

int plan_place(struct elf *elf, const struct elf_sym *sym, struct insn_entry *entry, uint64_t *off, struct err *e)
{
	size_t n = sym->size_bytes ? sym->size_bytes : CODE_BYTES_UNSIZED;
	bool cut = !sym->size_bytes || n > CODE_BYTES_MAX;
	uint8_t *code;
	int err = 0;

	n = n > CODE_BYTES_MAX ? CODE_BYTES_MAX : n;
	code = malloc(n);
	if (!code)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (elf_read_va(elf, sym->va, code, n))
		err = err_set(e, ERR_TARGET, -EIO, "cannot read its code");
	else if (is_inside(elf, sym->va))
		err = err_set(e, ERR_TARGET, -EBADMSG, "its symbol points into a function, not to its start");
	else
		err = insn_place_entry(code, n, sym->va, entry, e);
	if (!err && cut && entry->delta_bytes)
		err = err_set(e, ERR_TARGET, -ENOTSUP, "its size is unknown, so its entry cannot be checked");
	if (!err && elf_exec_off(elf, sym->va + entry->delta_bytes, off))
		err = err_set(e, ERR_TARGET, -ENOENT, "it is not in an executable segment");
	free(code);
	return err;
}

/* In an unknown build the missing function may exist under another name, so the reason says both. */
static int refuse_unknown(struct plan_probe *p)
{
	char missing[sizeof(p->reason)];

	memcpy(missing, p->reason, sizeof(missing));
	return plan_refuse(p, "structure offsets are not verified for this build of %s; %s", p->lib->path, missing);
}

/* Sets the extent of the library before and after the probe at va. */
static void set_own(struct mxbpf_row *row, const struct elf *elf, uint64_t va)
{
	uint64_t start_va, end_va;

	elf_extent(elf, &start_va, &end_va);
	row->own_before = va - start_va;
	row->own_after = end_va - va;
}

/* Symbol -> address -> decoded instruction -> file offset. No other value ever becomes the offset of a probe. */
static int resolve(struct plan *plan, struct plan_probe *p, struct elf *elf)
{
	struct err why = {0};
	struct elf_sym sym;
	int err;

	bool unknown = !plan->version && needs_known_build(p->row);

	if (p->row->versions && !(plan->version && holds_in(p->row, plan->version)))
		return plan_refuse(p, "structure offsets are not verified for this build of %s", p->lib->path);
	if (unknown && !p->row->shown)
		return plan_calibrate(plan, p, elf, NULL);
	if (p->row->family.prefix || p->row->family.list || p->row->family.calls || p->row->family.members)
		return plan_family(plan, p, elf);
	err = find_symbol(plan, p, elf, &sym);
	if (err)
		return unknown && err == -ENOENT ? refuse_unknown(p) : err;
	if (sym.type != ELF_SYM_FUNC)
		return plan_refuse(p, "%s is not a function", p->symbol);
	if (plan_place(elf, &sym, &p->entry, &p->off, &why))
		return plan_refuse(p, "%s may not be probed: %s", p->symbol, why.why);
	if (unknown && plan_calibrate(plan, p, elf, &sym))
		return -ENOENT;
	if (p->row->row.action == MXBPF_ACT_REPORT)
		set_own(&plan->rows[p - plan->probes], elf, sym.va + p->entry.delta_bytes);
	return plan_add_func(plan, p, elf, &(struct plan_func){sym.va, p->off, p->row->span_name, NULL, p->symbol});
}

static int resolve_in_lib(struct tgt *t, struct plan *plan, struct plan_probe *p)
{
	struct err why = {0};
	struct elf *elf;

	p->first_func = plan->funcs.len ? (uint32_t)buf_count(&plan->funcs, uint64_t) : 1;
	if (p->row->each_lib) { /* such libraries come later, and their programs must be loaded then */
		plan->endless[p - plan->probes] = plan->rows[p - plan->probes];
		if (p->row->row.end == MXBPF_END_CUT)
			plan->endless[p - plan->probes].end = MXBPF_END_NEXT;
		return 0;
	}
	if (p->row->teams)
		return plan_team(t, plan, p);
	p->lib = p->row->lib_glob ? tgt_find_lib(t, p->row->lib_glob) : plan->lib;
	if (!p->lib)
		return plan_refuse(p, "no %s is mapped", p->row->lib_glob);
	if (tgt_lib_elf(t, p->lib, &elf, &why))
		return plan_refuse(p, "%s", why.why);
	return resolve(plan, p, elf);
}

/*
 * Sets the place of the name in objects named by alt_name. The code of their methods shows it; otherwise it is the one
 * of known builds.
 */
static bool fit_alt_name(const struct plan *plan, const struct plan_probe *p, struct elf *elf, struct mxbpf_row *row)
{
	struct elf_sym sym;
	unsigned i;

	for (i = 0; i < PROBE_SYMBOLS_MAX && p->row->alt_readers[i]; i++)
		if (!elf_find_sym(elf, p->row->alt_readers[i], &sym, NULL) &&
		    !layout_chain(elf, &sym, row->alt_name.off + 1, row->alt_name.nderef - 1u, &row->alt_name.off[0],
				  NULL))
			return true;
	return plan->version;
}

/* The layout of arrays is unknown in unknown builds. */
static const struct adp_array *array_of(const struct adp *adp, const char *version)
{
	const struct adp_array *a = adp->arrays;

	while (a && a->version && (!version || strncmp(version, a->version, strlen(a->version))))
		a++;
	return a && a->version ? a : NULL;
}

static void fit_arrays(const struct plan *plan, struct mxbpf_row *row)
{
	if (plan->array)
		row->kv_flags |= (uint8_t)(plan->array->dims_here << MXBPF_KV_DIMS_SHIFT);
	else
		row->kv = MXBPF_KV_NOTHING;
}

/* Sets the parts of a row that depend on the build. */
static void fit_row(struct tgt *t, struct plan *plan, const struct plan_probe *p)
{
	const struct adp_layout *layout = layout_in(p->row, plan->version);
	struct mxbpf_row *row = &plan->rows[p - plan->probes];
	struct tgt_lib *lib = p->row->alt_vtable ? tgt_find_lib(t, p->row->alt_lib_glob) : NULL;
	struct elf_sym sym;
	struct elf *elf;
	unsigned image;

	*row = layout ? layout->row : p->row->row;
	row->bulk_id = layout && layout->bulk ? plan_hash(layout->bulk) : 0;
	if (plan->opts.groups & p->row->pair_inside)
		row->end = MXBPF_END_CHILD;
	fit_arrays(plan, row);
	row->only_id = p->row->only ? plan_hash(p->row->only) : 0;
	if (row->action == MXBPF_ACT_ALLOC && !(plan->opts.groups & PROBE_POOL)) {
		row->end = MXBPF_END_NONE;
		row->name_type = MXBPF_NAMED_NOT;
	}
	image = lib ? plan_image(plan, lib) : 0;
	/* A vtable begins with two words of header, and objects point behind them. */
	if (image && !tgt_lib_elf(t, lib, &elf, NULL) && !elf_find_sym(elf, p->row->alt_vtable, &sym, NULL) &&
	    fit_alt_name(plan, p, elf, row))
		row->alt_object = (sym.va + 16) | (uint64_t)image << MXBPF_NAME_IMAGE_SHIFT;
}

/* Makes the hits of a row end iterations. If the user did not ask for its spans, they do nothing else. */
static void set_iteration_end(struct plan *plan, struct plan_probe *p)
{
	struct mxbpf_row *row = &plan->rows[p - plan->probes];

	if (!p->wanted)
		row->action = MXBPF_ACT_NONE;
	snprintf(row->iteration_end, sizeof(row->iteration_end), "%s", p->row->iteration);
	p->wanted = true;
}

/* Returns the first runtime that is mapped, or the one that the user asked for. */
static int find_runtime(struct tgt *t, struct plan *out, struct err *e)
{
	const char *meant = out->opts.runtime;
	struct tgt_lib *lib;
	char looked[256];
	int i;

	for (i = 0; adapters[i]; i++) {
		lib = tgt_find_lib(t, adapters[i]->lib_glob);
		if (!lib)
			continue;
		if (out->lib || (meant && strcmp(meant, adapters[i]->name))) {
			out->beside = adapters[i];
			continue;
		}
		out->adp = adapters[i];
		out->lib = lib;
	}
	if (out->lib)
		return 0;
	return err_set(e, ERR_TARGET, -ENOENT,
		       "process %d (%s) has mapped no library of a supported runtime (looked for %s); try --wait",
		       tgt_pid(t), tgt_comm(t), plan_looked_for(meant, looked));
}

static bool has_group(const struct adp *a, enum probe_group g)
{
	unsigned i;

	for (i = 0; i < a->nprobes; i++)
		if (a->probes[i].group & g)
			return true;
	return false;
}

/* Refuses groups that the user named and this runtime does not have. */
static int check_groups(const struct plan *p, struct err *e)
{
	const struct adp *const *a;
	char others[64] = "";
	size_t len = 0;

	if (!p->opts.needs_api || p->opts.lenient || !(p->opts.groups & PROBE_WORK) || has_group(p->adp, PROBE_WORK))
		return 0;
	for (a = adapters; *a && len < sizeof(others); a++)
		if (has_group(*a, PROBE_WORK))
			len += snprintf(others + len, sizeof(others) - len, "%s%s", len ? ", " : "", (*a)->title);
	return err_set(e, ERR_USAGE, -EINVAL, "--api: mxbpf probes no C API of %s, only that of %s", p->adp->title,
		       others);
}

bool plan_hides(const struct adp *a, const char *name)
{
	const char *const *h = a->hidden;

	while (h && *h && strcmp(*h, name))
		h++;
	return h && *h;
}

static void hide_names(struct plan *plan)
{
	unsigned i;

	for (i = 0; plan->adp->hidden && i < MXBPF_HIDDEN_MAX && plan->adp->hidden[i]; i++)
		plan->hidden[i] = plan_hash(plan->adp->hidden[i]);
	for (i = 0; plan->adp->lenders && i < MXBPF_LENDERS_MAX && plan->adp->lenders[i]; i++)
		plan->lenders[i] = plan_hash(plan->adp->lenders[i]);
}

/* Returns true if a later row replaces this one when it is refused. */
static bool has_stand_in(const struct adp *a, const struct adp_probe *row)
{
	unsigned i;

	for (i = 0; i < a->nprobes; i++)
		if (a->probes[i].instead_of && !strcmp(a->probes[i].instead_of, row->name))
			return true;
	return false;
}

static int plan_row(struct tgt *t, struct plan *out, struct plan_probe *p, struct err *e)
{
	struct plan_probe *first = p->row->instead_of ? probe_named(out, p->row->instead_of) : NULL;
	unsigned groups = out->opts.groups;
	int err;

	p->wanted = groups & p->row->group;
	if (out->opts.agent && p->row->by_agent)
		p->wanted = false;
	if (out->agent_memory.works && p->row->by_agent_memory) {
		p->wanted = false;
		p->spare = true;
		plan_refuse(p, "the agent sees it");
		return 0;
	}
	if (out->opts.agent && p->row->by_agent && !(out->opts.iterations && p->row->iteration)) {
		p->spare = true;
		plan_refuse(p, "the agent sees it");
		return 0;
	}
	fit_row(t, out, p);
	if (p->row->ends && probe_named(out, p->row->ends)->reason[0]) {
		plan_refuse(p, "it ends spans of %s, which is refused", p->row->ends);
		return 0;
	}
	/* A row that exists but is excluded by --ops needs no replacement. */
	if (first && (!first->reason[0] || (first->nleft && !first->nfuncs))) {
		p->spare = true;
		p->wanted = false;
		return 0;
	}
	if ((out->opts.iterations || out->opts.slices) && p->row->iteration)
		set_iteration_end(out, p);
	if (p->wanted && p->row->needs && !(p->row->needs & groups))
		return err_set(e, ERR_USAGE, -EINVAL, "--probes %s requires %s too, because its spans end with those",
			       plan_group_name(p->row->group),
			       plan_group_name((enum probe_group)(p->row->needs & -p->row->needs)));
	err = resolve_in_lib(t, out, p);
	/* Most builds have only one kind of pool, and a program in C++ has no Python. */
	if (err == -ENOENT && (p->row->row.action == MXBPF_ACT_POOL || (p->row->optional && !p->lib))) {
		p->spare = true;
		p->wanted = false;
		return 0;
	}
	if (err == -ENOMEM)
		return err_set(e, ERR_RUNTIME, err, "out of memory");
	for (; !err && first; first = first->row->instead_of ? probe_named(out, first->row->instead_of) : NULL)
		if (p->row->row.action == first->row->row.action)
			first->stand_in = p->row->name;
	if (err && p->wanted && !p->row->optional && !out->opts.lenient && !p->nleft && !has_stand_in(out->adp, p->row))
		return err_set(e, ERR_TARGET, err, "probe %s: %s", p->row->name, p->reason);
	return 0;
}

static int check_iteration_ends(const struct plan *p, struct err *e)
{
	size_t i;

	for (i = 0; i < buf_count(&p->sites, struct plan_site); i++)
		if (buf_at(&p->sites, struct plan_site, i)->row->iteration_end[0])
			return 0;
	return err_set(e, ERR_TARGET, -ENOENT, "--iterations: no function of %s shows the end of an iteration",
		       p->lib->path);
}

/* Functions of versioned and cold symbols, which have a '.', are parts of other functions. */
static int count_api(void *ctx, const char *name, const struct elf_sym *sym)
{
	unsigned *n = ctx;

	*n += sym->type == ELF_SYM_FUNC && !strchr(name, '.');
	return 0;
}

/* Frees tables that only planning needs. */
static void forget_tables(struct tgt *t, const struct plan *p)
{
	struct elf *elf;
	unsigned i;

	for (i = 0; i < p->nprobes; i++)
		if (p->probes[i].lib && !tgt_lib_elf(t, p->probes[i].lib, &elf, NULL))
			elf_forget_tables(elf);
}

/* Returns row i of those that all runtimes share and that are in one of the groups, or NULL after the last. */
static const struct adp_probe *shared_row(const struct plan_opts *o, size_t i)
{
	static const struct adp_probe *const tables[] = {adapter_cuda, adapter_nvtx};
	const struct adp_probe *row;
	size_t k;

	if (o->groups & PROBE_OMP && !i--)
		return &adapter_openmp;
	for (k = 0; k < sizeof(tables) / sizeof(tables[0]); k++)
		for (row = tables[k]; row->name; row++)
			if (row->group & o->groups && !i--)
				return row;
	return NULL;
}

int plan_make_by(struct known **known, struct tgt *t, const struct plan_opts *o, struct plan *out, struct err *e)
{
	struct elf *elf;
	unsigned i;
	int err;

	*out = (struct plan){.opts = *o, .near = {.patterns = o->ops}};
	err = find_runtime(t, out, e);
	if (!err)
		err = tgt_lib_elf(t, out->lib, &elf, e);
	if (!err)
		err = plan_check_packed(t, out->adp, out->lib, o->agent, e);
	if (!err && out->adp->call_end && cut_allow(elf, out->adp->call_end))
		err = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!err)
		err = check_groups(out, e);
	if (err)
		return err;
	if (!*known)
		*known = known_open(out->lib, elf);
	out->known = *known;
	out->version = plan_version(out->adp, out->lib);
	out->array = array_of(out->adp, out->version);
	out->nprobes = out->adp->nprobes;
	while (shared_row(o, out->nprobes - out->adp->nprobes))
		out->nprobes++;
	out->probes = calloc(out->nprobes, sizeof(*out->probes));
	out->rows = calloc(out->nprobes, sizeof(*out->rows));
	out->endless = calloc(out->nprobes, sizeof(*out->endless));
	out->iteration_ends = calloc(out->nprobes, sizeof(*out->iteration_ends));
	if (!out->probes || !out->rows || !out->endless || !out->iteration_ends)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	for (i = 0; i < out->nprobes; i++)
		out->probes[i].row =
			i < out->adp->nprobes ? &out->adp->probes[i] : shared_row(o, i - out->adp->nprobes);
	plan_image(out, out->lib);
	if (o->agent)
		plan_agent_entries(out, t, &out->agent_memory);
	for (i = 0; i < out->nprobes; i++) {
		err = plan_row(t, out, &out->probes[i], e);
		if (err)
			return err;
	}
	plan_details(t, out);
	plan_app_marks(out);
	plan_merge_iteration_ends(out);
	plan_fit(out);
	hide_names(out);
	plan_order_sites(out);
	plan_place_images(out, t);
	if (o->groups & PROBE_WORK && out->adp->c_api)
		plan_each_func(out, elf, out->adp->c_api, count_api, &out->napi);
	forget_tables(t, out);
	return o->iterations ? check_iteration_ends(out, e) : 0;
}

bool plan_is_late(const struct plan_probe *probe, struct tgt *t, const struct tgt_lib *lib)
{
	const struct adp_probe *row = probe->row;

	return probe->wanted && row->each_lib && !fnmatch(row->each_lib, lib->path, 0) &&
	       !(row->with_lib && !tgt_find_lib(t, row->with_lib)) &&
	       !(row->unless_lib && tgt_find_lib(t, row->unless_lib));
}

/*
 * Makes a name such as "inductor::cimefqv2awgl" from ".../im/cimefqv2awglmdyhrfv....so". It is long enough to find the
 * file.
 */
static void late_name(const struct plan_probe *p, char name[64])
{
	const char *file = strrchr(p->lib->path, '/') + 1;

	snprintf(name, 64, "%s%.*s", p->row->span_name, (int)strnlen(file, LATE_NAME_BYTES), file);
}

int plan_late(const struct plan *p, const struct plan_probe *probe, struct tgt *t, struct tgt_lib *lib,
	      uint32_t first_func, struct plan *out, struct err *e)
{
	struct elf_sym sym = {0};
	struct elf *elf;
	char name[64];
	int err;

	*out = (struct plan){.adp = p->adp, .lib = lib, .version = p->version, .first_func = first_func, .nprobes = 1};
	err = tgt_lib_elf(t, lib, &elf, e);
	if (err)
		return err;
	out->probes = calloc(1, sizeof(*out->probes));
	out->rows = calloc(1, sizeof(*out->rows));
	out->endless = calloc(1, sizeof(*out->endless));
	out->iteration_ends = calloc(1, sizeof(*out->iteration_ends));
	if (!out->probes || !out->rows || !out->endless || !out->iteration_ends)
		return -ENOMEM;
	out->probes[0] = (struct plan_probe){
		.row = probe->row,
		.lib = lib,
		.wanted = true,
		.first_func = first_func,
		.returns = p->opts.returns && probe->row->returns && !elf_has_exceptions(elf),
	};
	out->rows[0] = p->rows[probe - p->probes];
	if (probe->row->family.members || probe->row->family.prefix) {
		err = plan_family(out, out->probes, elf);
		plan_order_sites(out);
		return err;
	}
	late_name(out->probes, name);
	if (p->opts.ops && !plan_ops_match(p->opts.ops, name))
		return -ENOENT;
	err = find_symbol(out, out->probes, elf, &sym);
	if (err || sym.type != ELF_SYM_FUNC)
		return err ? err : -ENOENT;
	err = plan_place(elf, &sym, &out->probes[0].entry, &out->probes[0].off, e);
	if (!err)
		err = plan_add_func(
			out, out->probes, elf,
			&(struct plan_func){sym.va, out->probes[0].off, name, NULL, probe->row->symbols[0]});
	plan_order_sites(out);
	return err;
}

void plan_fini(struct plan *p)
{
	size_t i;

	for (i = 0; i < buf_count(&p->names, struct plan_name); i++)
		free(buf_at(&p->names, struct plan_name, i)->text);
	buf_fini(&p->names);
	buf_fini(&p->funcs);
	buf_fini(&p->args);
	buf_fini(&p->callers);
	buf_fini(&p->sites);
	free(p->probes);
	free(p->rows);
	free(p->endless);
	free(p->iteration_ends);
	*p = (struct plan){0};
}

const char *plan_func_name(const struct plan *p, const struct plan_probe *probe, uint32_t func)
{
	const char *name = plan_span_name(p, *buf_at(&p->funcs, uint64_t, func - p->first_func));

	return name ? name : probe->row->name;
}

uint64_t plan_func_id(const struct plan *p, const struct plan_site *s)
{
	const uint32_t func = (uint32_t)(s->cookie & MXBPF_FUNC_MASK);

	if (!func || func < p->first_func || func - p->first_func >= buf_count(&p->funcs, uint64_t))
		return 0;
	return *buf_at(&p->funcs, uint64_t, func - p->first_func);
}

bool plan_is_always(const struct plan *p, const struct plan_site *s)
{
	const char *const *f = s->probe ? s->probe->row->always : NULL;
	const uint64_t id = f ? plan_func_id(p, s) : 0;
	const char *name = id ? plan_span_name(p, id) : NULL;

	while (f && *f && strcmp(*f, "*") && (!name || strcmp(*f, name)))
		f++;
	return f && *f;
}

const char *plan_span_name(const struct plan *p, uint64_t id)
{
	size_t i;

	for (i = 0; i < buf_count(&p->names, struct plan_name); i++)
		if (buf_at(&p->names, struct plan_name, i)->id == id)
			return buf_at(&p->names, struct plan_name, i)->text;
	return NULL;
}
