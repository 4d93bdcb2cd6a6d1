// SPDX-License-Identifier: Apache-2.0
/* The table of `mxbpf now`: threads in calls come first, and threads that do the same share a block. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/syscall.h"
#include "cmd/now/now.h"

#define FRAMES_SHOWN 14
#define TIDS_SHOWN   8
#define NAME_COLUMNS 70

/* Order of the blocks. */
enum rank { IN_SPAN, IN_CALL, IN_PYTHON, RUNS, OTHER };

struct block {
	enum rank rank;
	uint64_t open_ns;
	const struct now_thread *t;
	struct buf text; /* the block without its first words, NUL-terminated */
	bool told;	 /* printed with the block of another thread */
};

static void text_put(struct buf *b, const char *text, size_t len)
{
	size_t n = fmt_safe(NULL, 0, text, len);
	char *at = buf_add(b, n + 1);

	if (!at)
		return;
	fmt_safe(at, n + 1, text, len);
	b->len--;
}

static void text_put_name(struct buf *b, const char *text)
{
	text_put(b, text, strlen(text));
}

static const char *state_word(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in uninterruptible sleep";
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a debugger";
	}
	return state ? "in another state" : "ended meanwhile";
}

static void put_doing(struct buf *b, const struct now_view *v, const struct now_thread *t)
{
	const struct tgt_doing *d = &t->doing;
	const char *call = syscall_name(d->syscall);
	char comm[32] = "";

	buf_printf(b, ": %s", state_word(d->state));
	if (call)
		buf_printf(b, " in %s", call);
	if (d->wchan[0]) {
		buf_printf(b, call ? " (" : " in ");
		text_put_name(b, d->wchan);
		buf_printf(b, call ? ")" : "");
	}
	if (t->holder) {
		buf_printf(b, ", waiting for a lock that thread %d (", t->holder);
		tgt_thread_comm(v->tgt, t->holder, comm);
		text_put_name(b, comm);
		buf_printf(b, ") holds");
	}
	buf_printf(b, "\n");
}

/* Only the first line of a part has its name. */
static void put_head(struct buf *b, const char *name, bool first)
{
	buf_printf(b, "  %-7s ", first ? name : "");
}

static void put_opens(struct buf *b, const struct now_view *v, const struct now_thread *t)
{
	const struct mxbpf_open *o;
	const char *name;
	size_t n, i, len;
	char ns[24];

	o = now_opens(v, t->tid, &n);
	for (i = 0; i < n; i++) {
		put_head(b, "open", !i);
		name = mdl_name(ses_model(v->ses), o[i].name_id, &len);
		text_put(b, name, len);
		buf_printf(b, ", for %s%s\n", fmt_ns(o[i].open_ns, ns),
			   o[i].flags & MXBPF_SPAN_ASYNC ? ", started here and continued on another thread" : "");
	}
}

static void put_last(struct buf *b, const struct now_view *v, const struct now_thread *t)
{
	const struct mxbpf_span *s = now_last(v, t->tid);
	const char *name;
	char ns[24];
	uint64_t end;
	size_t n, len;

	now_opens(v, t->tid, &n);
	if (n || t->doing.state != 'R')
		return;
	put_head(b, "last", true);
	if (!s) {
		buf_printf(b, "no probed call in this time\n");
		return;
	}
	name = mdl_name(ses_model(v->ses), s->name_id, &len);
	end = s->h.ts_ns + s->dur_ns;
	text_put(b, name, len);
	buf_printf(b, ", which ended %s %s\n",
		   fmt_ns(end < v->job->at_ns ? v->job->at_ns - end : end - v->job->at_ns, ns),
		   end < v->job->at_ns ? "before" : "later");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Shortens the arguments of a template: "initialize<...>". */
static void put_function(struct buf *b, const char *name)
{
	const bool is_long = strlen(name) > NAME_COLUMNS;
	unsigned angles = 0;
	const char *c;

	for (c = name; *c; c++) {
		if (*c == '<' && !angles++)
			buf_printf(b, is_long ? "<...>" : "<");
		else if (!angles || !is_long)
			text_put(b, c, 1);
		angles -= *c == '>' && angles;
	}
}

static void put_frame(struct buf *b, const struct now_view *v, const struct now_frame *f)
{
	const char *title = f->call ? ses_about(v->ses)->class_title[f->cls] : NULL;

	if (f->named && f->call) {
		text_put_name(b, f->call);
	} else if (f->name[0]) {
		put_function(b, f->name);
	} else {
		buf_printf(b, "0x%" PRIx64, f->va);
	}
	if (f->lib) {
		buf_printf(b, "  ");
		text_put_name(b, base_name(f->lib->path));
	}
	if (title) {
		buf_printf(b, "  [");
		text_put_name(b, title);
		buf_printf(b, "]");
	}
	buf_printf(b, "\n");
}

/* Skips the interpreter's own functions, because Python's frames say more. */
static void put_stack(struct buf *b, const struct now_view *v, const struct now_thread *t)
{
	size_t n = buf_count(&t->frames, struct now_frame), i, shown = 0;
	const struct now_frame *f = (const struct now_frame *)t->frames.data;

	while (n && !f[n - 1].name[0] && !f[n - 1].call) /* the start of a thread, which has no symbol */
		n--;
	for (i = 0; i < n && !f[i].name[0] && !f[i].call && i < 2;
	     i++) /* the system call, which may have no symbol either */
		;
	for (; i < n && shown < FRAMES_SHOWN; i++) {
		if (f[i].python && i && f[i - 1].python && t->python)
			continue;
		put_head(b, "stack", !shown++);
		if (f[i].python && t->python)
			buf_printf(b, "(Python)\n");
		else
			put_frame(b, v, &f[i]);
	}
	if (i < n) {
		put_head(b, "", false);
		buf_printf(b, "... and %zu more\n", n - i);
	} else if (n && t->cut) {
		put_head(b, "", false);
		buf_printf(b, "... (the callers are not known)\n");
	}
}

static void put_python(struct buf *b, const struct now_thread *t)
{
	const char *line = t->python ? t->python : "", *end;
	bool first = true;

	for (; *line; line = *end ? end + 1 : end, first = false) {
		end = line + strcspn(line, "\n");
		put_head(b, "python", first);
		text_put(b, line, (size_t)(end - line));
		buf_printf(b, "\n");
	}
}

static enum rank rank_of(const struct now_view *v, const struct now_thread *t, uint64_t *open_ns)
{
	size_t n, i;
	const struct mxbpf_open *o = now_opens(v, t->tid, &n);

	*open_ns = n ? o[n - 1].open_ns : 0;
	if (n)
		return IN_SPAN;
	for (i = 0; i < buf_count(&t->frames, struct now_frame); i++)
		if (buf_at(&t->frames, struct now_frame, i)->call)
			return IN_CALL;
	return t->python ? IN_PYTHON : t->doing.state == 'R' ? RUNS : OTHER;
}

static int text_make(struct block *b, const struct now_view *v, const struct now_thread *t)
{
	*b = (struct block){.t = t};
	b->rank = rank_of(v, t, &b->open_ns);
	put_doing(&b->text, v, t);
	put_opens(&b->text, v, t);
	put_last(&b->text, v, t);
	put_stack(&b->text, v, t);
	put_python(&b->text, t);
	return buf_put(&b->text, "", 1);
}

static int by_rank(const void *va, const void *vb)
{
	const struct block *a = va, *b = vb;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->open_ns != b->open_ns)
		return a->open_ns > b->open_ns ? -1 : 1;
	return a->t->tid < b->t->tid ? -1 : a->t->tid > b->t->tid;
}

static void print_thread(const struct now_thread *t)
{
	char safe[128];

	fmt_safe(safe, sizeof(safe), t->comm, strlen(t->comm));
	printf("%d (%s)", t->tid, safe);
}

/* Prints a block, together with the later blocks of the same text. */
static void print_block(struct block *b, const struct block *end)
{
	struct block *k;
	size_t same = 0;

	for (k = b; k < end; k++)
		same += !strcmp(k->text.data, b->text.data);
	if (same == 1)
		printf("\nthread ");
	else
		printf("\n%zu threads: ", same);
	for (k = b, same = 0; k < end; k++) {
		if (strcmp(k->text.data, b->text.data))
			continue;
		k->told = true;
		if (same++ >= TIDS_SHOWN)
			continue;
		printf(same > 1 ? ", " : "");
		print_thread(k->t);
	}
	printf("%s%s", same > TIDS_SHOWN ? ", ..." : "", b->text.data);
}

static void print_head(const struct now_view *v, size_t n)
{
	const char *cmdline = tgt_cmdline(v->tgt), *python = now_python(v->now);
	const char *title = *cmdline ? cmdline : tgt_comm(v->tgt);
	char safe[256], ns[24];

	fmt_safe(safe, sizeof(safe), title, strnlen(title, 60));
	if (v->rank != MDL_NO_NUMBER && now_view_at(v->job, 1))
		printf("rank %" PRIu32 ", ", v->rank);
	printf("process %d (%s), %s", tgt_pid(v->tgt), safe,
	       mdl_runtime_of(ses_about(v->ses), (uint32_t)tgt_pid(v->tgt)));
	if (python)
		printf(", Python %s", python);
	printf(": %zu thread%s, observed for %s\n", n, n == 1 ? "" : "s", fmt_ns(ses_about(v->ses)->duration_ns, ns));
}

static void put_who(const struct now_thread *t)
{
	char safe[PY_NAME_BYTES * 4];

	fmt_safe(safe, sizeof(safe), t->locks->thread, strlen(t->locks->thread));
	printf("thread %d", t->tid);
	if (*safe)
		printf(" (%s)", safe);
}

static void print_line(const char *line, size_t len)
{
	char safe[1024];

	fmt_safe(safe, sizeof(safe), line, len);
	printf("%s", safe);
}

static void print_deadlock(const struct now_view *v)
{
	struct now_deadlock d = {.n = 0};
	const struct now_wait *w;

	now_deadlock(v->now, &d);
	if (d.n)
		printf("\ndeadlock of %u thread%s: %s\n", d.n, d.n == 1 ? "" : "s",
		       d.n == 1 ? "it waits for a lock that it has itself"
				: "each waits for a lock that the next one has");
	for (w = d.waits; w < d.waits + d.n; w++) {
		printf("  ");
		put_who(w->thread);
		printf(" waits for %s ", w->lock[0] ? "lock" : "a lock");
		print_line(w->lock, strlen(w->lock));
		printf(" at ");
		print_line(w->line, w->line_len);
		printf(", which ");
		put_who(w->holder);
		printf("%s has", w->guessed ? " probably" : "");
		if (w->held_line) {
			printf(" at ");
			print_line(w->held_line, strlen(w->held_line));
		}
		printf("\n");
	}
	now_deadlock_fini(&d);
}

int now_print_text(const struct now_view *v, struct err *e)
{
	const struct now_thread *t;
	struct buf blocks = {0};
	struct block *b, *end;
	size_t i;
	int err = 0;

	for (i = 0; !err && (t = now_thread_at(v->now, i)); i++) {
		b = buf_add(&blocks, sizeof(*b));
		err = b ? text_make(b, v, t) : -ENOMEM;
	}
	b = (struct block *)blocks.data;
	end = b + buf_count(&blocks, struct block);
	if (!err) {
		if (i)
			qsort(b, i, sizeof(*b), by_rank);
		print_head(v, i);
		print_deadlock(v);
		for (; b < end; b++)
			if (!b->told)
				print_block(b, end);
	}
	for (b = (struct block *)blocks.data; b < end; b++)
		buf_fini(&b->text);
	buf_fini(&blocks);
	return err ? err_set(e, ERR_RUNTIME, err, "out of memory") : 0;
}
