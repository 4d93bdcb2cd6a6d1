// SPDX-License-Identifier: Apache-2.0
/* The classes of spans. */
#include "model/model.h"
#include "model/session.h"

/*
 * Operators come first, because most users look for them. HTA and TensorBoard know the category cpu_op; the other
 * categories are mxbpf's own.
 */
const struct mdl_class mdl_classes[] = {
	{MXBPF_CLASS_OPERATOR, "cpu_op", false, NULL},
	{MXBPF_CLASS_CUSTOM, "custom_op", true, NULL},
	{MXBPF_CLASS_API, "c_api", false, NULL},
	{MXBPF_CLASS_WAIT, "wait", false, NULL},
	{MXBPF_CLASS_KERNEL, "compiled_kernel", false, NULL},
	{MXBPF_CLASS_TASK, "task", true, NULL},
	{MXBPF_CLASS_FRAME, "frame", true, NULL},
	{MXBPF_CLASS_EVENT, "event", true, NULL},
	{MXBPF_CLASS_STEP, "step", false, NULL},
	{MXBPF_CLASS_DATA, "data", true, NULL},
	{MXBPF_CLASS_KVSTORE, "kvstore", true, NULL},
	{MXBPF_CLASS_CUDA, "cuda_runtime", true, "CUDA call"},
	{MXBPF_CLASS_PYTHON, "python_function", true, "Python function"},
};

const char *mdl_category(unsigned cls)
{
	unsigned i = 0;

	while (i < MDL_NCLASSES - 1 && mdl_classes[i].cls != cls)
		i++;
	return mdl_classes[i].category;
}

const char *mdl_class_title(const struct mdl_session *s, unsigned cls)
{
	unsigned i;

	if (s->class_title[cls])
		return s->class_title[cls];
	for (i = 0; i < MDL_NCLASSES; i++)
		if (mdl_classes[i].cls == cls)
			return mdl_classes[i].title;
	return NULL;
}

_Static_assert(sizeof(mdl_classes) / sizeof(mdl_classes[0]) == MDL_NCLASSES, "every class has its place");
