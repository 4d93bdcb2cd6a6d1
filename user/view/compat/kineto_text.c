// SPDX-License-Identifier: Apache-2.0
#include "view/compat/kineto_text.h"

#include "mxbpf_config.h"

static int put_member(struct buf *b, const char *key, const char *text, size_t len)
{
	int ret = buf_printf(b, ",\"%s\":", key);

	if (ret)
		return ret;
	if (view_is_list(text, len, true))
		return buf_put(b, text, len);
	ret = buf_put(b, "\"", 1);
	if (!ret)
		ret = view_text_escape(b, text, len);
	return ret ? ret : buf_put(b, "\"", 1);
}

int view_text_args(struct view_trace *t, uint64_t id, struct buf *b)
{
	static const char *const keys[] = {"Input Dims", "Input type", "Input Strides", "Output Dims", "Output type"};
	size_t left = 0, len, i;
	const char *text = mdl_text(t->s.in->model, MXBPF_NAME_ARGS, id, &left), *line;
	int ret = 0;

	if (!text)
		return 0;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]) && !ret && view_next_line(&text, &left, &line, &len); i++)
		if (i != VIEW_ARGS_STRIDES || !(t->s.in->session->details & MXBPF_DETAIL_OUTPUTS))
			ret = put_member(b, keys[i], line, len);
	return ret;
}

int view_text_stack(struct view_trace *t, uint64_t id, struct buf *b)
{
	size_t left = 0, len;
	const char *text = mdl_text(t->s.in->model, MXBPF_NAME_STACK, id, &left), *line, *mark = "";
	int ret = text ? buf_printf(b, ",\"Call stack\":\"") : 0;

	if (!text)
		return 0;
	for (; !ret && view_next_line(&text, &left, &line, &len); mark = ";") {
		ret = buf_put(b, mark, strlen(mark));
		if (!ret)
			ret = view_text_escape(b, line, len);
	}
	return ret ? ret : buf_put(b, "\"", 1);
}

int view_text_layer(struct view_trace *t, uint64_t id, struct buf *b)
{
	size_t len = 0;
	const char *text = mdl_text(t->s.in->model, MXBPF_NAME_LAYER, id, &len);
	int ret = text ? buf_printf(b, ",\"layer\":\"") : 0;

	if (text && !ret)
		ret = view_text_escape(b, text, len);
	return ret || !text ? ret : buf_put(b, "\"", 1);
}
