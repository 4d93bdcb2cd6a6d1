/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system for SQLite that has one file, which is an open descriptor. So the file that was checked is the file
 * that is read or written, and no file beside it is looked at or made.
 */
#ifndef BASE_SQLITE_FD_H
#define BASE_SQLITE_FD_H

#define SQLITE_FD_VFS "mxbpf"

/*
 * Makes it known to SQLite. The name of a file is the number of the descriptor. A database that is opened for writing
 * must be ours: nothing it says of a log is hidden. It needs journal_mode OFF. Returns 0 or -ENOMEM.
 */
int sqlite_fd_register(void);

#endif
