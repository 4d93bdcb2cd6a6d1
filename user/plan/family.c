// SPDX-License-Identifier: Apache-2.0
/* Finds the functions of a family by their mangled names, and names their spans by strings in the library. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/names.h"
#include "insn/caller.h"
#include "plan/priv.h"

#define IDENT_MAX	 256
#define SYMBOL_MAX	 4096
#define HANDS_OVER_BYTES 64 /* size of a small function that ends in a jump to another one */

/*
 * A schema "base.overload(...)": key is base_overload as in the symbol, base is the first part of key. If one string
 * ends with another, linkers keep only the longer one. "_sparse_softmax.int(...)" may also stand for
 * "softmax.int(...)", and "aten::cos(...)" for "cos(...)".
 */
struct schema {
	char *key, *text; /* owned; text begins at the schema */
	size_t base_bytes;
	size_t skipped; /* bytes of the string before the schema */
};

#define ENOUGH 1 /* a positive return value: there are more functions than can be probed */

#define SEEN_MAX (4 * MXBPF_FUNCS_MAX)

struct family {
	struct plan *plan;
	struct plan_probe *probe;
	struct elf *elf;
	struct buf schemas; /* of struct schema, sorted by key */
	struct buf seen;    /* of uint64_t: addresses, because a function may have several symbols */
	unsigned nrefused;
	struct err why; /* reason of the first refused function */
};

static size_t ident(const char *text)
{
	size_t n = 0;

	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return n;
}

static int add_ending(struct buf *schemas, const char *text, struct schema s, size_t key_bytes)
{
	s.key = strndup(text + s.skipped, key_bytes - s.skipped);
	s.text = strdup(text + s.skipped);
	if (s.key && key_bytes > s.base_bytes)
		s.key[s.base_bytes - s.skipped] = '_';
	s.base_bytes -= s.skipped;
	if (s.key && s.text && !buf_put(schemas, &s, sizeof(s)))
		return 0;
	free(s.key);
	free(s.text);
	return -ENOMEM;
}

/* Returns the bytes of an overload's name with its dot. */
static size_t overload_bytes(const char *text, size_t base)
{
	return text[base] == '.' ? ident(text + base + 1) + 1 : 0;
}

/* Returns the bytes of a namespace with its colons. */
static size_t space_bytes(const char *text)
{
	const size_t n = ident(text);

	return n && text[n] == ':' && text[n + 1] == ':' ? n + 2 : 0;
}

static bool is_schema(const char *text, size_t len)
{
	size_t base, overload;

	text += space_bytes(text);
	base = ident(text);
	overload = overload_bytes(text, base);
	return base && len <= 65536 && base + overload < IDENT_MAX && text[base + overload] == '(' &&
	       strstr(text + base, ") -> ");
}

static int add_schema(void *ctx, const char *text, size_t len)
{
	struct family *f = ctx;
	const size_t space = space_bytes(text), base = space + ident(text + space);
	const size_t key = base + overload_bytes(text, base);
	struct schema s = {.base_bytes = base, .skipped = space};
	int err;

	if (space && strncmp(text, f->probe->row->family.schema, space) != 0)
		return 0;
	err = add_ending(&f->schemas, text, s, key);
	for (s.skipped = space + 1; !err && s.skipped < base; s.skipped++)
		if (text[s.skipped - 1] == '_')
			err = add_ending(&f->schemas, text, s, key);
	return err;
}

static int cmp_schema(const void *a, const void *b)
{
	const struct schema *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	if (!order)
		order = (x->skipped > y->skipped) - (x->skipped < y->skipped);
	/* The library may have two texts for one operator. The longer one is more exact: "Tensor?[]", not "Tensor[]".
	 */
	return order ? order : (int)(strlen(y->text) - strlen(x->text));
}

/* Returns the schema that is nearest to a whole string. */
static const struct schema *schema_of(const struct family *f, const char *ident_text)
{
	size_t lo = 0, hi = buf_count(&f->schemas, struct schema), n = hi;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(buf_at(&f->schemas, struct schema, mid)->key, ident_text) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == n || strcmp(buf_at(&f->schemas, struct schema, lo)->key, ident_text))
		return NULL;
	return buf_at(&f->schemas, struct schema, lo);
}

/*
 * Writes the span's name, such as "aten::add" for "add_Tensor". If no string explains the name, it stays as it is.
 * Returns its schema, or NULL.
 */
static const char *span_name(const struct family *f, const char *ident_text, char *name, size_t max)
{
	const struct schema *found = schema_of(f, ident_text);
	size_t n = strlen(ident_text);

	if (found)
		n = found->base_bytes;
	snprintf(name, max, "%s%.*s", f->probe->row->family.schema, (int)n, ident_text);
	return found ? found->text : NULL;
}

/* Writes the operator of a member. Returns false if the table does not have it. */
static bool member_operator(const struct family *f, const char *member, char *name, size_t max)
{
	const struct adp_member *m = f->probe->row->family.members;

	while (m->function && strcmp(m->function, member))
		m++;
	if (m->function)
		snprintf(name, max, "%s%s", f->probe->row->family.schema, m->name);
	return m->function;
}

/* Copies the <name> in prefix <length><name> method. Returns false if the symbol has another form. */
static bool member_name(const struct adp_family *fam, const char *symbol, char *name)
{
	const char *p = symbol + strlen(fam->prefix);
	char *end;
	unsigned long n = strtoul(p, &end, 10);

	if (end == p || !n || n >= IDENT_MAX || strlen(end) < n || strncmp(end + n, fam->method, strlen(fam->method)))
		return false;
	memcpy(name, end, n);
	name[n] = '\0';
	return true;
}

static bool already(struct family *f, uint64_t va)
{
	size_t i;

	for (i = buf_count(&f->seen, uint64_t); i-- > 0;)
		if (*buf_at(&f->seen, uint64_t, i) == va)
			return true;
	return false;
}

/* Returns true if a symbol is a member of the family, and fills func. */
static bool is_member(const struct family *f, const char *symbol, char *room, size_t max, struct plan_func *func)
{
	const struct adp_family *fam = &f->probe->row->family;
	char member[IDENT_MAX];

	/*
	 * The cold part of a function (".cold", ".cold.12") is entered by a jump, so it is not a function. The part
	 * that OpenMP runs in several threads is called by its function.
	 */
	if (strncmp(symbol, fam->prefix, strlen(fam->prefix)) || strstr(symbol, ".cold") ||
	    strstr(symbol, "._omp_fn") || strstr(symbol, ".omp_outlined"))
		return false;
	if (fam->method && !member_name(fam, symbol, member))
		return false;
	*func = (struct plan_func){.symbol = symbol, .name = fam->schema ? room : f->probe->row->span_name};
	if (!func->name && f->probe->row->row.name_type == MXBPF_NAMED_COOKIE)
		func->name = symbol;
	if (fam->members && !member_operator(f, member, room, max))
		return false;
	if (fam->schema && !fam->members)
		func->schema = span_name(f, member, room, max);
	return !fam->schema || !plan_hides(f->plan->adp, room);
}

/* Returns true if --ops selects the member. */
static bool is_asked_for(struct family *f, const char *name)
{
	const struct adp_family *fam = &f->probe->row->family;

	if (!fam->schema || !f->plan->opts.ops || plan_ops_match(f->plan->opts.ops, name))
		return true;
	plan_near_try(&f->plan->near, name + strlen(fam->schema));
	f->probe->nleft++;
	return false;
}

/* A library of the program can have any number of functions. */
static unsigned probes_max(const struct family *f)
{
	return f->plan->opts.probes_max ? f->plan->opts.probes_max : MXBPF_FUNCS_MAX;
}

static int add_function(struct family *f, const struct elf_sym *sym, struct plan_func *func)
{
	struct insn_entry entry;
	struct err why = {0};

	if (f->probe->nfuncs >= probes_max(f) || buf_count(&f->seen, uint64_t) >= SEEN_MAX)
		return ENOUGH;
	if (buf_put(&f->seen, &sym->va, sizeof(sym->va)))
		return -ENOMEM;
	if (plan_place(f->elf, sym, &entry, &func->entry_off, &why)) {
		f->nrefused++;
		if (!f->why.code)
			f->why = why;
		return 0;
	}
	if (!f->probe->nfuncs) {
		f->probe->entry = entry;
		f->probe->off = func->entry_off;
	}
	func->va = sym->va;
	return plan_add_func(f->plan, f->probe, f->elf, func);
}

static int add_member(void *ctx, const char *symbol, const struct elf_sym *sym)
{
	struct family *f = ctx;
	char room[IDENT_MAX + 32];
	struct plan_func func;

	if (!is_member(f, symbol, room, sizeof(room), &func) || already(f, sym->va))
		return 0;
	if (f->probe->row->family.members && sym->size_bytes < HANDS_OVER_BYTES)
		return 0;
	if (!is_asked_for(f, func.name))
		return buf_put(&f->seen, &sym->va, sizeof(sym->va));
	return add_function(f, sym, &func);
}

static int each_of_list(struct family *f, const char *const *list)
{
	struct elf_sym sym;
	int err = 0;

	for (; *list && !err; list++) {
		err = elf_find_sym(f->elf, *list, &sym, NULL);
		if (!err && sym.type == ELF_SYM_FUNC && !already(f, sym.va))
			err = add_function(f, &sym, &(struct plan_func){.name = *list, .symbol = *list});
		err = err == -ENOENT ? 0 : err;
	}
	return err;
}

static int each_of_members(struct family *f, const struct adp_member *m)
{
	struct elf_sym sym;
	int err = 0;

	for (; m->function && !err; m++) {
		err = elf_find_sym(f->elf, m->function, &sym, NULL);
		if (!err && sym.type == ELF_SYM_FUNC && !already(f, sym.va))
			err = add_function(f, &sym, &(struct plan_func){.name = m->name, .symbol = m->function});
		err = err == -ENOENT ? 0 : err;
	}
	return err;
}

/* Handles one call of the function that all members call. */
static int add_caller(void *ctx, uint64_t call_va)
{
	struct family *f = ctx;
	const struct adp_family *fam = &f->probe->row->family;
	char symbol[SYMBOL_MAX], room[IDENT_MAX + 32];
	struct plan_func func = {.name = f->probe->row->span_name, .symbol = symbol};
	struct caller c;
	int err = caller_find(f->elf, call_va, fam->prefix ? NULL : &fam->shape, &c), len;

	if (err)
		return err == -ENOMEM ? err : 0;
	len = elf_func_name(f->elf, c.start_va, symbol, sizeof(symbol));
	if (!fam->prefix) {
		struct elf_sym sym = {c.start_va, c.end_va - c.start_va, ELF_SYM_FUNC};

		return len == -ENOENT && c.shaped && !already(f, c.start_va) ? add_function(f, &sym, &func) : 0;
	}
	/* At a call, BPF computes the frame address from a register and reads no stack word. */
	if (len < 0 || c.cfa_base == CUT_CFA_AT_RBP || !is_member(f, symbol, room, sizeof(room), &func) ||
	    !is_asked_for(f, func.name))
		return 0;
	f->probe->nfuncs++;
	f->probe->nendless++;
	return plan_add_caller(f->plan, f->probe, &c, func.name);
}

/* Adds the probe of the function that all members call. */
static int add_meeting_point(struct family *f)
{
	struct plan_probe *p = f->probe;
	struct elf_sym sym;
	int err = elf_find_sym(f->elf, p->row->family.calls, &sym, NULL);

	if (err)
		return err;
	if (plan_place(f->elf, &sym, &p->entry, &p->off, &f->why))
		return -ENOENT;
	return plan_add_site(f->plan, p, p->off);
}

static int find_members(struct family *f)
{
	const struct adp_family *fam = &f->probe->row->family;
	int err;

	f->probe->symbol = fam->calls	 ? fam->calls
			   : fam->list	 ? fam->list[0]
			   : fam->prefix ? fam->prefix
					 : fam->members[0].function;
	err = fam->schema && !fam->members ? plan_each_text(f->plan, f->elf, is_schema, add_schema, f) : 0;
	if (err == -ENOMEM)
		return err;
	if (f->schemas.len)
		qsort(f->schemas.data, buf_count(&f->schemas, struct schema), sizeof(struct schema), cmp_schema);
	if (fam->list)
		return each_of_list(f, fam->list);
	if (fam->members && !fam->prefix)
		return each_of_members(f, fam->members);
	if (!fam->calls)
		return plan_each_func(f->plan, f->elf, fam->prefix, add_member, f);
	err = fam->prefix ? add_meeting_point(f) : 0;
	return err ? err : elf_each_call(f->elf, fam->calls, add_caller, f);
}

static int explain(struct family *f, int err)
{
	const struct adp_family *fam = &f->probe->row->family;
	struct plan_probe *p = f->probe;

	if (err == ENOUGH) {
		plan_drop_sites(f->plan, p);
		return plan_refuse(p, "its functions need more than the %u probes that can be attached", probes_max(f));
	}
	if (err && err != -ENOENT)
		return plan_refuse(p, "cannot read the symbols of the library: %s", strerror(-err));
	if (!p->nfuncs && p->nleft) /* names that become known only at run time may match */
		return plan_refuse(p, "none of its %u functions matches --ops", p->nleft);
	if (p->nfuncs)
		return 0;
	if (f->nrefused)
		return plan_refuse(p, "none of %u functions %s... may be probed: %s", f->nrefused, p->symbol,
				   f->why.why);
	if (fam->calls)
		return plan_refuse(p, "found no function in the library that calls %s", fam->calls);
	return plan_refuse(p, "no symbol %s... in the library", p->symbol);
}

int plan_family(struct plan *plan, struct plan_probe *p, struct elf *elf)
{
	struct family f = {.plan = plan, .probe = p, .elf = elf};
	int err = find_members(&f);
	size_t i;

	for (i = 0; i < buf_count(&f.schemas, struct schema); i++) {
		free(buf_at(&f.schemas, struct schema, i)->key);
		free(buf_at(&f.schemas, struct schema, i)->text);
	}
	buf_fini(&f.schemas);
	buf_fini(&f.seen);
	return err == -ENOMEM ? err : explain(&f, err);
}
