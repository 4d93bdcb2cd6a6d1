// SPDX-License-Identifier: Apache-2.0
/* The tables "activities", of what ran on GPUs, and "launches", of the calls that launched it. */
#include <errno.h>

#include "view/dataset/dataset.h"

static const char *const categories[MXBPF_ACTIVITY_MAX] = {
	[MXBPF_ACTIVITY_KERNEL] = "kernel",
	[MXBPF_ACTIVITY_COPY] = "gpu_memcpy",
	[MXBPF_ACTIVITY_SET] = "gpu_memset",
	[MXBPF_ACTIVITY_SYNC] = "cuda_sync",
};

#define NO_STREAM UINT32_MAX /* CUPTI's number of no stream, for a wait that is for none in particular */

struct activity {
	uint64_t recording, stream;
	struct view_text name;
	struct mxbpf_activity a;
};

#define ROW struct activity
const struct tbl_column dataset_activity_columns[] = {
	{"recording", NULL, NULL, TBL_COUNT, AT(recording)},
	{"start", NULL, NULL, TBL_MOMENT, AT(a.h.ts_ns)},
	{"name", NULL, NULL, TBL_TEXT, AT(name)},
	{"category", NULL, NULL, TBL_WORD, AT(a.cls), WORDS(categories)},
	{"total_ns", NULL, NULL, TBL_NS, AT(a.dur_ns)},
	{"pid", NULL, NULL, TBL_COUNT, AT(a.h.tgid)},
	{NULL, NULL, NULL, TBL_PID, AT(a.h.tgid)},
	{"gpu", NULL, NULL, TBL_COUNT, AT(a.track.device)},
	{"context", NULL, NULL, TBL_COUNT, AT(a.track.context)},
	{"stream", NULL, NULL, TBL_COUNT, AT(stream), TBL_NULL},
	{"bytes", NULL, NULL, TBL_BYTES, AT(a.bytes)},
	{"correlation", NULL, NULL, TBL_COUNT, AT(a.edge_id), TBL_OMIT},
	{"edge_domain", NULL, NULL, TBL_COUNT, AT(a.domain)},
	{"graph", NULL, NULL, TBL_COUNT, AT(a.graph), TBL_OMIT},
	{"registers", NULL, NULL, TBL_COUNT, AT(a.registers), TBL_OMIT},
	{"static_shared_bytes", NULL, NULL, TBL_BYTES, AT(a.static_shared)},
	{"dynamic_shared_bytes", NULL, NULL, TBL_BYTES, AT(a.dynamic_shared)},
	{0},
};
#undef ROW

struct launch {
	uint64_t recording;
	struct view_text name;
	struct mxbpf_launch l;
};

#define ROW struct launch
const struct tbl_column dataset_launch_columns[] = {
	{"recording", NULL, NULL, TBL_COUNT, AT(recording)},
	{"start", NULL, NULL, TBL_MOMENT, AT(l.h.ts_ns)},
	{"name", NULL, NULL, TBL_TEXT, AT(name)},
	{"total_ns", NULL, NULL, TBL_NS, AT(l.dur_ns)},
	{"pid", NULL, NULL, TBL_COUNT, AT(l.h.tgid)},
	{NULL, NULL, NULL, TBL_PID, AT(l.h.tgid)},
	{"thread", NULL, NULL, TBL_COUNT, AT(l.tid)},
	{"correlation", NULL, NULL, TBL_COUNT, AT(l.edge_id)},
	{"edge_domain", NULL, NULL, TBL_COUNT, AT(l.domain)},
	{0},
};
#undef ROW

int dataset_activity(struct dataset *d, const struct mxbpf_rec *r)
{
	struct activity row = {.recording = d->recording, .a = kind_activity(r)};

	row.stream = row.a.track.stream == NO_STREAM ? TBL_UNKNOWN : row.a.track.stream;
	row.name.data = mdl_name(d->s.in->model, row.a.name_id, &row.name.len);
	return dataset_table_row(&d->activities, &row);
}

int dataset_launch(struct dataset *d, const struct mxbpf_rec *r)
{
	struct launch row = {.recording = d->recording, .l = kind_launch(r)};

	if (row.l.call_id)
		row.name.data = mdl_name(d->s.in->model, row.l.call_id, &row.name.len);
	return dataset_table_row(&d->launches, &row);
}
