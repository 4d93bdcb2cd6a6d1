// SPDX-License-Identifier: Apache-2.0
/* Details in which rows of one name differ (--by). */
#include "mxbpf_config.h"
#include "view/priv.h"
#include "view/text/grid.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

const char *const view_by_words[] = {[VIEW_BY_NAME] = "name",	  [VIEW_BY_SHAPE] = "shape",
				     [VIEW_BY_STACK] = "stack",	  [VIEW_BY_MODULE] = "module",
				     [VIEW_BY_RANGE] = "range",	  [VIEW_BY_LAYER] = "layer",
				     [VIEW_BY_DEVICE] = "device", [VIEW_BY_PROCESS] = "process",
				     [VIEW_BY_RANK] = "rank",	  [VIEW_BY_JOB] = "job",
				     [VIEW_BY_HOST] = "host",	  [VIEW_BY_THREAD] = "thread",
				     [VIEW_BY_EVENT] = "event",	  NULL};

bool view_by_processes(enum view_by by)
{
	return by == VIEW_BY_PROCESS || view_by_label(by);
}

bool view_by_place(enum view_by by)
{
	return by == VIEW_BY_DEVICE || by == VIEW_BY_THREAD || view_by_processes(by);
}

/* Returns the length of the first n lines. */
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

bool view_shows_shapes(const struct view *s)
{
	return s->opts->by == VIEW_BY_SHAPE ||
	       (s->opts->by == VIEW_BY_EVENT && s->in->session->details & MXBPF_DETAIL_ARGS);
}

bool view_shows_stack(const struct view *s)
{
	return s->opts->by == VIEW_BY_STACK || s->opts->by == VIEW_BY_MODULE ||
	       (s->opts->by == VIEW_BY_EVENT && s->in->session->details & MXBPF_DETAIL_STACK);
}

bool view_shows_layer(const struct view *s)
{
	return s->opts->by == VIEW_BY_LAYER ||
	       (s->opts->by == VIEW_BY_EVENT && s->in->session->details & MXBPF_DETAIL_LAYER);
}

bool view_shows_range(const struct view *s)
{
	return s->opts->by == VIEW_BY_RANGE;
}

/* Calls that are in no range have the text "". */
static const char *range_of(const struct mdl *m, uint64_t range_id, size_t *len)
{
	const char *text = range_id ? mdl_name(m, range_id, len) : NULL;

	*len = text ? *len : 0;
	return text ? text : "";
}

static bool ends_in(const char *text, size_t len, const char *end)
{
	const size_t n = strlen(end);

	return len > n && !memcmp(text + len - n, end, n);
}

/* A node has the name of its layer and a suffix, and the node of its gradient one more: "conv0_fwd_backward". */
const char *view_layer(const struct mdl *m, const struct view_opts *opts, uint64_t layer_id, size_t *len)
{
	const char *text = mdl_text(m, MXBPF_NAME_LAYER, layer_id, len);

	if (!text || opts->by != VIEW_BY_LAYER)
		return text;
	while (ends_in(text, *len, "_backward"))
		*len -= strlen("_backward");
	if (ends_in(text, *len, "_fwd"))
		*len -= strlen("_fwd");
	return text;
}

const char *view_row_key(const struct mdl *m, const struct view_opts *opts, const struct mdl_row *r, size_t *len)
{
	const char *layer = opts->by == VIEW_BY_LAYER ? view_layer(m, opts, r->layer_id, len) : NULL;

	*len = layer ? *len : 0;
	if (view_by_place(opts->by))
		return "";
	return layer ? layer : mdl_name(m, r->name_id, len);
}

const char *view_process_label(const struct view *s, uint32_t tgid, char buf[VIEW_LABEL_BYTES])
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_process *p = mdl_process_of(ss, tgid);
	const struct mdl_labels *l = mdl_labels_of(ss, tgid);
	const char *name = tgid == ss->pid ? ss->comm : mdl_thread_name(s->in->model, tgid, tgid & MDL_PID_MASK);
	int n = snprintf(buf, VIEW_LABEL_BYTES, "%" PRIu32, tgid & MDL_PID_MASK);

	if (p && *p->role)
		snprintf(buf + n, VIEW_LABEL_BYTES - (size_t)n, " %s %u%s%.40s", p->role, p->rank,
			 *p->hostname ? " of " : "", p->hostname);
	else if (l && l->numbers[MDL_RANK] != MDL_NO_NUMBER)
		snprintf(buf + n, VIEW_LABEL_BYTES - (size_t)n, " rank %" PRIu32 "%s%.40s", l->numbers[MDL_RANK],
			 name ? " " : "", name ? name : "");
	else if (name)
		snprintf(buf + n, VIEW_LABEL_BYTES - (size_t)n, " %.40s", name);
	return buf;
}

/* With several processes, a thread is shown with its process. */
static const char *thread_label(const struct view *s, const struct mdl_row *r, char buf[VIEW_LABEL_BYTES])
{
	const char *name = mdl_thread_name(s->in->model, r->tgid, r->tid);
	char of[32] = "";

	if (r->tgid && mdl_nprocesses(s->in->model) > 1)
		snprintf(of, sizeof(of), " of %" PRIu32, r->tgid & MDL_PID_MASK);
	snprintf(buf, VIEW_LABEL_BYTES, r->tid ? "%" PRIu32 "%s%.40s%s" : "other threads", r->tid, name ? " " : "",
		 name ? name : "", of);
	return buf;
}

const char *view_row_name(const struct view *s, const struct mdl_row *r, char buf[VIEW_LABEL_BYTES], size_t *len)
{
	const char *label = view_row_key(s->in->model, s->opts, r, len);

	if (s->opts->by == VIEW_BY_THREAD)
		label = thread_label(s, r, buf);
	else if (s->opts->by == VIEW_BY_PROCESS)
		label = view_process_label(s, r->tgid, buf);
	else if (view_by_label(s->opts->by))
		view_label(mdl_labels_of(s->in->session, r->tgid), s->opts->by, buf), label = buf;
	else if (s->opts->by == VIEW_BY_DEVICE)
		mdl_device_name(s->in->session, r->device, buf), label = buf;
	else
		return label;
	*len = strlen(label);
	return label;
}

bool view_is_annotation(const struct view *s, const struct mdl_row *r)
{
	return r->traits & MXBPF_TRAIT_USER && !view_by_place(s->opts->by);
}

bool view_shows_outputs(const struct view *s)
{
	return view_shows_shapes(s) && view_shows_flops(s);
}

/* Returns line i, or NULL if there are fewer lines. */
static const char *line_at(const char *text, size_t left, unsigned i, size_t *len)
{
	const char *line;

	do
		if (!view_next_line(&text, &left, &line, len))
			return NULL;
	while (i--);
	return line;
}

const char *view_args_line(const struct mdl *m, uint64_t args_id, enum view_args_line i, size_t *len)
{
	size_t left = 0;
	const char *text = mdl_text(m, MXBPF_NAME_ARGS, args_id, &left), *line = NULL;

	if (text)
		line = line_at(text, left, i, len);
	if (line && view_is_list(line, *len, true))
		return line;
	*len = 2;
	return "[]";
}

const char *view_shapes(const struct mdl *m, uint64_t args_id, size_t *len)
{
	return view_args_line(m, args_id, VIEW_ARGS_DIMS, len);
}

/* If outputs are known, rows also differ in them and in types, so this is the whole text. */
static const char *whole_shapes(const struct mdl *m, uint64_t args_id, size_t *len)
{
	const char *text = mdl_text(m, MXBPF_NAME_ARGS, args_id, len);
	size_t n;

	if (text && line_at(text, *len, VIEW_ARGS_OUT_DIMS, &n))
		return text;
	return view_shapes(m, args_id, len);
}

/* Returns the type that all words of a list `"float32","float32"` have, "" if none is known, NULL if they differ. */
static const char *one_type(const char *types, size_t len, const char *word, size_t *word_len)
{
	const char *p = types + 1, *end = types + len - 1, *quote;
	size_t n;

	for (; p < end; p = quote + 2) {
		quote = memchr(p + 1, '"', (size_t)(end - p - 1));
		if (!quote)
			return NULL;
		n = (size_t)(quote - p - 1);
		if (n && word && (n != *word_len || memcmp(word, p + 1, n)))
			return NULL;
		if (!n) /* unknown type */
			continue;
		word = p + 1;
		*word_len = n;
	}
	return word ? word : "";
}

int view_shapes_note(const struct mdl *m, uint64_t args_id, struct buf *b)
{
	const char *line[VIEW_ARGS_LINES], *type;
	size_t len[VIEW_ARGS_LINES], n = 0;
	unsigned i;
	int err;

	for (i = 0; i < VIEW_ARGS_LINES; i++)
		line[i] = view_args_line(m, args_id, (enum view_args_line)i, &len[i]);
	err = buf_put(b, line[VIEW_ARGS_DIMS], len[VIEW_ARGS_DIMS]);
	if (err || len[VIEW_ARGS_OUT_DIMS] <= strlen("[]"))
		return err;
	err = buf_printf(b, " -> %.*s", (int)len[VIEW_ARGS_OUT_DIMS], line[VIEW_ARGS_OUT_DIMS]);
	type = one_type(line[VIEW_ARGS_TYPES], len[VIEW_ARGS_TYPES], NULL, &n);
	type = type ? one_type(line[VIEW_ARGS_OUT_TYPES], len[VIEW_ARGS_OUT_TYPES], *type ? type : NULL, &n) : NULL;
	if (err || (type && !*type))
		return err;
	return type ? buf_printf(b, " %.*s", (int)n, type)
		    : buf_printf(b, " %.*s -> %.*s", (int)len[VIEW_ARGS_TYPES], line[VIEW_ARGS_TYPES],
				 (int)len[VIEW_ARGS_OUT_TYPES], line[VIEW_ARGS_OUT_TYPES]);
}

size_t view_flat_shapes(const char *shapes, size_t len, char *to)
{
	size_t depth = 0, n = 0, i;

	for (i = 0; i < len; i++) {
		depth += shapes[i] == '[';
		if (depth < 3) {
			to[n++] = shapes[i];
			depth -= shapes[i] == ']';
			continue;
		}
		/* Skip the shapes in a list of tensors. The text comes from a file, so the end of the list may be
		 * missing. */
		while (depth > 1 && ++i < len)
			depth += (shapes[i] == '[') - (shapes[i] == ']');
		to[n++] = ']';
	}
	return n;
}

const char *view_module_line(const char *text, size_t *len)
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

const char *view_stack(const struct mdl *m, const struct view_opts *opts, uint64_t stack_id, size_t *len)
{
	unsigned depth = opts->by == VIEW_BY_EVENT ? UINT_MAX : VIEW_STACK_DEPTH;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, stack_id, len);

	if (opts->by == VIEW_BY_MODULE)
		return view_module_line(text ? text : "", len);
	*len = text ? lines_len(text, *len, opts->stack_depth ? opts->stack_depth : depth) : 0;
	return text ? text : "";
}

const char *view_detail(const struct mdl *m, const struct view_opts *opts, const struct mdl_row *r, size_t *len)
{
	*len = 0;
	if (opts->by == VIEW_BY_SHAPE)
		return whole_shapes(m, r->args_id, len);
	if (opts->by == VIEW_BY_RANGE)
		return range_of(m, r->range_id, len);
	return opts->by == VIEW_BY_STACK || opts->by == VIEW_BY_MODULE ? view_stack(m, opts, r->stack_id, len) : "";
}
