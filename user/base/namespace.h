/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_NAMESPACE_H
#define BASE_NAMESPACE_H

#include <stdbool.h>

/*
 * Says whether mxbpf is in the namespace of this kind that the kernel made first, which is that of the machine and of
 * no container. name: "pid" or "user".
 */
bool namespace_is_first(const char *name);

#endif
