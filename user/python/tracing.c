// SPDX-License-Identifier: Apache-2.0
/* What the interpreter calls for each line or call of the main thread: debuggers, profilers, measures of coverage. */
#include "python/priv.h"

#include <string.h>

#define MINOR_CFRAME 11 /* from this version on, the four words stand behind that of the frame */
#define MINOR_LAST   14 /* in later versions other words stand there */
#define OLD_FUNCTION 56 /* until 3.10 */

enum { PROFILES, TRACES, PROFILER, TRACER, WORDS };

static void type_of(const struct py *p, uint64_t object, char name[PY_TYPE_BYTES])
{
	uint64_t type;

	name[0] = '\0';
	if (object && py_word(p, object + p->l.walk.head - sizeof(type), &type))
		py_class_name(p, type, name);
}

static void find_main(void *ctx, const struct py_thread *t)
{
	if (t->main)
		*(struct py_thread *)ctx = *t;
}

void py_tracing(const struct py *p, struct py_tracing *out)
{
	const struct mxbpf_python *w = &p->l.walk;
	const uint64_t at = p->l.minor >= MINOR_CFRAME ? w->state_start + w->state_frame + sizeof(at) : OLD_FUNCTION;
	struct py_thread t = {.fs_base = 0};
	uint64_t words[WORDS], state;

	*out = (struct py_tracing){.traces = false};
	py_each_thread(p, find_main, &t);
	if (p->l.minor > MINOR_LAST || !t.fs_base || !py_current_state(p, t.fs_base, &state) ||
	    tgt_read(p->t, state + at, words, sizeof(words)))
		return;
	out->traces = words[TRACES] && tgt_lib_at(p->t, words[TRACES]);
	out->profiles = words[PROFILES] && tgt_lib_at(p->t, words[PROFILES]);
	type_of(p, words[TRACER], out->tracer);
	type_of(p, words[PROFILER], out->profiler);
}
