// SPDX-License-Identifier: Apache-2.0
/*
 * Finds out whether an object launches work by calls of the driver. Other programs call the runtime, and the driver's
 * call in it has no place in any table. An object that is linked with libcuda.so.1 may call the driver. Others look its
 * functions up at run time, so they are known by name.
 */
#include <string.h>

#include "cupti.h"
#include "dso.h"

/* NVRTC compiles kernels that only the driver can launch. libllvmlite stands for Numba, which uses ctypes. */
static const char *const users[] = {"libtriton.", "libnvrtc.",	  "driver.cpython", "_driver.cpython",
				    "cydriver.",  "libllvmlite.", "libtensorflow",  "libnvinfer.",
				    "xla_",	  "warp.so"};
/* NVIDIA's own libraries, which the runtime's calls lead to. */
static const char *const below[] = {"libcu", "libnccl.", "libnpp", "libnv"};

static bool is_one_of(const char *const *begin, unsigned n, const char *name)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	return false;
}

static bool uses_driver(const struct agent_dso *d)
{
	const char *name = agent_dso_base(d->path);

	if (is_one_of(users, sizeof(users) / sizeof(users[0]), name))
		return true;
	return !is_one_of(below, sizeof(below) / sizeof(below[0]), name) && agent_dso_needs(d, "libcuda.so.1");
}

bool cupti_driver_used(void)
{
	return agent_dso_any(uses_driver);
}
