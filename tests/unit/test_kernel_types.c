/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of the kernel's types has every type of the BPF objects as the kernel has it. */
#include "unit.h"

#include <bpf/btf.h>

#include "attach/kernel_types.h"

static const char *const wanted[] = {
#include "kernel_types.inc"
};

static const struct btf *ours, *kernels;

static const struct btf_type *resolved(const struct btf *b, __u32 id)
{
	const struct btf_type *t = btf__type_by_id(b, id);

	while (btf_is_mod(t) || btf_is_typedef(t) || btf_kind(t) == BTF_KIND_TYPE_TAG)
		t = btf__type_by_id(b, t->type);
	return t;
}

static bool same_members(const struct btf_type *a, const struct btf_type *b, unsigned depth);

/* What pointers point to is not compared. */
static bool same(__u32 x, __u32 y, unsigned depth)
{
	const struct btf_type *a = resolved(ours, x), *b = resolved(kernels, y);

	if (btf_kind(a) != btf_kind(b))
		return false;
	if (btf_is_composite(a))
		return same_members(a, b, depth + 1);
	if (btf_is_array(a))
		return btf_array(a)->nelems == btf_array(b)->nelems &&
		       same(btf_array(a)->type, btf_array(b)->type, depth + 1);
	return btf_is_ptr(a) || a->size == b->size;
}

static bool same_members(const struct btf_type *a, const struct btf_type *b, unsigned depth)
{
	const struct btf_member *m = btf_members(a), *n = btf_members(b);
	unsigned i;

	if (a->size != b->size || btf_vlen(a) != btf_vlen(b) || depth > 32)
		return false;
	for (i = 0; i < btf_vlen(a); i++, m++, n++)
		if (btf_member_bit_offset(a, i) != btf_member_bit_offset(b, i) ||
		    btf_member_bitfield_size(a, i) != btf_member_bitfield_size(b, i) ||
		    strcmp(btf__name_by_offset(ours, m->name_off), btf__name_by_offset(kernels, n->name_off)) ||
		    !same(m->type, n->type, depth))
			return false;
	return true;
}

/* Returns 1 if the kernel has the type and the copy has the same, 0 if both lack it, -1 if they differ. */
static int compare(const char *name, __u32 kind)
{
	const int x = btf__find_by_name_kind(ours, name, kind), y = btf__find_by_name_kind(kernels, name, kind);

	if (x < 0 || y < 0)
		return x < 0 && y < 0 ? 0 : -1;
	return same((__u32)x, (__u32)y, 0) ? 1 : -1;
}

int main(void)
{
	static const __u32 kinds[] = {BTF_KIND_STRUCT, BTF_KIND_UNION, BTF_KIND_ENUM, BTF_KIND_TYPEDEF};
	const char *path = kernel_types_path();
	unsigned i, k, found = 0;
	int result;

	TEST("the copy has every type of the programs as the kernel has it")
	{
		kernels = btf__load_vmlinux_btf();
		if (!kernels) {
			puts("# this kernel has no BTF");
			CHECK(!path);
			UNIT_MAIN_END;
		}
		CHECK(path);
		ours = path ? btf__parse(path, NULL) : NULL;
		for (i = 0; ours && i < sizeof(wanted) / sizeof(wanted[0]); i++)
			for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
				result = compare(wanted[i], kinds[k]);
				if (result < 0)
					printf("# %s\n", wanted[i]);
				CHECK(result >= 0);
				found += result > 0;
			}
		CHECK(found > 10 && compare("task_struct", BTF_KIND_STRUCT) == 1);
	}
	TEST("the path stays the same")
	CHECK(!path || kernel_types_path() == path);
	UNIT_MAIN_END;
}
