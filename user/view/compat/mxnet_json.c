// SPDX-License-Identifier: Apache-2.0
/* mxnet.profiler.dumps(format='json') with its line breaks and four digits, and with one more key: "mxbpf". */
#include "base/json.h"
#include "view/compat/mxnet.h"
#include "view/priv.h"

#include <inttypes.h>
#include <string.h>

static void mxnet_json_put_number(struct out *o, const char *key, float v, const char *end)
{
	out_printf(o, "                \"%s\": %.4g%s\n", key, (double)v, end);
}

static void mxnet_json_put_row(struct out *o, const struct view_mxnet_row *r, bool memory)
{
	out_puts(o, "            ");
	view_put_json_exact(o, r->name, r->len);
	out_printf(o, ": {\n                \"Count\": %" PRIu64 ",\n", r->count);
	if (!memory)
		mxnet_json_put_number(o, "Total", view_mxnet_thousandth(r->total), ",");
	mxnet_json_put_number(o, "Min", view_mxnet_thousandth(r->min), ",");
	mxnet_json_put_number(o, "Max", view_mxnet_thousandth(r->max), ",");
	mxnet_json_put_number(o, "Avg", view_mxnet_thousandth(view_mxnet_avg(r)), "");
	out_puts(o, "            }\n");
}

/* Writes the categories of one kind. */
static void put_kind(struct out *o, const struct view_mxnet_tables *t, bool memory)
{
	const struct view_mxnet_category *c;
	bool first = true;
	size_t i, k;

	for (k = 0; k < buf_count(&t->categories, struct view_mxnet_category); k++) {
		c = buf_at(&t->categories, struct view_mxnet_category, k);
		if (c->memory != memory)
			continue;
		out_puts(o, first ? "        " : "        ,\n        ");
		view_put_json_exact(o, c->title, strlen(c->title));
		out_puts(o, ": {\n");
		first = false;
		for (i = 0; i < buf_count(&c->rows, struct view_mxnet_row); i++) {
			if (i)
				out_puts(o, "            ,\n");
			mxnet_json_put_row(o, buf_at(&c->rows, struct view_mxnet_row, i), memory);
		}
		out_puts(o, "        }\n");
	}
}

/* Writes the object of the key that the profiler of MXNet does not have. */
static void put_about(struct out *o, const struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	struct json j = {.out = o};

	json_object(&j, NULL);
	json_line(&j, 8);
	json_object(&j, "window");
	json_u64(&j, "start_unix_ns", ss->start_unix_ns);
	json_u64(&j, "duration_ns", ss->duration_ns);
	json_bool(&j, "incomplete", ss->incomplete);
	json_u64(&j, "cut_records", ss->cut_records);
	view_json_window(&j, ss);
	json_end(&j);
	json_line(&j, 8);
	json_object(&j, "loss");
	view_json_loss(&j, &ss->loss);
	json_end(&j);
	json_line(&j, 8);
	view_json_sources(&j, ss);
	view_json_cost(&j, ss, s->in->model);
	json_line(&j, 4);
	json_end(&j);
}

static int end(struct view *s)
{
	struct view_mxnet_tables t;
	int err = view_mxnet_make(s, &t);

	if (err) {
		err_set(s->err, ERR_RUNTIME, err, "out of memory");
		goto out;
	}
	out_puts(s->out, "{\n    \"Time\": {\n");
	put_kind(s->out, &t, false);
	out_puts(s->out, "    }\n    ,\n    \"Memory\": {\n");
	put_kind(s->out, &t, true);
	out_puts(s->out, "    }\n,\n    \"Unit\": {\n        \"Time\": \"ms\",\n        \"Memory\": \"kB\"\n    }\n");
	out_puts(s->out, ",\n    \"mxbpf\": ");
	put_about(s->out, s);
	out_puts(s->out, "\n}\n");
out:
	view_mxnet_fini(&t);
	return err;
}

static const char *const magic[] = {"    \"mxbpf\": {", NULL};

const struct view_ops view_mxnet_json = {
	.name = "mxnet-json",
	.help = "the JSON of mxnet.profiler.dumps(format='json'), with loss under \"mxbpf\"",
	.magic = magic,
	.end = end,
};
