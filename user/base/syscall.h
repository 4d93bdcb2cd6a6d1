/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SYSCALL_H
#define BASE_SYSCALL_H

/* Returns the name of a system call according to the kernel headers of the build, or NULL if it is unknown. */
const char *syscall_name(int nr);

#endif
