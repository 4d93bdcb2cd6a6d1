/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the functions of addresses in several processes and in the kernel. It reads the mappings of a process while the
 * process lives, and keeps files open after it has ended.
 */
#ifndef SAMPLE_SAMPLE_H
#define SAMPLE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "mxbpf_sample.h"

struct smp;

struct smp *smp_new(void);    /* NULL: out of memory */
void smp_free(struct smp *s); /* NULL is legal */

/*
 * Writes a sample's frames as text in the form of MXBPF_NAME_CODE: at most `max` bytes in complete lines, without a
 * NUL. Returns its length. A walk by frame pointers goes wrong in code without them, so the first address that cannot
 * be a return address ends the stack.
 */
size_t smp_text(struct smp *s, const struct mxbpf_sample *r, const struct mxbpf_sample_where *w, char *text,
		size_t max);

#endif
