// SPDX-License-Identifier: Apache-2.0
/*
 * What planning found in the runtime's library before: names, and where functions end. It takes most of the time of a
 * plan. A cut is used only if the code that was decoded for it has not changed; the entries of functions are decoded
 * anew.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "plan/priv.h"

#define PART_BYTES_MAX (1u << 20)

enum kind {
	KIND_CUT = 1,
	KIND_FUNCS = 2,
	KIND_TEXTS = 3,
};

/* Identifies the library. */
struct subject {
	uint64_t bytes, build_id_bytes;
	uint8_t build_id[ELF_BUILD_ID_MAX];
};
_Static_assert(sizeof(struct subject) <= CACHE_KEY_BYTES, "it is a key");

struct known {
	struct elf *elf; /* borrowed */
	struct cache cache;
	struct buf code; /* room for code that is compared */
	bool wrong;
};

struct known *known_open(const struct tgt_lib *lib, struct elf *elf)
{
	struct known *k = lib->build_id_bytes && lib->size_bytes ? calloc(1, sizeof(*k)) : NULL;
	struct subject subject = {.bytes = lib->size_bytes, .build_id_bytes = lib->build_id_bytes};
	char name[2 * ELF_BUILD_ID_MAX + 1] = "";

	if (!k)
		return NULL;
	memcpy(subject.build_id, lib->build_id, lib->build_id_bytes);
	for (size_t i = 0; i < lib->build_id_bytes; i++)
		sprintf(name + 2 * i, "%02x", lib->build_id[i]);
	k->elf = elf;
	cache_open(&k->cache, name, &subject, sizeof(subject));
	return k;
}

static void close_known(struct known *k)
{
	if (!k)
		return;
	cache_close(&k->cache);
	buf_fini(&k->code);
	free(k);
}

int plan_make(struct tgt *t, const struct plan_opts *o, struct plan *out, struct err *e)
{
	struct known *k = NULL;
	int err = plan_make_by(&k, t, o, out, e);
	const char *said = k ? k->cache.said : "";

	/* A kept result does not fit the library, so nothing of this plan stays. */
	if (k && k->wrong) {
		plan_fini(out);
		if (e)
			memset(e, 0, sizeof(*e));
		cache_forget(&k->cache);
		said = "the kept plan does not fit the library";
		err = plan_make_by(&k, t, o, out, e);
	}
	snprintf(out->known_said, sizeof(out->known_said), "%s", said);
	out->known = NULL;
	close_known(k);
	return err;
}

/* What is kept of a function's cut. */
struct kept_cut {
	uint64_t code_hash; /* of all parts, as they were decoded; 0: there is no cut */
	struct cut_point points[CUT_POINTS_MAX];
	uint32_t npoints, nparts, tail_exit, pad;
	struct cut_part parts[CUT_PARTS_MAX]; /* nparts of them */
};

static size_t kept_bytes(unsigned nparts)
{
	return offsetof(struct kept_cut, parts) + nparts * sizeof(struct cut_part);
}

/* Hashes 8 bytes at a time, because a plan compares megabytes. Returns 0 if the code cannot be read. */
static uint64_t hash_code(struct known *k, const struct cut_part *parts, unsigned n)
{
	uint64_t h = HASH_SEED, word;

	for (unsigned i = 0; i < n; i++) {
		const size_t bytes = (parts[i].bytes + 7) & ~(size_t)7;

		if (parts[i].bytes > PART_BYTES_MAX)
			return 0;
		k->code.len = 0;
		if (!buf_add(&k->code, bytes))
			return 0;
		memset(k->code.data + parts[i].bytes, 0, bytes - parts[i].bytes);
		if (elf_read_va(k->elf, parts[i].va, k->code.data, parts[i].bytes))
			return 0;
		for (size_t at = 0; at < bytes; at += sizeof(word)) {
			memcpy(&word, k->code.data + at, sizeof(word));
			h = (h ^ word) * 0x9e3779b97f4a7c15ull;
			h ^= h >> 29;
		}
	}
	return h ? h : 1;
}

static bool is_in_parts(const struct kept_cut *kept, uint64_t va)
{
	for (unsigned i = 0; i < kept->nparts; i++)
		if (va - kept->parts[i].va < kept->parts[i].bytes)
			return true;
	return false;
}

/* Returns true if this is a cut of the function that fits the file. */
static bool known_fits(struct known *k, uint64_t va, const struct kept_cut *kept)
{
	if (!kept->npoints || kept->npoints > CUT_POINTS_MAX || !kept->nparts || kept->parts[0].va != va)
		return false;
	for (unsigned i = 0; i < kept->npoints; i++)
		if (!is_in_parts(kept, kept->points[i].va))
			return false;
	return hash_code(k, kept->parts, kept->nparts) == kept->code_hash;
}

/* Returns 1 with out set, 0 if nothing is known, or -ENOENT if it is known that there is no cut. */
static int known_cut(struct known *k, uint64_t va, struct cut *out)
{
	struct kept_cut kept;
	size_t n;
	const void *data = cache_get(&k->cache, KIND_CUT, va, &n);

	if (!data)
		return 0;
	memset(&kept, 0, sizeof(kept));
	memcpy(&kept, data, n < sizeof(kept) ? n : sizeof(kept));
	if (n == kept_bytes(0) && !kept.code_hash && !kept.npoints)
		return -ENOENT;
	if (kept.nparts > CUT_PARTS_MAX || n != kept_bytes(kept.nparts) || !known_fits(k, va, &kept)) {
		k->wrong = true;
		return 0;
	}
	memset(out, 0, sizeof(*out));
	memcpy(out->points, kept.points, sizeof(out->points));
	out->npoints = kept.npoints;
	out->tail_exit = kept.tail_exit;
	return 1;
}

static void keep_cut(struct known *k, uint64_t va, const struct cut *cut)
{
	struct kept_cut kept;

	memset(&kept, 0, sizeof(kept));
	if (cut->npoints) {
		kept.code_hash = hash_code(k, cut->parts, cut->nparts);
		if (!kept.code_hash)
			return;
		memcpy(kept.points, cut->points, sizeof(kept.points));
		memcpy(kept.parts, cut->parts, cut->nparts * sizeof(kept.parts[0]));
		kept.npoints = cut->npoints;
		kept.nparts = cut->nparts;
		kept.tail_exit = cut->tail_exit;
	}
	cache_put(&k->cache, KIND_CUT, va, &kept, kept_bytes(kept.nparts));
}

int plan_cut(struct plan *plan, struct elf *elf, uint64_t va, struct cut *out)
{
	struct known *k = plan->known && plan->known->elf == elf ? plan->known : NULL;
	const struct cut none = {.npoints = 0};
	int err = k ? known_cut(k, va, out) : 0;

	if (err)
		return err > 0 ? 0 : err;
	err = cut_find(elf, va, out, NULL);
	/* Other errors may be gone the next time. */
	if (k && (!err || err == -ENOENT || err == -EILSEQ))
		keep_cut(k, va, err ? &none : out);
	return err;
}

static int collect_func(void *ctx, const char *name, const struct elf_sym *sym)
{
	struct buf *all = ctx;

	return buf_put(all, &sym->va, sizeof(sym->va)) || buf_put(all, &sym->size_bytes, sizeof(sym->size_bytes)) ||
			       buf_put(all, name, strlen(name) + 1)
		       ? -ENOMEM
		       : 0;
}

static int each_collected(const char *data, size_t n, plan_func_fn fn, void *ctx)
{
	struct elf_sym sym = {.type = ELF_SYM_FUNC};
	const size_t words = sizeof(sym.va) + sizeof(sym.size_bytes);
	size_t len;
	int ret = 0;

	for (; !ret && n > words; data += words + len, n -= words + len) {
		memcpy(&sym.va, data, sizeof(sym.va));
		memcpy(&sym.size_bytes, data + sizeof(sym.va), sizeof(sym.size_bytes));
		len = strnlen(data + words, n - words) + 1;
		if (len > n - words)
			return -EBADMSG;
		ret = fn(ctx, data + words, &sym);
	}
	return ret;
}

int plan_each_func(struct plan *plan, struct elf *elf, const char *prefix, plan_func_fn fn, void *ctx)
{
	struct known *k = plan->known && plan->known->elf == elf ? plan->known : NULL;
	const uint64_t id = hash_text(HASH_SEED, prefix, strlen(prefix));
	struct buf all = {0};
	const void *data;
	size_t n;
	int ret;

	if (!k)
		return elf_each_func(elf, prefix, fn, ctx);
	data = cache_get(&k->cache, KIND_FUNCS, id, &n);
	if (data && buf_put(&all, data, n)) /* fn may put items, which moves the data */
		return -ENOMEM;
	ret = data ? 0 : elf_each_func(elf, prefix, collect_func, &all);
	if (!data && !ret)
		cache_put(&k->cache, KIND_FUNCS, id, all.data, all.len);
	ret = ret ? ret : each_collected(all.data, all.len, fn, ctx);
	buf_fini(&all);
	return ret;
}

struct texts {
	bool (*is)(const char *text, size_t len);
	struct buf all;
};

static int collect_text(void *ctx, const char *text, size_t len)
{
	struct texts *t = ctx;

	return t->is(text, len) ? buf_put(&t->all, text, len + 1) : 0;
}

int plan_each_text(struct plan *plan, struct elf *elf, bool (*is)(const char *text, size_t len), plan_text_fn fn,
		   void *ctx)
{
	struct known *k = plan->known && plan->known->elf == elf ? plan->known : NULL;
	struct texts texts = {.is = is};
	size_t n = 0, len;
	const char *text = k ? cache_get(&k->cache, KIND_TEXTS, 0, &n) : NULL;
	int ret = text ? 0 : elf_each_string(elf, collect_text, &texts);

	if (!text) {
		text = texts.all.data;
		n = texts.all.len;
		if (k && !ret)
			cache_put(&k->cache, KIND_TEXTS, 0, text, n);
	}
	for (; !ret && n; text += len + 1, n -= len + 1) {
		len = strnlen(text, n);
		if (len == n)
			ret = -EBADMSG;
		else if (is(text, len))
			ret = fn(ctx, text, len);
	}
	buf_fini(&texts.all);
	return ret;
}
