// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <string.h>

/* Operators are what most people look for. What HTA and TensorBoard know as operators is cpu_op; the others are ours.
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
};

const char *mdl_category(unsigned cls)
{
	unsigned i = 0;

	while (i < MDL_NCLASSES - 1 && mdl_classes[i].cls != cls)
		i++;
	return mdl_classes[i].category;
}

_Static_assert(sizeof(mdl_classes) / sizeof(mdl_classes[0]) == MDL_NCLASSES, "every class has its place");

/* MXNet's: eager operators and those of a graph that is not static, segments of static graphs. No operator is called
 * so. */
bool mdl_is_bulk(const char *name, size_t len)
{
	static const char bulk[] = "ImperativeBulk";

	return (len == strlen(bulk) && !memcmp(name, bulk, len)) || (len && (*name == '[' || memchr(name, ',', len)));
}

uint64_t mdl_row_share_ns(const struct mdl *m, const struct mdl_row *r)
{
	size_t len;
	const char *name = r->cls == MXBPF_CLASS_OPERATOR ? mdl_name(m, r->name_id, &len) : NULL;

	return name && mdl_is_bulk(name, len) ? r->self_ns : r->total_ns;
}
