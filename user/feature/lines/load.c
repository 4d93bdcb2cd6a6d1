// SPDX-License-Identifier: Apache-2.0
/*
 * Looks at the Python threads of a job ten times a second and notes the line on which each of them stands; in a program
 * without Python, at all threads and the function of the program in which each of them is. Everything
 * is read from /proc and from the memory of the processes while they run: nothing is stopped. A stack that changes
 * while it is read shows up as one that cannot be read, because each code object is checked by its print.
 */
#include "feature/inputs/load.h"
#include "feature/lines/lines.h"
#include "feature/lines/load_faults.h"
#include "feature/lines/load_native.h"
#include "feature/lines/load_network.h"
#include "feature/lines/load_ranks.h"
#include "feature/resident/resident.h"
#include "session/feature.h"
#include "session/priv.h"
#include "targets/targets.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "attach/slice.h"
#include "base/thread.h"
#include "mxbpf_lines.h"
#include "mxbpf_name.h"
#include "python/python.h"

#define COLLECTOR_MS   5    /* between two looks at a garbage collector, which cost one read each */
#define INPUTS_ROUNDS  5    /* of looks at the collector, to one at inputs */
#define REFRESH_LOOKS  10   /* looks until the children are listed again */
#define PROCESSES_MAX  32   /* of one job; others are not looked at */
#define RANKS_MAX      32   /* other ranks of the job and their workers, in addition */
#define RANK_THREADS   8    /* of another rank, so that its main thread is not late in being read */
#define NATIVES_MAX    8    /* without Python; the tables of a process's libraries take 20 MB */
#define THOROUGH_LOOKS 100  /* looks until other ranks are searched among all processes of the machine */
#define TEXT_BYTES     4096 /* of a part of a stack */
#define PARTS_MAX      8    /* of a stack; outer ones are left out */
#define LOCK_OBJECTS   64   /* of a thread that waits for a lock, which are read to find that lock */
#define GUARD_BYTES    300

struct process {
	pid_t pid;
	struct tgt *tgt;
	struct py *py;	       /* NULL: it runs no Python, or one that cannot be read */
	struct native *native; /* NULL: it runs Python, or not the runtime */
	bool rank;	       /* it does not descend from the root: another rank of the job, which has no probes */
	struct mxbpf_collector collector; /* since the last look at lines */
	bool collects;			  /* at the last look at the collector */
	struct ranks_place place;	  /* zeroed, unless it is a rank of the job */
	pid_t of;			  /* its parent, if that is one of these; 0: it is not */
	bool seen;			  /* in the present walk over the children and ranks */
	struct resident_reader memory;
};

/* The innermost call that is open on a thread. */
struct open {
	struct mxbpf_frame frame;
	uint32_t tgid;
	const struct ses_build *build; /* borrowed */
};

struct state {
	struct session *ses; /* NULL: the thread is not started, or has ended */
	pthread_t thread;
	int wake; /* eventfd: the end */
	struct process *processes[PROCESSES_MAX + RANKS_MAX];
	unsigned nprocesses, nranks; /* nranks: of them, those with rank set */
	struct ranks *ranks;	     /* NULL: none can be found */
	struct touches *touches;     /* NULL: no process with Python was found yet, or page faults cannot be sampled */
	bool touches_tried;
	struct network *network;
	struct inputs *inputs;
	struct hash frames; /* (tid, tgid) -> 1 + place in opens, of the present look */
	struct buf opens;   /* struct open */
	struct buf recs;    /* of the present look */
	unsigned looks;	    /* so far */
	char text[PARTS_MAX * TEXT_BYTES];
	/* of the present process */
	const struct ses_build *build;
	struct process *at;
	const struct py_thread *of_python; /* the present thread; NULL: it runs no Python */
	uint64_t at_ns;			   /* when its stack, or that of its thread, was read */
	struct py_thread threads[64];
	unsigned nthreads;
};

static void process_free(struct state *l, struct process *p)
{
	if (l->touches)
		touches_forget(l->touches, p->pid);
	native_free(p->native);
	py_close(p->py);
	tgt_close(p->tgt);
	free(p);
}

/* runtime: glob of its library, or NULL. */
static struct process *process_new(pid_t pid, const char *runtime)
{
	struct process *p = calloc(1, sizeof(*p));
	struct err e = {0};

	if (!p)
		return NULL;
	p->pid = pid;
	if (tgt_open(pid, &p->tgt, &e) || tgt_pid(p->tgt) != pid || py_open(p->tgt, &p->py, &e))
		p->py = NULL;
	if (p->py) {
		tgt_check_later(p->tgt, true); /* each look checks once */
		py_find_collector(p->py);
	} else if (p->tgt && runtime)
		p->native = native_new(pid, runtime);
	return p;
}

static struct process *lines_find(const struct state *l, pid_t pid)
{
	unsigned i;

	for (i = 0; i < l->nprocesses; i++)
		if (l->processes[i]->pid == pid)
			return l->processes[i];
	return NULL;
}

static struct process *lines_add(struct state *l, pid_t pid, bool rank)
{
	const struct adp *adp = l->ses->targets[0].plan.adp;
	unsigned natives = 0, i;
	struct process *p;

	if (rank ? l->nranks >= RANKS_MAX : l->nprocesses - l->nranks >= PROCESSES_MAX)
		return NULL;
	for (i = 0; i < l->nprocesses; i++)
		natives += l->processes[i]->native != NULL;
	p = process_new(pid, adp && natives < NATIVES_MAX ? adp->lib_glob : NULL);
	if (!p)
		return NULL;
	p->rank = rank;
	if (p->tgt && (rank || ses_is_root(l->ses, pid)))
		p->place = ranks_place(p->tgt);
	l->nranks += rank;
	l->processes[l->nprocesses++] = p;
	return p;
}

static void see(void *ctx, pid_t pid)
{
	struct state *l = ctx;
	struct process *p = lines_find(l, pid), *parent = l->at;

	p = p ? p : lines_add(l, pid, false);
	if (!p)
		return;
	p->of = parent ? parent->pid : p->of;
	if (p->seen)
		return;
	p->seen = true;
	if (parent && parent->place.number && parent->place.number == p->place.number)
		p->place = (struct ranks_place){.number = 0}; /* a worker has the environment of its rank */
	if (l->ses->o->no_follow)
		return;
	l->at = p;
	tgt_each_child(pid, see, l);
	l->at = parent;
}

static void see_rank(void *ctx, pid_t pid)
{
	struct state *l = ctx;
	struct process *p = lines_find(l, pid);

	p = p ? p : lines_add(l, pid, true);
	if (p)
		p->seen = true;
}

/* Samples the page faults of threads whose interpreters are alike. */
static void watch_touches(struct state *l, const struct process *p, const struct py_thread *t)
{
	const pid_t tid = t->main ? p->pid : t->id;

	if (p->rank || !tid)
		return;
	if (!l->touches_tried)
		l->touches = touches_new(l->ses, py_offsets(p->py));
	l->touches_tried = true;
	if (l->touches)
		touches_watch(l->touches, p->pid, tid, p->py, p->memory.forked);
}

/* What descends from another rank, with the present process for that rank. */
static void see_worker(void *ctx, pid_t pid)
{
	struct state *l = ctx;
	struct process *p = lines_find(l, pid);

	if (p && !p->of)
		return;
	see_rank(l, pid);
	p = lines_find(l, pid);
	if (p)
		p->of = l->at->pid;
}

/* A rank that was found among all processes stays until it ends. */
static bool lines_stays(const struct process *p)
{
	return p->rank && !p->of && p->tgt && tgt_alive(p->tgt);
}

/* The connections of ranks, if there is more than one. */
static void watch_network(struct state *l)
{
	unsigned i, ranks = 0;

	for (i = 0; i < l->nprocesses; i++)
		ranks += l->processes[i]->rank || l->processes[i]->place.number;
	if (!network_forget(l->network))
		return;
	for (i = 0; i < l->nprocesses && ranks > 1; i++)
		if (l->processes[i]->rank || l->processes[i]->place.number)
			network_watch(l->network, l->processes[i]->pid);
}

/* Lists the processes that were asked for with all that descends from them, and other ranks; drops what has ended. */
static void list_processes(struct state *l, bool thorough)
{
	unsigned i, n, kept = 0;

	for (i = 0; i < l->nprocesses; i++)
		l->processes[i]->seen = lines_stays(l->processes[i]);
	l->at = NULL;
	ses_each_root(l->ses, see, l);
	if (l->ranks)
		ranks_each(l->ranks, thorough, see_rank, l);
	n = l->nprocesses;
	for (i = 0; i < n && !l->ses->o->no_follow; i++) {
		l->at = l->processes[i];
		if (l->at->rank && l->at->seen && !l->at->of)
			tgt_each_child(l->at->pid, see_worker, l);
	}
	l->nranks = 0;
	for (i = 0; i < l->nprocesses; i++) {
		l->nranks += l->processes[i]->seen && l->processes[i]->rank;
		if (l->processes[i]->seen)
			l->processes[kept++] = l->processes[i];
		else
			process_free(l, l->processes[i]);
	}
	l->nprocesses = kept;
	if (l->touches)
		touches_tidy(l->touches);
	watch_network(l);
}

static void on_open(void *ctx, const struct att_open *o)
{
	struct state *l = ctx;
	uint64_t *at = hash_put(&l->frames, o->frame->tid, o->tgid);
	const struct open open = {*o->frame, o->tgid, l->build};

	if (!at)
		return;
	if (!*at && buf_put(&l->opens, &open, sizeof(open)))
		return;
	if (*at)
		*buf_at(&l->opens, struct open, *at - 1) = open; /* outer ones come first */
	else
		*at = buf_count(&l->opens, struct open);
}

/* The main thread, which is the oldest one, always has a place. */
static void keep_thread(void *ctx, const struct py_thread *t)
{
	const unsigned max = sizeof(((struct state *)ctx)->threads) / sizeof(*t);
	struct state *l = ctx;

	if (l->nthreads < max)
		l->threads[l->nthreads++] = *t;
	else if (t->main)
		l->threads[max - 1] = *t;
}

static uint8_t sleep_of(char state)
{
	switch (state) {
	case 'S':
		return MXBPF_SLEEP_ANY;
	case 'D':
		return MXBPF_SLEEP_DISK;
	case 'T':
	case 't':
		return MXBPF_SLEEP_STOPPED;
	default:
		return MXBPF_SLEEP_NOT;
	}
}

/* What the file of a process is, by the text of its link: looking at the file itself could wait for a file server. */
static uint8_t file_kind(pid_t pid, int fd)
{
	char path[64], text[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	n = readlink(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	if (!strncmp(text, "pipe:", 5))
		return MXBPF_ON_PIPE;
	if (!strncmp(text, "socket:", 7))
		return MXBPF_ON_NETWORK;
	return !strncmp(text, "/dev/pts/", 9) || !strncmp(text, "/dev/tty", 8) ? MXBPF_ON_TERMINAL : MXBPF_ON_NOTHING;
}

/* Reads the whole stack of a thread into l->text. Returns its length, or 0 if it cannot be read. */
static size_t read_stack(struct state *l, const struct py_thread *t)
{
	struct mxbpf_stack stack;
	unsigned lost = 0, part;
	uint64_t next = 0;
	size_t len = 0, n;

	for (part = 0; part < PARTS_MAX && (!part || next); part++) {
		if (py_stack_part(l->at->py, t, &next, &stack))
			break;
		stack.cut = stack.cut && part == PARTS_MAX - 1;
		n = py_stack_text(l->at->py, &stack, l->text + len + !!len, TEXT_BYTES - 1, &lost);
		if (lost)
			return 0;
		if (!n)
			continue;
		if (len)
			l->text[len++] = '\n';
		len += n;
	}
	return lines_shorten(l->text, len);
}

/* Adds the memory of the process, if it has not ended. */
static void look_at_memory(struct state *l)
{
	const struct mxbpf_resident *r = &l->at->memory.last;

	if (resident_read(&l->at->memory, l->at->pid, l->at->rank))
		buf_put(&l->recs, r, sizeof(*r)); /* without memory a reading is lost, which is one of many */
}

/* All of it is read at once, because mxbpf may wait for a CPU between two readings. */
static void read_account(const struct state *l, struct mxbpf_look *look)
{
	const struct ses_build *b;
	uint64_t cpu_ns, runq_ns;

	if (l->ses->o->slices)
		SES_EACH_BUILD(l->ses, b)
	look->iterations += att_iterations_of_thread(b->att, look->h.tgid, look->tid);
	if (tgt_peek_cpu((pid_t)look->h.tgid, (pid_t)look->tid, &cpu_ns, &runq_ns))
		return;
	look->read_ns = clock_ns(CLOCK_MONOTONIC);
	look->cpu_ns = cpu_ns;
	look->runq_ns = runq_ns;
}

/*
 * It waits for a lock of its frames, and has another one. A thread that waits for work has a frame of Python's library
 * inside, or waits for no lock of its frames.
 */
static bool waits_for_mutex(const struct state *l, size_t len, uint64_t futex)
{
	const char *end = memchr(l->text, '\n', len);
	unsigned i, k, objects = LOCK_OBJECTS;
	struct py_locks locks = {.n = 0};
	const struct py_lock *has;

	if (!l->of_python || !lines_is_program(l->text, end ? (size_t)(end - l->text) : len) ||
	    py_thread_locks(l->at->py, l->of_python->fs_base, &objects, &locks))
		return false;
	for (i = 0; i < locks.n && locks.list[i].futex != futex; i++)
		;
	for (k = 0; i < locks.n && k < locks.n; k++) {
		has = &locks.list[k];
		if (has->object != locks.list[i].object &&
		    (has->recursive ? has->owner == l->of_python->fs_base : has->with))
			return true;
	}
	return false;
}

/* Notes that a thread has the stack in l->text. tid 0: its number is not known. handles: an exception, or 0. */
static void note_look(struct state *l, pid_t tid, bool is_main, uint8_t handles, size_t len)
{
	struct mxbpf_agg_line r = {.h = {.kind = MXBPF_AGG_LINE, .size = sizeof(r), .tgid = (uint32_t)l->at->pid},
				   .tid = (uint32_t)tid,
				   .syscall = -1,
				   .count = 1,
				   .main = is_main,
				   .handles = handles,
				   .rank = l->at->rank,
				   .number = l->at->place.number,
				   .local_ranks = l->at->place.local_ranks,
				   .of = (uint32_t)l->at->of};
	struct mxbpf_look single = {.h = {.kind = MXBPF_LOOK, .size = sizeof(single), .tgid = (uint32_t)l->at->pid}};
	struct tgt_call call;
	const struct mxbpf_frame *f;
	uint64_t *at;

	r.h.ts_ns = l->at_ns;
	if (r.tid) {
		call = tgt_peek_call(l->at->pid, tid);
		r.sleeps = sleep_of(call.state);
		r.syscall = call.syscall;
		r.on = r.sleeps && call.fd >= 0 ? file_kind(l->at->pid, call.fd) : MXBPF_ON_NOTHING;
		single.flags = MXBPF_LOOK_KNOWN | (r.sleeps ? MXBPF_LOOK_SLEEPS : 0) |
			       (call.untimed ? MXBPF_LOOK_LOCKED : 0) | (r.rank ? MXBPF_LOOK_RANK : 0) |
			       (call.untimed && waits_for_mutex(l, len, call.futex) ? MXBPF_LOOK_MUTEX : 0) |
			       (r.sleeps == MXBPF_SLEEP_DISK ? MXBPF_LOOK_DISK : 0) |
			       (r.sleeps ? ((uint32_t)r.syscall + 1) << MXBPF_LOOK_SYSCALL : 0);
	}
	at = hash_get(&l->frames, r.tid, r.h.tgid);
	if (at && *at) {
		f = &buf_at(&l->opens, struct open, *at - 1)->frame;
		r.cls = f->cls;
		r.name_id = f->name_id;
		single.flags |= f->cls ? MXBPF_LOOK_CALL : 0;
	}
	r.stack_id = len ? ses_learn_stack(l->ses, &r.h, l->text, len) : 0;
	single.h.ts_ns = r.h.ts_ns;
	single.stack_id = r.stack_id;
	single.tid = r.tid;
	if (r.tid && !r.rank)
		read_account(l, &single);
	buf_put(&l->recs, &r, sizeof(r)); /* without memory a look is lost, which is one in many */
	if (len && (!r.rank || (r.main && !r.of)))
		buf_put(&l->recs, &single, sizeof(single));
}

/* Where the main thread stands while a collection runs, which changes no stack of Python. */
static void keep_main(void *ctx, const struct py_thread *t)
{
	struct state *l = ctx;
	size_t len = t->main ? read_stack(l, t) : 0;
	struct mxbpf_collector *c = &l->at->collector;

	if (len && !tgt_gone(l->at->tgt))
		c->stack_id = ses_learn_stack(l->ses, &c->h, l->text, len);
}

static void look_at_collector(struct state *l)
{
	struct mxbpf_collector *c = &l->at->collector;
	struct py_collector now;

	if (!l->at->py || c->looks == MXBPF_COLLECTOR_LOOKS || !py_collector(l->at->py, &now))
		return;
	c->last_ns = clock_ns(CLOCK_MONOTONIC);
	if (!c->looks)
		c->h = (struct mxbpf_rec){
			.kind = MXBPF_COLLECTOR, .size = sizeof(*c), .tgid = (uint32_t)l->at->pid, .ts_ns = c->last_ns};
	memcpy(c->collections, now.collections, sizeof(c->collections));
	c->runs |= (uint64_t)now.runs << c->looks++;
	if (now.runs && !l->at->collects && !c->stack_id)
		py_each_thread(l->at->py, keep_main, l);
	l->at->collects = now.runs;
}

/* Adds the looks at the collector since the last time. */
static void take_collector(struct state *l)
{
	struct mxbpf_collector *c = &l->at->collector;

	c->rank = l->at->rank;
	if (c->looks && !tgt_gone(l->at->tgt))
		buf_put(&l->recs, c, sizeof(*c)); /* without memory they are lost, which are a few of many */
	*c = (struct mxbpf_collector){.looks = 0};
}

/* Adds the function that PyTorch compiles anew, and the guard that has failed. Returns the new length. */
static size_t add_guard(struct state *l, const struct py_thread *t, size_t len)
{
	static const struct py_function compile = {"/torch/_dynamo/convert_frame.py", "_compile"};
	char code[GUARD_BYTES], reason[GUARD_BYTES];
	const char *compiler = lines_compiler(l->text, len);
	size_t max = MXBPF_NAME_BYTES_MAX - len;
	int n;

	if (!compiler || len >= MXBPF_NAME_BYTES_MAX || !py_local(l->at->py, t, compile, "code", code, sizeof(code)))
		return len;
	if (!py_local(l->at->py, t, compile, "recompile_reason", reason, sizeof(reason)))
		reason[0] = '\0'; /* it is compiled for the first time, or the version does not say */
	n = snprintf(l->text + len, max, "\n" LINES_GUARD "%s%s%s", code, reason[0] ? LINES_BECAUSE : "", reason);
	return n > 0 && (size_t)n < max ? len + (size_t)n : len;
}

/* The main thread of a rank that is alive has no frame: its program has ended, and handlers of its exit run. */
static void look_at_end(struct state *l)
{
	if (l->at->place.number && tgt_alive(l->at->tgt) && tgt_peek_call(l->at->pid, l->at->pid).state != 'R')
		note_look(l, l->at->pid, true, 0, 0);
}

static void look_at_thread(struct state *l, const struct py_thread *t)
{
	uint8_t handles;
	size_t len;

	l->at_ns = clock_ns(CLOCK_MONOTONIC);
	handles = py_handles(l->at->py, t);
	len = read_stack(l, t);
	len = add_guard(l, t, len);
	l->of_python = t;
	if (len && !tgt_gone(l->at->tgt)) {
		note_look(l, t->main ? l->at->pid : t->id, t->main, handles, len);
		watch_touches(l, l->at, t);
	} else if (t->main)
		look_at_end(l);
	l->of_python = NULL;
}

static void look_at_native(void *ctx, pid_t tid, const char *text, size_t len)
{
	struct state *l = ctx;

	len = len < sizeof(l->text) ? len : sizeof(l->text);
	memcpy(l->text, text, len);
	note_look(l, tid, tid == l->at->pid, 0, lines_shorten(l->text, len));
}

/* BPF drops a frame at the next hit of its thread, which may come long after the slice that saw its beginning. */
static bool is_seen(const struct open *o)
{
	const struct att *a = o->build->att;
	const uint64_t since_ns = att_active_since_ns(a);

	if (!since_ns || o->frame.start_ns < since_ns)
		return false;
	return !(o->frame.flags & MXBPF_FRAME_SLICED) ||
	       (att_slice_state(a) == ATT_SLICE_OPEN && o->frame.start_ns >= att_slice_from(a));
}

/* The inputs of the operators that run in the processes which are looked at. */
static void look_at_inputs(struct state *l)
{
	const struct open *o;
	const struct process *p;
	size_t i;

	for (i = 0; i < buf_count(&l->opens, struct open); i++) {
		o = buf_at(&l->opens, const struct open, i);
		p = lines_find(l, (pid_t)o->tgid);
		if (p && p->tgt && is_seen(o))
			inputs_look(l->inputs, p->tgt, &o->build->of->plan, &o->frame);
	}
}

static void look_at_opens(struct state *l)
{
	hash_fini(&l->frames);
	l->frames = (struct hash){0};
	l->opens.len = 0;
	SES_EACH_BUILD(l->ses, l->build)
	att_open_on_threads(l->build->att, on_open, l);
}

static void look_at_process(struct state *l)
{
	unsigned k;

	l->nthreads = 0;
	look_at_memory(l);
	take_collector(l);
	if (l->at->py)
		py_each_thread(l->at->py, keep_thread, l);
	l->at_ns = clock_ns(CLOCK_MONOTONIC);
	if (l->at->native)
		native_each_thread(l->at->native, l->at->rank, look_at_native, l);
	if (l->at->py && !l->nthreads)
		look_at_end(l);
	for (k = 0; k < l->nthreads; k++)
		if (!l->at->rank || l->threads[k].main || l->nthreads <= RANK_THREADS)
			look_at_thread(l, &l->threads[k]);
}

/* Each look begins with another process: the one that is always first would seem to be behind the others. */
static void lines_look(struct state *l, bool last)
{
	unsigned i;

	l->recs.len = 0;
	look_at_opens(l);
	if (inputs_take(l->inputs, &l->recs))
		l->recs.len = 0; /* without memory a look is lost, which is one in many */
	for (i = 0; i < l->nprocesses; i++) {
		l->at = l->processes[(i + l->looks) % l->nprocesses];
		look_at_process(l);
	}
	l->looks++;
	if (l->touches)
		touches_look(l->touches, last, &l->recs);
	network_look(l->network, &l->recs);
	if (l->recs.len && att_active_since_ns(l->ses->first->att))
		ses_keep(l->ses, l->recs.data, l->recs.len, 0);
}

/* Slices are a small part of the time, so that each look in one counts. A slice that has not begun is none. */
static bool in_slice(const struct state *l)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const struct ses_build *b;

	SES_EACH_BUILD(l->ses, b)
	if (l->ses->o->slices && att_slice_state(b->att) == ATT_SLICE_OPEN && att_slice_from(b->att) < now)
		return true;
	return false;
}

/* Looks at the collectors, and at inputs, until the next look at the lines. Returns false at the end. */
static bool lines_wait(struct state *l, uint64_t ns)
{
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ns;
	struct pollfd end = {.fd = l->wake, .events = POLLIN};
	unsigned i, round;

	for (round = 1; clock_ns(CLOCK_MONOTONIC) < until_ns; round++) {
		if (poll(&end, 1, COLLECTOR_MS))
			return false;
		if (round % INPUTS_ROUNDS == 0 || in_slice(l)) {
			look_at_opens(l);
			look_at_inputs(l);
		}
		for (i = 0; i < l->nprocesses; i++) {
			l->at = l->processes[i];
			look_at_collector(l);
		}
	}
	return true;
}

static void *lines_run(void *arg)
{
	struct state *l = arg;
	unsigned looks;

	/* Not all at one distance: a limit of CPU time has periods of 100 ms, too. */
	for (looks = 0; lines_wait(l, LINES_LOOK_NS + looks * 23 % 41 * NS_PER_MS - 20 * NS_PER_MS); looks++) {
		if (looks % REFRESH_LOOKS == 0)
			list_processes(l, looks % THOROUGH_LOOKS == 0);
		lines_look(l, false);
	}
	lines_look(l, true);
	return NULL;
}

static int lines_start(struct session *ses, struct err *e)
{
	struct state *l = ses_state(ses, &lines_session);
	int err;

	l->ses = ses;
	l->ranks = ranks_new(ses_root(ses), ses->targets[0].plan.adp);
	l->network = network_new();
	l->inputs = inputs_new(ses);
	l->wake = eventfd(0, EFD_CLOEXEC);
	err = l->wake < 0 ? -errno : !l->inputs ? -ENOMEM : thread_start(&l->thread, lines_run, l);
	if (!err)
		return 0;
	l->ses = NULL;
	if (l->wake >= 0)
		close(l->wake);
	ranks_free(l->ranks);
	network_free(l->network);
	inputs_free(l->inputs);
	return err_set(e, ERR_RUNTIME, err, "cannot start the thread that samples lines of Python: %s", strerror(-err));
}

static void lines_end(struct session *ses)
{
	struct state *l = ses_state(ses, &lines_session);
	const uint64_t one = 1;
	unsigned i;

	if (!l->ses)
		return;
	if (write(l->wake, &one, sizeof(one)) != sizeof(one))
		return; /* cannot happen: the counter is 0 */
	pthread_join(l->thread, NULL);
	l->ses = NULL;
	close(l->wake);
	for (i = 0; i < l->nprocesses; i++)
		process_free(l, l->processes[i]);
	ranks_free(l->ranks);
	touches_free(l->touches);
	network_free(l->network);
	inputs_free(l->inputs);
	hash_fini(&l->frames);
	buf_fini(&l->opens);
	buf_fini(&l->recs);
}

const struct ses_feature lines_session = {
	.state_bytes = sizeof(struct state), .start = lines_start, .end = lines_end, .fini = lines_end};
