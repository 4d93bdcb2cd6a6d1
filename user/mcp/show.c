// SPDX-License-Identifier: Apache-2.0
/* Answers as short text, made of the JSON that mxbpf prints. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "mcp/priv.h"

#define COLUMNS 24
#define ROWS	20 /* unless the call says more */

static const cJSON *member(const cJSON *of, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(of, name);
}

static double number(const cJSON *of, const char *name)
{
	const cJSON *v = member(of, name);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static const char *text(const cJSON *of, const char *name)
{
	const char *s = cJSON_GetStringValue(member(of, name));

	return s ? s : "";
}

static bool ends_with(const char *name, const char *end)
{
	const size_t n = strlen(name), len = strlen(end);

	return n > len && !strcmp(name + n - len, end);
}

/* Times and sizes with three digits, because an assistant reads and pays each of them. */
static void put_scaled(struct buf *to, double v, const char *const *units, double step, unsigned n)
{
	unsigned i;

	for (i = 0; i + 1 < n && fabs(v) >= step; i++)
		v /= step;
	buf_printf(to, "%.*f%s", fabs(v) >= 100 || v == floor(v) ? 0 : fabs(v) >= 10 ? 1 : 2, v, units[i]);
}

/* Shapes and the like. */
static void put_list(struct buf *to, const cJSON *v)
{
	char *list = cJSON_PrintUnformatted(v);

	buf_printf(to, "%.150s", list ? list : "-");
	cJSON_free(list);
}

static bool is_list(const cJSON *v)
{
	return cJSON_IsArray(v) && v->child && !cJSON_IsObject(v->child);
}

static void put_value(struct buf *to, const char *name, const cJSON *v)
{
	static const char *const times[] = {"ns", "us", "ms", "s"};
	static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB"};

	if (cJSON_IsString(v))
		buf_printf(to, "%.300s", v->valuestring);
	else if (cJSON_IsBool(v))
		buf_printf(to, "%s", cJSON_IsTrue(v) ? "yes" : "no");
	else if (is_list(v))
		put_list(to, v);
	else if (!cJSON_IsNumber(v))
		buf_printf(to, "-");
	else if (ends_with(name, "_ns"))
		put_scaled(to, v->valuedouble, times, 1000, 4);
	else if (ends_with(name, "_bytes"))
		put_scaled(to, v->valuedouble, sizes, 1024, 5);
	else
		buf_printf(to, "%.10g", v->valuedouble);
}

void mcp_show_loss(struct buf *to, const cJSON *report)
{
	const cJSON *loss = member(report, "loss");
	static const char *const kinds[] = {"dropped", "truncated", "unreadable"};
	bool some = false;
	unsigned i;

	buf_printf(to, "loss: ");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (number(loss, kinds[i]) > 0) {
			buf_printf(to, "%.0f %s, ", number(loss, kinds[i]), kinds[i]);
			some = true;
		}
	buf_printf(to, some ? "of %.0f events\n" : "none of %.0f events\n", number(loss, "attempted"));
}

static void show_cost(struct buf *to, const cJSON *report)
{
	const cJSON *cost = member(report, "cost"), *iteration = member(cost, "iteration_watched_ns");

	if (!cJSON_IsObject(cost))
		return;
	buf_printf(to, "cost: profiling added ");
	put_value(to, "added_cpu_ns", member(cost, "added_cpu_ns"));
	buf_printf(to, " of CPU time");
	if (cJSON_IsNumber(iteration) && cJSON_IsNumber(member(cost, "iteration_unwatched_ns"))) {
		buf_printf(to, "; an iteration takes ");
		put_value(to, "x_ns", iteration);
		buf_printf(to, ", without it about ");
		put_value(to, "x_ns", member(cost, "iteration_unwatched_ns"));
	}
	buf_printf(to, "%s\n", cJSON_IsTrue(member(cost, "taken_out")) ? "; times here are without it" : "");
}

/* All scalars of an object as "name value". */
static void show_scalars(struct buf *to, const cJSON *of, const char *between)
{
	const cJSON *v;
	bool some = false;

	cJSON_ArrayForEach(v, of)
	{
		if (cJSON_IsObject(v) || cJSON_IsNull(v) || (cJSON_IsArray(v) && !is_list(v)))
			continue;
		buf_printf(to, "%s%s ", some ? between : "", v->string);
		put_value(to, v->string, v);
		some = true;
	}
}

/* An iteration of a loop, and what it does all the time. */
static void show_loop(struct buf *to, const cJSON *loop)
{
	static const struct {
		const char *name, *words;
	} parts[] = {{"data", "waiting for data"},
		     {"wait", "waiting for results"},
		     {"kvstore", "exchanging"},
		     {"outside", "in Python code outside of operators"}};
	const cJSON *all = member(loop, "parts");
	const double total = number(all, "total_ns");
	unsigned i;

	buf_printf(to, "iterations: %.0f, median ", number(loop, "count"));
	put_value(to, "p50_ns", member(loop, "p50_ns"));
	buf_printf(to, ", p99 ");
	put_value(to, "p99_ns", member(loop, "p99_ns"));
	if (total > 0) {
		buf_printf(to, ": %.0f%% in operators", 100 * number(all, "operators_ns") / total);
		for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			if (number(member(all, parts[i].name), "total_ns") >= total / 100)
				buf_printf(to, ", %.0f%% %s",
					   100 * number(member(all, parts[i].name), "total_ns") / total,
					   parts[i].words);
	}
	buf_printf(to, "\n");
}

static int pid_of(const cJSON *report, const cJSON *finding)
{
	const cJSON *pid = member(finding, "pid");

	return (int)(cJSON_IsNumber(pid) ? pid->valuedouble : number(member(report, "target"), "pid"));
}

void mcp_show_result(const struct mcp *m, struct buf *to, const cJSON *report, const char *handle, unsigned again)
{
	const cJSON *f, *findings = member(report, "findings"), *iterations = member(report, "iterations");
	unsigned n = 0;

	buf_printf(to, "pid %.0f (%s), window ", number(member(report, "target"), "pid"),
		   text(member(report, "target"), "comm"));
	put_value(to, "duration_ns", member(member(report, "window"), "duration_ns"));
	buf_printf(to, ", handle %s\n", handle);
	cJSON_ArrayForEach(f, member(iterations, "loops"))
	{
		show_loop(to, f);
	}
	if (!cJSON_GetArraySize(findings))
		buf_printf(to, "no finding\n");
	cJSON_ArrayForEach(f, findings)
	{
		buf_printf(to, "%u. [%s] %s.\n", ++n, text(f, "finding"), text(f, "text"));
		if (text(f, "evidence")[0])
			buf_printf(to, "   seen: %s\n", text(f, "evidence"));
		if (n <= 3 && text(f, "advice")[0])
			buf_printf(to, "   advice: %s\n", text(f, "advice"));
		if (text(f, "next")[0])
			mcp_put_next(m, to, text(f, "next"), pid_of(report, f));
	}
	mcp_show_loss(to, report);
	show_cost(to, report);
	if (!n && again)
		buf_printf(to, "next: look {\"pid\":%d,\"seconds\":%u}\n", pid_of(report, NULL), again);
	if (strlen(handle) < 100 && cJSON_GetArraySize(member(member(report, "tables"), "operator")))
		buf_printf(to, "next: table {\"of\":\"%s\",\"key\":\"operator\"}\n", handle);
}

/* ---- tables */

/* Calls fn for each list of objects in a result, by the name that mxbpf gives it: "operator", "gpu.idle". */
static const cJSON *each_table(const cJSON *of, const char *path, unsigned depth, const char *wanted, struct buf *names)
{
	const cJSON *v, *found = NULL;
	char name[200];

	cJSON_ArrayForEach(v, of)
	{
		snprintf(name, sizeof(name), "%s%s%s", path, *path ? "." : "", v->string);
		if (!depth && (!strcmp(name, "probes") || !strcmp(name, "findings")))
			continue;
		if (cJSON_IsArray(v) && cJSON_IsObject(v->child)) {
			if (wanted && !strcmp(wanted, name))
				return v;
			if (names)
				buf_printf(names, "%s (%d rows)\n", name, cJSON_GetArraySize(v));
		} else if (cJSON_IsObject(v) && depth < 3) {
			found = each_table(v, !depth && !strcmp(name, "tables") ? "" : name, depth + 1, wanted, names);
			if (found)
				return found;
		}
	}
	return NULL;
}

/* A column of a row, or of an object in it, such as account.on_cpu_ns. */
static const cJSON *cell(const cJSON *row, const char *name)
{
	const cJSON *v = member(row, name), *inner;

	if (v)
		return v;
	cJSON_ArrayForEach(inner, row)
	{
		v = cJSON_IsObject(inner) ? member(inner, name) : NULL;
		if (v)
			return v;
	}
	return NULL;
}

struct sorted {
	const cJSON *row;
	double key;
	unsigned at;
};

static int by_key(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	BUF_ORDER(y->key, x->key);
	BUF_ORDER(x->at, y->at);
	return 0;
}

static bool has_text(const cJSON *row, const char *match)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, row)
	{
		if (cJSON_IsString(v) && strstr(v->valuestring, match))
			return true;
	}
	return false;
}

static bool is_shown(const cJSON *v)
{
	return (cJSON_IsNumber(v) && v->valuedouble != 0) || (cJSON_IsString(v) && v->valuestring[0]) ||
	       cJSON_IsTrue(v) || is_list(v);
}

/* The columns that some of the rows fill. Raw times are those with profiling; dates would be long. */
static unsigned find_columns(const struct sorted *rows, unsigned n, const char *names[COLUMNS])
{
	const cJSON *v, *outer;
	unsigned i, k, found = 0;

	for (i = 0; i < n; i++)
		cJSON_ArrayForEach(outer, rows[i].row)
		{
			for (v = cJSON_IsObject(outer) ? outer->child : outer; v;
			     v = cJSON_IsObject(outer) ? v->next : NULL) {
				if (!is_shown(v) || !strncmp(v->string, "raw_", 4) || ends_with(v->string, "_unix_ns"))
					continue;
				for (k = 0; k < found && strcmp(names[k], v->string); k++)
					;
				if (k == found && found < COLUMNS)
					names[found++] = v->string;
			}
		}
	return found;
}

static void put_rows(struct buf *to, const struct sorted *rows, unsigned n)
{
	const char *names[COLUMNS];
	const unsigned columns = find_columns(rows, n, names);
	unsigned i, k;

	for (k = 0; k < columns; k++)
		buf_printf(to, "%s%s", k ? "\t" : "", names[k]);
	for (i = 0; i < n; i++)
		for (k = 0; k < columns; k++) {
			buf_printf(to, k ? "\t" : "\n");
			put_value(to, names[k], cell(rows[i].row, names[k]));
		}
	buf_printf(to, "\n");
}

int mcp_show_table(struct mcp_call *c, struct buf *to, const cJSON *report, const char *handle, struct err *e)
{
	const char *key = mcp_text(c, "key"), *sort = mcp_text(c, "sort"), *match = mcp_text(c, "match");
	const cJSON *row, *table = key ? each_table(report, "", 0, key, NULL) : NULL;
	unsigned n = 0, shown, top = mcp_number(c, "top", ROWS);
	struct sorted *rows;

	if (!key) {
		each_table(report, "", 0, NULL, to);
		return 0;
	}
	if (!table)
		return err_set(e, ERR_USAGE, -ENOENT, "no table has the name '%.60s' here; call table without key",
			       key);
	rows = calloc((size_t)cJSON_GetArraySize(table) + 1, sizeof(*rows));
	if (!rows)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	sort = sort ? sort : cell(table->child, "self_ns") ? "self_ns" : NULL;
	cJSON_ArrayForEach(row, table)
	{
		const cJSON *v = sort ? cell(row, sort) : NULL;

		if (match && !has_text(row, match))
			continue;
		rows[n] = (struct sorted){row, cJSON_IsNumber(v) ? v->valuedouble : 0, n};
		n++;
	}
	if (sort && !cell(table->child, sort)) {
		free(rows);
		return err_set(e, ERR_USAGE, -EINVAL, "the table %.60s has no column '%.60s'", key, sort);
	}
	qsort(rows, n, sizeof(*rows), by_key);
	shown = top && top < n ? top : n;
	buf_printf(to, "%s: %u of %u rows%s%s\n", key, shown, n, sort ? ", largest first by " : "", sort ? sort : "");
	put_rows(to, rows, shown);
	free(rows);
	return 0;
}

static void show_row(struct buf *to, const cJSON *row, const char *table)
{
	const cJSON *v;

	buf_printf(to, "%s: ", table);
	show_scalars(to, row, "\n  ");
	cJSON_ArrayForEach(v, row)
	{
		if (!cJSON_IsObject(v))
			continue;
		buf_printf(to, "\n  %s: ", v->string);
		show_scalars(to, v, ", ");
	}
	buf_printf(to, "\n");
}

int mcp_show_operator(struct mcp_call *c, struct buf *to, const cJSON *report, struct err *e)
{
	const char *name = mcp_text(c, "name");
	const cJSON *table, *row;
	unsigned n = 0;

	cJSON_ArrayForEach(table, member(report, "tables"))
	{
		cJSON_ArrayForEach(row, table)
		{
			if (strcmp(text(row, "name"), name))
				continue;
			show_row(to, row, table->string);
			n++;
		}
	}
	if (n)
		return 0;
	return err_set(e, ERR_USAGE, -ENOENT, "no row has the name '%.60s'; find it with table and match", name);
}

/* ---- jobs */

void mcp_show_jobs(struct buf *to, const cJSON *list)
{
	const cJSON *p;
	unsigned n = 0;

	cJSON_ArrayForEach(p, member(list, "processes"))
	{
		buf_printf(to, "pid %.0f %s %s: %.160s%s%s%s\n", number(p, "pid"), text(p, "runtime"),
			   text(p, "version"), text(p, "cmdline"), text(p, "container")[0] ? ", container " : "",
			   text(p, "container"), cJSON_IsTrue(member(p, "attachable")) ? "" : ", cannot be watched: ");
		if (!cJSON_IsTrue(member(p, "attachable")))
			buf_printf(to, "  %s\n", text(p, "reason"));
	}
	if (number(list, "not_permitted") > 0)
		buf_printf(to, "%.0f processes cannot be read with the rights of this server\n",
			   number(list, "not_permitted"));
	if (!cJSON_GetArraySize(member(list, "processes")))
		buf_printf(to, "no process runs MXNet or PyTorch\n");
	cJSON_ArrayForEach(p, member(list, "processes"))
	{
		if (cJSON_IsTrue(member(p, "attachable")) && n++ < 10)
			buf_printf(to, "next: look {\"pid\":%.0f}\n", number(p, "pid"));
	}
}
