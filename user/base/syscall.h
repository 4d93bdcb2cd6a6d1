/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SYSCALL_H
#define BASE_SYSCALL_H

/* The name of a system call by its number, as the kernel's headers of the build have them; NULL: none is known. */
const char *syscall_name(int nr);

#endif
