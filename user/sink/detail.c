// SPDX-License-Identifier: Apache-2.0
/* What rows of one name differ in, as --by asks for. */
#include "sink/priv.h"

#include <limits.h>
#include <string.h>

const char *const snk_by_words[] = {[SNK_BY_NAME] = "name",
				    [SNK_BY_SHAPE] = "shape",
				    [SNK_BY_STACK] = "stack",
				    [SNK_BY_MODULE] = "module",
				    [SNK_BY_LAYER] = "layer",
				    [SNK_BY_EVENT] = "event",
				    NULL};

/* Length of the first n lines. */
static size_t lines_len(const char *text, size_t len, unsigned n)
{
	const char *end = text;

	while (n-- && end < text + len) {
		end = memchr(end, '\n', (size_t)(text + len - end));
		if (!end)
			return len;
		end++;
	}
	return end > text ? (size_t)(end - text) - (end[-1] == '\n') : 0;
}

bool snk_shows_shapes(const struct snk *s)
{
	return s->opts->by == SNK_BY_SHAPE ||
	       (s->opts->by == SNK_BY_EVENT && s->in->session->details & MXBPF_DETAIL_ARGS);
}

bool snk_shows_stack(const struct snk *s)
{
	return s->opts->by == SNK_BY_STACK || s->opts->by == SNK_BY_MODULE ||
	       (s->opts->by == SNK_BY_EVENT && s->in->session->details & MXBPF_DETAIL_STACK);
}

bool snk_shows_layer(const struct snk *s)
{
	return s->opts->by == SNK_BY_LAYER ||
	       (s->opts->by == SNK_BY_EVENT && s->in->session->details & MXBPF_DETAIL_LAYER);
}

static bool ends_in(const char *text, size_t len, const char *end)
{
	const size_t n = strlen(end);

	return len > n && !memcmp(text + len - n, end, n);
}

/* A node is called after its layer, and what computes its gradient after the node: "conv0_fwd_backward". */
const char *snk_layer(const struct mdl *m, const struct snk_opts *opts, uint64_t layer_id, size_t *len)
{
	const char *text = mdl_text(m, MXBPF_NAME_LAYER, layer_id, len);

	if (!text || opts->by != SNK_BY_LAYER)
		return text;
	while (ends_in(text, *len, "_backward"))
		*len -= strlen("_backward");
	if (ends_in(text, *len, "_fwd"))
		*len -= strlen("_fwd");
	return text;
}

const char *snk_row_name(const struct mdl *m, const struct snk_opts *opts, const struct mdl_row *r, size_t *len)
{
	const char *layer = opts->by == SNK_BY_LAYER ? snk_layer(m, opts, r->layer_id, len) : NULL;

	return layer ? layer : mdl_name(m, r->name_id, len);
}

const char *snk_shapes(const struct mdl *m, uint64_t args_id, size_t *len)
{
	const char *text = mdl_text(m, MXBPF_NAME_ARGS, args_id, len);

	if (text)
		*len = lines_len(text, *len, 1);
	if (text && snk_is_list(text, *len, false))
		return text;
	*len = 2;
	return "[]";
}

size_t snk_flat_shapes(const char *shapes, size_t len, char *to)
{
	size_t depth = 0, n = 0, i;

	for (i = 0; i < len; i++) {
		depth += shapes[i] == '[';
		if (depth < 3) {
			to[n++] = shapes[i];
			depth -= shapes[i] == ']';
			continue;
		}
		/* In a list of them: to its end. */
		while (depth > 1)
			i++, depth += (shapes[i] == '[') - (shapes[i] == ']');
		to[n++] = ']';
	}
	return n;
}

/* The first line that names one. */
static const char *module_line(const char *text, size_t *len)
{
	static const char word[] = "nn.Module: ";
	const char *line;

	for (line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (strncmp(line, word, strlen(word)))
			continue;
		*len = strcspn(line, "\n");
		return line;
	}
	*len = 0;
	return "";
}

const char *snk_stack(const struct mdl *m, const struct snk_opts *opts, uint64_t stack_id, size_t *len)
{
	unsigned depth = opts->by == SNK_BY_EVENT ? UINT_MAX : SNK_STACK_DEPTH;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, stack_id, len);

	if (opts->by == SNK_BY_MODULE)
		return module_line(text ? text : "", len);
	*len = text ? lines_len(text, *len, opts->stack_depth ? opts->stack_depth : depth) : 0;
	return text ? text : "";
}

const char *snk_detail(const struct mdl *m, const struct snk_opts *opts, const struct mdl_row *r, size_t *len)
{
	*len = 0;
	if (opts->by == SNK_BY_SHAPE)
		return snk_shapes(m, r->args_id, len);
	return opts->by == SNK_BY_STACK || opts->by == SNK_BY_MODULE ? snk_stack(m, opts, r->stack_id, len) : "";
}
