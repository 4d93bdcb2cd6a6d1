// SPDX-License-Identifier: Apache-2.0
/* JSON: exact integers. `mxbpf --generate schema` prints the schema. */
#include "view/calls.h"
#include "view/data/json.h"

static void put_target(struct json *j, const struct mdl_session *ss)
{
	const struct mdl_target target = mdl_target_of(ss);
	size_t i;

	json_object(j, "target");
	json_u64(j, "pid", target.pid);
	json_string(j, "comm", target.comm);
	json_string(j, "cmdline", target.cmdline);
	if (ss->agent_route)
		json_string(j, "agent", ss->agent_route);
	json_array(j, "libraries");
	for (i = 0; i < ss->nlibs; i++) {
		json_line(j, 4);
		json_object(j, NULL);
		json_string(j, "path", ss->libs[i].path);
		json_string(j, "build_id", ss->libs[i].build_id);
		json_string(j, "runtime", ss->libs[i].runtime);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

/* Writes the roles of the processes of a distributed job. */
static void put_processes(struct json *j, const struct mdl_session *ss)
{
	const struct mdl_process *p;

	if (!ss->nprocesses)
		return;
	json_line(j, 2);
	json_array(j, "processes");
	for (p = ss->processes; p < ss->processes + ss->nprocesses; p++) {
		json_line(j, 4);
		json_object(j, NULL);
		json_u64(j, "pid", p->pid);
		json_string(j, "role", p->role);
		json_u64(j, "rank", p->rank);
		json_u64(j, "of", p->of);
		json_bool(j, "rank_known", !p->by_order);
		json_string(j, "hostname", p->hostname);
		json_end(j);
	}
	json_end(j);
}

/* Writes the labels of processes. Members that are not known are absent. */
static void put_labels(struct json *j, const struct mdl_session *ss)
{
	const struct mdl_labels *l;
	unsigned i;

	if (!ss->nlabels)
		return;
	json_line(j, 2);
	json_array(j, "labels");
	for (l = ss->labels; l < ss->labels + ss->nlabels; l++) {
		json_line(j, 4);
		json_object(j, NULL);
		json_u64(j, "pid", l->pid);
		for (i = 0; i < MDL_LABEL_NUMBERS; i++)
			if (l->numbers[i] != MDL_NO_NUMBER)
				json_u64(j, mdl_label_number_words[i], l->numbers[i]);
		for (i = 0; i < MDL_LABEL_TEXTS; i++)
			if (*l->texts[i])
				json_string(j, mdl_label_text_words[i], l->texts[i]);
		json_string(j, "hostname", l->hostname);
		json_end(j);
	}
	json_end(j);
}

static void put_window(struct json *j, const struct mdl_session *ss)
{
	json_object(j, "window");
	json_u64(j, "start_unix_ns", ss->start_unix_ns);
	json_u64(j, "duration_ns", ss->duration_ns);
	view_json_window(j, ss);
	if (ss->incomplete)
		json_bool(j, "incomplete", true);
	if (ss->profiler)
		json_string(j, "profiler", ss->profiler);
	if (ss->cut_records)
		json_u64(j, "cut_records", ss->cut_records);
	json_end(j);
}

static void put_loss(struct json *j, const struct mdl_session *ss)
{
	json_object(j, "loss");
	view_json_loss(j, &ss->loss);
	json_end(j);
	json_line(j, 2);
	view_json_sources(j, ss);
}

/* Writes the tallies. Those of `rare` are members only if they are not 0. */
static void put_tallies(struct json *j, const struct view *s)
{
	static const struct {
		const char *key;
		enum mxbpf_tally_id id;
	} rare[] = {
		{"moments", MXBPF_TALLY_MOMENTS},
		{"unkeyed", MXBPF_TALLY_UNKEYED},
		{"ungrouped", MXBPF_TALLY_UNGROUPED},
	};
	uint64_t n;
	size_t i;

	json_line(j, 2);
	json_u64(j, "late", view_tally(s->in->model, MXBPF_TALLY_LATE));
	json_u64(j, "unwound", view_tally(s->in->model, MXBPF_TALLY_UNWOUND));
	for (i = 0; i < sizeof(rare) / sizeof(rare[0]); i++) {
		n = view_tally(s->in->model, rare[i].id);
		if (!n || (rare[i].id == MXBPF_TALLY_UNGROUPED && s->opts->by == VIEW_BY_NAME))
			continue;
		json_line(j, 2);
		json_u64(j, rare[i].key, n);
	}
}

static void put_probes(struct json *j, const struct mdl_session *ss)
{
	size_t i;

	json_line(j, 2);
	json_array(j, "probes");
	for (i = 0; i < ss->nprobes; i++) {
		json_line(j, 4);
		json_object(j, NULL);
		json_string(j, "name", ss->probes[i].name);
		json_string(j, "status", ss->probes[i].status);
		json_string(j, "reason", ss->probes[i].reason);
		if (ss->probes[i].runtime && *ss->probes[i].runtime)
			json_string(j, "runtime", ss->probes[i].runtime);
		json_end(j);
	}
	json_end(j);
}

static int data_json_begin(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	struct document *d = (struct document *)s;
	struct json *j = &d->json;

	d->several = mdl_nprocesses(s->in->model) > 1 || ss->shown_role || view_by_processes(s->opts->by);
	*j = (struct json){.out = s->out};
	json_object(j, NULL);
	json_line(j, 2);
	json_u64(j, "schema_version", 1);
	json_line(j, 2);
	put_target(j, ss);
	put_processes(j, ss);
	put_labels(j, ss);
	json_line(j, 2);
	put_window(j, ss);
	json_line(j, 2);
	json_string(j, "mode", ss->stats ? "stats" : "events");
	json_line(j, 2);
	put_loss(j, ss);
	json_line(j, 2);
	view_json_cost(j, ss, s->in->model);
	put_tallies(j, s);
	put_probes(j, ss);
	json_line(j, 2);
	json_object(j, "tables");
	return 0;
}

void document_close_tables(struct document *d)
{
	if (!d->closed)
		json_line(&d->json, 2);
	if (!d->closed || d->member)
		json_end(&d->json);
	d->closed = true;
	d->member = NULL;
}

static int data_json_end(struct view *s)
{
	const uint64_t not_shown = view_events_not_shown(s);
	struct document *d = (struct document *)s;
	int err;

	document_close_tables(d);
	if (not_shown) {
		json_line(&d->json, 2);
		json_u64(&d->json, "events_not_shown", not_shown);
	}
	err = view_write_sheet(s, &sheet_machine);
	json_line(&d->json, 0);
	json_end(&d->json);
	out_puts(s->out, "\n");
	return err;
}

/* A document on its own, and a line of a series. */
static const char *const magic[] = {"{\n  \"schema_version\": ", "{\"schema_version\": ", NULL};

const struct view_ops view_json = {
	.name = "json",
	.help = "exact integers (ns, bytes); schema in report.schema.json",
	.magic = magic,
	.state_bytes = sizeof(struct document),
	.by_process = true,
	.begin = data_json_begin,
	.details = true,
	.table = view_calls_table,
	.sheet = view_sheet_json,
	.end = data_json_end,
};
