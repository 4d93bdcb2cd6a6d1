/* SPDX-License-Identifier: Apache-2.0 */
/* What traces and tables of MXNet's profiler have in common: the categories of their rows. */
#ifndef IMPORT_MXNET_H
#define IMPORT_MXNET_H

#include "import/sink.h"

/* "operator", "MXNET_C_API", "event". All others are the program's tasks and frames, named after a domain. */
struct mxnet_category {
	enum mxbpf_class cls;
	size_t domain_len; /* of tasks and frames: the part of the category that is the domain; else 0 */
};
struct mxnet_category mxnet_category_of(const char *text, size_t len);

/* Returns the id of a name in a category, or 0 as sink_name() does. */
uint64_t mxnet_name(struct sink *s, const char *category, size_t category_len, const char *name, size_t len);

#endif
