// SPDX-License-Identifier: Apache-2.0
#include "feature/inputs/inputs.h"
#include "table/table.h"

#define ROWS_MAX 16384 /* beyond that, sizes are not told apart */

#define ROW struct input_row
static const struct tbl_column columns[] = {
	PID_COLUMN(tgid, .merge = TBL_IS_KEY),
	{.stored = "name", .type = TBL_NAME, KEY_AT(name_id), .name_kind = MXBPF_NAME_SPAN, .flags = TBL_DETAIL},
	{.stored = "sizes", .type = TBL_NAME, KEY_AT(sizes), .name_kind = MXBPF_NAME_STACK, .flags = TBL_DETAIL},
	{.stored = "looks", .type = TBL_COUNT, SUM_AT(looks)},
	{.stored = "elapsed_ns", .type = TBL_NS, SUM_AT(elapsed_ns)},
	{.stored = "valued", .type = TBL_COUNT, SUM_AT(valued)},
	{.stored = "denormal", .type = TBL_COUNT, SUM_AT(denormal)},
	{.stored = "flushed", .type = TBL_COUNT, SUM_AT(flushed)},
	{.stored = "elements", .type = TBL_COUNT, MAX_AT(elements)},
	{0},
};

const struct tbl_def inputs_table = {.name = "inputs",
				     .row_bytes = sizeof(struct input_row),
				     .max_rows = ROWS_MAX,
				     .of_process = true,
				     .columns = columns};

const struct mdl_feature feature_inputs = {
	.tables = {{&inputs_table}},
};
