// SPDX-License-Identifier: Apache-2.0
/* Families: many functions of one row, found by their (mangled) names and named by the library's own strings. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/priv.h"

#define IDENT_MAX 256

/* "base.overload(...)": key is base_overload as a symbol has it, base the first part of it. */
struct schema {
	char *key; /* owned */
	size_t base_bytes;
};

struct family {
	struct plan *plan;
	struct plan_probe *probe;
	struct elf *elf;
	struct buf schemas; /* of struct schema, sorted by key */
	struct buf seen;    /* of uint64_t: addresses, as a function may have several symbols */
	unsigned nrefused;
	struct err why; /* of the first refused one */
};

static size_t ident(const char *text)
{
	size_t n = 0;

	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return n;
}

static int add_schema(void *ctx, const char *text, size_t len)
{
	struct buf *schemas = ctx;
	size_t base = ident(text), overload;
	struct schema s = {.base_bytes = base};

	if (!base || len > 65536 || (text[base] != '.' && text[base] != '('))
		return 0;
	overload = text[base] == '.' ? ident(text + base + 1) + 1 : 0;
	if (base + overload >= IDENT_MAX || text[base + overload] != '(' || !strstr(text + base, ") -> "))
		return 0;
	s.key = strndup(text, base + overload);
	if (!s.key)
		return -ENOMEM;
	if (overload)
		s.key[base] = '_';
	if (!buf_put(schemas, &s, sizeof(s)))
		return 0;
	free(s.key);
	return -ENOMEM;
}

static int cmp_schema(const void *a, const void *b)
{
	return strcmp(((const struct schema *)a)->key, ((const struct schema *)b)->key);
}

/* "aten::add" of "add_Tensor"; a name that no string explains stays as it is. */
static void span_name(const struct family *f, const char *ident_text, char *name, size_t max)
{
	struct schema key = {.key = (char *)ident_text}, *found = NULL;
	size_t n = strlen(ident_text);

	if (f->schemas.len)
		found = bsearch(&key, f->schemas.data, buf_count(&f->schemas, struct schema), sizeof(key), cmp_schema);
	if (found)
		n = found->base_bytes;
	snprintf(name, max, "%s%.*s", f->probe->row->family.schema, (int)n, ident_text);
}

/* The <name> of prefix <length><name> method; false if the symbol is not of this shape. */
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

static int add_member(void *ctx, const char *symbol, const struct elf_sym *sym)
{
	struct family *f = ctx;
	const struct adp_family *fam = &f->probe->row->family;
	char member[IDENT_MAX], name[IDENT_MAX + 32];
	size_t n = strlen(symbol);
	struct insn_entry entry;
	struct err why = {0};
	uint64_t off;

	/* The cold part of a function is no function: it is entered by a jump. */
	if ((n > 5 && !strcmp(symbol + n - 5, ".cold")) || already(f, sym->va))
		return 0;
	if (fam->method && !member_name(fam, symbol, member))
		return 0;
	if (buf_put(&f->seen, &sym->va, sizeof(sym->va)))
		return -ENOMEM;
	if (fam->schema) {
		span_name(f, member, name, sizeof(name));
		if (f->plan->opts.ops && !plan_ops_match(f->plan->opts.ops, name)) {
			plan_near_try(&f->plan->near, name + strlen(fam->schema));
			f->probe->nleft++;
			return 0;
		}
	}
	if (plan_place(f->elf, sym, &entry, &off, &why)) {
		f->nrefused++;
		if (!f->why.code)
			f->why = why;
		return 0;
	}
	if (!f->probe->nfuncs) {
		f->probe->entry = entry;
		f->probe->off = off;
	}
	return plan_add_func(f->plan, f->probe, f->elf, sym->va, off,
			     fam->schema ? name
			     : fam->list ? symbol
					 : f->probe->row->span_name);
}

static int each_of_list(struct family *f, const char *const *list)
{
	struct elf_sym sym;
	int err = 0;

	for (; *list && !err; list++) {
		err = elf_find_sym(f->elf, *list, &sym, NULL);
		err = !err && sym.type == ELF_SYM_FUNC ? add_member(f, *list, &sym) : err == -ENOENT ? 0 : err;
	}
	return err;
}

int plan_family(struct plan *plan, struct plan_probe *p, struct elf *elf)
{
	struct family f = {.plan = plan, .probe = p, .elf = elf};
	const struct adp_family *fam = &p->row->family;
	size_t i;
	int err;

	p->symbol = fam->prefix ? fam->prefix : fam->list[0];
	err = fam->schema ? elf_each_string(elf, add_schema, &f.schemas) : 0;
	if (err != -ENOMEM) {
		if (f.schemas.len)
			qsort(f.schemas.data, buf_count(&f.schemas, struct schema), sizeof(struct schema), cmp_schema);
		err = fam->list ? each_of_list(&f, fam->list) : elf_each_func(elf, fam->prefix, add_member, &f);
	}
	for (i = 0; i < buf_count(&f.schemas, struct schema); i++)
		free(buf_at(&f.schemas, struct schema, i)->key);
	buf_fini(&f.schemas);
	buf_fini(&f.seen);
	if (err == -ENOMEM)
		return err;
	if (err && err != -ENOENT)
		return plan_refuse(p, "cannot read the symbols of the library: %s", strerror(-err));
	if (!p->nfuncs && p->nleft) /* names that are known only when they come may match */
		return plan_refuse(p, "none of its %u functions matches --ops", p->nleft);
	if (!p->nfuncs && f.nrefused)
		return plan_refuse(p, "none of %u functions %s... may be probed: %s", f.nrefused, p->symbol, f.why.why);
	return p->nfuncs ? 0 : plan_refuse(p, "no symbol %s... in the library", p->symbol);
}
