/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_MEMFD_H
#define AGENT_MEMFD_H

/*
 * Opens a file of a process for reading and writing, by a path in /proc/PID/fd or /proc/PID/map_files, if it is memory
 * that the kernel made for memfd_create() or a shared anonymous mapping. The process may have put any other file in its
 * place, also one that only root may write to. Returns a descriptor, -EPERM for another file, or -errno.
 */
int memfd_open(const char *path);

#endif
