// SPDX-License-Identifier: Apache-2.0
/* Keeps the work of operators by name and shapes, and the rates of devices. */
#include <errno.h>
#include <string.h>

#include "feature/roofline/roofline.h"

#define ROWS_MAX (1u << 14) /* of 120 bytes; further shapes of an operator count in one row, which no output shows */

#define ROW struct roofline_row
static const struct tbl_column row_columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(name_id)},
	{.stored = "args_id", .type = TBL_NAME, KEY_AT(args_id), .name_kind = MXBPF_NAME_ARGS, .flags = TBL_DETAIL},
	PID_COLUMN(tgid, .merge = TBL_IS_KEY),
	{.stored = "calls", .type = TBL_COUNT, SUM_AT(calls)},
	{.stored = "total", .type = TBL_COUNT, SUM_AT(total)},
	{.stored = "self", .type = TBL_COUNT, SUM_AT(self)},
	{0},
};
#undef ROW
static const struct tbl_def rows_table = {.name = "gpu roofline",
					  .row_bytes = sizeof(struct roofline_row),
					  .max_rows = ROWS_MAX,
					  .adds_processes = true,
					  .of_process = true,
					  .columns = row_columns};

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

int roofline_place(struct mdl *m, const struct roofline_row *like, uint32_t *place)
{
	*place = mdl_table_place(m, &feature_roofline, &rows_table, like);
	return *place ? 0 : -ENOMEM;
}

struct roofline_row *roofline_row(struct mdl *m, uint32_t place)
{
	return tbl_at(mdl_table_of(m, &feature_roofline, &rows_table), place - 1);
}

const struct roofline_row *roofline_rows(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_roofline, &rows_table, n);
}

const struct mxbpf_gpu_limits *roofline_limits(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_roofline, &limits_table, n);
}

/* Launches go on in `to` and keep the places of their rows, which begin at 0 there. Limits are told only once. */
static int roofline_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	const int err = mdl_tables_copy(to, from, &feature_roofline);
	struct roofline_row *r;
	size_t n, i;

	roofline_rows(to, &n);
	for (i = 0; !err && i < n; i++) {
		r = roofline_row(to, (uint32_t)i + 1);
		r->calls = 0;
		memset(&r->total, 0, sizeof(r->total));
		memset(&r->self, 0, sizeof(r->self));
	}
	return err;
}

const struct mdl_feature feature_roofline = {
	.tables = {{&rows_table}, {&limits_table, MXBPF_GPU_LIMITS}},
	.move = roofline_move,
};
