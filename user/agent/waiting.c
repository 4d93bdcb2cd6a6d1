// SPDX-License-Identifier: Apache-2.0
#include "agent/waiting.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/libc.h"
#include "agent/restart.h"
#include "attach/regs.h"
#include "now/now.h"

#define TRIES 5

/* ---- stacks */

/*
 * Functions that wait without a lock. glibc's condition variables and semaphores wait with FUTEX_WAIT_BITSET and
 * its locks with FUTEX_WAIT. Older versions use FUTEX_WAIT for all, so one of these functions must be on the stack.
 */
static const char *const waits[] = {"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait",
				    "sem_wait",		 "sem_timedwait",	   "sem_clockwait"};
/* Libraries and functions that may hold a lock that loading the agent takes. */
static const char *const locking_libs[] = {"/ld-", "/ld.so", "jemalloc", "tcmalloc", "mimalloc"};
static const char *const locking_functions[] = {"malloc",   "calloc", "realloc", "free",
						"memalign", "fork",   "dlopen",	 "dl_iterate_phdr"};

static bool has_any(const char *text, const char *const *words, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}
#define HAS_ANY(text, words) has_any(text, words, sizeof(words) / sizeof((words)[0]))

static bool is_locking(const struct now_frame *f, const struct agt_libc *libc)
{
	size_t i;

	if (!f->lib || HAS_ANY(f->lib->path, locking_libs))
		return true;
	if (f->va + f->lib->load_bias - libc->restorer < 16) /* a signal handler waits */
		return true;
	for (i = 0; i < sizeof(locking_functions) / sizeof(locking_functions[0]); i++)
		if (!strcmp(f->name, locking_functions[i]))
			return true;
	return false;
}

static bool is_fit(pid_t pid, const struct now_thread *t, const struct agt_libc *libc)
{
	size_t n = buf_count(&t->frames, struct now_frame), i;
	const struct now_frame *f;
	bool no_lock = t->doing.syscall != SYS_futex || (t->doing.args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;

	if (!t->still || t->cut || !n || !restart_is_safe(pid, t->tid, t->doing.syscall, t->doing.args))
		return false;
	for (i = 0; i < n; i++) {
		f = buf_at(&t->frames, struct now_frame, i);
		if (is_locking(f, libc))
			return false;
		no_lock |= HAS_ANY(f->name, waits);
	}
	return no_lock;
}

static int waiting_look(struct now *n, const struct regs *regs)
{
	unsigned tries = TRIES;
	struct buf buf = {0};
	int moved = 1;

	while (moved > 0 && tries--) {
		buf.len = 0;
		if (tries != TRIES - 1)
			now_again(n);
		moved = regs_read(regs, &buf) ? -ENOMEM : now_take(n, &buf);
	}
	buf_fini(&buf);
	return moved < 0 ? moved : 0;
}

struct agt_wait agt_wait_of(pid_t tid, const struct tgt_doing *d)
{
	struct agt_wait w = {.tid = tid, .syscall = d->syscall, .sp = d->sp, .pc = d->pc};

	memcpy(w.args, d->args, sizeof(w.args));
	return w;
}

int agt_find_waiting(struct tgt *t, const struct plan *p, struct agt_wait *w, struct err *e)
{
	struct regs *regs = NULL;
	struct agt_libc libc;
	struct now_thread *th;
	struct now *n = NULL;
	int err;
	size_t i;

	*w = (struct agt_wait){0};
	err = agt_libc_find(t, &libc, e);
	err = err ? err : regs_open(tgt_pid(t), &regs, e);
	err = err ? err : now_begin(t, p, &n, e);
	if (!err && waiting_look(n, regs))
		err = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	err = err ? err : now_finish(n, e);
	for (i = 0; !err && !w->tid && (th = now_thread_at(n, i)); i++)
		if (is_fit(tgt_pid(t), th, &libc))
			*w = agt_wait_of(th->tid, &th->doing);
	now_free(n);
	regs_close(regs);
	if (err || w->tid)
		return err;
	return err_set(
		e, ERR_TARGET, -ENOENT,
		"no thread of process %d waits where it is known to hold no lock of an allocator or of the loader",
		tgt_pid(t));
}
