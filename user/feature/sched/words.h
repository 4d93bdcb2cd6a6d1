/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of an MXBPF_SCHED record mean, in words. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include <stdbool.h>

#include "mxbpf_sched.h"
#include "mxbpf_table.h"

/* Where the time between leaving the CPU and being woken went; WAITED if there is none. */
enum mxbpf_sched_what sched_cause(const struct mxbpf_sched *r);
/* "futex", as tables and JSON call it. */
extern const char *const sched_what_names[MXBPF_SCHED_WHATS];

#define SCHED_WORDS_BYTES 64
/* What it did in that time: "sleeping in poll", "disk: read", "page fault". Returns buf. */
const char *sched_words(const struct mxbpf_sched *r, char buf[SCHED_WORDS_BYTES]);
/* Whether by_tid says anything. */
bool sched_has_by(const struct mxbpf_sched *r);

#endif
