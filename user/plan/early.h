/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a process before there is a plan for it: whether it has a runtime yet, and where one will show.
 */
#ifndef PLAN_EARLY_H
#define PLAN_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "plan/plan.h"
#include "target/target.h"

/* Whether the library of a runtime that is asked for is mapped, with the other libraries that the probes need. */
bool plan_has_runtime(struct tgt *t, const struct plan_opts *o);
/* Whether a library of OpenMP is, of any kind. */
bool plan_has_openmp(struct tgt *t);
/* "libmxnet.so* (MXNet), ...". Returns buf. */
const char *plan_looked_for(const char *runtime, char buf[256]);
/* The runtimes' names, as an option takes them; NULL behind the last. */
const char *plan_runtime_name(unsigned i);

/*
 * The debugger hook of the process's dynamic loader (_dl_debug_state in glibc and musl), which it calls when it has
 * mapped libraries and has not yet run any of their code. -ENOENT: it has no loader.
 */
int plan_loader(struct tgt *t, struct tgt_lib **lib, uint64_t *off, struct err *e);

#endif
