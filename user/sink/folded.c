// SPDX-License-Identifier: Apache-2.0
/*
 * Folded stacks, the input of flame graphs: a line for each stack, its frames from the outermost on with semicolons
 * between, and how many samples found it. The operator is the root.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sink/priv.h"
#include "sink/stacks.h"

struct folded {
	struct snk s;
	struct snk_stacks stacks;
	size_t frames; /* of the line that is being written */
};

static int record(struct snk *s, const struct mxbpf_rec *r)
{
	int err = snk_stacks_add(&((struct folded *)s)->stacks, r);

	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

/* A semicolon would be two frames. */
static void put_frame_text(struct out *o, const char *text, size_t len)
{
	const char *at;

	while ((at = memchr(text, ';', len))) {
		snk_put_utf8(o, text, (size_t)(at - text));
		out_puts(o, ":");
		len -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	snk_put_utf8(o, text, len);
}

static int put_frame(void *ctx, const struct snk_stack_frame *f)
{
	struct folded *d = ctx;
	struct out *o = d->s.out;

	if (d->frames++)
		out_puts(o, ";");
	put_frame_text(o, f->name, f->name_len);
	if (f->kind == SNK_FRAME_PYTHON && f->file) {
		out_puts(o, " (");
		put_frame_text(o, f->file, f->file_len);
		out_printf(o, ":%" PRIu32 ")", f->line);
	}
	return 0;
}

static int end(struct snk *s)
{
	struct folded *d = (struct folded *)s;
	size_t i;

	for (i = 0; i < buf_count(&d->stacks.list, struct snk_stack *); i++) {
		const struct snk_stack *t = *buf_at(&d->stacks.list, struct snk_stack *, i);

		d->frames = 0;
		snk_stack_frames(s->in->model, t, put_frame, d);
		out_printf(s->out, " %" PRIu64 "\n", t->count);
	}
	return 0;
}

static void fini(struct snk *s)
{
	snk_stacks_fini(&((struct folded *)s)->stacks);
}

static const char *const suffixes[] = {".folded", ".folded.gz", NULL};

const struct snk_ops snk_folded = {
	.name = "folded",
	.help = "stacks of --sample as flamegraph.pl and speedscope read them, the operator first",
	.suffixes = suffixes,
	.needs_records = true,
	.of_samples = true,
	.state_bytes = sizeof(struct folded),
	.record = record,
	.end = end,
	.fini = fini,
};
