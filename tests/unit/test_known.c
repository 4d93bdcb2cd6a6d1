/* SPDX-License-Identifier: Apache-2.0 */
/* Tests plan/known.c: a kept cut is used only if the code that was decoded for it is still the same. */

#include "../../user/plan/known.c"
#include "opened_elf.h"

static struct tgt_lib lib = {.build_id = {1, 2, 3}, .build_id_bytes = 3, .size_bytes = 4};

/* The plan itself is not made here. */
static int made;

int plan_make_by(struct known **known, struct tgt *t, const struct plan_opts *o, struct plan *out, struct err *e)
{
	if (!*known)
		*known = known_open(&lib, NULL);
	(*known)->wrong = !made++;
	return 0;
}

void plan_fini(struct plan *p)
{
}

#define FUNCS_MAX 4000

static uint64_t starts[FUNCS_MAX];
static unsigned nstarts;

static int note_func(void *ctx, const char *name, const struct elf_sym *sym)
{
	if (nstarts < FUNCS_MAX)
		starts[nstarts++] = sym->va;
	return 0;
}

/* Returns the first function from `i` on that has a cut. */
static unsigned with_cut(struct elf *elf, unsigned i)
{
	struct cut cut;

	while (i < nstarts && cut_find(elf, starts[i], &cut, NULL))
		i++;
	return i;
}

int main(void)
{
	char dir[] = "/tmp/mxbpf-known-XXXXXX", path[64], command[256];
	struct cut first, again;
	struct plan plan = {.known = NULL};
	struct elf *elf;
	unsigned i;

	CHECK(mkdtemp(dir) && !setenv("XDG_CACHE_HOME", dir, 1));
	snprintf(path, sizeof(path), "%s/self", dir);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s", getpid(), path);
	CHECK(!system(command));
	elf = opened_elf(path);
	CHECK(elf && !elf_each_func(elf, "", note_func, NULL));
	i = with_cut(elf, 0);
	CHECK(i < nstarts);
	TEST_IF(!geteuid(), "a cut is found once and then known", "needs root")
	{
		plan.known = known_open(&lib, elf);
		CHECK(!plan_cut(&plan, elf, starts[i], &first));
		close_known(plan.known);
		plan.known = known_open(&lib, elf);
		CHECK(known_cut(plan.known, starts[i], &again) == 1);
		CHECK(again.npoints == first.npoints && again.tail_exit == first.tail_exit &&
		      !memcmp(again.points, first.points, sizeof(first.points)));
		close_known(plan.known);
	}
	TEST_IF(!geteuid(), "a cut whose code has changed by one byte is not used, and the plan is wrong", "needs root")
	{
		uint64_t off, last = first.parts[0].va + first.parts[0].bytes - 1;
		char byte = 0;
		int fd = open(path, O_RDWR);

		CHECK(!elf_exec_off(elf, last, &off) && pread(fd, &byte, 1, (off_t)off) == 1);
		byte ^= 1;
		CHECK(pwrite(fd, &byte, 1, (off_t)off) == 1);
		close(fd);
		plan.known = known_open(&lib, elf);
		CHECK(!known_cut(plan.known, starts[i], &again) && plan.known->wrong);
		close_known(plan.known);
	}
	TEST_IF(!geteuid(), "a cut with a place outside its code, or of another function, is not used", "needs root")
	{
		struct kept_cut kept = {
			.npoints = 1, .nparts = 1, .points = {{.va = starts[i]}}, .parts = {{starts[i], 8}}};

		plan.known = known_open(&lib, elf);
		kept.code_hash = hash_code(plan.known, kept.parts, 1);
		CHECK(known_fits(plan.known, starts[i], &kept));
		CHECK(!known_fits(plan.known, starts[i] + 1, &kept));
		kept.points[0].va += 8;
		CHECK(!known_fits(plan.known, starts[i], &kept));
		cache_put(&plan.known->cache, KIND_CUT, 5, &kept, 7);
		CHECK(!known_cut(plan.known, 5, &again) && plan.known->wrong);
		close_known(plan.known);
	}
	TEST_IF(!geteuid(), "a plan of which something known was wrong is made again without it", "needs root")
	{
		struct plan out;

		CHECK(!plan_make(NULL, NULL, &out, NULL) && made == 2);
	}
	elf_close(elf);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(!system(command));
	UNIT_MAIN_END;
}
