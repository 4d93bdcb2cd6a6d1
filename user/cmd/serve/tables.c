// SPDX-License-Identifier: Apache-2.0
/* The tables of the interval that ends: for a client that asks, and as a line of the stream. */
#include <errno.h>
#include <inttypes.h>

#include "cmd/serve/serve.h"

static void take_text(void *ctx, const char *data, size_t n)
{
	buf_put(ctx, data, n);
}

int serve_tables(const struct serve *s, enum cmd_format format, bool one_line, struct buf *to)
{
	struct cmd_opts o = *s->run.o;
	struct out *out;
	int code;

	o.format = format;
	o.by = VIEW_BY_NAME;
	o.top = 0;
	o.output = NULL;
	if (out_open_take(take_text, to, &out))
		return -ENOMEM;
	code = cmd_print_tables(&o, s->about, s->model, one_line, out);
	out_abort(out);
	return code ? -EIO : 0;
}

/* The line's last member says how many lines before it were left out. */
static int say_left_out(struct buf *line, uint64_t n)
{
	static const char end[] = "}\n";

	if (line->len < sizeof(end) || !n)
		return line->len ? 0 : -ENOMEM;
	line->len -= sizeof(end) - 1;
	return buf_printf(line, ", \"lines_left_out\": %" PRIu64 "%s", n, end);
}

/* A line for which there is no memory is left out like one that nobody reads. */
void serve_stream(struct serve *s)
{
	const uint64_t left_out = s->stream ? stream_left_out(s->stream) : 0;
	struct buf line = {0};

	if (!s->stream)
		return;
	if (serve_tables(s, CMD_JSON, true, &line) || say_left_out(&line, left_out))
		stream_skip(s->stream);
	else
		stream_put(s->stream, line.data, line.len, left_out);
	buf_fini(&line);
}
