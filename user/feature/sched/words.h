/* SPDX-License-Identifier: Apache-2.0 */
/* Describes MXBPF_SCHED records in words. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include <stdbool.h>

#include "mxbpf_sched.h"
#include "mxbpf_table.h"

/* Returns why the thread was off its CPU until it was woken; WAITED if there was no such time. */
enum mxbpf_sched_what sched_cause(const struct mxbpf_sched *r);
/* names in tables and JSON, such as "futex" */
extern const char *const sched_what_names[MXBPF_SCHED_WHATS];

#define SCHED_WORDS_BYTES 64
/* Describes the sleep, such as "sleeping in poll", "disk: read", "page fault". Returns buf. */
const char *sched_words(const struct mxbpf_sched *r, char buf[SCHED_WORDS_BYTES]);
/* Returns true if by_tid is meaningful. */
bool sched_has_by(const struct mxbpf_sched *r);

#endif
