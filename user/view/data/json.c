// SPDX-License-Identifier: Apache-2.0
/* JSON: exact integers. `mxbpf --generate schema` prints the schema. */
#include "view/calls.h"
#include "view/data/json.h"

#include <inttypes.h>
#include <string.h>

void json_text(struct view *s, const char *key, const char *text)
{
	out_printf(s->out, "\"%s\": ", key);
	view_put_json(s->out, text, strlen(text));
}

void json_optional(struct view *s, const char *key, const char *text)
{
	if (!text)
		return;
	out_puts(s->out, ", ");
	json_text(s, key, text);
}

static void put_target(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_target target = mdl_target_of(ss);
	size_t i;

	out_printf(s->out, "  \"target\": {\"pid\": %" PRIu32 ", ", target.pid);
	json_text(s, "comm", target.comm);
	out_puts(s->out, ", ");
	json_text(s, "cmdline", target.cmdline);
	json_optional(s, "agent", ss->agent_route);
	out_puts(s->out, ", \"libraries\": [");
	for (i = 0; i < ss->nlibs; i++) {
		out_puts(s->out, i ? ",\n    {" : "\n    {");
		json_text(s, "path", ss->libs[i].path);
		out_puts(s->out, ", ");
		json_text(s, "build_id", ss->libs[i].build_id);
		out_puts(s->out, ", ");
		json_text(s, "runtime", ss->libs[i].runtime);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "]},\n");
}

/* Writes the roles of the processes of a distributed job. */
static void put_processes(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_process *p;

	if (!ss->nprocesses)
		return;
	out_puts(s->out, "  \"processes\": [");
	for (p = ss->processes; p < ss->processes + ss->nprocesses; p++) {
		out_printf(s->out, "%s\n    {\"pid\": %" PRIu32 ", ", p > ss->processes ? "," : "", p->pid);
		json_text(s, "role", p->role);
		out_printf(s->out, ", \"rank\": %" PRIu32 ", \"of\": %" PRIu32 ", \"rank_known\": %s, ", p->rank, p->of,
			   p->by_order ? "false" : "true");
		json_text(s, "hostname", p->hostname);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "],\n");
}

static void put_probes(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	out_puts(s->out, "  \"probes\": [");
	for (i = 0; i < ss->nprobes; i++) {
		out_puts(s->out, i ? ",\n    {" : "\n    {");
		json_text(s, "name", ss->probes[i].name);
		out_puts(s->out, ", ");
		json_text(s, "status", ss->probes[i].status);
		out_puts(s->out, ", ");
		json_text(s, "reason", ss->probes[i].reason);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "],\n");
}

static int begin(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const uint64_t ungrouped = view_tally(s->in->model, MXBPF_TALLY_UNGROUPED);
	const uint64_t moments = view_tally(s->in->model, MXBPF_TALLY_MOMENTS);
	const uint64_t unkeyed = view_tally(s->in->model, MXBPF_TALLY_UNKEYED);

	((struct json *)s)->several =
		mdl_nprocesses(s->in->model) > 1 || ss->shown_role || s->opts->by == VIEW_BY_PROCESS;
	out_puts(s->out, "{\n  \"schema_version\": 1,\n");
	put_target(s);
	put_processes(s);
	out_printf(s->out, "  \"window\": {\"start_unix_ns\": %" PRIu64 ", \"duration_ns\": %" PRIu64,
		   ss->start_unix_ns, ss->duration_ns);
	view_put_window_json(s->out, ss);
	if (ss->incomplete)
		out_puts(s->out, ", \"incomplete\": true");
	if (ss->cut_records)
		out_printf(s->out, ", \"cut_records\": %" PRIu64, ss->cut_records);
	out_printf(s->out, "},\n  \"mode\": \"%s\",\n  \"loss\": {", ss->stats ? "stats" : "events");
	view_put_loss_json(s->out, &ss->loss);
	out_puts(s->out, "}");
	view_put_sources_json(s->out, ss, ",\n  ");
	out_printf(s->out, ",\n  \"late\": %" PRIu64 ", \"unwound\": %" PRIu64 ",\n",
		   view_tally(s->in->model, MXBPF_TALLY_LATE), view_tally(s->in->model, MXBPF_TALLY_UNWOUND));
	if (moments)
		out_printf(s->out, "  \"moments\": %" PRIu64 ",\n", moments);
	if (unkeyed)
		out_printf(s->out, "  \"unkeyed\": %" PRIu64 ",\n", unkeyed);
	if (ungrouped && s->opts->by != VIEW_BY_NAME)
		out_printf(s->out, "  \"ungrouped\": %" PRIu64 ",\n", ungrouped);
	put_probes(s);
	out_puts(s->out, "  \"tables\": {");
	return 0;
}

void json_open_table(struct view *s, const char *title)
{
	struct json *j = (struct json *)s;

	out_puts(s->out, j->tables ? ",\n    " : "\n    ");
	view_put_json(s->out, title, strlen(title));
	out_puts(s->out, ": [");
	j->tables = true;
}

/* No device is null in JSON, and "-" for people. */
void json_put_device(struct view *s, uint32_t device)
{
	char dev[48];

	mdl_device_name(s->in->session, device, dev);
	if (MXBPF_DEVICE_TYPE(device))
		view_put_json(s->out, dev, strlen(dev));
	else
		out_puts(s->out, "null");
}

uint64_t json_unix_ns(const struct view *s, uint64_t mono_ns)
{
	return s->in->session->start_unix_ns + (mono_ns - s->in->session->start_mono_ns);
}

void json_close_tables(struct view *s)
{
	struct json *j = (struct json *)s;

	if (!j->closed || j->member)
		out_puts(s->out, j->closed ? "}" : "\n  }");
	j->closed = true;
	j->member = NULL;
}

static int end(struct view *s)
{
	uint64_t not_shown = view_events_not_shown(s);
	int err;

	json_close_tables(s);
	if (not_shown)
		out_printf(s->out, ",\n  \"events_not_shown\": %" PRIu64, not_shown);
	err = view_write_sheet(s, &sheet_machine);
	out_puts(s->out, "\n}\n");
	return err;
}

/* The second one begins a line of a series. */
static const char *const magic[] = {"{\n  \"schema_version\": ", "{\"schema_version\": ", NULL};

const struct view_ops view_json = {
	.name = "json",
	.help = "exact integers (ns, bytes); schema in report.schema.json",
	.magic = magic,
	.state_bytes = sizeof(struct json),
	.by_process = true,
	.begin = begin,
	.details = true,
	.table = view_calls_table,
	.sheet = view_sheet_json,
	.end = end,
};
