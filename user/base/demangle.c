// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <stddef.h>
#include <string.h>

/* From the C++ runtime library, which has no header for C. */
char *__cxa_demangle(const char *mangled, char *buf, size_t *len, int *status);

char *demangle(const char *symbol)
{
	return strncmp(symbol, "_Z", 2) ? NULL : __cxa_demangle(symbol, NULL, NULL, NULL);
}
