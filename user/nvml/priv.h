/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. All of it is of the thread that asks the driver. */
#ifndef NVML_PRIV_H
#define NVML_PRIV_H

#include "nvml/abi.h"
#include "nvml/nvml.h"

#define NVML_PROC "/proc/driver/nvidia/gpus"

/* list.c: finds the GPU at a place on the PCI bus, or adds it. NULL: there are too many. */
struct nvml_gpu *nvml_gpu_at(struct nvml_list *l, uint32_t domain, uint32_t bus, uint32_t device);
/* Puts the GPUs of a folder like NVML_PROC into the list. */
void nvml_read_names(const char *folder, struct nvml_list *l);

/* driver.c */
#define NVML_SAMPLES_MAX 4096 /* more than the driver keeps */
struct nvml_device {
	nvmlDevice_t handle;
	uint32_t gpu;	  /* place in the list */
	uint64_t told_us; /* time of the driver's last sample; 0: none */
	uint64_t told_ns; /* when it told something of how busy the GPU is; 0: not yet */
};
struct nvml_driver {
	void *lib; /* NULL: not loaded */
	struct nvml_calls calls;
	bool on;	   /* NVML is initialised */
	uint64_t retry_ns; /* when to try again */
	unsigned ndevices;
	struct nvml_device devices[NVML_GPUS_MAX];
	nvmlSample_t samples[NVML_SAMPLES_MAX];
};
/* Adds to the sums of the list, and lists the processes anew. */
void nvml_driver_look(struct nvml_driver *d, struct nvml_list *l, uint64_t now_ns);
void nvml_driver_stop(struct nvml_driver *d); /* lets go of all GPUs; nvml_driver_look() takes them again */

#endif
