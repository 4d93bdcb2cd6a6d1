/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of operators that run at a look: their types and sizes, and whether their values are denormal, which many
 * processors compute with a hundred times slower. All is read from the memory of the process while it runs.
 */
#ifndef FEATURE_INPUTS_H
#define FEATURE_INPUTS_H

#include "model/feature.h"

/* Looks that met an operator with inputs of these sizes. */
struct input_row {
	uint32_t tgid;
	uint32_t pad;
	uint64_t name_id;    /* of the operator */
	uint64_t sizes;	     /* text of its first inputs: a name of kind MXBPF_NAME_STACK */
	uint64_t looks;	     /* that met it */
	uint64_t elapsed_ns; /* sum over the looks: since it began, without waits for a CPU */
	uint64_t valued;     /* looks that could read values */
	uint64_t denormal;   /* of these, a share of INPUTS_DENORMAL or more of the values of an input was denormal */
	uint64_t flushed;    /* of these, the thread's processor takes such values as 0, which costs nothing */
	uint64_t elements;   /* of the largest input */
};

#define INPUTS_DENORMAL 0.1

extern const struct mdl_feature feature_inputs;
extern const struct tbl_def inputs_table; /* of struct input_row */

#endif
