/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs of this machine as NVIDIA's driver describes them: what they are called, how busy they were, and which processes
 * use them. Needs no agent in a process. The driver's files in /proc have the names; NVML (libnvidia-ml.so.1), which is
 * loaded when it is there, has the rest. Whatever asks the driver runs in a thread of its own, because a call does not
 * return while a GPU is broken. Knows nothing of models.
 */
#ifndef NVML_NVML_H
#define NVML_NVML_H

#include <stdbool.h>
#include <stdint.h>

#define NVML_GPUS_MAX	   64
#define NVML_PROCESSES_MAX 512 /* of all GPUs */
#define NVML_INSTANCES_MAX 64  /* of MIG, of all GPUs */
#define NVML_TEXT_BYTES	   96

struct nvml_gpu {
	uint32_t index;		      /* in the order of the PCI bus, as nvidia-smi and DCGM count GPUs */
	uint32_t domain, bus, device; /* its place on the PCI bus */
	char uuid[NVML_TEXT_BYTES];   /* "GPU-..."; "": not known. Texts are the driver's, and can have any bytes */
	char model[NVML_TEXT_BYTES];  /* "NVIDIA H100 80GB HBM3"; "": not known */
	uint64_t seen_ns, busy_ns;    /* time that the driver has told of, and in which kernels of any process ran */
	/* Memory now: all of it, and of that what the driver keeps for itself (0: none, or it is in used_bytes), and
	 * what is in use. total_bytes 0: not known. */
	uint64_t total_bytes, driver_bytes, used_bytes;
};

struct nvml_process {
	uint32_t gpu; /* place in struct nvml_list */
	uint32_t pid;
	uint64_t memory_bytes; /* on that GPU; 0: not known */
};

/* A compute instance of a GPU that MIG divides. The driver does not tell how busy it is. */
struct nvml_instance {
	uint32_t gpu;				 /* place in struct nvml_list */
	uint32_t gpu_instance, compute_instance; /* as nvidia-smi numbers them in the GPU */
	char uuid[NVML_TEXT_BYTES];		 /* "MIG-..." */
};

struct nvml_list {
	unsigned n, nprocesses, ninstances;
	struct nvml_gpu gpus[NVML_GPUS_MAX];
	struct nvml_process processes[NVML_PROCESSES_MAX]; /* those that compute, by GPU */
	struct nvml_instance instances[NVML_INSTANCES_MAX];
};

struct nvml;

struct nvml *nvml_open(void); /* NULL: no memory, or no thread can be started */
/*
 * Does not wait for a driver that hangs: returns false if the thread stays, with the library, whose functions at exit()
 * may then wait for it, too. The caller ends the process with _exit(). NULL is legal.
 */
bool nvml_close(struct nvml *n);
/*
 * Tells what was added since the last call. The driver is asked only while somebody wants it, from this call on,
 * because a GPU cannot be reset while a program has NVML open. n NULL, a machine without a driver, or a driver that
 * does not answer: *to is empty, or has names only. Never waits.
 */
void nvml_take(struct nvml *n, bool wanted, struct nvml_list *to);
/* Waits until the driver has been asked anew and has told, but at most so long. n NULL is legal. */
void nvml_refresh(struct nvml *n, unsigned ms);

#endif
