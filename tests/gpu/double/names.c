// SPDX-License-Identifier: Apache-2.0
/* Names of kernels whose addresses CUPTI uses again, as after a module was unloaded. */
#include "collect.h"

#define ARENA_BYTES 32768
#define ARENA_NAMES 64

struct arena {
	struct arena *next;
	const char *of[ARENA_NAMES]; /* name that was copied */
	char *at[ARENA_NAMES];
	unsigned n;
	size_t used;
	char text[ARENA_BYTES];
};

static struct arena *spare; /* collect.c calls with its lock */

struct arena *arena_take(void)
{
	struct arena *a = spare;

	if (a)
		spare = a->next;
	else
		a = malloc(sizeof(*a));
	a->n = 0;
	a->used = 0;
	return a;
}

/* Other names come to where those of the arena were. */
void arena_reuse(struct arena *a)
{
	static const char other[] = "another_kernel_at_the_address_of_an_unloaded_one";
	unsigned i;
	size_t n;

	for (i = 0; i < a->n; i++) {
		n = strlen(a->at[i]);
		if (n >= sizeof(other))
			strcpy(a->at[i], other);
		else
			memset(a->at[i], 'x', n);
	}
	a->next = spare;
	spare = a;
}

const char *arena_name(struct arena *a, const char *name)
{
	size_t bytes = strlen(name) + 1;
	unsigned i;

	for (i = 0; i < a->n; i++)
		if (a->of[i] == name)
			return a->at[i];
	if (a->n == ARENA_NAMES || a->used + bytes > ARENA_BYTES)
		return NULL;
	a->of[a->n] = name;
	a->at[a->n] = memcpy(a->text + a->used, name, bytes);
	a->used += bytes;
	return a->at[a->n++];
}
