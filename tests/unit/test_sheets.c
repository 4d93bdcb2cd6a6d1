// SPDX-License-Identifier: Apache-2.0
/*
 * Tests that every output shows what the columns of a sheet describe. Each test walks all sheets, so a new sheet needs
 * no test of its own.
 */
#include "mxbpf_cost.h"
#include "mxbpf_gauge.h"

#include "cmd/opts.h"
#include "records.h"
#include "schema.h"
#include "view/text/grid.h"

static char path[] = "/tmp/mxbpf-test-sheets-XXXXXX";

/* ---- a table with one row, in which each member shown by a column has a unique value */

struct table {
	struct view_list *list;
	char *row;
	char items[8][256]; /* rows of lists */
	unsigned nitems;
};
static char texts[512][8], raws[512][8];

static unsigned first_word(const struct tbl_column *c)
{
	unsigned i = 0;

	while (i + 1 < c->nwords && (!c->words[i] || !*c->words[i]))
		i++;
	return i;
}

static void fill_columns(struct table *t, const struct tbl_column *columns, char *row);

static void fill_column(struct table *t, const struct tbl_column *c, char *to)
{
	static unsigned last = 100;
	uint64_t n = c->type == TBL_WORD ? first_word(c) : last;
	const double part = 0.5;

	if (c->generate) /* the session names none */
		return;
	last = last == 255 ? 100 : last + 1; /* values fit into a byte */
	snprintf(texts[last], sizeof(texts[0]), "t%u", last);
	snprintf(raws[last], sizeof(raws[0]), "[\"%u\"]", last);
	if (c->type == TBL_OBJECT || c->type == TBL_PART) {
		fill_columns(t, c->columns, to);
	} else if (c->type == TBL_LIST) {
		*(struct view_list *)to = (struct view_list){.rows = t->items[t->nitems++], .n = 1};
		fill_columns(t, c->columns, ((struct view_list *)to)->rows);
	} else if (view_is_text(c) && c->type != TBL_WORD) {
		*(struct view_text *)to = view_word(c->type == TBL_RAW ? raws[last] : texts[last]);
	} else if (view_is_double(c)) {
		memcpy(to, &part, sizeof(part));
	} else {
		memcpy(to, &n, c->bytes < sizeof(n) ? c->bytes : sizeof(n)); /* valid on little endian only */
	}
}

static void fill_columns(struct table *t, const struct tbl_column *columns, char *row)
{
	const struct tbl_column *c;

	for (c = columns; c && c->bytes; c++) {
		fill_column(t, c, row + c->at);
		if (c->has)
			*(bool *)(row + c->has) = true;
		if (c->when)
			*((bool *)t->list + c->when) = true;
		if (c->shown)
			*((bool *)t->list + c->shown) = true;
	}
}

static struct table *table_new(const struct view_sheet *sh)
{
	struct table *t = calloc(1, sizeof(*t));

	t->list = calloc(1, sh->table_bytes);
	t->row = calloc(1, sh->row_bytes);
	fill_columns(t, sh->totals, (char *)t->list);
	fill_columns(t, sh->columns, t->row);
	t->list->title = sh->def ? sh->def : sh->of_class ? "calls" : NULL;
	t->list->rows = t->row;
	t->list->n = t->list->all = 1;
	return t;
}

static void table_free(struct table *t)
{
	free(t->row);
	free(t->list);
	free(t);
}

/* Returns the value of a cell as JSON and CSV write it. */
static const char *value_of(const struct tbl_column *c, const void *row, char buf[64])
{
	if (view_is_text(c))
		snprintf(buf, 64, "%.*s", (int)view_cell_text(c, row).len, view_cell_text(c, row).data);
	else if (view_is_double(c))
		snprintf(buf, 64, c->flags & TBL_SIGNIFICANT ? "%.*g" : "%.*f", c->data_digits,
			 view_cell_double(c, row));
	else
		snprintf(buf, 64, "%llu", (unsigned long long)view_cell_number(c, row));
	return buf;
}

static void read_gauge(struct mdl *m)
{
	const struct mxbpf_gauge g = {.h = {.kind = MXBPF_GAUGE, .size = MXBPF_GAUGE_BYTES_MIN},
				      .id = MXBPF_GAUGE_CPU_BUSY};
	struct buf b = {0};

	CHECK(!buf_put(&b, &g, MXBPF_GAUGE_BYTES_MIN) && !feed(m, &b));
}

/* Rows lack calls, so that they have a column that says so. */
static void leave_out(struct mdl *m)
{
	const struct mxbpf_partial r = {.h = {.kind = MXBPF_PARTIAL, .size = sizeof(r)},
					.cls = MXBPF_CLASS_OPERATOR,
					.flags = MXBPF_PARTIAL_SLICED};
	struct buf b = {0};

	CHECK(!buf_put(&b, &r, sizeof(r)) && !feed(m, &b));
}

/* Returns what a view writes for the table, with all features of the session on. The caller frees it. */
static char *render(const char *format, const struct view_sheet *sh, struct table *t)
{
	struct mdl_session session = {
		.comm = "", .cmdline = "", .held = true, .sched = true, .life = true, .features = ~0u, .details = ~0u};
	const struct view_sheet *const *other;
	const struct view_ops *ops = view_find(format);
	/* Shapes, stacks and layers are all there with --by event. */
	const struct view_opts opts = {.backward = true, .by = VIEW_BY_EVENT, .width = 400};
	struct view_input in = {.session = &session, .model = mdl_new()};
	struct view *s = calloc(1, ops->state_bytes ? ops->state_bytes : sizeof(*s));
	struct err e = {0};

	if (!strcmp(format, "csv")) /* has columns of the machine if a gauge was read */
		read_gauge(in.model);
	if (!strcmp(format, "json")) /* rows have pids if there are several processes */
		session.shown_role = "worker";
	leave_out(in.model);
	session.account = true;
	session.team_cpus = 4;
	session.sample_hz = 99;
	session.cost.scale = 1000;
	session.class_title[MXBPF_CLASS_TASK] = "Task";
	session.class_title[MXBPF_CLASS_KVSTORE] = "KVStore";
	*s = (struct view){.ops = ops, .in = &in, .opts = &opts, .err = &e};
	CHECK(!out_open(path, false, &s->out, &e));
	CHECK(!ops->begin || !ops->begin(s));
	for (other = view_sheets; *other; other++) {
		struct table *of = *other == sh ? t : table_new(*other);

		/* In JSON, all sheets with lists in the same member are part of one object. */
		if (*other == sh || (!strcmp(format, "json") && sh->member && (*other)->member &&
				     !strcmp((*other)->member, sh->member)))
			CHECK(!ops->sheet(s, *other, of->list));
		if (*other != sh)
			table_free(of);
	}
	CHECK(!ops->end(s) && !out_commit(s->out, &e));
	mdl_free(in.model);
	free(s);
	return read_file(path);
}

static const cJSON *member(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key);
}

static void missing(const struct view_sheet *sh, const char *column, const char *what)
{
	printf("# %s: column %s is missing in %s\n", sh->title, column, what);
	CHECK(!"every column is there");
}

static bool holds(const cJSON *v, const struct tbl_column *c, const void *row)
{
	char want[64], got[64];

	if (c->type == TBL_BOOL)
		return cJSON_IsTrue(v);
	if (c->type == TBL_DEVICE)
		return v != NULL;
	if (c->type == TBL_RAW || c->type == TBL_LINES)
		v = cJSON_GetArrayItem(v, 0);
	if (view_is_double(c))
		return cJSON_IsNumber(v) && v->valuedouble > 0.49 && v->valuedouble < 0.51;
	if (c->type == TBL_RAW)
		return cJSON_IsString(v) && atoi(v->valuestring) == atoi(value_of(c, row, want) + 2);
	if (cJSON_IsNumber(v))
		snprintf(got, sizeof(got), "%.0f", v->valuedouble);
	else
		snprintf(got, sizeof(got), "%s", cJSON_IsString(v) ? v->valuestring : "missing");
	return !strcmp(value_of(c, row, want), got);
}

static const cJSON *defs; /* of the schema */

/* --by range has it, and --by event has not: nvtx.bats looks at it. */
static bool is_of_range(const struct tbl_column *c)
{
	return c->key && !strcmp(c->key, "range");
}

/* Checks an object and its schema. */
static void check_object(const struct view_sheet *sh, const struct tbl_column *columns, const cJSON *o,
			 const cJSON *schema, const char *row)
{
	const struct tbl_column *c;

	for (c = columns; c->bytes; c++) {
		const cJSON *v = c->key ? member(o, c->key) : NULL, *says = c->key ? member(schema, c->key) : NULL;

		if (c->type == TBL_PART) {
			check_object(sh, c->columns, o, schema, row + c->at);
			continue;
		}
		if (!c->key || c->generate || is_of_range(c))
			continue;
		if (says && c->def)
			says = member(defs, c->def);
		if (!says)
			missing(sh, c->key, "the schema");
		if (c->type == TBL_OBJECT)
			check_object(sh, c->columns, v, member(says, "properties"), row + c->at);
		else if (c->type == TBL_LIST)
			check_object(sh, c->columns, cJSON_GetArrayItem(v, 0),
				     member(member(says, "items"), "properties"),
				     ((const struct view_list *)(row + c->at))->rows);
		else if (!holds(v, c, row))
			missing(sh, c->key, "JSON");
	}
}

static void check_json(const struct view_sheet *sh, const cJSON *schema)
{
	struct table *t = table_new(sh);
	FREED(memory_freed) char *text = render("json", sh, t);
	cJSON *root = cJSON_Parse(text);
	const cJSON *rows = sh->member ? member(root, sh->member) : NULL, *of = NULL;

	CHECK(root && valid(schema, schema, root));
	if (!root || !valid(schema, schema, root))
		fprintf(stderr, "%s %.3000s\n", sh->title, text);
	if (sh->def) {
		rows = member(member(root, "tables"), t->list->title);
		of = member(member(schema, "$defs"), sh->def);
	} else {
		of = member(member(schema, "properties"), sh->member);
		rows = sh->list ? member(rows, sh->list) : rows;
		of = sh->list ? member(member(of, "properties"), sh->list) : of;
	}
	of = sh->def ? of : member(of, "items");
	check_object(sh, sh->columns, cJSON_GetArrayItem(rows, 0), member(of, "properties"), t->row);
	cJSON_Delete(root);
	table_free(t);
}

/* Returns true if a line below the headings has this value in the column of this heading. No cell contains a comma. */
static bool has_cell(const char *csv, const char *head, const char *want)
{
	FREED(memory_freed) char *text = strdup(csv);
	char *rest = text, *heads = strsep(&rest, "\n"), *line, *cell;
	unsigned at = 0, i;
	bool found = false;

	while ((cell = strsep(&heads, ",")) && strcmp(cell, head))
		at++;
	while (cell && (line = strsep(&rest, "\n"))) {
		for (i = 0; (cell = strsep(&line, ",")) && i < at; i++)
			;
		found |= cell && !strcmp(cell, want);
		cell = text;
	}
	return found;
}

static void check_csv(const struct view_sheet *sh, const struct tbl_column *columns, const char *row, const char *csv)
{
	const struct tbl_column *c;
	char value[64], want[70];

	for (c = columns; c->bytes; c++) {
		const char *head = view_csv_head(sh, c);

		if (c->generate || is_of_range(c))
			continue;
		if (c->type == TBL_PART || (c->type == TBL_OBJECT && !(c->csv && !*c->csv)))
			check_csv(sh, c->columns, row + c->at, csv);
		else if (c->type == TBL_LIST && c->csv && *c->csv)
			check_csv(sh, c->columns, ((const struct view_list *)(row + c->at))->rows, csv);
		if (!c->columns && view_has_own_row(c))
			head = "count";
		if (!head || c->columns || c->type == TBL_DEVICE || c->type == TBL_RAW)
			continue;
		snprintf(want, sizeof(want), view_is_text(c) ? "\"%s\"" : "%s", value_of(c, row, value));
		if (!has_cell(csv, head, want))
			missing(sh, c->key ? c->key : head, "CSV");
	}
}

static void check_people(const struct view_sheet *sh)
{
	struct table *t = table_new(sh);
	FREED(memory_freed) char *text = render("modern", sh, t);
	char cell[64];
	const struct tbl_column *c;
	struct view_flat flat = {0};

	view_flatten(NULL, &flat, sh->columns, 0);
	for (c = flat.columns; c->bytes; c++) {
		const bool below =
			c->flags & TBL_BELOW || c->type == TBL_NOTE || c->type == TBL_LINES || c->type == TBL_RAW;

		if (is_of_range(c))
			continue;
		if (!below && c->head && !strstr(text, c->head))
			missing(sh, c->head, "the headings for people");
		if (c->head && !c->cell && (c->type == TBL_COUNT || view_is_text(c)) &&
		    !strstr(text, value_of(c, t->row, cell)))
			missing(sh, c->head, "the rows for people");
	}
	table_free(t);
}

static char *print_lists(void)
{
	int stdout_fd = dup(1), fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	fflush(stdout);
	dup2(fd, 1);
	cmd_print_lists(NULL);
	fflush(stdout);
	dup2(stdout_fd, 1);
	close(fd);
	close(stdout_fd);
	return read_file(path);
}

static void check_names(const struct view_sheet *sh, const struct tbl_column *columns, const char *section)
{
	const struct tbl_column *c;
	char name[128];
	unsigned k;

	for (c = columns; c->bytes; c++) {
		const char *names[] = {c->key, c->head, view_csv_head(sh, c)};

		if (c->type == TBL_PART) {
			check_names(sh, c->columns, section);
			continue;
		}
		for (k = 0; k < 3; k++) {
			snprintf(name, sizeof(name), "**%s**", names[k] ? names[k] : "");
			if (names[k] && !strstr(section, name))
				missing(sh, names[k], "the manual");
		}
	}
}

static void check_man(const struct view_sheet *sh, const char *man)
{
	char head[128], *at, *end;

	snprintf(head, sizeof(head), "\n### %s\n", sh->title);
	at = strstr(man, head);
	if (!at) {
		missing(sh, "title", "the manual");
		return;
	}
	end = strstr(at + 1, "\n###");
	FREED(memory_freed) char *section = strndup(at, end ? (size_t)(end - at) : strlen(at));
	check_names(sh, sh->columns, section);
}

int main(void)
{
	const struct view_sheet *const *sh;
	struct table *table;
	cJSON *schema;
	char *text;

	close(mkstemp(path));
	TEST("every column of every sheet is in JSON under its key with its value, and in the schema")
	{
		text = read_schema();
		schema = cJSON_Parse(text);
		CHECK(schema != NULL);
		defs = member(schema, "$defs");
		for (sh = view_sheets; *sh; sh++)
			if ((*sh)->def || (*sh)->member)
				check_json(*sh, schema);
		cJSON_Delete(schema);
		free(text);
	}
	TEST("every CSV column of every sheet is under its heading with its value")
	{
		for (sh = view_sheets; *sh; sh++)
			if ((*sh)->csv) {
				table = table_new(*sh);
				text = render("csv", *sh, table);
				check_csv(*sh, (*sh)->columns, table->row, text);
				table_free(table);
				free(text);
			}
	}
	TEST("every column of every sheet with a heading is in the table for people")
	{
		for (sh = view_sheets; *sh; sh++)
			if ((*sh)->above)
				check_people(*sh);
	}
	TEST("every column that gives way to a name can do so")
	{
		const struct tbl_column *c;

		for (sh = view_sheets; *sh; sh++)
			for (c = (*sh)->columns; c->bytes; c++)
				if (c->name_min > VIEW_GRID_NAME_MIN_MAX)
					missing(*sh, c->head, "the columns that are hidden");
	}
	TEST("every column of every sheet is in the manual under each of its names")
	{
		text = print_lists();
		for (sh = view_sheets; *sh; sh++)
			check_man(*sh, text);
		free(text);
	}
	unlink(path);
	UNIT_MAIN_END;
}
