// SPDX-License-Identifier: Apache-2.0
/* The classes of spans. */
#include "model/model.h"

/*
 * Operators come first, because most users look for them. HTA and TensorBoard know the category cpu_op; the other
 * categories are mxbpf's own.
 */
const struct mdl_class mdl_classes[] = {
	{MXBPF_CLASS_OPERATOR, "cpu_op", false},
	{MXBPF_CLASS_CUSTOM, "custom_op", true},
	{MXBPF_CLASS_API, "c_api", false},
	{MXBPF_CLASS_WAIT, "wait", false},
	{MXBPF_CLASS_KERNEL, "compiled_kernel", false},
	{MXBPF_CLASS_TASK, "task", true},
	{MXBPF_CLASS_FRAME, "frame", true},
	{MXBPF_CLASS_EVENT, "event", true},
	{MXBPF_CLASS_STEP, "step", false},
	{MXBPF_CLASS_DATA, "data", true},
	{MXBPF_CLASS_KVSTORE, "kvstore", true},
	{MXBPF_CLASS_CUDA, "cuda_runtime", true},
};

const char *mdl_category(unsigned cls)
{
	unsigned i = 0;

	while (i < MDL_NCLASSES - 1 && mdl_classes[i].cls != cls)
		i++;
	return mdl_classes[i].category;
}

_Static_assert(sizeof(mdl_classes) / sizeof(mdl_classes[0]) == MDL_NCLASSES, "every class has its place");
