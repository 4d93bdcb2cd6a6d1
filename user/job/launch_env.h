/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_LAUNCH_ENV_H
#define JOB_LAUNCH_ENV_H

#include <pwd.h>
#include <stdbool.h>

/*
 * Returns the environment of the command. Under sudo (user) it is the environment of sudo itself plus the variables
 * that were set for mxbpf; if that is not readable, mxbpf's own with the user's HOME. NULL: out of memory. Never freed.
 */
char **launch_env(const struct passwd *pw, bool user);

#endif
