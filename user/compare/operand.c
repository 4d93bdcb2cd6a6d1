// SPDX-License-Identifier: Apache-2.0
/* A JSON result as an operand: sums of a session, so each row has one bin. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "compare/compare.h"

#define FILE_MAX   (256u << 20)
#define NUMBER_MAX 9e18

static const char *const operator_tables[] = {"operator", "compiled kernel"};

/* Parts of an iteration by their names in JSON. */
static const struct {
	const char *key;
	enum mxbpf_step_part part;
} parts[] = {{"data", MXBPF_PART_DATA},
	     {"wait", MXBPF_PART_WAIT},
	     {"kvstore", MXBPF_PART_KVSTORE},
	     {"api", MXBPF_PART_API},
	     {"outside", MXBPF_PART_OUTSIDE}};

static const cJSON *member(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* Returns a number, or 0 if it is none in a sane range. */
static double operand_number(const cJSON *o, const char *key)
{
	const cJSON *v = member(o, key);

	return cJSON_IsNumber(v) && v->valuedouble > 0 && v->valuedouble < NUMBER_MAX ? v->valuedouble : 0;
}

static const char *text(const cJSON *o, const char *key)
{
	const cJSON *v = member(o, key);

	return cJSON_IsString(v) ? v->valuestring : "";
}

static int operand_add(struct cmp_samples *x, enum cmp_kind kind, const char *name, double value, double calls,
		       double runq)
{
	struct cmp_series *s;

	if (buf_count(&x->series, *s) >= CMP_SERIES_MAX) {
		x->left_out++;
		return 0;
	}
	s = cmp_series_add(x, kind, name, strlen(name), NULL, 0);
	if (!s)
		return -ENOMEM;
	s->value[0] += (float)(value / (double)x->count);
	s->calls += (uint64_t)calls;
	s->runq_ns += runq;
	return 0;
}

/* The loop with the most time. */
static const cJSON *find_loop(const cJSON *o)
{
	const cJSON *loop, *most = NULL;

	cJSON_ArrayForEach(loop, member(member(o, "iterations"), "loops"))
	{
		if (operand_number(loop, "count") >= 1 &&
		    (!most || operand_number(loop, "total_ns") > operand_number(most, "total_ns")))
			most = loop;
	}
	return most;
}

static int take_loop(struct cmp_samples *x, const cJSON *loop)
{
	const cJSON *of = member(loop, "parts");
	/* the parts are known of some iterations, and are scaled to all of them */
	const double known = operand_number(of, "count"), scale = known ? operand_number(loop, "count") / known : 1;
	int err;
	size_t i;

	x->wall_ns = operand_number(loop, "p50_ns");
	err = operand_add(x, CMP_ITERATION, cmp_kind_words[CMP_ITERATION], operand_number(loop, "total_ns"),
			  operand_number(loop, "count"), 0);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]) && !err && of; i++)
		err = operand_add(x, CMP_PART, cmp_part_words[parts[i].part],
				  scale * operand_number(member(of, parts[i].key), "total_ns"), known, 0);
	return err;
}

/* A row that was recorded in slices has an estimate for the whole window. */
static int take_operator(struct cmp_samples *x, const cJSON *row)
{
	const cJSON *of = member(row, "estimate") ? member(row, "estimate") : row;
	const double seen_ns = operand_number(row, "self_ns"), self_ns = operand_number(of, "self_ns");

	return operand_add(x, CMP_OPERATOR, text(row, "name"), self_ns, operand_number(of, "count"),
			   operand_number(member(row, "account"), "runq_ns") * (seen_ns ? self_ns / seen_ns : 1));
}

static int take_table(struct cmp_samples *x, const cJSON *table)
{
	const cJSON *row;
	bool operators = false;
	size_t i;
	int err = 0;

	for (i = 0; i < sizeof(operator_tables) / sizeof(operator_tables[0]); i++)
		operators |=
			table->string && !strcmp(table->string, operator_tables[i]); /* items of a list have no name */
	cJSON_ArrayForEach(row, table)
	{
		if (operators && !err)
			err = take_operator(x, row);
		if (member(row, "peak_bytes")) {
			x->peak_known = true;
			x->peak_bytes += (uint64_t)operand_number(row, "peak_bytes");
		}
	}
	return err;
}

static int take_rows(struct cmp_samples *x, const cJSON *o, bool slices)
{
	const cJSON *loop = slices ? NULL : find_loop(o), *table;
	int err = 0;

	*x = (struct cmp_samples){.iterations = loop != NULL, .sums = true, .events = true, .n = 1};
	x->count = loop ? (uint64_t)operand_number(loop, "count") : CMP_SLICES;
	if (loop)
		err = take_loop(x, loop);
	cJSON_ArrayForEach(table, member(o, "tables"))
	{
		if (!err)
			err = take_table(x, table);
	}
	return err;
}

static int take_findings(struct findings *found, const cJSON *o)
{
	const struct finding_rule *rule;
	const cJSON *f;
	struct finding *to;

	cJSON_ArrayForEach(f, member(o, "findings"))
	{
		rule = finding_rule_of(text(f, "finding"));
		if (!rule || found->n == FINDINGS_MAX)
			continue;
		to = &found->list[found->n++];
		to->rule = rule;
		if (buf_put(&to->text, text(f, "text"), strlen(text(f, "text"))))
			return -ENOMEM;
	}
	return 0;
}

static int take_libs(struct mdl_session *s, const cJSON *libs)
{
	const int n = cJSON_GetArraySize(libs);
	const cJSON *lib;
	struct mdl_lib *to;

	s->libs = calloc((size_t)n + 1, sizeof(*s->libs));
	if (!s->libs)
		return -ENOMEM;
	cJSON_ArrayForEach(lib, libs)
	{
		to = &s->libs[s->nlibs++];
		*to = (struct mdl_lib){strdup(text(lib, "path")), strdup(text(lib, "build_id")),
				       strdup(text(lib, "runtime"))};
		if (!to->path || !to->build_id || !to->runtime)
			return -ENOMEM;
	}
	return 0;
}

static int take_session(struct mdl_session *s, const cJSON *o)
{
	const cJSON *target = member(o, "target");

	s->mxbpf_version = strdup("");
	s->comm = strdup(text(target, "comm"));
	s->cmdline = strdup(text(target, "cmdline"));
	s->hostname = strdup(text(cJSON_GetArrayItem(member(o, "labels"), 0), "hostname"));
	s->start_unix_ns = (uint64_t)operand_number(member(o, "window"), "start_unix_ns");
	s->duration_ns = (uint64_t)operand_number(member(o, "window"), "duration_ns");
	s->loss.attempted = (uint64_t)operand_number(member(o, "loss"), "attempted");
	s->loss.dropped = (uint64_t)operand_number(member(o, "loss"), "dropped");
	s->cost.scale = cJSON_IsTrue(member(member(o, "cost"), "taken_out"));
	s->account = true;
	if (!s->mxbpf_version || !s->comm || !s->cmdline || !s->hostname)
		return -ENOMEM;
	return take_libs(s, member(target, "libraries"));
}

static int read_file(const char *path, struct buf *b)
{
	FILE *f = fopen(path, "re");
	char part[1 << 16];
	size_t n;
	int err = f ? 0 : -errno;

	while (!err && (n = fread(part, 1, sizeof(part), f)) > 0)
		err = b->len + n > FILE_MAX ? -EFBIG : buf_put(b, part, n);
	if (f && !err && ferror(f))
		err = -EIO;
	if (f)
		fclose(f);
	return err;
}

int cmp_json_take(struct cmp_run *run, struct mdl_session *s, bool slices, struct err *e)
{
	struct buf b = {0};
	int err = read_file(run->path, &b);
	int bad = err;
	cJSON *o = err ? NULL : json_read(b.data, b.len, &bad);

	mdl_session_fini(s);
	run->s = s;
	if (err)
		err_set(e, ERR_RUNTIME, err, "cannot read %s: %s", run->path, strerror(-err));
	else if (bad == -ENOMEM)
		err = bad;
	else if (!cJSON_IsObject(o) || !member(o, "schema_version") || !cJSON_IsObject(member(o, "tables")))
		err = err_set(e, ERR_RUNTIME, -EBADMSG,
			      "%s is no recording, and no JSON result of mxbpf: mxbpf report -f json makes one of a "
			      "recording",
			      run->path);
	if (!err)
		err = take_session(s, o);
	if (!err)
		err = take_rows(&run->x, o, slices);
	if (!err)
		err = take_findings(&run->found, o);
	if (err == -ENOMEM)
		err_set(e, ERR_RUNTIME, err, "out of memory");
	cJSON_Delete(o);
	buf_fini(&b);
	return err;
}
