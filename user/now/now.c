// SPDX-License-Identifier: Apache-2.0
#include "now/now.h"

#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "now/priv.h"
#include "now/unwind.h"
#include "python/python.h"

#define STACK_BYTES	 (256u << 10) /* limit of copied stack per thread, in bytes; outer frames are cut */
#define STACKS_MAX_BYTES (256u << 20) /* of all threads; those of the last threads are cut */
#define PYTHON_BYTES	 8192
#define LOCKS_MAX	 1000	  /* threads whose locks are read */
#define OBJECTS_MAX	 1000000u /* that are looked at for these */

/* The start of glibc's pthread_mutex_t. `lock` is 2 while another thread waits for the mutex. */
struct mutex {
	int32_t lock;
	uint32_t count;
	int32_t owner;
	uint32_t users;
	int32_t kind;
};
#define MUTEX_WAITED 2

/* A thread and the data to unwind its stack. */
struct taken {
	struct now_thread t;
	struct mxbpf_regs regs;
	struct buf stack; /* from the stack pointer on */
	bool looked;	  /* it sleeps and its data must still be read */
};

struct now {
	struct tgt *target;
	const struct plan *plan;
	struct py *py;	       /* NULL: no Python, or see no_python */
	struct err no_python;  /* why there are no Python stacks */
	struct unwind *unwind; /* owns the names of frames */
	struct taken *threads; /* owned */
	size_t n;
	size_t stack_bytes; /* in the copies of stacks */
	unsigned nlocks;    /* threads that have locks */
	unsigned objects;   /* that may still be looked at for locks */
};

/* Lists the threads. Sets *n. NULL: see errno. */
static struct taken *list_threads(const struct tgt *t, size_t *n)
{
	struct taken one = {0};
	struct buf all = {0};
	struct dirent *d;
	char path[48];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", tgt_pid(t));
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		one.t.tid = atoi(d->d_name);
		if (one.t.tid <= 0)
			continue;
		if (buf_put(&all, &one, sizeof(one)))
			break;
	}
	if (dir)
		closedir(dir);
	*n = buf_count(&all, struct taken);
	return (struct taken *)all.data;
}

static void first_look(const struct now *n, struct taken *k)
{
	k->looked = !tgt_peek_doing(tgt_pid(n->target), k->t.tid, &k->t.doing) && k->t.doing.sp;
}

int now_begin(struct tgt *t, const struct plan *p, struct now **out, struct err *e)
{
	struct now *n = calloc(1, sizeof(*n));
	size_t i;

	*out = NULL;
	if (!n)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	n->target = t;
	n->plan = p;
	n->objects = OBJECTS_MAX;
	if (py_open(t, &n->py, &n->no_python)) /* Python is optional here */
		n->py = NULL;
	else
		py_set_module_file(n->py, p->adp->module_file);
	n->threads = list_threads(t, &n->n);
	if (!n->n || tgt_gone(t)) {
		now_free(n);
		return err_set(e, ERR_TARGET, -ESRCH, "process %d has ended", tgt_pid(t));
	}
	for (i = 0; i < n->n; i++) {
		tgt_thread_comm(t, n->threads[i].t.tid, n->threads[i].t.comm);
		first_look(n, &n->threads[i]);
	}
	*out = n;
	return 0;
}

void now_again(struct now *n)
{
	size_t i;

	for (i = 0; i < n->n; i++) {
		if (n->threads[i].t.still)
			continue;
		n->threads[i].t.late = true;
		first_look(n, &n->threads[i]);
	}
}

/* Without BPF iterators /proc shows two registers, which is enough for functions without a frame pointer. */
static void take_regs(struct taken *k, const struct buf *regs)
{
	size_t i;

	k->regs = (struct mxbpf_regs){.tid = (__u32)k->t.tid};
	for (i = 0; i < buf_count(regs, struct mxbpf_regs); i++)
		if (buf_at(regs, struct mxbpf_regs, i)->tid == (__u32)k->t.tid)
			k->regs = *buf_at(regs, struct mxbpf_regs, i);
	k->regs.r[MXBPF_REGS_SP] = k->t.doing.sp;
	k->regs.r[MXBPF_REGS_PC] = k->t.doing.pc;
}

static int take_stack(struct now *n, struct taken *k)
{
	size_t left = STACKS_MAX_BYTES - n->stack_bytes, want = left < STACK_BYTES ? left : STACK_BYTES;
	char *at = want ? buf_add(&k->stack, want) : NULL;
	ssize_t got;

	if (!at)
		return want ? -ENOMEM : 0;
	got = tgt_read_some(n->target, k->t.doing.sp, at, want);
	k->stack.len = got > 0 ? (size_t)got : 0;
	n->stack_bytes += k->stack.len;
	at = realloc(k->stack.data, k->stack.len + 1);
	if (at) {
		k->stack.data = at;
		k->stack.cap = k->stack.len + 1;
	}
	return 0;
}

static int take_python(struct now *n, struct taken *k)
{
	char text[PYTHON_BYTES];
	struct mxbpf_stack s;
	unsigned lost;
	size_t len;

	if (!n->py || !k->regs.fs_base || py_check(n->py, &n->no_python) || py_thread_stack(n->py, k->regs.fs_base, &s))
		return 0;
	len = py_stack_text(n->py, &s, text, sizeof(text), &lost);
	k->t.python = strndup(text, len);
	return k->t.python ? 0 : -ENOMEM;
}

static void drop_locks(struct now *n, struct now_thread *t)
{
	n->nlocks -= t->locks != NULL;
	free(t->locks);
	t->locks = NULL;
}

/* Reads the locks of Python that a thread knows which may wait for one of them. */
static int take_locks(struct now *n, struct taken *k)
{
	const struct tgt_doing *d = &k->t.doing;
	const uint64_t op = d->args[1] & FUTEX_CMD_MASK;

	drop_locks(n, &k->t);
	k->t.fs_base = k->regs.fs_base;
	if (!k->t.python || n->nlocks >= LOCKS_MAX || d->syscall != SYS_futex ||
	    (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET) || d->args[3])
		return 0;
	k->t.futex = d->args[0];
	k->t.locks = malloc(sizeof(*k->t.locks));
	if (!k->t.locks)
		return -ENOMEM;
	n->nlocks++;
	if (py_thread_locks(n->py, k->t.fs_base, &n->objects, k->t.locks))
		drop_locks(n, &k->t);
	return 0;
}

/* Reads the owner of the lock if the thread may wait for one. check_owner() decides later by the stack. */
static void take_owner(const struct now *n, struct taken *k)
{
	const struct tgt_doing *d = &k->t.doing;
	struct mutex m;
	size_t i;

	if (d->syscall != SYS_futex || (d->args[1] & FUTEX_CMD_MASK) != FUTEX_WAIT || d->args[2] != MUTEX_WAITED ||
	    tgt_read(n->target, d->args[0], &m, sizeof(m)) || m.lock != MUTEX_WAITED)
		return;
	for (i = 0; i < n->n; i++)
		if (n->threads[i].t.tid == m.owner)
			k->t.holder = m.owner;
}

/* Reads the data of a thread, and checks that it did not run meanwhile. */
static int now_now_take(struct now *n, struct taken *k, const struct buf *regs)
{
	struct tgt_doing again;
	int err;

	k->looked = false;
	n->stack_bytes -= k->stack.len;
	k->stack.len = 0;
	take_regs(k, regs);
	take_owner(n, k);
	err = take_stack(n, k);
	err = err ? err : take_python(n, k);
	err = err ? err : take_locks(n, k);
	k->t.still = !tgt_peek_doing(tgt_pid(n->target), k->t.tid, &again) && again.sp == k->t.doing.sp &&
		     again.switches == k->t.doing.switches && again.state == k->t.doing.state;
	if (k->t.still)
		return err;
	k->t.doing = again;
	k->t.holder = 0;
	free(k->t.python);
	k->t.python = NULL;
	drop_locks(n, &k->t);
	return err;
}

int now_take(struct now *n, const struct buf *regs)
{
	int moved = 0, err = 0;
	size_t i;

	for (i = 0; !err && i < n->n; i++) {
		struct taken *k = &n->threads[i];

		if (k->looked)
			err = now_now_take(n, k, regs);
		moved += !k->t.still && k->t.doing.state && k->t.doing.state != 'R';
	}
	return err ? err : moved;
}

static int finish_thread(struct now *n, const struct calls *calls, struct taken *k)
{
	const struct tgt_lib *python = n->py ? py_lib(n->py) : NULL;
	struct buf frames = {0};
	int err = 0;
	size_t i;

	k->t.cut = !unwind_stack(n->unwind, &k->regs, &k->stack, NOW_FRAMES_MAX, &frames);
	for (i = 0; !err && i < buf_count(&frames, struct unwind_frame); i++) {
		const struct unwind_frame *u = buf_at(&frames, struct unwind_frame, i);
		struct now_frame f = {.name = unwind_name(n->unwind, u),
				      .lib = u->lib,
				      .va = u->va,
				      .python = u->lib && u->lib == python};

		calls_find(calls, &f);
		err = buf_put(&k->t.frames, &f, sizeof(f));
	}
	buf_fini(&frames);
	return err;
}

/* Any two words of memory may look like a locked mutex. Accept the owner only if the functions on the stack say so. */
static void check_owner(struct now_thread *t)
{
	size_t i, n = buf_count(&t->frames, struct now_frame);
	bool lock = false;

	for (i = 0; i < n && i < 3; i++)
		lock |= strstr(buf_at(&t->frames, struct now_frame, i)->name, "mutex_lock") ||
			strstr(buf_at(&t->frames, struct now_frame, i)->name, "lll_lock_wait");
	if (!lock)
		t->holder = 0;
}

int now_finish(struct now *n, struct err *e)
{
	struct calls calls = {0};
	int err = unwind_open(n->target, NULL, NULL, &n->unwind, e);
	size_t i;

	if (!err && calls_init(&calls, n->plan))
		err = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	for (i = 0; !err && i < n->n; i++) {
		if (n->threads[i].t.still && finish_thread(n, &calls, &n->threads[i]))
			err = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
		check_owner(&n->threads[i].t);
		buf_fini(&n->threads[i].stack);
	}
	calls_fini(&calls);
	return err;
}

struct now_thread *now_thread_at(struct now *n, size_t i)
{
	return i < n->n ? &n->threads[i].t : NULL;
}

struct tgt *now_target(const struct now *n)
{
	return n->target;
}

const struct plan *now_plan(const struct now *n)
{
	return n->plan;
}

struct py *now_py(const struct now *n)
{
	return n->py;
}

const char *now_python(const struct now *n)
{
	return n->py ? py_version(n->py) : NULL;
}

const char *now_no_python(const struct now *n)
{
	return n->no_python.code && n->no_python.code != -ENOENT ? n->no_python.why : NULL;
}

void now_free(struct now *n)
{
	size_t i;

	if (!n)
		return;
	for (i = 0; i < n->n; i++) {
		buf_fini(&n->threads[i].t.frames);
		buf_fini(&n->threads[i].stack);
		free(n->threads[i].t.python);
		free(n->threads[i].t.locks);
	}
	free(n->threads);
	py_close(n->py);
	unwind_close(n->unwind);
	free(n);
}
