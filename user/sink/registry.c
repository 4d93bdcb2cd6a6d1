// SPDX-License-Identifier: Apache-2.0
#include "sink/priv.h"

#include "base/fmt.h"

#include <string.h>

const struct snk_ops *const snk_registry[] = {
	&snk_modern,	 &snk_mxnet,	    &snk_torch,	 &snk_torch_classic,  &snk_json,
	&snk_mxnet_json, &snk_csv,	    &snk_chrome, &snk_chrome_classic, &snk_folded,
	&snk_pprof,	 &snk_mxnet_memory, NULL,
};

const struct snk_ops *snk_find(const char *name)
{
	const struct snk_ops *const *p = snk_registry;

	while (*p && strcmp((*p)->name, name))
		p++;
	return *p;
}

/* Forms of a timeline that tools of a runtime read; its adapter names one. */
static const struct {
	const char *form;
	const struct snk_ops *of, *ops;
} forms[] = {{"kineto", &snk_chrome, &snk_kineto}};

const struct snk_ops *snk_for(const struct snk_ops *ops, const struct mdl_session *s)
{
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (ops == forms[i].of && s->trace_form && !strcmp(s->trace_form, forms[i].form))
			return forms[i].ops;
	return ops;
}

const struct snk_ops *snk_find_suffix(const char *path)
{
	const struct snk_ops *const *p;
	const char *const *suffix;

	for (p = snk_registry; *p; p++)
		for (suffix = (*p)->suffixes; suffix && *suffix; suffix++)
			if (fmt_ends_with(path, *suffix))
				return *p;
	return NULL;
}
