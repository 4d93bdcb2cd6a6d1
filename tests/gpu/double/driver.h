/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of libcuda.so.1 call. */
#ifndef DOUBLE_DRIVER_H
#define DOUBLE_DRIVER_H

#include "device.h"

enum {
	CUDA_NOT_INITIALIZED = 3,
	CUDA_DEINITIALIZED = 4,
	CUDA_INVALID_DEVICE = 101,
	CUDA_INVALID_HANDLE = 400,
	CUDA_NOT_FOUND = 500,
	CUDA_NOT_READY = 600,
};

/* Returns 0, or the error of a call before cuInit(), after exit() or in a forked child. */
int driver_ready(void);
/* The calling thread's next call launches this; params: its arguments as CUPTI passes them on. */
void driver_launches(const struct double_function *f, const void *params);
int driver_launch(const struct double_function *f, const uint32_t *grid, const uint32_t *block, uint32_t shared,
		  void *stream);
void driver_copy(const void *to, const void *from, size_t bytes, void *stream, bool async);
void driver_copy_peer(size_t bytes, void *stream);
void driver_set(const void *at, uint32_t value, size_t bytes, void *stream);
/* Waits for a stream, an event or the whole context. SYNC_WAIT lets a stream wait. */
void driver_wait(uint32_t type, struct stream *s, const struct event *e);
/* Waits for the device, as cudaFree() does, and frees memory. */
void driver_free(void *p);
/* Returns 0 or CUDA_NOT_READY. CUPTI records queries as it records waits. */
int driver_query(uint32_t type, struct stream *s, const struct event *e);
struct event *driver_event_new(void);
int driver_attribute(int attribute, int device);
/* Number of a device in the machine: CUDA_VISIBLE_DEVICES lists those that the process can use. */
int driver_place(int device);
void *driver_context(void);
void *driver_self(void);
void account_write(const struct double_account *a);

#endif
