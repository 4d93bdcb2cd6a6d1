// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the file behind a mapping. Its name may lead to another file by now. Only the mapped inode is accepted, and
 * only if it still holds what the process loaded, because a probe at an offset of another build corrupts the process.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fmt.h"
#include "target/priv.h"

#define PHDRS_MAX	256
#define NOTES_MAX_BYTES 4096
#define DYNS_MAX	256
/* How long to wait for the loader to finish mapping a library: it takes milliseconds if the disk must be read. */
#define LOADING_NS     1000000000ull /* each look takes long if the process has made many mappings */
#define LOADING_NAP_NS 2000000

/* The state of opening one library. */
struct look {
	struct tgt *t;
	struct tgt_slot *s;
	struct far_file file;
	struct elf *f;
	uint64_t phdrs_va;
	unsigned int nphdrs;
	bool same_inode; /* certain; otherwise only the build-id can tell */
	char name[240];	 /* the path, safe to print */
};

static const char silent[] =
	"cannot be read: its file system does not answer. Look at its server or, if it is FUSE, at the "
	"process that serves it";

static int lib_refuse(const struct look *k, int code, struct err *e, const char *why)
{
	return err_set(e, ERR_TARGET, code, "%s, mapped by process %s, %s", k->name, k->t->label, why);
}

/*
 * A name in the process's root must have the same inode number. The device is not compared: overlayfs and btrfs report
 * another st_dev than /proc/PID/maps. Such a name is looked up on any device on the way.
 */
static int open_inode(struct look *k, const char *name, bool by_name)
{
	const struct tgt_lib *lib = &k->s->lib;
	int err = far_open(k->t->far, k->t->procfd, name, by_name ? 0 : lib->dev, &k->file);

	if (err)
		return err;
	k->same_inode = k->file.ino == lib->ino && (!by_name || k->file.dev == lib->dev);
	if (!by_name || k->file.ino == lib->ino)
		return 0;
	far_close(&k->file);
	close(k->file.fd);
	return -ESTALE;
}

static int open_mapped(struct look *k, struct err *e)
{
	char name[PATH_MAX];
	int err, direct;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, k->s->start, k->s->end);
	direct = open_inode(k, name, false);
	if (!direct)
		return 0;
	if (direct == -ETIMEDOUT)
		return lib_refuse(k, direct, e, silent);
	snprintf(name, sizeof(name), "root%s", k->s->lib.path);
	err = open_inode(k, name, true);
	if (!err)
		return 0;
	if (tgt_gone(k->t))
		return tgt_fail(k->t, -ESRCH, "map_files", e);
	if (err == -ENOSYS)
		return err_set(
			e, ERR_PRIVILEGE, err,
			"cannot open %s of process %s: openat2() is forbidden here, as by RestrictSUIDSGID= of systemd",
			k->name, k->t->label);
	if ((direct == -EPERM || direct == -EACCES) && (err == -ENOENT || err == -ESTALE))
		return err_set(e, ERR_PRIVILEGE, direct,
			       "%s was deleted or replaced since process %s loaded it: only CAP_CHECKPOINT_RESTORE or "
			       "CAP_SYS_ADMIN can still open it; run mxbpf with sudo",
			       k->name, k->t->label);
	if (direct == -ENOENT)
		return lib_refuse(k, -ENOENT, e, "is no longer mapped there");
	return tgt_fail(k->t, err == -ENOENT || err == -ESTALE ? direct : err, "the mapped files", e);
}

/* Finds the program headers in the image. Without them the library can still be identified by its inode. */
static void find_phdrs(struct look *k)
{
	Elf64_Ehdr h;
	uint64_t va;

	if (elf_off_va(k->f, 0, &va) || elf_read_va(k->f, va, &h, sizeof(h)) || h.e_phentsize != sizeof(Elf64_Phdr) ||
	    elf_off_va(k->f, h.e_phoff, &k->phdrs_va))
		return;
	k->nphdrs = h.e_phnum < PHDRS_MAX ? h.e_phnum : PHDRS_MAX;
}

static bool phdr(const struct look *k, unsigned int i, Elf64_Phdr *ph)
{
	return i < k->nphdrs && !elf_read_va(k->f, k->phdrs_va + i * sizeof(*ph), ph, sizeof(*ph));
}

/*
 * Finds the load bias. A mapping begins at a page boundary, but the executable segment may begin inside the page. The
 * bytes before it may belong to a segment with another distance between offset and address.
 */
static int find_bias(struct look *k, struct err *e)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), i, off, va;

	for (i = 0; i < page; i++) {
		if (elf_off_va(k->f, k->s->off + i, &va) || elf_exec_off(k->f, va, &off) || off != k->s->off + i)
			continue;
		k->s->lib.load_bias = k->s->start + i - va;
		return 0;
	}
	return lib_refuse(
		k, -ESTALE, e,
		"has no executable segment at the mapped offset: it may have been overwritten in place; restart "
		"the job");
}

/* Reads the bytes that the process has at an address of the file. */
static int read_loaded(const struct look *k, uint64_t va, void *buf, size_t n, struct err *e)
{
	int err = tgt_read(k->t, k->s->lib.load_bias + va, buf, n);

	if (err == -ESRCH || err == -EPERM)
		return tgt_fail(k->t, err, "the memory", e);
	return err ? lib_refuse(k, -ESTALE, e, "differs in memory from the file: restart the job") : 0;
}

/* Checks that the build-id in the process's memory equals that of the file. */
static int check_build_id(struct look *k, struct err *e)
{
	struct tgt_lib *lib = &k->s->lib;
	uint8_t notes[NOTES_MAX_BYTES], id[ELF_BUILD_ID_MAX];
	Elf64_Phdr ph;
	unsigned int i;
	int err;

	lib->build_id_bytes = 0;
	for (i = 0; phdr(k, i, &ph); i++) {
		size_t n = ph.p_filesz < sizeof(notes) ? ph.p_filesz : sizeof(notes);

		if (ph.p_type != PT_NOTE || lib->build_id_bytes || elf_read_va(k->f, ph.p_vaddr, notes, n))
			continue;
		err = read_loaded(k, ph.p_vaddr, notes, n, e);
		if (err)
			return err;
		lib->build_id_bytes = elf_build_id_of_notes(notes, n, lib->build_id);
	}
	if (!lib->build_id_bytes)
		return k->same_inode ? 0 : lib_refuse(k, -ESTALE, e, "has no build-id, so it cannot be identified");
	if (elf_build_id(k->f, id) == lib->build_id_bytes && !memcmp(id, lib->build_id, lib->build_id_bytes))
		return 0;
	return lib_refuse(k, -ESTALE, e,
			  "was overwritten in place since it was loaded (other build-id): restart the job");
}

static bool find_dynamic(const struct look *k, Elf64_Phdr *ph)
{
	unsigned int i;

	for (i = 0; phdr(k, i, ph); i++)
		if (ph->p_type == PT_DYNAMIC)
			return true;
	return false;
}

/*
 * Waits for the loader. It maps the whole file in one piece first, and then each segment over it. Until the data
 * segment is mapped, its address shows other bytes of the file.
 */
static int await_loader(const struct look *k, const Elf64_Phdr *dynamic, struct err *e)
{
	const struct timespec nap = {.tv_nsec = LOADING_NAP_NS};
	uint64_t addr = k->s->lib.load_bias + dynamic->p_vaddr, end_ns = clock_ns(CLOCK_MONOTONIC) + LOADING_NS;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		if (tgt_maps_has(k->t, &k->s->lib, addr, dynamic->p_offset))
			return 0;
		if (tgt_gone(k->t))
			return tgt_fail(k->t, -ESRCH, "the memory", e);
		nanosleep(&nap, NULL);
	}
	return lib_refuse(k, -EAGAIN, e,
			  "is only partly mapped: the process may be stopped while it loads the file; try again");
}

/*
 * Compares the dynamic section. The pages of notes and code are shared with the page cache, so after an overwrite in
 * place they show the new file. The loader writes to the dynamic section, so the process has a private copy of it with
 * the sizes and addresses of the old file.
 */
static int compare_dynamic(const struct look *k, const Elf64_Phdr *dynamic, struct err *e)
{
	Elf64_Dyn disk[DYNS_MAX], mem[DYNS_MAX];
	uint64_t bias = k->s->lib.load_bias;
	size_t n = dynamic->p_filesz / sizeof(*disk) < DYNS_MAX ? dynamic->p_filesz / sizeof(*disk) : DYNS_MAX, j;
	int err;

	if (elf_read_va(k->f, dynamic->p_vaddr, disk, n * sizeof(*disk)))
		return 0;
	err = read_loaded(k, dynamic->p_vaddr, mem, n * sizeof(*mem), e);
	if (err)
		return err;
	for (j = 0; j < n; j++) {
		uint64_t was = mem[j].d_un.d_val, is = disk[j].d_un.d_val;

		/* Some loaders change addresses to absolute ones, and write DT_DEBUG. */
		if (mem[j].d_tag != disk[j].d_tag || (was != is && was != is + bias && disk[j].d_tag != DT_DEBUG))
			return lib_refuse(k, -ESTALE, e,
					  "was overwritten in place since it was loaded: restart the job");
		if (disk[j].d_tag == DT_NULL)
			break;
	}
	return 0;
}

static int check_dynamic(const struct look *k, struct err *e)
{
	struct err loading = {0};
	Elf64_Phdr dynamic;
	int err = find_dynamic(k, &dynamic) ? compare_dynamic(k, &dynamic, e) : 0;

	if (err != -ESTALE)
		return err;
	err = await_loader(k, &dynamic, &loading);
	if (e)
		*e = loading;
	return err ? err : compare_dynamic(k, &dynamic, e);
}

/* Makes mxbpf's own descriptor the name of the inode, so that no later mmap or rename can change the file. */
static int pin(struct look *k, int fd, struct err *e)
{
	char *path;

	if (asprintf(&path, "/proc/self/fd/%d", fd) < 0)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	free(k->s->lib.open_path);
	k->s->lib.open_path = path;
	k->s->fd = fd;
	k->s->lib.elf = k->f;
	return 0;
}

static bool stamp(int dirfd, const char *path, int flags, uint64_t *size_bytes, uint64_t *written_ns)
{
	struct statx st;

	/* A server that hangs by now is not asked. */
	if (statx(dirfd, path, flags | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME, &st))
		return false;
	*size_bytes = st.stx_size;
	*written_ns = (uint64_t)st.stx_mtime.tv_sec * 1000000000 + st.stx_mtime.tv_nsec;
	return true;
}

bool tgt_lib_same(const struct tgt_lib *lib)
{
	uint64_t size_bytes, written_ns;

	return !lib->size_bytes || !stamp(AT_FDCWD, lib->open_path, 0, &size_bytes, &written_ns) ||
	       (size_bytes == lib->size_bytes && written_ns == lib->written_ns);
}

static ssize_t read_source(void *ctx, void *buf, size_t n, uint64_t off)
{
	return far_pread(ctx, buf, n, off);
}

static void close_source(void *ctx)
{
	far_close(ctx);
	free(ctx);
}

/* Reads through the child if the file is far. In any case f->fd is still the caller's. */
static int open_elf(const struct far_file *f, struct elf **out, struct err *e)
{
	struct elf_source source = {
		.pread = read_source, .close = close_source, .size_bytes = f->size_bytes, .ctx = malloc(sizeof(*f))};

	if (!f->far) {
		free(source.ctx);
		return elf_open(f->fd, out, e);
	}
	if (!source.ctx) {
		far_close(f);
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	memcpy(source.ctx, f, sizeof(*f));
	return elf_open_from(&source, out, e);
}

int tgt_lib_look(struct tgt *t, const struct tgt_lib *lib, uint64_t max_bytes, struct elf **out)
{
	struct far_file f;
	int err = far_open(t->far, AT_FDCWD, lib->open_path, lib->dev, &f);

	*out = NULL;
	if (err)
		return err;
	if (f.size_bytes > max_bytes)
		far_close(&f);
	err = f.size_bytes > max_bytes ? -EFBIG : open_elf(&f, out, NULL);
	close(f.fd);
	return err;
}

int tgt_lib_elf(struct tgt *t, struct tgt_lib *lib, struct elf **out, struct err *e)
{
	struct look k = {.t = t, .s = (struct tgt_slot *)lib};
	struct err why = {0};
	int err;

	*out = lib->elf;
	if (lib->elf)
		return 0;
	fmt_safe(k.name, sizeof(k.name), lib->path, strlen(lib->path));
	err = open_mapped(&k, e);
	if (err)
		return err;
	stamp(k.file.fd, "", AT_EMPTY_PATH, &lib->size_bytes, &lib->written_ns);
	err = open_elf(&k.file, &k.f, &why);
	if (err) {
		if (err == -ETIMEDOUT)
			lib_refuse(&k, err, e, silent);
		else
			err_set(e, why.cls, err, "%s: %s", k.name, why.why);
		goto out;
	}
	find_phdrs(&k);
	err = find_bias(&k, e);
	if (!err)
		err = check_build_id(&k, e);
	if (!err)
		err = check_dynamic(&k, e);
	if (!err)
		err = pin(&k, k.file.fd, e);
out:
	if (err) {
		elf_close(k.f);
		close(k.file.fd);
		return err;
	}
	*out = k.f;
	return 0;
}
