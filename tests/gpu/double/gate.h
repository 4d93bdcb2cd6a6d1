/* SPDX-License-Identifier: Apache-2.0 */
/* What happens at the begin and at the end of each function of CUPTI's mock. */
#ifndef DOUBLE_GATE_H
#define DOUBLE_GATE_H

#include "double.h"

/*
 * GATE aborts if CUPTI must not be called now, and lets the function return if MXBPF_DOUBLE says that it fails. RETURN
 * writes the log.
 */
#define GATE(...)                                                                                                      \
	char gate_args_[160];                                                                                          \
	uint64_t gate_began_ = double_now();                                                                           \
	int gate_failure_ = gate_enter(__func__);                                                                      \
	snprintf(gate_args_, sizeof(gate_args_), "" __VA_ARGS__);                                                      \
	if (gate_failure_)                                                                                             \
	RETURN(gate_failure_)

#define RETURN(value)                                                                                                  \
	do {                                                                                                           \
		int gate_result_ = (value);                                                                            \
		gate_log(__func__, gate_args_, gate_result_, gate_began_);                                             \
		return gate_result_;                                                                                   \
	} while (0)

int gate_enter(const char *function);
void gate_log(const char *function, const char *args, int result, uint64_t began);
/* Returns the error that enabling a kind of record shall have, or 0. */
int gate_failure_of_kind(int kind);
/* Returns the name of a call of CUDA, or NULL. */
const char *gate_cbid(uint32_t domain, uint32_t cbid);
/* Hands over the last buffers at exit, from now on. */
void gate_at_exit(void);

/* Of cupti.c. */
void cupti_enter(const struct double_call *call);
void cupti_leave(const struct double_call *call);
void cupti_op(const struct double_op *op);
void cupti_node(const struct double_node *node, const struct double_node *original);

#endif
