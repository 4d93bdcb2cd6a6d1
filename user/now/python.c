// SPDX-License-Identifier: Apache-2.0
/* Python stacks of all threads, also of those that run: a stack that changes while it is read is read again. */
#include "now/now.h"

#include <stdlib.h>
#include <string.h>

#include "python/python.h"

#define THREADS_MAX 64 /* that are shown */
#define TRIES	    5
#define TEXT_BYTES  8192

struct threads {
	struct py_thread list[THREADS_MAX];
	unsigned n, more;
};

/* The main thread, which is the oldest one, always has a place. */
static void python_keep(void *ctx, const struct py_thread *t)
{
	struct threads *all = ctx;

	if (all->n < THREADS_MAX) {
		all->list[all->n++] = *t;
		return;
	}
	if (t->main)
		all->list[THREADS_MAX - 1] = *t;
	all->more++;
}

/* Returns the bytes of the text; 0: the stack changed at each try, or the thread has ended. */
static size_t read_stack(struct py *p, const struct py_thread *t, char *text)
{
	struct mxbpf_stack stack;
	unsigned i, lost;
	size_t len;

	for (i = 0; i < TRIES; i++) {
		if (py_stack_of(p, t, &stack))
			continue;
		len = py_stack_text(p, &stack, text, TEXT_BYTES - 1, &lost);
		if (len && !lost)
			return len;
	}
	return 0;
}

static void put_thread(struct tgt *t, const struct py_thread *th, const char *text, struct buf *out)
{
	const pid_t tid = th->main ? tgt_pid(t) : th->id;
	const char *at, *end;
	struct tgt_container box;
	char comm[32] = "";

	tgt_container(tgt_pid(t), &box);
	if (tid && (th->main || !box.other_pid_ns)) /* else its number is that of its own namespace */
		tgt_thread_comm(t, tid, comm);
	buf_printf(out, tid ? "  thread %d" : "  a thread", tid);
	buf_printf(out, "%s%s%s%s\n", *comm ? " (" : "", comm, *comm ? ")" : "", th->main ? ", the main thread" : "");
	if (!*text)
		buf_printf(out, "    its stack changed each time that it was read\n");
	for (at = text; *at; at = *end ? end + 1 : end) {
		end = at + strcspn(at, "\n");
		buf_printf(out, "    %.*s\n", (int)(end - at), at);
	}
}

int now_python_text(struct tgt *t, const char *module_file, struct buf *out, struct err *e)
{
	struct threads all = {.n = 0};
	char text[TEXT_BYTES];
	struct py *p = NULL;
	unsigned i;

	if (py_open(t, &p, e))
		return e->code;
	py_set_module_file(p, module_file);
	py_each_thread(p, python_keep, &all);
	for (i = all.n; i; i--) { /* the list begins with the newest thread */
		text[read_stack(p, &all.list[i - 1], text)] = '\0';
		if (tgt_gone(t))
			break;
		put_thread(t, &all.list[i - 1], text, out);
	}
	if (all.more)
		buf_printf(out, "  %u more threads are not shown\n", all.more);
	py_close(p);
	return 0;
}
