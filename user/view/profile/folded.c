// SPDX-License-Identifier: Apache-2.0
/*
 * Folded stacks, the input of flame graphs. Each stack is a line: its frames from the outermost on, joined by
 * semicolons, and the number of its samples. The operator is the root.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "view/priv.h"
#include "view/stacks.h"

struct folded {
	struct view s;
	struct view_stacks stacks;
	size_t frames; /* in the current line */
};

static int folded_record(struct view *s, const struct mxbpf_rec *r)
{
	int err = view_stacks_add(&((struct folded *)s)->stacks, r);

	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

/* A semicolon would split the frame. */
static void put_frame_text(struct out *o, const char *text, size_t len)
{
	const char *at;

	while ((at = memchr(text, ';', len))) {
		view_put_utf8(o, text, (size_t)(at - text));
		out_puts(o, ":");
		len -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	view_put_utf8(o, text, len);
}

static int put_frame(void *ctx, const struct view_stack_frame *f)
{
	struct folded *d = ctx;
	struct out *o = d->s.out;

	if (d->frames++)
		out_puts(o, ";");
	put_frame_text(o, f->name, f->name_len);
	if (f->kind == VIEW_FRAME_PYTHON && f->file) {
		out_puts(o, " (");
		put_frame_text(o, f->file, f->file_len);
		out_printf(o, ":%" PRIu32 ")", f->line);
	}
	return 0;
}

static int folded_end(struct view *s)
{
	struct folded *d = (struct folded *)s;
	size_t i;

	for (i = 0; i < buf_count(&d->stacks.list, struct view_stack *); i++) {
		const struct view_stack *t = *buf_at(&d->stacks.list, struct view_stack *, i);

		d->frames = 0;
		view_stack_frames(s->in->model, t, put_frame, d);
		out_printf(s->out, " %" PRIu64 "\n", t->count);
	}
	return 0;
}

static void folded_fini(struct view *s)
{
	view_stacks_fini(&((struct folded *)s)->stacks);
}

static const char *const suffixes[] = {".folded", ".folded.gz", NULL};

const struct view_ops view_folded = {
	.name = "folded",
	.help = "stacks of --sample for flamegraph.pl and speedscope, the operator first",
	.suffixes = suffixes,
	.needs_records = true,
	.of_samples = true,
	.state_bytes = sizeof(struct folded),
	.record = folded_record,
	.end = folded_end,
	.fini = folded_fini,
};
