// SPDX-License-Identifier: Apache-2.0
#include "feature/lines/load_native.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/regs.h"
#include "now/unwind.h"
#include "python/python.h"

#define THREADS_MAX 64
#define STACK_BYTES (64u << 10) /* that are copied of each thread */
#define FRAMES_MAX  256
#define NAME_BYTES  160	  /* of a line; the end of a longer name is cut */
#define NAMED_MAX   65536 /* names of functions that are kept; then all are forgotten */
#define CHECK_LOOKS 10	  /* looks until it is seen whether the process has mapped more files */

struct thread {
	struct mxbpf_regs regs;
	struct buf stack;
	struct buf text; /* of the stack */
	bool moved;	 /* since the look before */
};

struct native {
	pid_t pid;
	const char *runtime;
	struct regs *regs;
	struct tgt *t;
	struct unwind *unwind;
	const struct tgt_lib *program, *library; /* library: of the runtime */
	unsigned looks;
	bool unknown;	   /* a stack led into a file that is not known */
	struct buf all;	   /* struct mxbpf_regs, of the present look */
	struct buf frames; /* struct unwind_frame, of the present thread */
	struct thread threads[THREADS_MAX];
};

/* Directories of the system's libraries, and of what is installed for all. */
static const char *const system_dirs[] = {"/lib", "/usr/lib", "/opt/intel/", "/usr/local/cuda"};
/* Namespaces of libraries whose functions are compiled into the program, because they stand in headers. */
static const char *const libraries[] = {"std::", "__gnu_cxx::", "at::", "c10::", "caffe2::", "torch::"};

static bool starts_with_one(const char *text, const char *const *starts, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strncmp(text, starts[i], strlen(starts[i])))
			return true;
	return false;
}

#define STARTS_WITH_ONE(text, list) starts_with_one(text, list, sizeof(list) / sizeof((list)[0]))

static bool is_own_file(const void *ctx, const struct tgt_lib *lib)
{
	const struct native *n = ctx;
	const size_t dir = (size_t)(strrchr(n->library->path, '/') + 1 - n->library->path);

	return lib == n->program ||
	       (lib && strncmp(lib->path, n->library->path, dir) && !STARTS_WITH_ONE(lib->path, system_dirs));
}

/* The name of an instance of a template begins with the type of its result: "void fill<float>". */
static const char *without_result(const char *name)
{
	static const char nameless[] = "(anonymous namespace)";
	const char *c, *start = name;
	unsigned angles = 0;

	for (c = name; *c; c++) {
		if (!strncmp(c, nameless, sizeof(nameless) - 1)) {
			c += sizeof(nameless) - 2;
			continue;
		}
		if (!strncmp(c, "operator", 8) && (c == name || c[-1] == ':' || c[-1] == ' '))
			break;
		if (*c == ' ' && !angles && (c[1] != '(' || !strncmp(c + 1, nameless, sizeof(nameless) - 1)))
			start = c + 1;
		angles += *c == '<';
		angles -= *c == '>' && angles;
	}
	return start;
}

/* Appends the line of a frame, unless the function is one of a library. */
static void put_function(struct native *n, const struct unwind_frame *f, struct buf *text)
{
	const char *name = without_result(unwind_name(n->unwind, f));
	size_t at;

	if (STARTS_WITH_ONE(name, libraries) || !strcmp(name, "_start"))
		return;
	buf_printf(text, "%s%s: ", text->len ? "\n" : "", f->lib->path);
	at = text->len;
	if (*name)
		buf_printf(text, "%.*s", NAME_BYTES, name);
	else /* stripped files still say where a function begins */
		buf_printf(text, "+0x%" PRIx64, unwind_function(f));
	for (; at < text->len; at++)
		if (text->data[at] == '\n')
			text->data[at] = ' ';
}

/* Only a stack that was followed to its end counts: it may have changed since the registers were saved. */
static void read_text(struct native *n, struct thread *t)
{
	const struct unwind_frame *f;
	size_t i;

	n->frames.len = t->text.len = 0;
	if (!unwind_stack(n->unwind, &t->regs, &t->stack, FRAMES_MAX, &n->frames)) {
		i = buf_count(&n->frames, *f);
		n->unknown |= i && !buf_at(&n->frames, struct unwind_frame, i - 1)->lib;
		return;
	}
	for (i = 0; i < buf_count(&n->frames, *f); i++) {
		f = buf_at(&n->frames, struct unwind_frame, i);
		if (is_own_file(n, f->lib))
			put_function(n, f, &t->text);
	}
}

/* A thread with the same registers has slept since, or sleeps again in the same place. */
static void read_stack(const struct native *n, struct thread *t, const struct mxbpf_regs *r)
{
	ssize_t got = 0;

	t->moved = memcmp(&t->regs, r, sizeof(*r));
	t->regs = *r;
	t->stack.len = 0;
	if (t->moved && buf_add(&t->stack, STACK_BYTES))
		got = tgt_read_some(n->t, r->r[MXBPF_REGS_SP], t->stack.data, STACK_BYTES);
	t->stack.len = got > 0 ? (size_t)got : 0;
}

static void close_files(struct native *n)
{
	unwind_close(n->unwind);
	tgt_close(n->t);
	n->unwind = NULL;
	n->t = NULL;
}

/* Opens the files that the process has mapped now. */
static int open_files(struct native *n)
{
	char release[PY_RELEASE_BYTES];
	int err = tgt_open(n->pid, &n->t, NULL);
	size_t i;

	if (err)
		return err;
	for (i = 0; i < THREADS_MAX; i++) /* a thread that sleeps in a new file is read again */
		n->threads[i].regs = (struct mxbpf_regs){.tid = 0};
	n->program = tgt_program(n->t);
	n->library = tgt_find_lib(n->t, n->runtime);
	n->unknown = false;
	return !n->library || *py_release(n->t, release) ? -ENOENT
							 : unwind_open(n->t, is_own_file, n, &n->unwind, NULL);
}

static bool has_more_files(const struct native *n)
{
	struct tgt *t = NULL;
	const bool more = !tgt_open(n->pid, &t, NULL) && (!n->t || tgt_nlibs(t) != tgt_nlibs(n->t));

	tgt_close(t);
	return more;
}

struct native *native_new(pid_t pid, const char *runtime)
{
	struct native *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->pid = pid;
	n->runtime = runtime;
	if (!open_files(n) && !regs_open(pid, &n->regs, NULL))
		return n;
	native_free(n);
	return NULL;
}

void native_free(struct native *n)
{
	size_t i;

	if (!n)
		return;
	close_files(n);
	regs_close(n->regs);
	for (i = 0; i < THREADS_MAX; i++) {
		buf_fini(&n->threads[i].stack);
		buf_fini(&n->threads[i].text);
	}
	buf_fini(&n->all);
	buf_fini(&n->frames);
	free(n);
}

void native_each_thread(struct native *n, bool main_only,
			void (*fn)(void *ctx, pid_t tid, const char *text, size_t len), void *ctx)
{
	const struct mxbpf_regs *r;
	struct thread *t;
	size_t i, threads = 0;

	if ((n->unwind && unwind_named(n->unwind) > NAMED_MAX) ||
	    (n->unknown && ++n->looks % CHECK_LOOKS == 0 && has_more_files(n))) {
		close_files(n);
		open_files(n);
	}
	n->all.len = 0;
	if (!n->unwind || tgt_gone(n->t) || regs_read(n->regs, &n->all))
		return;
	r = (const void *)n->all.data;
	for (i = 0; i < buf_count(&n->all, *r) && threads < THREADS_MAX; i++)
		if (!main_only || (pid_t)r[i].tid == n->pid)
			read_stack(n, &n->threads[threads++], &r[i]);
	for (i = 0; i < threads && !tgt_gone(n->t); i++) {
		t = &n->threads[i];
		if (t->moved)
			read_text(n, t);
		if (t->text.len)
			fn(ctx, (pid_t)t->regs.tid, t->text.data, t->text.len);
	}
}
