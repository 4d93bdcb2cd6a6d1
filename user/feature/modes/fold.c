// SPDX-License-Identifier: Apache-2.0
#include "feature/modes/modes.h"
#include "table/table.h"

#define ROW struct mode_row
static const struct tbl_column columns[] = {
	{.stored = "mode", .type = TBL_COUNT, KEY_AT(mode), .limit = MODES - 1},
	PID_COLUMN(tgid, .merge = TBL_IS_KEY),
	{.stored = "seen", .type = TBL_COUNT, SUM_AT(seen)},
	{.stored = "looked", .type = TBL_COUNT, MAX_AT(looked)},
	/* It may be found by a later reading than the mode. */
	{.stored = "line", .type = TBL_NAME, MAX_AT(line), .name_kind = MXBPF_NAME_STACK, .flags = TBL_DETAIL},
	{0},
};

const struct tbl_def modes_table = {
	.name = "modes", .row_bytes = sizeof(struct mode_row), .of_process = true, .columns = columns};

const struct mdl_feature feature_modes = {
	.session = &modes_session,
	.tables = {{&modes_table}},
};
