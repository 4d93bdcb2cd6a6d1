// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the fields through which an interpreter accepts a script: CPython's Doc/howto/remote_debugging.rst. The
 * interpreter describes them in struct _Py_DebugOffsets at the start of _PyRuntime.
 */
#include "python/priv.h"

#include <errno.h>
#include <string.h>

#define PATH_MIN_BYTES 256
#define PATH_MAX_BYTES 4096
#define OFFSET_MAX     (1u << 30)

/* Indices of 8-byte words from the start of the table. All versions share these. */
enum {
	WORD_VERSION = 1,
	WORD_FREE_THREADED = 2,
	WORD_RUNTIME_BYTES = 3,
	WORD_RUNTIME_FINALIZING = 4,
	WORD_RUNTIME_INTERP = 5,
	WORD_INTERP_BYTES = 6,
	WORD_INTERP_ID = 7,
	WORD_INTERP_MAIN = 10,
	WORD_STATE_BYTES = 22,
	WORD_STATE_INTERP = 25,
	WORDS_MAX = 128,
};
/* Indices from the first word of `debugger_support`. */
enum {
	SUPPORT_BREAKER,
	SUPPORT_START,
	SUPPORT_ENABLED,
	SUPPORT_PENDING,
	SUPPORT_PATH,
	SUPPORT_PATH_BYTES,
	SUPPORT_WORDS
};

/*
 * Bits of the breaker. Other threads set bits at any time, and one that is set while ours are written is lost. With a
 * global lock the interpreter sets the bits of signals and pending calls again when the thread gets the lock, and a
 * stop makes it do so at once. Without the lock it does not, so these bits are written too: they do nothing if nothing
 * waits.
 */
#define BREAKER_SIGNALS (1u << 1)
#define BREAKER_CALLS	(1u << 2)
#define BREAKER_RAISED	(1u << 3) /* an exception that another thread raises for this one */
#define BREAKER_STOP	(1u << 5)
#define BREAKER_MERGE	(1u << 6) /* reference counts of objects that other threads have dropped */
#define BREAKER_FREE	(BREAKER_SIGNALS | BREAKER_CALLS | BREAKER_RAISED | BREAKER_STOP | BREAKER_MERGE)

static const struct {
	unsigned minor, support;
	uint8_t free_threaded; /* bits to set without a global lock; 0: not supported */
} versions[] = {{14, 89, BREAKER_FREE}, {15, 105, 0}};

/* Values that are read on the way. */
struct places {
	uint64_t d[WORDS_MAX];
	const uint64_t *support;
	uint64_t interp, state;
};

static int not_known(const struct py_exec *x, struct err *e)
{
	return err_set(e, ERR_TARGET, -ENOTSUP, "its Python 3.%u has another layout than the release", x->minor);
}

/* Returns 0 if the table is there and its values are possible. */
static int read_table(const struct py *p, struct py_exec *x, struct places *at, struct err *e)
{
	const uint64_t *d = at->d, *s;
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]) && versions[i].minor != x->minor; i++)
		;
	if (i == sizeof(versions) / sizeof(versions[0]))
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "its Python 3.%u cannot execute scripts on request (3.14 and later can)", x->minor);
	at->support = d + versions[i].support;
	if (tgt_read(p->t, p->runtime, at->d, sizeof(at->d[0]) * (versions[i].support + SUPPORT_WORDS)) ||
	    memcmp(d, PY_COOKIE, sizeof(d[0])) || !py_is_release(d[WORD_VERSION], x->minor))
		return not_known(x, e);
	x->breaker_bits = d[WORD_FREE_THREADED] ? versions[i].free_threaded : BREAKER_STOP;
	if (!x->breaker_bits)
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "its Python 3.%u is the free-threaded build, which is not supported", x->minor);
	for (s = d + WORD_RUNTIME_BYTES; s < at->support + SUPPORT_WORDS; s++)
		if (*s > OFFSET_MAX)
			return not_known(x, e);
	s = at->support;
	if (d[WORD_RUNTIME_INTERP] + 8 > d[WORD_RUNTIME_BYTES] ||
	    d[WORD_RUNTIME_FINALIZING] + 8 > d[WORD_RUNTIME_BYTES] || d[WORD_INTERP_BYTES] > d[WORD_RUNTIME_BYTES] ||
	    d[WORD_INTERP_ID] + 8 > d[WORD_INTERP_BYTES] || d[WORD_INTERP_MAIN] + 8 > d[WORD_INTERP_BYTES] ||
	    s[SUPPORT_ENABLED] + 4 > d[WORD_INTERP_BYTES] || d[WORD_STATE_BYTES] > d[WORD_INTERP_BYTES] ||
	    d[WORD_STATE_INTERP] + 8 > d[WORD_STATE_BYTES] || s[SUPPORT_BREAKER] + 8 > d[WORD_STATE_BYTES] ||
	    s[SUPPORT_PATH_BYTES] < PATH_MIN_BYTES || s[SUPPORT_PATH_BYTES] > PATH_MAX_BYTES ||
	    s[SUPPORT_PENDING] + 4 > s[SUPPORT_PATH] ||
	    s[SUPPORT_START] + s[SUPPORT_PATH] + s[SUPPORT_PATH_BYTES] > d[WORD_STATE_BYTES])
		return not_known(x, e);
	return 0;
}

/*
 * Returns true if an object lies in the interpreter's static variables, which stay mapped. Others may be freed at any
 * time.
 */
static bool is_static(const struct py *p, const struct places *at, uint64_t object, uint64_t bytes)
{
	uint64_t off = object - p->runtime;

	return object >= p->runtime && off <= at->d[WORD_RUNTIME_BYTES] - bytes;
}

/* Finds the state of the main thread of the main interpreter, which must be the only interpreter. */
static int find_state(const struct py *p, const struct py_exec *x, struct places *at, struct err *e)
{
	const uint64_t *d = at->d;
	uint64_t finalizing, id, of;
	uint32_t enabled;

	if (!py_word(p, p->runtime + d[WORD_RUNTIME_FINALIZING], &finalizing) ||
	    !py_word(p, p->runtime + d[WORD_RUNTIME_INTERP], &at->interp) || finalizing || !at->interp)
		return err_set(e, ERR_TARGET, -ENOENT, "its Python 3.%u is starting or ending", x->minor);
	if (!is_static(p, at, at->interp, d[WORD_INTERP_BYTES]) || !py_word(p, at->interp + d[WORD_INTERP_ID], &id) ||
	    id)
		return err_set(e, ERR_TARGET, -ENOTSUP, "its Python 3.%u has several interpreters", x->minor);
	if (tgt_read(p->t, at->interp + at->support[SUPPORT_ENABLED], &enabled, sizeof(enabled)) || enabled != 1)
		return err_set(e, ERR_TARGET, -EPERM,
			       "remote debugging is disabled in its Python 3.%u (PYTHON_DISABLE_REMOTE_DEBUG, "
			       "-X disable-remote-debug, or its build)",
			       x->minor);
	if (!py_word(p, at->interp + d[WORD_INTERP_MAIN], &at->state) ||
	    !is_static(p, at, at->state, d[WORD_STATE_BYTES]) || !py_word(p, at->state + d[WORD_STATE_INTERP], &of) ||
	    of != at->interp)
		return err_set(e, ERR_TARGET, -ENOTSUP, "its Python 3.%u has no main thread", x->minor);
	return 0;
}

int py_exec_find(struct tgt *t, struct py_exec *x, struct err *e)
{
	struct py p = {.t = t};
	struct err why = {0};
	struct places at = {.support = at.d};
	const struct tgt_lib *lib = py_find_interpreter(&p, &why);
	int err;

	*x = (struct py_exec){0};
	if (!lib && why.code)
		return err_set(e, why.cls, why.code, "%s", why.why);
	if (!lib)
		return err_set(e, ERR_TARGET, -ENOENT, "it runs no Python");
	x->minor = py_minor(&p, lib);
	err = read_table(&p, x, &at, e);
	err = err ? err : find_state(&p, x, &at, e);
	if (err)
		return err;
	x->breaker = at.state + at.support[SUPPORT_BREAKER];
	x->pending = at.state + at.support[SUPPORT_START] + at.support[SUPPORT_PENDING];
	x->path = at.state + at.support[SUPPORT_START] + at.support[SUPPORT_PATH];
	x->path_bytes = at.support[SUPPORT_PATH_BYTES];
	return 0;
}
