// SPDX-License-Identifier: Apache-2.0
#include "base/json_read.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

static _Thread_local bool no_memory;

static void *json_read_take(size_t bytes)
{
	void *at = malloc(bytes);

	no_memory |= !at;
	return at;
}

/* The hooks are those of the whole process. */
static void set_hooks(void)
{
	cJSON_Hooks hooks = {.malloc_fn = json_read_take, .free_fn = free};

	cJSON_InitHooks(&hooks);
}

cJSON *json_read(const char *text, size_t len, int *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	cJSON *o;

	pthread_once(&once, set_hooks);
	no_memory = false;
	o = cJSON_ParseWithLength(text, len);
	*err = o ? 0 : no_memory ? -ENOMEM : -EBADMSG;
	return o;
}
