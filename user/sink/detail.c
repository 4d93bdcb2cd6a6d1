// SPDX-License-Identifier: Apache-2.0
/* What rows of one name differ in, as --by asks for. */
#include "mxbpf_config.h"
#include "sink/priv.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

const char *const snk_by_words[] = {[SNK_BY_NAME] = "name",	  [SNK_BY_SHAPE] = "shape",
				    [SNK_BY_STACK] = "stack",	  [SNK_BY_MODULE] = "module",
				    [SNK_BY_LAYER] = "layer",	  [SNK_BY_DEVICE] = "device",
				    [SNK_BY_PROCESS] = "process", [SNK_BY_THREAD] = "thread",
				    [SNK_BY_EVENT] = "event",	  NULL};

bool snk_by_place(enum snk_by by)
{
	return by == SNK_BY_DEVICE || by == SNK_BY_PROCESS || by == SNK_BY_THREAD;
}

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

const char *snk_row_key(const struct mdl *m, const struct snk_opts *opts, const struct mdl_row *r, size_t *len)
{
	const char *layer = opts->by == SNK_BY_LAYER ? snk_layer(m, opts, r->layer_id, len) : NULL;

	*len = layer ? *len : 0;
	if (snk_by_place(opts->by))
		return "";
	return layer ? layer : mdl_name(m, r->name_id, len);
}

const char *snk_process_label(const struct snk *s, uint32_t tgid, char buf[SNK_LABEL_BYTES])
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_process *p = mdl_process_of(ss, tgid);
	const char *name = tgid == ss->pid ? ss->comm : mdl_thread_name(s->in->model, tgid, tgid & MDL_PID_MASK);
	int n = snprintf(buf, SNK_LABEL_BYTES, "%" PRIu32, tgid & MDL_PID_MASK);

	if (p)
		snprintf(buf + n, SNK_LABEL_BYTES - (size_t)n, " %s %u%s%.40s", p->role, p->rank,
			 *p->hostname ? " of " : "", p->hostname);
	else if (name)
		snprintf(buf + n, SNK_LABEL_BYTES - (size_t)n, " %.40s", name);
	return buf;
}

/* Of several processes, each thread says whose it is. */
static const char *thread_label(const struct snk *s, const struct mdl_row *r, char buf[SNK_LABEL_BYTES])
{
	const char *name = mdl_thread_name(s->in->model, r->tgid, r->tid);
	char of[32] = "";

	if (r->tgid && mdl_nprocesses(s->in->model) > 1)
		snprintf(of, sizeof(of), " of %" PRIu32, r->tgid & MDL_PID_MASK);
	snprintf(buf, SNK_LABEL_BYTES, r->tid ? "%" PRIu32 "%s%.40s%s" : "other threads", r->tid, name ? " " : "",
		 name ? name : "", of);
	return buf;
}

const char *snk_row_name(const struct snk *s, const struct mdl_row *r, char buf[SNK_LABEL_BYTES], size_t *len)
{
	const char *label = snk_row_key(s->in->model, s->opts, r, len);

	if (s->opts->by == SNK_BY_THREAD)
		label = thread_label(s, r, buf);
	else if (s->opts->by == SNK_BY_PROCESS)
		label = snk_process_label(s, r->tgid, buf);
	else if (s->opts->by == SNK_BY_DEVICE)
		mdl_device_name(s->in->session, r->device, buf), label = buf;
	else
		return label;
	*len = strlen(label);
	return label;
}

bool snk_is_annotation(const struct snk *s, const struct mdl_row *r)
{
	return r->traits & MXBPF_TRAIT_USER && !snk_by_place(s->opts->by);
}

bool snk_shows_outputs(const struct snk *s)
{
	return snk_shows_shapes(s) && snk_shows_flops(s);
}

/* Line i of a text; NULL: it has not as many. */
static const char *line_at(const char *text, size_t left, unsigned i, size_t *len)
{
	const char *line;

	do
		if (!snk_next_line(&text, &left, &line, len))
			return NULL;
	while (i--);
	return line;
}

const char *snk_args_line(const struct mdl *m, uint64_t args_id, enum snk_args_line i, size_t *len)
{
	size_t left = 0;
	const char *text = mdl_text(m, MXBPF_NAME_ARGS, args_id, &left), *line = NULL;

	if (text)
		line = line_at(text, left, i, len);
	if (line && snk_is_list(line, *len, true))
		return line;
	*len = 2;
	return "[]";
}

const char *snk_shapes(const struct mdl *m, uint64_t args_id, size_t *len)
{
	return snk_args_line(m, args_id, SNK_ARGS_DIMS, len);
}

/* What comes out makes a row as well, where it is known, and the types of all. */
static const char *whole_shapes(const struct mdl *m, uint64_t args_id, size_t *len)
{
	const char *text = mdl_text(m, MXBPF_NAME_ARGS, args_id, len);
	size_t n;

	if (text && line_at(text, *len, SNK_ARGS_OUT_DIMS, &n))
		return text;
	return snk_shapes(m, args_id, len);
}

/* The word that all of the types are, if they are one: `"float32","float32"`. */
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
		if (!n) /* nothing is known of it */
			continue;
		word = p + 1;
		*word_len = n;
	}
	return word ? word : "";
}

static int shapes_note(const struct mdl *m, uint64_t args_id, struct buf *b)
{
	const char *line[SNK_ARGS_LINES], *type;
	size_t len[SNK_ARGS_LINES], n = 0;
	unsigned i;
	int err;

	for (i = 0; i < SNK_ARGS_LINES; i++)
		line[i] = snk_args_line(m, args_id, (enum snk_args_line)i, &len[i]);
	err = buf_put(b, line[SNK_ARGS_DIMS], len[SNK_ARGS_DIMS]);
	if (err || len[SNK_ARGS_OUT_DIMS] <= strlen("[]"))
		return err;
	err = buf_printf(b, " -> %.*s", (int)len[SNK_ARGS_OUT_DIMS], line[SNK_ARGS_OUT_DIMS]);
	type = one_type(line[SNK_ARGS_TYPES], len[SNK_ARGS_TYPES], NULL, &n);
	type = type ? one_type(line[SNK_ARGS_OUT_TYPES], len[SNK_ARGS_OUT_TYPES], *type ? type : NULL, &n) : NULL;
	if (err || (type && !*type))
		return err;
	return type ? buf_printf(b, " %.*s", (int)n, type)
		    : buf_printf(b, " %.*s -> %.*s", (int)len[SNK_ARGS_TYPES], line[SNK_ARGS_TYPES],
				 (int)len[SNK_ARGS_OUT_TYPES], line[SNK_ARGS_OUT_TYPES]);
}

int snk_grid_shapes(const struct snk *s, struct snk_grid *g, uint64_t args_id)
{
	struct buf note = {0};
	int err = shapes_note(s->in->model, args_id, &note);

	if (!err && note.len > strlen("[]")) /* of no shapes */
		err = snk_grid_note(g, note.data, note.len);
	buf_fini(&note);
	return err;
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
		/* In a list of them: to its end, which the text of a file may lack. */
		while (depth > 1 && ++i < len)
			depth += (shapes[i] == '[') - (shapes[i] == ']');
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
		return whole_shapes(m, r->args_id, len);
	return opts->by == SNK_BY_STACK || opts->by == SNK_BY_MODULE ? snk_stack(m, opts, r->stack_id, len) : "";
}
