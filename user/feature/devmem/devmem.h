/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of whole GPUs as NVIDIA's driver counts it: of the process, of others, of contexts and libraries (--memory).
 */
#ifndef FEATURE_DEVMEM_H
#define FEATURE_DEVMEM_H

#include "model/feature.h"
#include "mxbpf_memory.h"

extern const struct mdl_feature feature_devmem;
extern const struct ses_feature devmem_session;
extern const struct view_sheet sheet_devmem;

/* Readings of one process on one GPU, or of a GPU alone. */
struct devmem_row {
	struct mxbpf_gpu_used last, most; /* most: the one with the most used_bytes */
};

/* Returns *n rows in the order of their first readings. Borrowed. */
const struct devmem_row *devmem_rows(const struct mdl *m, size_t *n);
/* Whether a device of a runtime is a GPU of NVIDIA's, by the name of its type. */
bool devmem_is_gpu(const struct mdl_session *s, uint32_t device);
/*
 * Returns the GPU that a process numbers `ordinal`, with the process's own bytes if the driver lists it. It is found by
 * the place on the PCI bus, which is known with --gpu, else if only one GPU is possible. NULL: it is not known.
 */
const struct devmem_row *devmem_of(const struct mdl *m, uint32_t tgid, uint32_t ordinal);
/*
 * Returns the last reading of a runtime's device until a moment, or else the first one after it. NULL: the device is no
 * GPU, or it is not known which one, or the driver does not say what its processes have.
 */
const struct mxbpf_gpu_used *devmem_at(const struct mdl *m, const struct mdl_session *s, uint32_t tgid, uint32_t device,
				       uint64_t ns);
#endif
