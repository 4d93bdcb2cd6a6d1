// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "base/buf.h"

/* Of a function that is longer, or whose symbol has no size, not all branches are known: no slide then. */
#define CODE_BYTES_MAX	   (1u << 20)
#define CODE_BYTES_UNSIZED 16

/* Ids of NAMED_COOKIE names: even, so no hash; small, so no address. */
#define COOKIE_NAME_FIRST 16

const struct plan_group plan_groups[] = {
	{"op", PROBE_OP, true},	    {"api", PROBE_API, true},	 {"mem", PROBE_MEM, true},
	{"wait", PROBE_WAIT, true}, {"link", PROBE_LINK, false}, {NULL},
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

/* Whether a row reads structures whose layout depends on the build. */
static bool row_has_offsets(const struct mxbpf_row *r)
{
	return r->name.nderef || r->key.nderef || r->device.nderef || r->size.nderef || r->link.nderef ||
	       r->guard.nderef;
}

unsigned plan_groups_any_build(const struct adp *a)
{
	unsigned all = 0, bad = 0, i;

	for (i = 0; i < a->nprobes; i++) {
		all |= a->probes[i].group;
		if (row_has_offsets(&a->probes[i].row) && !a->probes[i].optional)
			bad |= a->probes[i].group;
	}
	for (i = 0; i < a->nprobes; i++)
		if (a->probes[i].needs & bad)
			bad |= a->probes[i].group;
	return all & ~bad;
}

static int refuse(struct plan_probe *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(struct plan_probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->reason, sizeof(p->reason), fmt, ap);
	va_end(ap);
	return -ENOENT;
}

static int find_symbol(struct plan_probe *p, struct elf *elf, struct elf_sym *sym)
{
	int i, err = -ENOENT;

	for (i = 0; i < PROBE_SYMBOLS_MAX && p->row->symbols[i]; i++) {
		err = elf_find_sym(elf, p->row->symbols[i], sym, NULL);
		if (err != -ENOENT)
			break;
	}
	if (err == -ENOENT)
		return refuse(p, "no symbol %s in the library", p->row->symbols[0]);
	if (err)
		return refuse(p, "cannot read the symbols of the library: %s", strerror(-err));
	p->symbol = p->row->symbols[i];
	return 0;
}

static int place(struct plan_probe *p, struct elf *elf, const struct elf_sym *sym)
{
	size_t n = sym->size_bytes ? sym->size_bytes : CODE_BYTES_UNSIZED;
	bool cut = !sym->size_bytes || n > CODE_BYTES_MAX;
	struct err why = {0};
	uint8_t *code;
	int err = 0;

	n = n > CODE_BYTES_MAX ? CODE_BYTES_MAX : n;
	code = malloc(n);
	if (!code)
		return refuse(p, "out of memory");
	if (elf_read_va(elf, sym->va, code, n))
		err = refuse(p, "the code of %s cannot be read", p->symbol);
	else if (insn_place_entry(code, n, sym->va, &p->entry, &why))
		err = refuse(p, "no instruction of %s may be probed: %s", p->symbol, why.why);
	else if (cut && p->entry.delta_bytes)
		err = refuse(p, "the size of %s is not known, so its entry cannot be judged", p->symbol);
	free(code);
	return err;
}

/* Symbol -> address -> decoded instruction -> file offset. Nothing else ever becomes a probe's offset. */
static int resolve(struct plan_probe *p, struct elf *elf, struct tgt_lib *lib, bool known_build)
{
	struct elf_sym sym;
	int err;

	if (!known_build && row_has_offsets(&p->row->row))
		return refuse(p, "structure offsets are not verified for this build of %s", lib->path);
	err = find_symbol(p, elf, &sym);
	if (err)
		return err;
	if (sym.type != ELF_SYM_FUNC)
		return refuse(p, "%s is not a function", p->symbol);
	p->va = sym.va;
	err = place(p, elf, &sym);
	if (!err && elf_exec_off(elf, sym.va + p->entry.delta_bytes, &p->off))
		err = refuse(p, "%s does not lie in an executable segment", p->symbol);
	return err;
}

static int find_runtime(struct tgt *t, struct plan *out, struct err *e)
{
	struct buf looked = {0};
	int i, err;

	for (i = 0; adapters[i]; i++) {
		out->lib = tgt_find_lib(t, adapters[i]->lib_glob);
		if (out->lib) {
			out->adp = adapters[i];
			buf_fini(&looked);
			return 0;
		}
		buf_printf(&looked, "%s%s (%s)", i ? ", " : "", adapters[i]->lib_glob, adapters[i]->title);
	}
	err = err_set(e, ERR_TARGET, -ENOENT, "process %d (%s) has no library that mxbpf knows mapped; looked for %.*s",
		      tgt_pid(t), tgt_comm(t), (int)looked.len, looked.data);
	buf_fini(&looked);
	return err;
}

int plan_make(struct tgt *t, unsigned groups, bool lenient, struct plan *out, struct err *e)
{
	struct elf *elf;
	unsigned i;
	int err;

	*out = (struct plan){0};
	err = find_runtime(t, out, e);
	if (!err)
		err = tgt_lib_elf(t, out->lib, &elf, e);
	if (err)
		return err;
	out->version = plan_version(out->adp, out->lib);
	out->probes = calloc(out->adp->nprobes, sizeof(*out->probes));
	if (!out->probes)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	out->nprobes = out->adp->nprobes;
	for (i = 0; i < out->nprobes; i++) {
		struct plan_probe *p = &out->probes[i];

		p->row = &out->adp->probes[i];
		p->wanted = groups & p->row->group;
		if (p->wanted && p->row->needs & ~groups)
			return err_set(e, ERR_USAGE, -EINVAL, "--probes %s needs %s as well: its spans end with those",
				       plan_group_name(p->row->group), plan_group_name(p->row->needs));
		p->cookie = p->row->span_name ? COOKIE_NAME_FIRST + 2 * i : 0;
		err = resolve(p, elf, out->lib, out->version != NULL);
		if (!err)
			out->nattach += p->wanted;
		else if (p->wanted && !p->row->optional && !lenient)
			return err_set(e, ERR_TARGET, err, "probe %s: %s", p->row->name, p->reason);
	}
	return 0;
}

void plan_fini(struct plan *p)
{
	free(p->probes);
	*p = (struct plan){0};
}

const char *plan_span_name(const struct plan *p, uint64_t id)
{
	size_t i;

	for (i = 0; i < p->nprobes; i++)
		if (p->probes[i].row->span_name && p->probes[i].cookie == id)
			return p->probes[i].row->span_name;
	return NULL;
}
