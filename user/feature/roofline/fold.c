// SPDX-License-Identifier: Apache-2.0
/* Keeps the work of operators by name and shapes, and the rates of devices. */
#include <errno.h>
#include <string.h>

#include "feature/roofline/roofline.h"

#define ROWS_MAX (1u << 14) /* of 120 bytes */

struct state {
	struct hash row_index; /* (name and args, process) -> 1 + index in rows */
	struct buf rows;       /* struct mxbpf_agg_gpu_roof */
};

/* Memory clock and bus width of each device. They never change, and no output shows them as a table. */
#define ROW struct mxbpf_gpu_limits
static const struct tbl_column limit_columns[] = {
	PID_COLUMN(h.tgid, .merge = TBL_IS_KEY),
	{.stored = "gpu", .type = TBL_COUNT, KEY_AT(device)},
	{.stored = "memory_clock_khz", .type = TBL_COUNT, MAX_AT(memory_clock_khz)},
	{.stored = "memory_bus_bits", .type = TBL_COUNT, MAX_AT(memory_bus_bits)},
	{0},
};
static const struct tbl_def limits_table = {.name = "gpu limits",
					    .row_bytes = sizeof(struct mxbpf_gpu_limits),
					    .of_process = true,
					    .columns = limit_columns};

static struct state *state_of(struct mdl *m)
{
	return mdl_state(m, &feature_roofline);
}

static uint64_t key_of(const struct mxbpf_agg_gpu_roof *r)
{
	return r->args_id ^ r->name_id * 0x9e3779b97f4a7c15ull;
}

int roofline_place(struct mdl *m, const struct mxbpf_agg_gpu_roof *like, uint32_t *place)
{
	struct state *t = state_of(m);
	const uint64_t *known = t ? hash_get(&t->row_index, key_of(like), like->h.tgid) : NULL;
	struct mxbpf_agg_gpu_roof *r;
	bool added;

	*place = known ? (uint32_t)*known : 0;
	if (*place || (t && buf_count(&t->rows, *r) >= ROWS_MAX))
		return 0;
	if (!t || mdl_expect_name(m, like->name_id))
		return -ENOMEM;
	r = mdl_item_put(&t->row_index, &t->rows, key_of(like), like->h.tgid, sizeof(*r), &added);
	if (!r)
		return -ENOMEM;
	*r = (struct mxbpf_agg_gpu_roof){
		.h = {.kind = MXBPF_AGG_GPU_ROOF, .size = sizeof(*r), .tgid = like->h.tgid},
		.name_id = like->name_id,
		.args_id = like->args_id,
	};
	*place = (uint32_t)buf_count(&t->rows, *r);
	return 0;
}

struct mxbpf_agg_gpu_roof *roofline_row(struct mdl *m, uint32_t place)
{
	return buf_at(&state_of(m)->rows, struct mxbpf_agg_gpu_roof, place - 1);
}

const struct mxbpf_agg_gpu_roof *roofline_rows(const struct mdl *m, size_t *n)
{
	const struct state *t = mdl_state_of(m, &feature_roofline);

	*n = t ? buf_count(&t->rows, struct mxbpf_agg_gpu_roof) : 0;
	return t ? (const void *)t->rows.data : NULL;
}

const struct mxbpf_gpu_limits *roofline_limits(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_roofline, &limits_table, n);
}

/* ---- records */

static void add_work(struct mxbpf_gpu_work *to, const struct mxbpf_gpu_work *from)
{
	add_sat(&to->launches, from->launches);
	add_sat(&to->kernels, from->kernels);
	add_sat(&to->copies, from->copies);
	add_sat(&to->gpu_ns, from->gpu_ns);
	add_sat(&to->bytes, from->bytes);
}

static int fold_row(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_gpu_roof *from = (const void *)rec;
	struct mxbpf_agg_gpu_roof *r;
	uint32_t place;

	if (roofline_place(m, from, &place))
		return -ENOMEM;
	if (!place)
		return 0;
	r = roofline_row(m, place);
	add_sat(&r->calls, from->calls);
	add_work(&r->total, &from->total);
	add_work(&r->self, &from->self);
	return 0;
}

/* ---- the state */

static int emit(const struct mdl *m, struct buf *out)
{
	const struct state *t = mdl_state_of(m, &feature_roofline);
	const struct mxbpf_agg_gpu_roof *r;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&t->rows, *r); i++) {
		r = buf_at(&t->rows, struct mxbpf_agg_gpu_roof, i);
		err = r->calls || r->total.launches || r->total.gpu_ns ? buf_put(out, r, sizeof(*r)) : 0;
	}
	return err;
}

static int copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_roofline);
	struct state *t = state_of(to);

	return t ? mdl_items_copy(&t->row_index, &t->rows, &f->row_index, &f->rows) : -ENOMEM;
}

/* Launches go on in `to` and keep the places of their rows, which begin at 0 there. Limits are told only once. */
static int move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct state *t = state_of(to);
	struct mxbpf_agg_gpu_roof *r;
	size_t n, i;
	const struct mxbpf_gpu_limits *limits = roofline_limits(from, &n);
	int err = state_of(from) ? copy(to, from) : -ENOMEM; /* a device that has run nothing yet has limits alone */

	for (i = 0; !err && i < n; i++)
		err = mdl_table_add(to, &feature_roofline, &limits_table, &limits[i]);
	if (err)
		return err;
	for (i = 0; i < buf_count(&t->rows, *r); i++) {
		r = buf_at(&t->rows, struct mxbpf_agg_gpu_roof, i);
		r->calls = 0;
		memset(&r->total, 0, sizeof(r->total));
		memset(&r->self, 0, sizeof(r->self));
	}
	return 0;
}

static int processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	const struct state *t = mdl_state_of(m, &feature_roofline);

	return mdl_items_processes(&t->rows, sizeof(struct mxbpf_agg_gpu_roof), fn, ctx);
}

static void fini(struct mdl *m)
{
	struct state *t = state_of(m);

	mdl_items_fini(&t->row_index, &t->rows);
}

const struct mdl_feature feature_roofline = {
	.state_bytes = sizeof(struct state),
	.by_process = true, /* each process numbers its devices itself */
	.tables = {{&limits_table, MXBPF_GPU_LIMITS}},
	.kinds = {{MXBPF_AGG_GPU_ROOF, fold_row}},
	.emit = emit,
	.copy = copy,
	.move = move,
	.processes = processes,
	.fini = fini,
};
