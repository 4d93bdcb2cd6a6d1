/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about a process that has no plan yet: whether it has a runtime, and where one will appear. */
#ifndef PLAN_EARLY_H
#define PLAN_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "plan/plan.h"
#include "target/target.h"

/* Returns true if the library of a requested runtime is mapped, and the other libraries that the probes need. */
bool plan_has_runtime(struct tgt *t, const struct plan_opts *o);
/*
 * A quick look at a process: *runtime says whether it maps the library of a requested runtime, perhaps not yet the
 * others that the probes need; *loader is its dynamic loader. 0 or -errno.
 */
int plan_peek(pid_t pid, const struct plan_opts *o, bool *runtime, struct tgt_file *loader);
/* Returns true if an OpenMP library of any kind is mapped. */
bool plan_has_openmp(struct tgt *t);
/* Writes the libraries to look for, such as "libfoo.so* (Foo), ...", to buf and returns buf. */
const char *plan_looked_for(const char *runtime, char buf[256]);
/* Returns the name of runtime i for the command line, or NULL after the last. */
const char *plan_runtime_name(unsigned i);

/*
 * Finds the debugger hook of the process's dynamic loader (_dl_debug_state in glibc and musl). The loader calls it when
 * it has mapped libraries and before any of their code runs. Returns -ENOENT if the process has no loader.
 */
int plan_loader(struct tgt *t, struct tgt_lib **lib, uint64_t *off, struct err *e);

#endif
