// SPDX-License-Identifier: Apache-2.0
#include "base/syscall.h"

#include <stddef.h>

static const char *const names[] = {
#include "syscalls.h"
};

const char *syscall_name(int nr)
{
	return nr >= 0 && (size_t)nr < sizeof(names) / sizeof(names[0]) ? names[nr] : NULL;
}
