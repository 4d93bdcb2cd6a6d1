/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVML's interface that mxbpf calls, with NVIDIA's names, which nvml.h of the CUDA Toolkit documents.
 * NVIDIA keeps these functions and structs as they are: a changed one gets a name with a new number.
 */
#ifndef NVML_ABI_H
#define NVML_ABI_H

#define NVML_SUCCESS		 0
#define NVML_GPU_UTILIZATION	 1 /* enum nvmlSamplingType_t */
#define NVML_VALUE_TYPE_DOUBLE	 0
#define NVML_VALUE_NOT_AVAILABLE (-1ull)
#define NVML_UTILIZATION_MAX	 100 /* percent */

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
} nvmlPciInfo_t;

typedef struct {
	unsigned gpu, memory; /* percent */
} nvmlUtilization_t;

typedef struct {
	unsigned long long us;
	union {
		double d;
		unsigned u;
		unsigned long long whole;
	} value;
} nvmlSample_t;

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

/* `used` is without `reserved`, which the driver keeps for itself; that of nvmlMemory_t is with it. */
typedef struct {
	unsigned version; /* set by the caller: NVML_MEMORY_V2 */
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
#define NVML_MEMORY_V2 (sizeof(nvmlMemory_v2_t) | 2 << 24)

/* Of nvmlDeviceGetComputeRunningProcesses_v2 and _v3. */
typedef struct {
	unsigned pid;
	unsigned long long memory;
	unsigned instance, compute_instance;
} nvmlProcessInfo_t;

_Static_assert(sizeof(nvmlPciInfo_t) == 68, "as in nvml.h");
_Static_assert(sizeof(nvmlSample_t) == 16, "as in nvml.h");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "as in nvml.h");
_Static_assert(sizeof(nvmlProcessInfo_t) == 24, "as in nvml.h");

/* Functions return 0 or an error. */
struct nvml_calls {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *n);
	int (*handle)(unsigned index, nvmlDevice_t *d);
	int (*uuid)(nvmlDevice_t d, char *text, unsigned cap);
	int (*name)(nvmlDevice_t d, char *text, unsigned cap);
	int (*pci)(nvmlDevice_t d, nvmlPciInfo_t *to);
	int (*utilization)(nvmlDevice_t d, nvmlUtilization_t *to);
	int (*samples)(nvmlDevice_t d, int type, unsigned long long after_us, int *value_type, unsigned *n,
		       nvmlSample_t *to);
	int (*processes)(nvmlDevice_t d, unsigned *n, void *to);
	int (*memory)(nvmlDevice_t d, nvmlMemory_t *to);
	int (*memory_v2)(nvmlDevice_t d, nvmlMemory_v2_t *to);
	int (*max_instances)(nvmlDevice_t d, unsigned *n);
	int (*instance)(nvmlDevice_t d, unsigned index, nvmlDevice_t *instance);
	int (*gpu_instance)(nvmlDevice_t instance, unsigned *id);
	int (*compute_instance)(nvmlDevice_t instance, unsigned *id);
};

#endif
