/* SPDX-License-Identifier: Apache-2.0 */
/* Readable forms of mangled C++ names. */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

/* Returns "at::add(...)" for "_ZN2at3add...". The caller frees it. NULL: no mangled name, or no memory. */
char *demangle(const char *symbol);

#endif
