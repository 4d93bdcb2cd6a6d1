/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <zlib.h>

#include "base/buf.h"
#include "elf/elf.h"
#include "elf/unwind.h"

FREES(elf_closed, struct elf, elf_close)

void __cxa_throw(void *thrown, void *type, void (*destroy)(void *));

/* ---- a small library, made here, so that each field can be damaged separately */

#define IMAGE_VA 0x10000

struct image {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[3];
	Elf64_Dyn dyn[8];
	Elf64_Sym syms[5]; /* none, alpha, beta (two versions), gamma (undefined) */
	struct {
		uint32_t nbuckets, first, nwords, shift;
		uint64_t bloom;
		uint32_t bucket;
		uint32_t chain[4];
	} hash;
	uint16_t versym[6];
	struct {
		Elf64_Nhdr h;
		char name[4];
		uint8_t id[20];
	} note;
	char strs[32];
	Elf64_Shdr sh[4]; /* null, .dynsym, .symtab, .strtab */
	Elf64_Sym statics[5];
	char static_strs[32];
	uint8_t code[32];
	uint8_t end[8];
};

#define AT(field) (IMAGE_VA + offsetof(struct image, field))

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static Elf64_Sym sym(uint32_t name, unsigned bind, uint16_t section, uint64_t va)
{
	return (Elf64_Sym){.st_name = name,
			   .st_info = ELF64_ST_INFO(bind, STT_FUNC),
			   .st_shndx = section,
			   .st_value = va,
			   .st_size = 4};
}

static void image_headers(struct image *m)
{
	m->eh = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_phoff = offsetof(struct image, ph),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 3,
			     .e_shoff = offsetof(struct image, sh),
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = 4};
	m->ph[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_vaddr = IMAGE_VA,
				.p_filesz = sizeof(*m),
				.p_memsz = 1 << 20};
	m->ph[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_vaddr = AT(dyn), .p_filesz = sizeof(m->dyn)};
	m->ph[2] =
		(Elf64_Phdr){.p_type = PT_NOTE, .p_offset = offsetof(struct image, note), .p_filesz = sizeof(m->note)};
	m->sh[1] = (Elf64_Shdr){.sh_type = SHT_DYNSYM, .sh_size = sizeof(m->syms)};
	m->sh[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				.sh_offset = offsetof(struct image, statics),
				.sh_size = sizeof(m->statics),
				.sh_entsize = sizeof(Elf64_Sym),
				.sh_link = 3};
	m->sh[3] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct image, static_strs),
				.sh_size = sizeof(m->static_strs)};
}

static void image_init(struct image *m)
{
	const Elf64_Dyn dyn[8] = {
		{DT_SYMTAB, {AT(syms)}},   {DT_STRTAB, {AT(strs)}},   {DT_STRSZ, {sizeof(m->strs)}},
		{DT_GNU_HASH, {AT(hash)}}, {DT_VERSYM, {AT(versym)}}, {DT_NULL, {0}},
	};

	memset(m, 0, sizeof(*m));
	image_headers(m);
	memcpy(m->dyn, dyn, sizeof(dyn));
	memcpy(m->strs, "\0alpha\0beta\0gamma", 18);
	m->syms[1] = sym(1, STB_GLOBAL, 1, AT(code[0]));
	m->syms[2] = sym(7, STB_GLOBAL, 1, AT(code[4]));
	m->syms[3] = sym(7, STB_GLOBAL, 1, AT(code[8]));
	m->syms[4] = sym(12, STB_GLOBAL, SHN_UNDEF, 0);
	m->versym[2] = 0x8002; /* beta@OLD */
	m->versym[3] = 3;      /* beta@@NEW */
	m->hash.nbuckets = m->hash.first = m->hash.nwords = 1;
	m->hash.bloom = UINT64_MAX;
	m->hash.bucket = 1;
	m->hash.chain[0] = gnu_hash("alpha") & ~1u;
	m->hash.chain[1] = m->hash.chain[2] = gnu_hash("beta") & ~1u;
	m->hash.chain[3] = gnu_hash("gamma") | 1u;
	m->note.h = (Elf64_Nhdr){.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
	memcpy(m->note.name, "GNU", 4);
	memset(m->note.id, 0xab, sizeof(m->note.id));
	/* "two" is the tail of "onetwo", and twice there as a local; the global "half" wins over its local. */
	/* "two" is the tail of "onetwo" and exists twice as a local symbol; the global "half" wins. */
	memcpy(m->static_strs, "\0onetwo\0half", 13);
	m->statics[0] = sym(1, STB_LOCAL, 1, AT(code[12]));
	m->statics[1] = sym(4, STB_LOCAL, 1, AT(code[16]));
	m->statics[2] = sym(4, STB_LOCAL, 1, AT(code[20]));
	m->statics[3] = sym(8, STB_LOCAL, 1, AT(code[24]));
	m->statics[4] = sym(8, STB_GLOBAL, 1, AT(code[28]));
	memcpy(m->end, "no end!!", 8);
}

static int open_bytes(const void *bytes, size_t n, struct elf **f, struct err *e)
{
	int fd = memfd_create("image", MFD_CLOEXEC), ret;

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n) {
		perror("memfd");
		exit(1);
	}
	ret = elf_open(fd, f, e);
	close(fd); /* elf_open() has taken a duplicate */
	return ret;
}

/* Returns the result of looking up a name; stores its address in *va. */
static int find(struct elf *f, const char *name, uint64_t *va)
{
	struct err e = {0};
	struct elf_sym s = {0};
	int ret = elf_find_sym(f, name, &s, &e);

	*va = s.va;
	if (!ret != !e.code)
		return -EPROTO;
	return ret;
}

#define MANY 10000 /* symbols; their names need several blocks of the scan */

static void check_many_names(void)
{
	static struct {
		struct image m;
		Elf64_Sym syms[MANY];
		char strs[1 + 16 * MANY + 1];
	} big;
	struct err e = {0};
	FREED(elf_closed) struct elf *f = NULL;

	image_init(&big.m);
	big.m.ph[0].p_filesz = sizeof(big);
	big.m.sh[2].sh_offset = offsetof(__typeof__(big), syms);
	big.m.sh[2].sh_size = sizeof(big.syms);
	big.m.sh[3].sh_offset = offsetof(__typeof__(big), strs);
	big.m.sh[3].sh_size = sizeof(big.strs);
	for (uint32_t i = 0; i < MANY; i++) {
		sprintf(big.strs + 1 + 16 * i, "function_%06u", i);
		big.syms[i] = sym(1 + 16 * i, STB_LOCAL, 1, IMAGE_VA + i);
	}
	CHECK(!open_bytes(&big, sizeof(big), &f, &e));
	for (uint32_t i = 4000; i < MANY; i += i % 4096 < 8 || i % 4096 > 4080 ? 1 : 13) {
		uint64_t va;

		CHECK(!find(f, big.strs + 1 + 16 * i, &va) && va == IMAGE_VA + i);
	}
}

/* ---- the result of each damage */

struct damage {
	const char *what;
	void (*harm)(struct image *m);
	int open_ret;
	int alpha_ret; /* result of looking up "alpha" if the file could be opened */
};

#define HARM(name, statement)                                                                                          \
	static void name(struct image *m)                                                                              \
	{                                                                                                              \
		statement;                                                                                             \
	}

HARM(not_elf, m->eh.e_ident[1] = 'e')
HARM(class32, m->eh.e_ident[EI_CLASS] = ELFCLASS32)
HARM(big_endian, m->eh.e_ident[EI_DATA] = ELFDATA2MSB)
HARM(other_machine, m->eh.e_machine = EM_AARCH64)
HARM(object_file, m->eh.e_type = ET_REL)
HARM(core_file, m->eh.e_type = ET_CORE)
HARM(no_phdrs, m->eh.e_phnum = 0)
HARM(many_phdrs, m->eh.e_phnum = 65535)
HARM(phdr_size, m->eh.e_phentsize = 1)
HARM(phdrs_outside, m->eh.e_phoff = UINT64_MAX - 8)
HARM(shdrs_outside, m->eh.e_shoff = UINT64_MAX - 8)
HARM(many_shdrs, m->eh.e_shnum = 65535)
HARM(shdr_size, m->eh.e_shentsize = 0)
HARM(load_wraps, m->ph[0].p_vaddr = UINT64_MAX - 16)
HARM(load_outside, m->ph[0].p_offset = 1)
HARM(load_off_wraps, m->ph[0].p_offset = UINT64_MAX)
HARM(loads_overlap, m->ph[2] = m->ph[0])
HARM(note_outside, m->ph[2].p_offset = UINT64_MAX - 4)
HARM(dynamic_outside, m->ph[1].p_vaddr = 0)
HARM(dynamic_huge, m->ph[1].p_filesz = UINT64_MAX)
HARM(dynamic_unended, m->ph[1].p_filesz = 5 * sizeof(Elf64_Dyn))
HARM(huge_note, m->note.h.n_namesz = UINT32_MAX)
HARM(no_buckets, m->hash.nbuckets = 0)
HARM(many_buckets, m->hash.nbuckets = UINT32_MAX)
HARM(no_words, m->hash.nwords = 0)
HARM(odd_words, m->hash.nwords = 3)
HARM(many_words, m->hash.nwords = 1u << 31)
HARM(shift_too_far, m->hash.shift = 200)
HARM(bucket_low, (m->hash.first = 3, m->hash.bucket = 1))
HARM(bucket_high, m->hash.bucket = UINT32_MAX)
HARM(hash_outside, m->dyn[3].d_un.d_val = UINT64_MAX - 4)
HARM(symtab_outside, m->dyn[0].d_un.d_val = UINT64_MAX - 4)
HARM(strtab_outside, m->dyn[1].d_un.d_val = UINT64_MAX - 4)
HARM(strtab_huge, (m->dyn[2].d_un.d_val = UINT64_MAX, m->syms[1].st_name = UINT32_MAX))
HARM(versym_outside, m->dyn[4].d_un.d_val = 1)
HARM(name_outside, m->syms[1].st_name = UINT32_MAX)
HARM(is_tls, m->syms[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS))
HARM(is_absolute, m->syms[1].st_shndx = SHN_ABS)
HARM(scan_no_count, (m->dyn[3].d_tag = DT_DEBUG, m->sh[1].sh_type = SHT_NULL))
HARM(scan_many, (m->dyn[3].d_tag = DT_DEBUG, m->sh[1].sh_size = UINT64_MAX))
HARM(scan_hash_many, (m->dyn[3].d_tag = DT_HASH, m->hash.first = UINT32_MAX))

static void no_alpha(struct image *m)
{
	m->hash.bloom = 0;
}

/* Without a match in the hash table, the name is looked up in .symtab. */
HARM(link_outside, (no_alpha(m), m->sh[2].sh_link = 77))
HARM(link_other, (no_alpha(m), m->sh[2].sh_link = 1))
HARM(symtab_entsize, (no_alpha(m), m->sh[2].sh_entsize = 0))
HARM(symtab_huge, (no_alpha(m), m->sh[2].sh_size = UINT64_MAX))
HARM(symtab_off, (no_alpha(m), memcpy(m->static_strs, "alpha", 6), m->sh[2].sh_offset = UINT64_MAX - 4))
HARM(strtab_off, (no_alpha(m), m->sh[3].sh_offset = UINT64_MAX - 4))
HARM(strtab_long, (no_alpha(m), m->sh[3].sh_size = UINT64_MAX))

static const struct damage damages[] = {
	{"no magic", not_elf, -ENOEXEC, 0},
	{"32-bit", class32, -ENOTSUP, 0},
	{"big-endian", big_endian, -ENOTSUP, 0},
	{"other machine", other_machine, -ENOTSUP, 0},
	{"object file", object_file, -ENOTSUP, 0},
	{"core file", core_file, -ENOTSUP, 0},
	{"no program headers", no_phdrs, -EBADMSG, 0},
	{"65535 program headers", many_phdrs, -EBADMSG, 0},
	{"program headers of 1 byte", phdr_size, -EBADMSG, 0},
	{"program headers outside", phdrs_outside, -EBADMSG, 0},
	{"section headers outside", shdrs_outside, -EBADMSG, 0},
	{"65535 section headers", many_shdrs, -EBADMSG, 0},
	{"section headers of 0 bytes", shdr_size, -EBADMSG, 0},
	{"PT_LOAD past the end of memory", load_wraps, -EBADMSG, 0},
	{"PT_LOAD past the end of the file", load_outside, -EBADMSG, 0},
	{"PT_LOAD at the end of numbers", load_off_wraps, -EBADMSG, 0},
	{"an address in two PT_LOADs", loads_overlap, -EBADMSG, 0},
	{"PT_NOTE outside", note_outside, -EBADMSG, 0},
	{"PT_DYNAMIC outside", dynamic_outside, -EBADMSG, 0},
	{"PT_DYNAMIC endless", dynamic_huge, -EBADMSG, 0},
	{"PT_DYNAMIC without DT_NULL", dynamic_unended, 0, 0},
	{"note of 4 GiB", huge_note, 0, 0},
	{"hash: no bucket", no_buckets, 0, -EBADMSG},
	{"hash: buckets outside", many_buckets, 0, -EBADMSG},
	{"hash: no filter", no_words, 0, -EBADMSG},
	{"hash: filter no power of two", odd_words, 0, -EBADMSG},
	{"hash: filter outside", many_words, 0, -EBADMSG},
	{"hash: shift by 200", shift_too_far, 0, -EBADMSG},
	{"hash: bucket of an unhashed symbol", bucket_low, 0, -EBADMSG},
	{"hash: chain outside", bucket_high, 0, -EBADMSG},
	{"hash outside", hash_outside, 0, -EBADMSG},
	{"symbols outside", symtab_outside, 0, -EBADMSG},
	{"strings outside", strtab_outside, 0, -EBADMSG},
	{"strings endless", strtab_huge, 0, -EBADMSG},
	{"versions outside", versym_outside, 0, -EBADMSG},
	{"name outside the strings", name_outside, 0, -ENOENT},
	{"thread-local, no address", is_tls, 0, -ENOENT},
	{"absolute, no address", is_absolute, 0, -ENOENT},
	{"scan: nothing says how many", scan_no_count, 0, -ENOENT},
	{"scan: section endless", scan_many, 0, -EBADMSG},
	{"scan: hash says 4 G symbols", scan_hash_many, 0, -EBADMSG},
	{".symtab: strings in no section", link_outside, 0, -EBADMSG},
	{".symtab: strings in a symbol table", link_other, 0, -EBADMSG},
	{".symtab: entries of 0 bytes", symtab_entsize, 0, -EBADMSG},
	{".symtab endless", symtab_huge, 0, -EBADMSG},
	{".symtab outside", symtab_off, 0, -EBADMSG},
	{".strtab outside", strtab_off, 0, -EBADMSG},
	{".strtab endless", strtab_long, 0, -EBADMSG},
};

static void check_damage(const struct damage *d)
{
	struct err e = {0};
	struct image m;
	FREED(elf_closed) struct elf *f = NULL;
	int ret, found = 0;
	uint64_t va;

	image_init(&m);
	d->harm(&m);
	ret = open_bytes(&m, sizeof(m), &f, &e);
	if (!ret)
		found = find(f, "alpha", &va);
	if (ret != d->open_ret || found != d->alpha_ret)
		printf("# %s: open %d, find %d (%s)\n", d->what, ret, found, e.why);
	CHECK(ret == d->open_ret && found == d->alpha_ret);
	CHECK(!ret == !e.why[0] && !ret == !!f);
}

static void check_endless_chain(void)
{
	static struct {
		struct image m;
		uint32_t chain[100000];
	} big;
	struct err e = {0};
	FREED(elf_closed) struct elf *f = NULL;
	uint64_t va;

	image_init(&big.m);
	big.m.ph[0].p_filesz = sizeof(big);
	big.m.hash.chain[3] &= ~1u;
	/* The chain runs over everything that follows, far beyond the length of any valid chain. */
	memset(&big.m.versym, 0, sizeof(big) - offsetof(struct image, versym));
	big.chain[99999] = 1;
	big.m.eh.e_shoff = 0;
	big.m.ph[2].p_filesz = 0;
	CHECK(!open_bytes(&big, sizeof(big), &f, &e));
	CHECK(find(f, "nobody", &va) == -EBADMSG);
}

static void check_symbols_of_image(void (*harm)(struct image *))
{
	struct err e = {0};
	struct image m;
	FREED(elf_closed) struct elf *f = NULL;
	uint64_t va;

	image_init(&m);
	if (harm)
		harm(&m);
	CHECK(!open_bytes(&m, sizeof(m), &f, &e));
	CHECK(!find(f, "alpha", &va) && va == AT(code[0]));
	CHECK(!find(f, "beta", &va) && va == AT(code[8]));
	CHECK(find(f, "gamma", &va) == -ENOENT);
	CHECK(find(f, "alph", &va) == -ENOENT);
	CHECK(find(f, "", &va) == -ENOENT);
	CHECK(!find(f, "onetwo", &va) && va == AT(code[12]));
	CHECK(!find(f, "half", &va) && va == AT(code[28]));
	CHECK(find(f, "two", &va) == -ENOTUNIQ);
}

HARM(by_section, m->dyn[3].d_tag = DT_DEBUG)
HARM(by_sysv_hash, (m->dyn[3].d_tag = DT_HASH, m->hash.first = 5, m->sh[1].sh_type = SHT_NULL))

static void check_reads_of_image(void)
{
	struct err e = {0};
	struct image m;
	struct elf *f;
	uint64_t at;
	char buf[64];

	image_init(&m);
	CHECK(!open_bytes(&m, sizeof(m), &f, &e));
	CHECK(!elf_exec_off(f, AT(code), &at) && at == offsetof(struct image, code));
	CHECK(elf_exec_off(f, IMAGE_VA - 1, &at) == -ENOENT);
	CHECK(elf_exec_off(f, IMAGE_VA + sizeof(m), &at) == -ENOENT);
	CHECK(!elf_off_va(f, 0, &at) && at == IMAGE_VA);
	CHECK(elf_off_va(f, sizeof(m), &at) == -ENOENT);
	CHECK(!elf_read_va(f, IMAGE_VA + sizeof(m) - 8, buf, 8) && !memcmp(buf, "no end!!", 8));
	CHECK(elf_read_va(f, IMAGE_VA + sizeof(m) - 8, buf, 9) == -ENOENT);
	CHECK(elf_read_va(f, UINT64_MAX - 3, buf, 8) == -ENOENT);
	CHECK(elf_read_str_va(f, AT(strs[1]), buf, sizeof(buf)) == 5 && !strcmp(buf, "alpha"));
	CHECK(elf_read_str_va(f, AT(strs[1]), buf, 6) == 5 && !strcmp(buf, "alpha"));
	CHECK(elf_read_str_va(f, AT(strs[1]), buf, 4) == 3 && !strcmp(buf, "alp"));
	CHECK(elf_read_str_va(f, AT(strs[1]), buf, 1) == 0 && !buf[0]);
	CHECK(elf_read_str_va(f, AT(strs[1]), buf, 0) == -EINVAL);
	CHECK(elf_read_str_va(f, AT(end), buf, sizeof(buf)) == 8 && !strcmp(buf, "no end!!"));
	CHECK(elf_read_str_va(f, IMAGE_VA + sizeof(m), buf, sizeof(buf)) == -ENOENT && !buf[0]);
	elf_close(f);
	m.ph[0].p_flags = PF_R | PF_W;
	CHECK(!open_bytes(&m, sizeof(m), &f, &e));
	CHECK(elf_exec_off(f, AT(code), &at) == -ENOENT);
	elf_close(f);
}

static void check_shrinking(void)
{
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct err e = {0};
	struct image m;
	struct elf *f;
	uint64_t va;
	char buf[8];
	int err;

	image_init(&m);
	CHECK(write(fd, &m, sizeof(m)) == (ssize_t)sizeof(m));
	CHECK(!elf_open(fd, &f, &e));
	CHECK(!ftruncate(fd, sizeof(Elf64_Ehdr)));
	/* Data that was read before may be cached; other data gives an error. */
	err = elf_read_va(f, AT(strs), buf, sizeof(buf));
	CHECK(err == -ENODATA || (!err && !memcmp(buf, m.strs, sizeof(buf))));
	err = find(f, "alpha", &va);
	CHECK(err == -EBADMSG || (!err && va));
	elf_close(f);
	CHECK(elf_open(fd, &f, &e) && !f);
	close(fd);
}

static void check_notes(void)
{
	static const struct {
		uint32_t namesz, descsz, type;
		char name[8];
		size_t bytes, want;
	} notes[] = {
		{4, 20, NT_GNU_BUILD_ID, "GNU", 36, 20},	{4, 64, NT_GNU_BUILD_ID, "GNU", 80, 64},
		{4, 65, NT_GNU_BUILD_ID, "GNU", 84, 0},		{4, 0, NT_GNU_BUILD_ID, "GNU", 16, 0},
		{4, 21, NT_GNU_BUILD_ID, "GNU", 37, 21},	{4, 20, NT_GNU_BUILD_ID, "GNU", 35, 0},
		{4, 20, NT_GNU_ABI_TAG, "GNU", 36, 0},		{4, 20, NT_GNU_BUILD_ID, "LNU", 36, 0},
		{3, 20, NT_GNU_BUILD_ID, "GNU", 36, 0},		{UINT32_MAX, 20, NT_GNU_BUILD_ID, "GNU", 36, 0},
		{4, UINT32_MAX, NT_GNU_BUILD_ID, "GNU", 36, 0},
	};
	uint8_t id[ELF_BUILD_ID_MAX], raw[128] = {0};

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
		uint8_t *tight = malloc(notes[i].bytes); /* so that the sanitizer sees an overrun */

		memcpy(raw, &notes[i], 12);
		memcpy(raw + 12, notes[i].name, 4);
		memcpy(tight, raw, notes[i].bytes);
		if (elf_build_id_of_notes(tight, notes[i].bytes, id) != notes[i].want)
			printf("# note %zu\n", i);
		CHECK(elf_build_id_of_notes(tight, notes[i].bytes, id) == notes[i].want);
		free(tight);
	}
	CHECK(!elf_build_id_of_notes(NULL, 0, id));
}

/* ---- real files, compared with binutils */

static struct elf *open_path(const char *path)
{
	struct err e = {0};
	struct elf *f = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (elf_open(fd, &f, &e))
		printf("# %s: %s\n", path, e.why);
	close(fd);
	return f;
}

static struct buf slurp(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf b = {0};
	char part[65536];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) > 0)
		buf_put(&b, part, (size_t)n);
	close(fd);
	return b;
}

static FILE *binutils(const char *tool, const char *path)
{
	char cmd[4400];

	snprintf(cmd, sizeof(cmd), "LC_ALL=C %s '%s'", tool, path);
	return popen(cmd, "r");
}

static void check_build_id(struct elf *f, const char *path)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t n = elf_build_id(f, id);
	char line[512], want[2 * ELF_BUILD_ID_MAX + 1] = "", got[2 * ELF_BUILD_ID_MAX + 1] = "";
	FILE *p = binutils("readelf -n", path);

	while (fgets(line, sizeof(line), p))
		sscanf(line, " Build ID: %128[0-9a-f]", want);
	pclose(p);
	for (size_t i = 0; i < n; i++)
		sprintf(got + 2 * i, "%02x", id[i]);
	CHECK(n > 0 && !strcmp(got, want));
}

/*
 * Every function that nm lists with a size must be found with nm's address and size. A local name that nm lists twice
 * must be reported as ambiguous or found as one of the two.
 */
static void check_against_nm(struct elf *f, const char *tool, const char *path, unsigned at_least)
{
	unsigned seen = 0, wrong = 0;
	char line[8192], name[4096], kind;
	unsigned long long va, size;
	FILE *p = binutils(tool, path);

	while (fgets(line, sizeof(line), p)) {
		struct err e = {0};
		struct elf_sym s = {0};
		char *version;
		int ret;

		if (sscanf(line, "%llx %llx %c %4095s", &va, &size, &kind, name) != 4 || !strchr("TtWi", kind))
			continue;
		version = strchr(name, '@');
		if (version && version[1] != '@')
			continue; /* an old version: a lookup returns the default version */
		if (version)
			*version = '\0';
		ret = elf_find_sym(f, name, &s, &e);
		seen++;
		if (ret == -ENOTUNIQ && kind == 't')
			continue;
		if (!ret && s.va == va && s.size_bytes == size)
			continue;
		if (wrong++ < 5)
			printf("# %s: %d, %#llx, not %#llx (%c)\n", name, ret, (unsigned long long)s.va, va, kind);
	}
	pclose(p);
	printf("# %u symbols compared\n", seen);
	CHECK(!wrong && seen >= at_least);
}

static void check_no_sections(const char *path)
{
	FREED(buf_fini) struct buf b = slurp(path);
	Elf64_Ehdr *h = (Elf64_Ehdr *)b.data;
	struct err e = {0};
	FREED(elf_closed) struct elf *f = NULL;

	h->e_shoff = 0;
	h->e_shnum = 0;
	CHECK(!open_bytes(b.data, b.len, &f, &e));
	check_build_id(f, path);
	check_against_nm(f, "nm -DS --defined-only", path, 1000);
}

static void check_truncated(const char *path)
{
	FREED(buf_fini) struct buf b = slurp(path);
	size_t step = 1;

	CHECK(b.len > 8192);
	for (size_t n = 0; n < b.len; n += step) {
		struct err e = {0};
		struct elf *f;
		int ret = open_bytes(b.data, n, &f, &e);

		step = n < 1024 ? 1 : b.len / 199;
		if (!ret)
			printf("# opened with %zu of %zu bytes\n", n, b.len);
		CHECK(ret == (n < SELFMAG || n < EI_NIDENT ? -ENOEXEC : -EBADMSG) && !f);
	}
}

static void check_no_files(void)
{
	struct err e = {0};
	struct elf *f;
	int p[2], fd = open("/", O_RDONLY | O_DIRECTORY);

	CHECK(!pipe(p));
	CHECK(elf_open(p[0], &f, &e) == -ENOEXEC && !f);
	CHECK(elf_open(fd, &f, NULL) == -ENOEXEC && !f);
	CHECK(elf_open(-1, &f, NULL) == -EBADF && !f);
	close(p[0]);
	close(p[1]);
	close(fd);
	elf_close(NULL);
}

/* Known addresses of probes in mxnet 1.9.1, manylinux wheel. */
static void check_libmxnet(const char *path)
{
	static const char build_id[] = "472988f6268780302be9ee15d6c53d9a07b534f5";
	static const struct {
		const char *name;
		uint64_t va;
	} known[] = {
		{"_ZN5mxnet12on_enter_apiEPKc", 0x12ed770},
		{"_ZN5mxnet11on_exit_apiEv", 0x12ed350},
		{"_ZN5mxnet6engine14ThreadedEngine4PushEPNS0_3OprENS_7ContextEib", 0x139ba70},
		{"_ZN5mxnet6engine14ThreadedEngine15ExecuteOprBlockENS_10RunContextEPNS0_8OprBlockE", 0x13a3220},
		{"_ZN5mxnet6engine14ThreadedEngine16OnCompleteStaticEPNS_6EngineEPvPKN4dmlc5ErrorE", 0x139ab30},
		{"_ZN5mxnet6engine14ThreadedEngine10WaitForVarEPNS0_3VarE", 0x139b150},
		{"_ZN5mxnet6engine14ThreadedEngine10WaitForAllEv", 0x139b4a0},
		{"_ZN5mxnet11StorageImpl5AllocEPNS_7Storage6HandleE", 0x61c8e80},
		{"_ZN5mxnet11StorageImpl4FreeENS_7Storage6HandleE", 0x61c8ce0},
		{"_ZN5mxnet11StorageImpl10DirectFreeENS_7Storage6HandleE", 0x61c8db0},
	};
	FREED(elf_closed) struct elf *f = open_path(path);
	uint8_t id[ELF_BUILD_ID_MAX];
	uint64_t va, off;
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "";

	CHECK(f);
	if (!f)
		return;
	for (size_t i = 0, n = elf_build_id(f, id); i < n; i++)
		sprintf(hex + 2 * i, "%02x", id[i]);
	CHECK(!strcmp(hex, build_id));
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		CHECK(!find(f, known[i].name, &va) && va == known[i].va);
		CHECK(!elf_exec_off(f, va, &off) && off == va);
	}
	CHECK(find(f, "_ZN5mxnet13on_exit_neverEv", &va) == -ENOENT);
}

extern const char __executable_start; /* defined by the linker */
static char zeros[1 << 20];

/* Asks about the file that an address is in. */
static bool has_exceptions(void *in)
{
	Dl_info info;

	if (!dladdr(in, &info))
		return false;
	FREED(elf_closed)
	struct elf *f = open_path(strcmp(info.dli_fname, program_invocation_name) ? info.dli_fname : "/proc/self/exe");
	return elf_has_exceptions(f);
}

int main(void)
{
	uint64_t start_va, end_va;
	const char *mxnet = unit_library("MXBPF_TEST_LIBMXNET");
	char self[4096] = "";
	Dl_info libc;
	struct elf *f;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || !dladdr((void *)(uintptr_t)abort, &libc))
		return 1;
	TEST("the functions and build-id of this program are the same as in nm and readelf")
	{
		f = open_path(self);
		check_build_id(f, self);
		check_against_nm(f, "nm -S --defined-only", self, 20);
		elf_close(f);
	}
	TEST("the extent in memory includes the part beyond the file's contents")
	{
		f = open_path(self);
		elf_extent(f, &start_va, &end_va);
		CHECK(end_va - start_va >= (uint64_t)(zeros + sizeof(zeros) - &__executable_start));
		elf_close(f);
	}
	TEST("each function of libc is found by hash, in its default version")
	{
		f = open_path(libc.dli_fname);
		check_build_id(f, libc.dli_fname);
		check_against_nm(f, "nm -DS --defined-only", libc.dli_fname, 1000);
		elf_close(f);
	}
	TEST("a C library has no exceptions, a C++ library has, and so has a program that imports what throws")
	{
		CHECK(!has_exceptions((void *)(uintptr_t)zlibVersion) &&
		      has_exceptions((void *)(uintptr_t)__cxa_throw));
		CHECK(has_exceptions((void *)(uintptr_t)main)); /* the line above imports it */
	}
	TEST("a library without section headers can be read")
	check_no_sections(libc.dli_fname);
	TEST("a file truncated at any length gives an error and no crash")
	check_truncated(self);
	TEST("anything but a regular file is refused")
	check_no_files();
	TEST("lookup prefers defined symbols, the default version and global symbols, and refuses ambiguous names")
	check_symbols_of_image(NULL);
	TEST("a scan of the section's symbols finds the same symbols without a GNU hash")
	check_symbols_of_image(by_section);
	TEST("a scan of as many symbols as the SysV hash has finds the same symbols without sections")
	check_symbols_of_image(by_sysv_hash);
	TEST("a scan misses no name at the border of two blocks")
	check_many_names();
	TEST("addresses and offsets outside of the file are refused, and strings are always terminated")
	check_reads_of_image();
	TEST("each damaged field gives an error with a reason")
	{
		for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++)
			check_damage(&damages[i]);
	}
	TEST("an endless hash chain is abandoned")
	check_endless_chain();
	TEST("a file that shrinks while it is read gives an error and no crash")
	check_shrinking();
	TEST("a build-id is found in well-formed notes only")
	check_notes();
	TEST_IF(mxnet, "the symbols of libmxnet 1.9.1 have the known addresses", NO_MXNET)
	check_libmxnet(mxnet);
	UNIT_MAIN_END;
}
