// SPDX-License-Identifier: Apache-2.0
/* All outputs. */
#include <string.h>

#include "base/fmt.h"
#include "view/compat/compat.h"
#include "view/priv.h"

const struct view_ops *const view_registry[] = {
	&view_modern, &view_json,  &view_csv,	&view_page,  &view_chrome, &view_pftrace,
	&view_folded, &view_pprof, VIEW_COMPAT, &view_arrow, NULL,
};

const struct view_ops *view_find(const char *name)
{
	const struct view_ops *const *p = view_registry;

	while (*p && strcmp((*p)->name, name))
		p++;
	return *p;
}

/* Forms of an output that the tools of a runtime read. The adapter of the runtime names one. */
static const struct {
	const char *form;
	const struct view_ops *of, *ops;
} forms[] = {{"kineto", &view_chrome, &view_kineto}};

const struct view_ops *view_for(const struct view_ops *ops, const struct mdl_session *s)
{
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (ops == forms[i].of && s->trace_form && !strcmp(s->trace_form, forms[i].form))
			return forms[i].ops;
	return ops;
}

const struct view_ops *view_find_suffix(const char *path)
{
	const struct view_ops *const *p;
	const char *const *suffix;

	for (p = view_registry; *p; p++)
		for (suffix = (*p)->suffixes; suffix && *suffix; suffix++)
			if (fmt_ends_with(path, *suffix))
				return *p;
	return NULL;
}

static const struct view_ops *layout(unsigned i)
{
	const struct view_ops *const *p = view_registry;

	while (*p && (!(*p)->layout || i--))
		p++;
	return *p;
}

const char *view_layout_name(unsigned i)
{
	return layout(i) ? layout(i)->name : NULL;
}

const char *view_layout_help(unsigned i)
{
	return layout(i)->help;
}

const char *view_export_name(unsigned i)
{
	const struct view_ops *const *p = view_registry;

	while (*p && (!(*p)->needs_records || i--))
		p++;
	return *p ? (*p)->name : NULL;
}
