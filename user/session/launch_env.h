/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_LAUNCH_ENV_H
#define SESSION_LAUNCH_ENV_H

#include <pwd.h>
#include <stdbool.h>

/*
 * The environment of the command. Under sudo (user): what sudo found when it was called, with the variables that were
 * given to mxbpf besides; where that cannot be known, mxbpf's own with the user's HOME. NULL: out of memory. Never
 * freed.
 */
char **launch_env(const struct passwd *pw, bool user);

#endif
