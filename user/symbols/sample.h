/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From addresses to the names of functions, of several processes and of the kernel. While a process lives, what it maps
 * is looked at; what was opened stays known when it has gone.
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
 * The text of a sample's frames as MXBPF_NAME_CODE says, at most `max` bytes (whole lines), not terminated; its length.
 * A walk by frame pointers ends where code has none: what cannot be a return address is left out, with all behind it.
 */
size_t smp_text(struct smp *s, const struct mxbpf_sample *r, const struct mxbpf_sample_where *w, char *text,
		size_t max);

#endif
