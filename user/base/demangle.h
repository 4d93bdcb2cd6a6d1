/* SPDX-License-Identifier: Apache-2.0 */
/* Names of C++, as the compiler makes them, and as people write them. */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

/* "at::add(...)" of "_ZN2at3add...", to be freed. NULL: the symbol is no name of C++, or there is no memory. */
char *demangle(const char *symbol);

#endif
