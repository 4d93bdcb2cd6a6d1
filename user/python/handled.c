// SPDX-License-Identifier: Apache-2.0
/*
 * The exception that a thread handles: while it is in an "except" block, the interpreter keeps the exception in the
 * thread's list of them. The list, the exception and its type are read while the thread runs, so that each address can
 * be wrong; a type counts only if it has the name of a built-in one, or descends from such a type.
 */
#include "python/priv.h"

#include <string.h>

#include "base/exception.h"

#define MINOR_VALUE 11 /* before this version an entry has the type first, then the exception */
#define TYPE_OF	    8
#define TYPE_NAME   24 /* in a type object */
#define TYPE_BASE   256
#define NESTED_MAX  8 /* entries: generators have their own */
#define BASES_MAX   16
#define NAME_BYTES  24

static uint8_t number_of_type(const struct py *p, uint64_t type)
{
	char name[NAME_BYTES];
	uint64_t at;
	uint8_t number;
	unsigned i;

	for (i = 0; i < BASES_MAX; i++) {
		if (!py_word(p, type + TYPE_NAME, &at) || tgt_read(p->t, at, name, sizeof(name)))
			return 0;
		name[sizeof(name) - 1] = '\0';
		number = exception_number(name);
		if (number || !strncmp(name, "StopIteration", 13) || !strncmp(name, "StopAsyncIteration", 18) ||
		    !py_word(p, type + TYPE_BASE, &type) || !type)
			return number;
	}
	return 0;
}

uint8_t py_handles(const struct py *p, const struct py_thread *t)
{
	const uint64_t value = p->l.minor < MINOR_VALUE ? sizeof(uint64_t) : 0;
	const uint64_t previous = p->l.minor < MINOR_VALUE ? 3 * sizeof(uint64_t) : sizeof(uint64_t);
	uint64_t entry = t->handled, exception = 0, type;
	uint8_t number = 0;
	unsigned i;

	if (p->l.walk.head != sizeof(uint64_t) * 2) /* a build without a global lock */
		return 0;
	for (i = 0; i < NESTED_MAX && entry && !number; i++) {
		if (py_word(p, entry + value, &exception) && exception && py_word(p, exception + TYPE_OF, &type))
			number = number_of_type(p, type);
		if (!py_word(p, entry + previous, &entry))
			break;
	}
	return number;
}
