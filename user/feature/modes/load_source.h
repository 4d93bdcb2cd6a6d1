/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FEATURE_MODES_LOAD_SOURCE_H
#define FEATURE_MODES_LOAD_SOURCE_H

#include "feature/modes/modes.h"
#include "python/python.h"

/*
 * Writes the line of the program that turns the mode on, as a stack of one line: "/path/train.py(12): SOURCE". Returns
 * its length, 0 if it is in none of the files of functions that the main thread is in, -EAGAIN if the thread was in no
 * function of the program that could be read, or -ETIMEDOUT if a file system does not answer.
 */
ssize_t source_line(const struct tgt *t, struct py *py, enum mode mode, char *to, size_t max);

#endif
