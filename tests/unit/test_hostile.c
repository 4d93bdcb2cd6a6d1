/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that change, cut or lock the files that they have mapped while mxbpf reads them, and recordings made to use
 * up memory.
 */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <libgen.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <zlib.h>

#include "agent/memfd.h"
#include "base/clock.h"
#include "elf/copy.h"
#include "now/unwind.h"
#include "record/record.h"
#include "target/far.h"
#include "target/target.h"

#define BOMB_MIB 256 /* what a section unpacks to */

static char tree[4300];
static char lib[4200]; /* the library of all tests; beside the program, because /tmp may be noexec */

static void build(const char *program)
{
	static const char source[] = "int probe_me(int x) { return x + 1; }\n";
	char command[9000], self[4096];

	snprintf(self, sizeof(self), "%s", program);
	snprintf(lib, sizeof(lib), "%s/hostile.so", dirname(self));
	snprintf(command, sizeof(command), "echo '%s' | cc -x c - -shared -fPIC -nostdlib -O1 -Wl,--build-id -o '%s'",
		 source, lib);
	unlink(lib);
	if (system(command))
		abort();
}

/* ---- children */

struct kid {
	pid_t pid;
	int say;
	uint64_t addr; /* of probe_me(); 0: the child failed */
};

static void tell(int say, void *addr)
{
	uint64_t value = (uint64_t)(uintptr_t)addr;

	if (write(say, &value, sizeof(value)) == sizeof(value))
		pause();
}

static void load_and_stay(int say)
{
	void *so = dlopen(lib, RTLD_NOW);

	tell(say, so ? dlsym(so, "probe_me") : NULL);
}

/* A lease delays others that open the file, by default by 45 s. */
static void lease_and_stay(int say)
{
	int fd = open(lib, O_RDONLY);
	void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	signal(SIGIO, SIG_IGN);
	tell(say, map == MAP_FAILED || fcntl(fd, F_SETLEASE, F_WRLCK) ? NULL : map);
}

static struct kid start(void (*fn)(int say))
{
	struct kid k = {.addr = 0};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		abort();
	k.pid = fork();
	if (!k.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	k.say = ends[0];
	if (read(k.say, &k.addr, sizeof(k.addr)) != sizeof(k.addr))
		k.addr = 0;
	return k;
}

static void end(const struct kid *k)
{
	kill(k->pid, SIGKILL);
	waitpid(k->pid, NULL, 0);
	close(k->say);
}

/* ---- tests */

/*
 * Makes a section of the library unpack to zeros, thousands of times as many as it takes in the file. Returns whether
 * it could.
 */
static bool make_bomb(uint32_t type)
{
	static char zeros[1 << 20];
	Elf64_Chdr head = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = (uint64_t)BOMB_MIB << 20, .ch_addralign = 1};
	Elf64_Shdr sh = {.sh_type = SHT_NULL};
	struct stat st;
	Elf64_Ehdr eh;
	z_stream z = {.next_in = NULL};
	char *packed = malloc(BOMB_MIB << 14);
	int fd, i;

	build(lib);
	fd = open(lib, O_RDWR);
	if (!packed || fd < 0 || fstat(fd, &st) || pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || deflateInit(&z, 9))
		abort();
	for (i = 0; i < eh.e_shnum && sh.sh_type != type; i++)
		if (pread(fd, &sh, sizeof(sh), (off_t)eh.e_shoff + i * (off_t)sizeof(sh)) != sizeof(sh))
			abort();
	z.next_out = (Bytef *)packed;
	z.avail_out = BOMB_MIB << 14;
	for (int part = 0; part < BOMB_MIB; part++) {
		z.next_in = (Bytef *)zeros;
		z.avail_in = sizeof(zeros);
		deflate(&z, part == BOMB_MIB - 1 ? Z_FINISH : Z_NO_FLUSH);
	}
	sh.sh_offset = (uint64_t)st.st_size;
	sh.sh_size = sizeof(head) + z.total_out;
	sh.sh_flags = SHF_COMPRESSED;
	if (sh.sh_type != type || pwrite(fd, &sh, sizeof(sh), (off_t)eh.e_shoff + (i - 1) * (off_t)sizeof(sh)) < 0 ||
	    pwrite(fd, &head, sizeof(head), st.st_size) < 0 ||
	    pwrite(fd, packed, z.total_out, st.st_size + (off_t)sizeof(head)) < 0)
		abort();
	deflateEnd(&z);
	free(packed);
	return !close(fd);
}

static long peak_mib(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_maxrss >> 10;
}

/* Returns true if the innermost frame of a thread at this address is probe_me(). */
static bool is_named(struct unwind *u, uint64_t pc)
{
	char words[64] = {0};
	const struct buf stack = {.data = words, .len = sizeof(words)};
	struct mxbpf_regs r = {.tid = 1};
	FREED(buf_fini) struct buf frames = {0};

	r.r[MXBPF_REGS_PC] = pc;
	r.r[MXBPF_REGS_SP] = 0x1000;
	unwind_stack(u, &r, &stack, 8, &frames);
	return frames.len && !strcmp(unwind_name(u, buf_at(&frames, struct unwind_frame, 0)), "probe_me");
}

static void test_unwind(void)
{
	struct unwind *u = NULL;
	struct tgt *t = NULL;
	struct kid k = start(load_and_stay);

	CHECK(k.addr && !tgt_open(k.pid, &t, NULL) && !unwind_open(t, NULL, NULL, &u, NULL));
	TEST("a function on a stack is named although the process cuts its file after the first look")
	{
		CHECK(u && is_named(u, k.addr));
		CHECK(!truncate(lib, 0));
		CHECK(u && is_named(u, k.addr + 1)); /* an address whose name is not known yet */
	}
	unwind_close(u);
	u = NULL;
	build(lib);
	tgt_close(t);
	end(&k);
	k = start(load_and_stay);
	CHECK(k.addr && !tgt_open(k.pid, &t, NULL) && !unwind_open(t, NULL, NULL, &u, NULL));
	TEST("a stack in a file that the process cuts before the first look has no name, and mxbpf goes on")
	{
		CHECK(!truncate(lib, 0));
		CHECK(u && !is_named(u, k.addr));
	}
	unwind_close(u);
	tgt_close(t);
	end(&k);
}

static void test_bomb(void)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_STRTAB};
	struct unwind *u = NULL;
	struct tgt *t = NULL;
	struct kid k;
	long before;

	TEST("a table that would unpack to hundreds of megabytes is left packed, and the function has no name")
	{
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			CHECK(make_bomb(types[i]));
			k = start(load_and_stay);
			CHECK(k.addr && !tgt_open(k.pid, &t, NULL) && !unwind_open(t, NULL, NULL, &u, NULL));
			before = peak_mib();
			is_named(u, k.addr);
			CHECK(peak_mib() - before < BOMB_MIB / 4);
			unwind_close(u);
			tgt_close(t);
			end(&k);
		}
	}
	build(lib);
}

static struct elf *opened(void)
{
	struct elf *f = NULL;
	int fd = open(lib, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && !elf_open(fd, &f, NULL));
	close(fd);
	return f;
}

static void test_elf(void)
{
	static const uint8_t code[] = {0x8d, 0x47, 0x01, 0xc3}; /* lea eax, [rdi+1]; ret */
	struct elf_sym sym = {.va = 0};
	struct elf_copy c;
	uint64_t va = 0;
	struct elf *f;

	build(lib);
	f = opened();
	TEST("code is found by its bytes, in executable segments only, and not in a file that was cut")
	{
		CHECK(!elf_find_sym(f, "probe_me", &sym, NULL) && !elf_find_code(f, code, sizeof(code), &va));
		CHECK(va == sym.va);
		CHECK(elf_find_code(f, "probe_me", 8, &va) && va == sym.va);
		CHECK(!truncate(lib, 0) && elf_find_code(f, code, sizeof(code), &va) && va == sym.va);
	}
	elf_close(f);
	build(lib);
	f = opened();
	TEST("a copy has the tables of the file, keeps them when the file is cut, and has a limit")
	{
		CHECK(!elf_copy(f, true, 1u << 20, &c) && c.copied < c.bytes &&
		      memmem(c.image, c.bytes, "probe_me", 8));
		CHECK(!truncate(lib, 100));
		CHECK(memmem(c.image, c.bytes, "probe_me", 8) && !memmem(c.image, c.bytes, code, sizeof(code)));
		elf_copy_fini(&c);
		build(lib);
		CHECK(!elf_copy(f, true, 100, &c) && c.copied <= 100);
		elf_copy_fini(&c);
		CHECK(!elf_copy(f, false, 1u << 20, &c) && !memmem(c.image, c.bytes, "probe_me", 8));
		elf_copy_fini(&c);
	}
	elf_close(f);
}

static void test_lease(void)
{
	struct kid k;
	struct tgt *t = NULL;
	struct elf *f;
	uint64_t began_ns;

	build(lib);
	k = start(lease_and_stay);
	CHECK(k.addr && !tgt_open(k.pid, &t, NULL));
	TEST("a file with a lease, which would delay mxbpf, is refused at once")
	{
		began_ns = clock_ns(CLOCK_MONOTONIC);
		CHECK(t && tgt_find_lib(t, "hostile.so") && tgt_lib_elf(t, tgt_find_lib(t, "hostile.so"), &f, NULL));
		CHECK(clock_ns(CLOCK_MONOTONIC) - began_ns < 3000000000ull);
	}
	tgt_close(t);
	end(&k);
}

/* ---- a root of its own */

/* Its links would lead out of its root, to a file of root's. */
static void change_root_and_stay(int say)
{
	char up[5000], *out = realpath(lib, NULL);
	int fd;

	snprintf(up, sizeof(up), "../../../../../../../../../../../../../../../..%s", out);
	if (mkdir(tree, 0755) || chroot(tree) || chdir("/") || symlink(out, "out") || symlink(up, "up") ||
	    symlink("/file", "in") || symlink("loop", "loop") || mkfifo("pipe", 0666) || mkdir("folder", 0755) ||
	    mknod("device", S_IFCHR | 0666, makedev(1, 5)))
		return;
	fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	tell(say, fd >= 0 && write(fd, "text", 4) == 4 && !chdir("folder") ? &tree : NULL);
}

static void test_root(void)
{
	static const struct {
		const char *name;
		int err;
	} names[] = {{"file", 0},      {"in", 0},	  {"out", -ENOENT},    {"up", -ENOENT},
		     {"loop", -ELOOP}, {"pipe", -ESTALE}, {"folder", -ESTALE}, {"device", -ESTALE}};
	struct far *far = far_new();
	char name[5000], text[8];
	struct far_file f;
	struct tgt *t = NULL;
	struct kid k;
	size_t i;
	int dir, err;

	snprintf(tree, sizeof(tree), "%s.root", lib);
	k = start(change_root_and_stay);
	snprintf(name, sizeof(name), "/proc/%d", k.pid);
	dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	TEST_IF(!geteuid(),
		"links of a process with a root of its own do not lead out of it, and pipes and devices are not opened",
		"not root")
	{
		CHECK(k.addr && dir >= 0 && far);
		for (i = 0; i < 2 * sizeof(names) / sizeof(*names); i++) { /* mxbpf itself opens, and its child */
			snprintf(name, sizeof(name), "root/%s", names[i / 2].name);
			err = far_open(far, dir, name, i % 2 ? makedev(8, 1) : 0, &f);
			CHECK(err == names[i / 2].err && (err || f.size_bytes == 4));
			if (!err) {
				far_close(&f);
				close(f.fd);
			}
		}
		memset(name + 5, '/', sizeof(name) - 6); /* a long path is cut */
		name[sizeof(name) - 1] = '\0';
		CHECK(far_open(far, dir, name, 0, &f) == -ESTALE &&
		      far_open(far, dir, name, makedev(8, 1), &f) == -ENAMETOOLONG);
	}
	TEST_IF(!geteuid(), "no link leads out of it from its working directory either", "not root")
	{
		CHECK(!tgt_open(k.pid, &t, NULL));
		for (i = 0; t && i < sizeof(names) / sizeof(*names); i++) {
			snprintf(name, sizeof(name), "../%s", names[i].name);
			CHECK(tgt_read_file(t, name, text, sizeof(text)) == (names[i].err ? names[i].err : 4));
		}
	}
	tgt_close(t);
	far_free(far);
	end(&k);
	close(dir);
	snprintf(name, sizeof(name), "rm -rf '%s'", tree);
	CHECK(!system(name));
}

/* ---- descriptors */

/* Returns what memfd_open() returns for a descriptor of this process, which may only read the file. */
static int opened_again(int fd)
{
	char path[64];
	int got;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	got = memfd_open(path);
	close(fd);
	if (got >= 0)
		close(got);
	return got;
}

static void test_memfd(void)
{
	char shm[] = "/dev/shm/mxbpf-test.XXXXXX";
	int ends[2];

	TEST("the agent's image is written to memory of the process alone, whatever file has the number of its "
	     "descriptor")
	{
		CHECK(opened_again(memfd_create("mxbpf-agent", MFD_CLOEXEC)) >= 0);
		CHECK(opened_again(open(lib, O_RDONLY)) == -EPERM);
		CHECK(opened_again(mkstemp(shm)) == -EPERM && !unlink(shm));
		CHECK(opened_again(open("/dev/null", O_RDWR)) == -EPERM);
		CHECK(opened_again(open("/", O_PATH)) == -EPERM);
		CHECK(!pipe(ends) && opened_again(ends[0]) == -EPERM && !close(ends[1]));
		CHECK(memfd_open("/proc/self/fd/999999") == -ENOENT);
	}
}

/* ---- recordings */

static bool is_refused(const char *start, const char *again, unsigned n)
{
	FREED(buf_fini) struct buf json = {0};
	FREED(mdl_session_fini) struct mdl_session s = {0};

	buf_printf(&json, "%s", start);
	while (n--)
		buf_put(&json, again, strlen(again));
	buf_printf(&json, "]}");
	return rec_meta_read(json.data, json.len, &s, NULL) == -EBADMSG;
}

static void test_metadata(void)
{
	TEST("metadata of a recording in which each few bytes would need hundreds of bytes of memory is refused")
	{
		CHECK(!is_refused("{\"libs\":[{}", ",{}", 100));
		CHECK(is_refused("{\"libs\":[{}", ",{}", 300000));
		CHECK(is_refused("{\"other\":[0", ",0", 2200000));
		CHECK(is_refused("{\"libs\":[0", ",0", 100));
	}
}

int main(int argc, char **argv)
{
	build(argv[0]);
	test_unwind();
	test_bomb();
	test_elf();
	test_lease();
	test_root();
	test_memfd();
	test_metadata();
	unlink(lib);
	return unit_end();
}
