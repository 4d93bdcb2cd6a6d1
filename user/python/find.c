// SPDX-License-Identifier: Apache-2.0
/* Finds the interpreter of a process, and the place of each thread's state. */
#include "python/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * glibc keeps the values of a thread's keys after the thread's base. Those of the first 32 keys are in struct pthread
 * itself. musl keeps them in a list, whose address is in struct pthread. Find the key of the interpreter by scanning
 * its list of thread states: each state is at the same place of its thread. From 3.15 on it is in a thread-local
 * variable, which lies below the base.
 */
#define BELOW_WORDS	 512 /* words of thread-local variables that are searched */
#define THREAD_WORDS	 288 /* words of struct pthread that are searched */
#define ALL_WORDS	 (BELOW_WORDS + THREAD_WORDS)
#define THREAD_WORDS_MIN 32 /* the words before belong to the loader */
#define MUSL_LIST	 16 /* word with the address of the list in musl 1.2; before, it is the next one */
#define MUSL_LISTS	 2
#define MUSL_KEYS	 128
#define LOOKS		 20
#define LOOK_NS		 1000000
#define STATES_MAX	 256 /* of all interpreters */
#define INTERPS_MAX	 64
#define STATE_BYTES_MAX	 512
#define MINOR_VARIABLE	 15 /* from this version on, the variable has the state of a thread also without the lock */
#define HANDLED_BEFORE	 32 /* bytes before the number of a thread: the address of what it handles */
#define MINOR_NATIVE_ID	 11 /* from this version on, the native id stands behind the base of the thread */
#define MINOR_CURRENT	 12 /* from this version on, a thread in another interpreter has that one's state at its key */
#define NEXT_INTERP	 16 /* before 3.13: from the address of the newest interpreter, number of the next one */
#define RUNTIME_SYMBOL	 "_PyRuntime"

/* Libraries come first, because a program of this name may only call the library. */
static const char *const globs[] = {"libpython3.*.so*", "python3*", "python"};

bool py_word(const struct py *p, uint64_t addr, uint64_t *word)
{
	return addr && !tgt_read(p->t, addr, word, sizeof(*word));
}

/* Returns the address of an object of the interpreter, or 0 if the file does not name it. */
static uint64_t symbol(const struct tgt_lib *lib, const char *name)
{
	struct elf_sym sym;

	return elf_find_sym(lib->elf, name, &sym, NULL) ? 0 : sym.va + lib->load_bias;
}

/* Returns true if this file is an interpreter. If it cannot be read, *e has the reason. */
static bool is_interpreter(struct py *p, struct tgt_lib *lib, struct err *e)
{
	struct elf *elf;

	if (!lib || tgt_lib_elf(p->t, lib, &elf, e))
		return false;
	p->runtime = symbol(lib, RUNTIME_SYMBOL);
	p->code_type = symbol(lib, "PyCode_Type");
	p->text_type = symbol(lib, "PyUnicode_Type");
	p->bytes_type = symbol(lib, "PyBytes_Type");
	return p->runtime && p->code_type && p->text_type && p->bytes_type;
}

struct tgt_lib *py_find_interpreter(struct py *p, struct err *e)
{
	struct tgt_lib *lib;
	size_t i;

	for (i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
		lib = tgt_find_lib(p->t, globs[i]);
		if (is_interpreter(p, lib, e))
			return lib;
	}
	lib = tgt_program(p->t); /* a program with the interpreter inside */
	return is_interpreter(p, lib, e) ? lib : NULL;
}

/* Reads the version from a constant, which exists from 3.11 on, or else from the name of the file. */
unsigned py_minor(const struct py *p, const struct tgt_lib *lib)
{
	uint64_t addr = symbol(lib, "Py_Version"), hex;
	const char *at = strrchr(lib->path, '/');
	unsigned minor;

	if (addr)
		return py_word(p, addr, &hex) && hex >> 24 == 3 ? hex >> 16 & 0xff : 0;
	at = at ? strstr(at, "python3.") : NULL;
	return at && sscanf(at, "python3.%u", &minor) == 1 ? minor : 0;
}

static int choose_layout(struct py *p, const struct tgt_lib *lib, struct err *e)
{
	unsigned minor = py_minor(p, lib);
	const struct py_layout *l = py_layout_of(minor);

	if (!minor)
		return err_set(e, ERR_TARGET, -ENOTSUP, "cannot find the Python version of %s", lib->path);
	if (!l)
		return err_set(e, ERR_TARGET, -ENOTSUP, "Python 3.%u is not supported (3.8 to 3.15 are)", minor);
	p->l = *l;
	return py_describe(p, e);
}

/* Reads the words below and above the base of a thread. Words that are not mapped become 0. */
static void read_words(const struct py *p, uint64_t thread, uint64_t has[ALL_WORDS])
{
	uint64_t below = BELOW_WORDS * sizeof(*has);

	if (tgt_read(p->t, thread - below, has, below)) {
		below = thread % below;
		if (tgt_read(p->t, thread - below, has + BELOW_WORDS - below / sizeof(*has), below))
			memset(has, 0, BELOW_WORDS * sizeof(*has));
	}
	memset(has + BELOW_WORDS, 0, THREAD_WORDS * sizeof(*has));
	tgt_read_some(p->t, thread, has + BELOW_WORDS, THREAD_WORDS * sizeof(*has));
}

static uint64_t word_at(const uint8_t *bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

bool py_read_state(const struct py *p, uint64_t state, struct py_thread *t, uint64_t *next)
{
	const size_t thread = p->l.walk.state_start + p->l.walk.state_thread, id = thread + sizeof(uint64_t);
	const size_t frame = p->l.walk.state_start + p->l.walk.state_frame;
	size_t bytes = id > frame ? id : frame;
	uint8_t all[STATE_BYTES_MAX];

	bytes = (bytes > p->l.state_next ? bytes : p->l.state_next) + sizeof(uint64_t);
	if (!state || bytes > sizeof(all) || tgt_read(p->t, state, all, bytes))
		return false;
	*t = (struct py_thread){.fs_base = word_at(all, thread),
				.frame = word_at(all, frame),
				.handled = word_at(all, thread - HANDLED_BEFORE)};
	if (p->l.minor >= MINOR_NATIVE_ID)
		t->id = (int)word_at(all, id);
	*next = word_at(all, p->l.state_next);
	return true;
}

/*
 * Calls fn for the states of the threads of each interpreter, the newest ones first. A thread has a state in each
 * interpreter that it is in.
 */
static void each_state(const struct py *p, void (*fn)(void *ctx, uint64_t state, const struct py_thread *t), void *ctx)
{
	uint64_t interp, state, next;
	unsigned states = 0, interps;
	struct py_thread t;

	if (!py_word(p, p->runtime + p->l.runtime_interp, &interp))
		return;
	for (interps = 0; interps < INTERPS_MAX && py_word(p, interp + p->l.interp_states, &state); interps++) {
		for (; states < STATES_MAX && py_read_state(p, state, &t, &next); states++, state = next)
			if (t.fs_base)
				fn(ctx, state, &t);
		if (!py_word(p, interp + p->l.interp_next, &interp) || !interp)
			break;
	}
}

int py_check(const struct py *p, struct err *e)
{
	uint64_t made; /* -1 before the first one */

	if (p->l.minor >= MINOR_CURRENT || !py_word(p, p->runtime + p->l.runtime_interp + NEXT_INTERP, &made) ||
	    (int64_t)made <= 1)
		return 0;
	return err_set(e, ERR_TARGET, -ENOTSUP,
		       "its Python %s has made several interpreters, and does not say which of them a thread runs "
		       "(3.12 and later do)",
		       p->l.version);
}

struct vote {
	const struct py *p;
	unsigned votes[ALL_WORDS], threads;
	unsigned lists[MUSL_LISTS][MUSL_KEYS];
};

/* In 1.2 the next word is the address of another word behind it. */
static void vote_lists(struct vote *v, uint64_t state, uint64_t thread, const uint64_t *has)
{
	uint64_t list[MUSL_KEYS];
	unsigned i, k;

	for (i = 0; i < MUSL_LISTS; i++) {
		if (has[MUSL_LIST + i] - thread < THREAD_WORDS_MIN * sizeof(*has))
			continue;
		memset(list, 0, sizeof(list));
		tgt_read_some(v->p->t, has[MUSL_LIST + i], list, sizeof(list));
		for (k = 0; k < MUSL_KEYS; k++)
			v->lists[i][k] += list[k] == state;
	}
}

static void vote(void *ctx, uint64_t state, const struct py_thread *t)
{
	uint64_t has[ALL_WORDS] = {0};
	struct vote *v = ctx;
	unsigned k;

	read_words(v->p, t->fs_base, has);
	v->threads++;
	for (k = 0; k < ALL_WORDS; k++)
		v->votes[k] += has[k] == state;
	vote_lists(v, state, t->fs_base, has + BELOW_WORDS);
}

/* Returns the first word with the most votes of words from..to, and how many words have as many. */
static unsigned most_votes(const struct vote *v, unsigned from, unsigned to, unsigned *n)
{
	unsigned k, best = from;

	for (k = from, *n = 0; k < to; k++) {
		*n = v->votes[k] > v->votes[best] ? 1 : *n + (v->votes[k] == v->votes[best]);
		best = v->votes[k] > v->votes[best] ? k : best;
	}
	return best;
}

/* Returns true if more threads have their states in a list of musl than at one place. */
static bool find_list(struct py *p, const struct vote *v, unsigned least)
{
	unsigned i, k, most = least;

	for (i = 0; i < MUSL_LISTS; i++)
		for (k = 0; k < MUSL_KEYS; k++)
			if (v->lists[i][k] > most) {
				most = v->lists[i][k];
				p->l.walk.tls = (int32_t)((MUSL_LIST + i) * sizeof(uint64_t));
				p->l.walk.tls_key = (uint16_t)(k + 1);
			}
	return most > least;
}

/*
 * The place is the same in all threads, so one that another thread does not confirm is wrong. A library may keep the
 * state of its threads, too (pybind11 before 2.13); the interpreter made its key first. A wrong place would lack
 * states, and never give a wrong one, because each state names its thread.
 */
static int find_tls(struct py *p, struct err *e)
{
	struct vote v = {.p = p};
	unsigned best, n, looks;

	each_state(p, vote, &v);
	if (!v.threads)
		return err_set(e, ERR_TARGET, -ENOENT, "its Python %s runs no thread yet", p->l.version);
	best = most_votes(&v, BELOW_WORDS + THREAD_WORDS_MIN, ALL_WORDS, &n);
	if (!v.votes[best] && p->l.minor >= MINOR_VARIABLE)
		best = most_votes(&v, 0, BELOW_WORDS, &n);
	/* A second variable has the same value while the thread holds the global lock, so look until they differ. */
	for (looks = 1; best < BELOW_WORDS && v.votes[best] && n > 1 && looks < LOOKS; looks++) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		each_state(p, vote, &v);
		best = most_votes(&v, 0, BELOW_WORDS, &n);
	}
	if (find_list(p, &v, v.votes[best]))
		return 0;
	if (!v.votes[best])
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "its Python %s keeps thread states in an unknown place (threads of glibc and musl are "
			       "supported)",
			       p->l.version);
	p->l.walk.tls = ((int32_t)best - BELOW_WORDS) * (int32_t)sizeof(uint64_t);
	return 0;
}

bool py_current_state(const struct py *p, uint64_t fs_base, uint64_t *state)
{
	return py_word(p, fs_base + (uint64_t)p->l.walk.tls, state) &&
	       (!p->l.walk.tls_key || py_word(p, *state + (p->l.walk.tls_key - 1) * sizeof(*state), state));
}

struct threads {
	const struct py *p;
	struct py_thread list[STATES_MAX];
	unsigned n;
	uint64_t oldest; /* base of the thread that has the oldest state of the oldest interpreter */
};

static void keep_thread(void *ctx, uint64_t state, const struct py_thread *t)
{
	struct threads *all = ctx;
	uint64_t current;

	all->oldest = t->fs_base;
	if (py_current_state(all->p, t->fs_base, &current) && current == state)
		all->list[all->n++] = *t;
}

void py_each_thread(const struct py *p, void (*fn)(void *ctx, const struct py_thread *t), void *ctx)
{
	struct threads all = {.p = p};
	struct py_thread *t;
	unsigned i;

	if (py_check(p, NULL))
		return;
	each_state(p, keep_thread, &all);
	for (i = 0; i < all.n; i++) {
		t = &all.list[i];
		t->main = t->id ? (uint32_t)t->id == p->number : t->fs_base == all.oldest;
		fn(ctx, t);
	}
}

int py_open(struct tgt *t, struct py **out, struct err *e)
{
	struct py *p = calloc(1, sizeof(*p));
	struct tgt_lib *lib;
	struct err why = {0};
	unsigned levels;
	int err;

	*out = NULL;
	if (!p)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	p->t = t;
	p->number = tgt_peek_number(tgt_pid(t), tgt_pid(t), &levels);
	p->lib = lib = py_find_interpreter(p, &why);
	if (!lib && why.code)
		err = err_set(e, why.cls, why.code, "%s", why.why);
	else if (!lib)
		err = err_set(e, ERR_TARGET, -ENOENT, "it runs no Python, or one whose file names no %s",
			      RUNTIME_SYMBOL);
	else
		err = choose_layout(p, lib, e);
	err = err ? err : py_check(p, e);
	err = err ? err : find_tls(p, e);
	if (err) {
		py_close(p);
		return err;
	}
	*out = p;
	return 0;
}

const char *py_version(const struct py *p)
{
	return p->l.version;
}

const char *py_release(struct tgt *t, char buf[PY_RELEASE_BYTES])
{
	struct py p = {.t = t};
	const struct tgt_lib *lib = py_find_interpreter(&p, NULL);
	const unsigned minor = lib ? py_minor(&p, lib) : 0;
	uint64_t hex;

	buf[0] = '\0';
	if (minor && py_word(&p, symbol(lib, "Py_Version"), &hex))
		snprintf(buf, PY_RELEASE_BYTES, "3.%u.%u", minor, (unsigned)(hex >> 8 & 0xff));
	else if (minor)
		snprintf(buf, PY_RELEASE_BYTES, "3.%u", minor);
	return buf;
}

const struct tgt_lib *py_lib(const struct py *p)
{
	return p->lib;
}

const struct mxbpf_python *py_offsets(const struct py *p)
{
	return &p->l.walk;
}

uint64_t py_is_finalizing(const struct py *p)
{
	const uint64_t addr = symbol(p->lib, "Py_IsFinalizing"); /* from 3.13 on */

	return addr ? addr : symbol(p->lib, "_Py_IsFinalizing");
}

void py_set_module_file(struct py *p, const char *file)
{
	p->module_file = file;
}
