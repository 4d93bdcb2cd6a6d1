// SPDX-License-Identifier: Apache-2.0
/* Tables about the recording: its window, its loss and its cost, so that no number is without them. */
#include <stddef.h>
#include <string.h>

#include "feature/cost/cost.h"
#include "view/dataset/dataset.h"

struct recording {
	struct mdl_session about; /* a shallow copy */
	uint64_t late, iteration_watched_ns, iteration_unwatched_ns;
	struct view_text command, cmdline, hostname, kernel, cpu_model, python, backend;
	uint64_t world_size;
	bool cost, taken_out;
};

#define ROW	    struct recording
#define HAS(member) .has = offsetof(ROW, member)
static const struct tbl_column recording_columns[] = {
	{"window_ns", NULL, NULL, TBL_NS, AT(about.duration_ns)},
	{"paused_ns", NULL, NULL, TBL_NS, AT(about.paused_ns)},
	{"incomplete", NULL, NULL, TBL_BOOL, AT(about.incomplete)},
	{"comm", NULL, NULL, TBL_TEXT, AT(command)},
	{"cmdline", NULL, NULL, TBL_TEXT, AT(cmdline)},
	{"hostname", NULL, NULL, TBL_TEXT, AT(hostname)},
	{"kernel", NULL, NULL, TBL_TEXT, AT(kernel)},
	{"cpu_model", NULL, NULL, TBL_TEXT, AT(cpu_model)},
	{"python", NULL, NULL, TBL_TEXT, AT(python)},
	{"backend", NULL, NULL, TBL_TEXT, AT(backend)},
	{"world_size", NULL, NULL, TBL_COUNT, AT(world_size), TBL_OMIT},
	{"attempted", NULL, NULL, TBL_COUNT, AT(about.loss.attempted)},
	{"stored", NULL, NULL, TBL_COUNT, AT(about.loss.stored)},
	{"dropped", NULL, NULL, TBL_COUNT, AT(about.loss.dropped)},
	{"truncated", NULL, NULL, TBL_COUNT, AT(about.loss.truncated)},
	{"unreadable", NULL, NULL, TBL_COUNT, AT(about.loss.unreadable)},
	{"unmatched", NULL, NULL, TBL_COUNT, AT(about.loss.unmatched)},
	{"cut_records", NULL, NULL, TBL_COUNT, AT(about.cut_records)},
	{"left_out", NULL, NULL, TBL_COUNT, AT(about.left_out)},
	{"open_spans", NULL, NULL, TBL_COUNT, AT(about.open_spans)},
	{"late", NULL, NULL, TBL_COUNT, AT(late)},
	{"followed", NULL, NULL, TBL_COUNT, AT(about.followed)},
	{"unfollowed", NULL, NULL, TBL_COUNT, AT(about.unfollowed)},
	{"iterations", NULL, NULL, TBL_COUNT, AT(about.iterations), TBL_OMIT},
	{"sampled_iterations", NULL, NULL, TBL_COUNT, AT(about.sampled_iterations), TBL_OMIT},
	{"added_cpu_ns", NULL, NULL, TBL_NS, AT(about.cost.added_ns), HAS(cost)},
	{"busiest_thread_ns", NULL, NULL, TBL_NS, AT(about.cost.thread_ns), HAS(cost)},
	{"trap_ns", NULL, NULL, TBL_NS, AT(about.cost.trap_ns), HAS(cost)},
	{"uncertainty_permille", NULL, NULL, TBL_COUNT, AT(about.cost.uncertain), HAS(cost)},
	{"taken_out", NULL, NULL, TBL_BOOL, AT(taken_out), HAS(cost)},
	{"iteration_watched_ns", NULL, NULL, TBL_NS, AT(iteration_watched_ns), TBL_OMIT},
	{"iteration_unwatched_ns", NULL, NULL, TBL_NS, AT(iteration_unwatched_ns), TBL_OMIT},
	{0},
};
#undef ROW

static struct view_text about_text_of(const char *text)
{
	return view_word(text && *text ? text : NULL);
}

static int put_recording(struct dataset *d, struct dataset_table *t)
{
	const struct mdl_session *s = d->s.in->session;
	const struct mdl_target target = mdl_target_of(s);
	const struct cost_iterations it = cost_of_iterations(d->s.in->model);
	const struct recording row = {
		.about = *s,
		.late = view_tally(d->s.in->model, MXBPF_TALLY_LATE),
		.iteration_watched_ns = it.n ? it.watched_ns : 0,
		.iteration_unwatched_ns = it.n ? it.unwatched_ns : 0,
		.command = about_text_of(target.comm),
		.cmdline = about_text_of(target.cmdline),
		.hostname = about_text_of(s->hostname),
		.kernel = about_text_of(s->kernel),
		.cpu_model = about_text_of(s->cpu_model),
		.python = about_text_of(s->python),
		.backend = about_text_of(s->job_backend),
		.world_size = s->world_size,
		.cost = s->cost.added_ns,
		.taken_out = s->cost.scale,
	};

	dataset_table_columns(t, recording_columns, NULL);
	return dataset_table_row(t, &row);
}

#define ROW	   struct source
#define LOSS(what) TBL_COUNT, AT(loss.what)
struct source {
	struct view_text name;
	struct mxbpf_loss loss;
	uint64_t late;
};
static const struct tbl_column source_columns[] = {
	{"source", NULL, NULL, TBL_TEXT, AT(name)},
	{"attempted", NULL, NULL, LOSS(attempted)},
	{"stored", NULL, NULL, LOSS(stored)},
	{"dropped", NULL, NULL, LOSS(dropped)},
	{"truncated", NULL, NULL, LOSS(truncated)},
	{"unreadable", NULL, NULL, LOSS(unreadable)},
	{"unmatched", NULL, NULL, LOSS(unmatched)},
	{"late", NULL, NULL, TBL_COUNT, AT(late)},
	{0},
};
#undef ROW

static int put_sources(struct dataset *d, struct dataset_table *t)
{
	const struct mdl_session *s = d->s.in->session;
	int err = 0;
	size_t i;

	dataset_table_columns(t, source_columns, NULL);
	for (i = 0; !err && i < s->nsources; i++) {
		const struct source row = {about_text_of(s->sources[i].name), s->sources[i].loss, s->sources[i].late};

		err = dataset_table_row(t, &row);
	}
	return err;
}

#define ROW struct process
struct process {
	uint32_t pid;
	uint64_t numbers[MDL_LABEL_NUMBERS];
	struct view_text texts[MDL_LABEL_TEXTS], hostname;
};

/* The columns are those of the labels, without what the first columns and the partition say. */
static int put_processes(struct dataset *d, struct dataset_table *t)
{
	const struct mdl_session *s = d->s.in->session;
	struct tbl_column columns[MDL_LABEL_NUMBERS + MDL_LABEL_TEXTS + 3] = {
		{NULL, NULL, NULL, TBL_PID, AT(pid), .flags = 0},
		{"hostname", NULL, NULL, TBL_TEXT, AT(hostname), .flags = 0},
	};
	struct process row;
	unsigned n = 2, i;
	int err = 0;
	size_t k;

	for (i = 0; i < MDL_LABEL_NUMBERS; i++)
		if (i != MDL_RANK)
			columns[n++] = (struct tbl_column){
				mdl_label_number_words[i], .type = TBL_COUNT, .flags = TBL_NULL,
				.at = (uint16_t)(offsetof(struct process, numbers) + i * sizeof(uint64_t)),
				.bytes = sizeof(uint64_t)};
	for (i = 0; i < MDL_LABEL_TEXTS; i++)
		columns[n++] = (struct tbl_column){
			mdl_label_text_words[i], .type = TBL_TEXT,
			.at = (uint16_t)(offsetof(struct process, texts) + i * sizeof(struct view_text)),
			.bytes = sizeof(struct view_text)};
	dataset_table_columns(t, columns, NULL);
	for (k = 0; !err && k < s->nlabels; k++) {
		const struct mdl_labels *l = &s->labels[k];

		row = (struct process){.pid = l->pid, .hostname = about_text_of(l->hostname)};
		for (i = 0; i < MDL_LABEL_NUMBERS; i++)
			row.numbers[i] = l->numbers[i] == MDL_NO_NUMBER ? TBL_UNKNOWN : l->numbers[i];
		for (i = 0; i < MDL_LABEL_TEXTS; i++)
			row.texts[i] = about_text_of(l->texts[i]);
		err = dataset_table_row(t, &row);
	}
	return err;
}

#undef ROW

static int one_table(struct dataset *d, const char *name, int (*put)(struct dataset *d, struct dataset_table *t))
{
	int err = dataset_table_begin(&d->table, d, name);

	if (!err) {
		dataset_table_lead(&d->table, dataset_lead_columns);
		err = put(d, &d->table);
	}
	return dataset_table_end(&d->table, err);
}

int dataset_about(struct dataset *d)
{
	int err = one_table(d, "processes", put_processes);

	err = err ? err : one_table(d, "sources", put_sources);
	/* The last of all files: a recording that has it has all others. */
	return err ? err : one_table(d, "recordings", put_recording);
}
