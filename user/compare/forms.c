// SPDX-License-Identifier: Apache-2.0
/* The formats of a comparison. */
#include "compare/show.h"

#define TOP 10 /* rows for people */

const struct cmp_form cmp_forms[CMP_NFORMS] = {
	[CMP_FORM_TEXT] = {"table", ".txt", TOP, cmp_put_text},
	[CMP_FORM_JSON] = {"json", ".json", 0, cmp_put_json},
	[CMP_FORM_HTML] = {"html", ".html", 0, cmp_put_html},
	[CMP_FORM_MARKDOWN] = {"markdown", ".md", TOP, cmp_put_markdown},
};

const char *cmp_form_name(unsigned i)
{
	return i < CMP_NFORMS ? cmp_forms[i].name : NULL;
}

const char *cmp_form_suffix(unsigned i)
{
	return i < CMP_NFORMS ? cmp_forms[i].suffix : NULL;
}
