/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that imitate those of a runtime's own profiler, for the registry. */
#ifndef VIEW_COMPAT_H
#define VIEW_COMPAT_H

#include "view/view.h"

extern const struct view_ops view_mxnet, view_mxnet_json, view_mxnet_memory, view_torch, view_torch_classic,
	view_chrome_classic, view_kineto, view_nsys;

/* Outputs that users choose by name. */
#define VIEW_COMPAT                                                                                                    \
	&view_mxnet, &view_mxnet_json, &view_torch, &view_torch_classic, &view_chrome_classic, &view_mxnet_memory,     \
		&view_nsys

#endif
