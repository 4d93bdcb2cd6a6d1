/* SPDX-License-Identifier: Apache-2.0 */
/* Compares unwind entries and names by address with readelf and nm on real libraries, and tests damaged files. */

#include <dlfcn.h>
#include <link.h>

#include "base/buf.h"
#include "elf/names.h"
#include "elf/unwind.h"
#include "insn/cut.h"
#include "opened_elf.h"

#define DAMAGES 400

static FILE *run(const char *command, const char *path)
{
	char line[4096];

	snprintf(line, sizeof(line), command, path);
	return popen(line, "r");
}

/* ---- frames */

struct frames {
	struct elf *elf;
	struct elf_fde fde;
	struct buf cfas;
	unsigned entries, rows, wrong_entries, wrong_rows;
};

static void begin_entry(struct frames *s, uint64_t start, uint64_t end)
{
	int err = elf_fde_find(s->elf, start + (end - start) / 2, &s->fde, NULL);

	s->cfas.len = 0;
	s->entries++;
	if (!err)
		err = elf_fde_cfas(s->elf, &s->fde, &s->cfas, NULL);
	s->wrong_entries += err || s->fde.start_va != start || s->fde.end_va != end;
}

/* Compares the rule at va; the last of several rows for one address is valid. */
static void check_row(struct frames *s, uint64_t va, const char *rule)
{
	const struct elf_cfa *best = NULL;
	char mine[32] = "none";

	for (size_t i = 0; i < buf_count(&s->cfas, struct elf_cfa); i++)
		if (buf_at(&s->cfas, struct elf_cfa, i)->va <= va)
			best = buf_at(&s->cfas, struct elf_cfa, i);
	s->rows++;
	if (best && best->base == ELF_CFA_OTHER)
		snprintf(mine, sizeof(mine), "%s", strncmp(rule, "rsp", 3) && strncmp(rule, "rbp", 3) ? rule : "other");
	else if (best && best->base == ELF_CFA_AT_RBP)
		snprintf(mine, sizeof(mine), "exp");
	else if (best)
		snprintf(mine, sizeof(mine), "%s%+d", best->base == ELF_CFA_RSP ? "rsp" : "rbp", best->off);
	if (!strcmp(mine, rule))
		return;
	if (!s->wrong_rows++)
		printf("# at 0x%llx: %s, readelf says %s\n", (unsigned long long)va, mine, rule);
}

static void check_frames(const char *path)
{
	struct frames s = {.elf = opened_elf(path)};
	unsigned long long start, end, va;
	char line[1024], rule[32], *pc;
	bool inside = false;
	FILE *f = s.elf ? run("readelf -W --debug-dump=frames-interp '%s' 2>/dev/null", path) : NULL;

	while (f && fgets(line, sizeof(line), f)) {
		pc = strstr(line, " FDE ");
		if (pc && (pc = strstr(line, "pc=")) && sscanf(pc, "pc=%llx..%llx", &start, &end) == 2) {
			begin_entry(&s, start, end);
			inside = true;
		} else if (strstr(line, " CIE ")) {
			inside = false;
		} else if (inside && sscanf(line, "%16llx %31s", &va, rule) == 2 && strcmp(rule, "ZERO")) {
			check_row(&s, va, rule);
		}
	}
	if (f)
		pclose(f);
	printf("# %s: %u entries, %u rows\n", path, s.entries, s.rows);
	CHECK(s.entries > 20 && s.rows > s.entries);
	CHECK(s.wrong_entries == 0);
	CHECK(s.wrong_rows == 0);
	buf_fini(&s.cfas);
	elf_close(s.elf);
}

/* ---- names */

static void check_names(const char *path)
{
	FREED(elf_closed) struct elf *elf = opened_elf(path);
	char line[8192], name[4096], got[4096], last[4096] = "", type;
	unsigned long long va, slot_va = 0;
	unsigned seen = 0, wrong = 0;
	FILE *f = elf ? run("nm -D --defined-only '%s'", path) : NULL;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %c %4095[^@\n]", &va, &type, name) != 3 || type != 'T')
			continue;
		seen++;
		wrong += elf_func_name(elf, va, got, sizeof(got)) <= 0;
	}
	if (f)
		pclose(f);
	CHECK(seen > 20 && wrong == 0);
	seen = wrong = 0;
	f = elf ? run("readelf -rW '%s'", path) : NULL;
	while (f && fgets(line, sizeof(line), f)) {
		bool slot = strstr(line, "R_X86_64_JUMP_SLO") || strstr(line, "R_X86_64_GLOB_DAT");

		if (!slot || sscanf(line, "%llx %*x %*s %*x %4095[^@ ]", &va, name) != 2)
			continue;
		seen++;
		wrong += elf_import_name(elf, va, got, sizeof(got)) < 0 || strcmp(got, name);
		slot_va = va;
		strcpy(last, name);
	}
	if (f)
		pclose(f);
	CHECK(seen > 5 && wrong == 0);
	CHECK(elf && elf_func_name(elf, 1, got, sizeof(got)) == -ENOENT);
	CHECK(elf && elf_import_name(elf, 1, got, sizeof(got)) == -ENOENT);
	CHECK(elf && elf_func_name(elf, va, got, 0) == -EINVAL);
	if (elf)
		elf_forget_tables(elf);
	CHECK(elf && elf_import_name(elf, slot_va, got, sizeof(got)) >= 0 && !strcmp(got, last));
}

/* ---- damage */

static unsigned rnd(unsigned n)
{
	static uint64_t state = 2463534242u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

static unsigned bad_answers(int fd, const uint64_t *entries, unsigned n)
{
	struct elf *elf;
	unsigned bad = 0;

	if (elf_open(fd, &elf, NULL))
		return 0;
	for (unsigned i = 0; i < n; i++) {
		struct cut cut;
		int err = cut_find(elf, entries[i], &cut, NULL);

		bad += err ? err > 0 || cut.npoints || !cut.why[0] : !cut.npoints || cut.npoints > CUT_POINTS_MAX;
	}
	elf_close(elf);
	return bad;
}

static void check_damage(const char *path)
{
	uint64_t entries[64];
	struct stat st = {0};
	unsigned long long va;
	unsigned n = 0, bad = 0;
	char line[8192];
	int fd = open(path, O_RDONLY | O_CLOEXEC), copy = memfd_create("damaged", MFD_CLOEXEC);
	FREED(pipe_closed) FILE *f = run("nm -D --defined-only '%s'", path);

	while (f && n < 64 && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx T ", &va) == 1 && strstr(line, " T "))
			entries[n++] = va;
	CHECK(fd >= 0 && copy >= 0 && !fstat(fd, &st) && st.st_size && n);
	FREED(memory_freed) char *whole = malloc((size_t)st.st_size);
	CHECK(whole && pread(fd, whole, (size_t)st.st_size, 0) == st.st_size);
	for (unsigned i = 0; whole && i < DAMAGES; i++) {
		CHECK(pwrite(copy, whole, (size_t)st.st_size, 0) == st.st_size);
		for (unsigned k = 0; k < 1 + st.st_size / 512; k++) {
			char byte = (char)rnd(256);

			CHECK(pwrite(copy, &byte, 1, rnd((unsigned)st.st_size)) == 1);
		}
		if (!rnd(4))
			CHECK(!ftruncate(copy, rnd((unsigned)st.st_size)));
		bad += bad_answers(copy, entries, n);
	}
	CHECK(bad == 0);
	close(fd);
	close(copy);
}

int main(void)
{
	const char *root = getenv("REPO");
	char command[512], library[] = "/tmp/mxbpf-unwind-XXXXXX";
	int fd = mkstemp(library);
	Dl_info mxbpf;

	if (fd < 0 || !dladdr((void *)(uintptr_t)elf_open, &mxbpf))
		return 1;
	close(fd);
	snprintf(command, sizeof(command),
		 "${CXX:-g++} -std=c++17 -shared -fPIC -O2 -o %s '%s/tests/unit/cut_fixture.cpp'", library,
		 root ? root : ".");
	TEST("a C++ library can be compiled")
	CHECK(!system(command));
	TEST("unwind entries and frame addresses of a C++ library equal those of readelf") check_frames(library);
	TEST("unwind entries and frame addresses of mxbpf's own code equal those of readelf")
	check_frames(mxbpf.dli_fname);
	TEST("functions and imports have the right names") check_names(library);
	TEST("a damaged file gives fewer cuts or a reason, and no crash") check_damage(library);
	unlink(library);
	UNIT_MAIN_END;
}
