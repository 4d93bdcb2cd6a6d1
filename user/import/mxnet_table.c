// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of MXNet's profiler: the text and the JSON of profiler.dumps(). They have rows and no calls. So there are
 * no percentiles, no timeline and no iterations, and the time of nested calls is in several rows.
 *
 * A user counter stands among the durations, with its last value as its total. Its average is half of what lies between
 * its extremes, and not its total divided by its count, by which it is told from a duration.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/gzip.h"
#include "base/json_read.h"
#include "base/whole.h"
#include "import/import.h"
#include "import/mxnet.h"
#include "mxbpf_mark.h"

#define FILE_MAX    (16u << 20) /* a table has a line for each name */
#define PIECE_BYTES (64u << 10)
#define NOTES_MAX   16 /* devices with memory */
#define TEXT_BEGIN  "Profile Statistics"
#define NS_IN_MS    1e6
#define THOUSAND    1e3 /* what MXNet divides values of counters by */

/* A row as it stands in the table: ms, or kB. */
struct line {
	const char *category, *name;
	size_t name_len;
	bool memory;
	double count, total, min, max, avg; /* memory has no total */
};

/* ---- rows */

/* Numbers of the text have four decimal places, and those of JSON four digits. */
static bool is_counter(const struct line *l)
{
	return mxnet_category_of(l->category, strlen(l->category)).domain_len &&
	       fabs(l->avg - l->total / l->count) > 0.0001 + 0.001 * l->avg;
}

static int put_counter(struct sink *s, const struct line *l)
{
	struct mxbpf_value v = {
		.h = {.kind = MXBPF_VALUE, .size = sizeof(v)},
		.name_id = sink_domain_name(s, l->category, strlen(l->category), l->name, l->name_len),
		.count = whole(l->count),
		.value = whole(round(l->total * THOUSAND)),
		.min = whole(round(l->min * THOUSAND)),
		.max = whole(round(l->max * THOUSAND)),
	};

	return sink_row(s, &v.h);
}

static int put_calls(struct sink *s, const struct line *l)
{
	const size_t len = strlen(l->category);
	const uint64_t total_ns = whole(round(l->total * NS_IN_MS));
	const struct mxbpf_agg a = {
		.h = {.kind = MXBPF_AGG, .size = sizeof(a)},
		.name_id = mxnet_name(s, l->category, len, l->name, l->name_len),
		.count = whole(l->count),
		.total_ns = total_ns,
		.self_ns = total_ns,
		.min_ns = whole(round(l->min * NS_IN_MS)),
		.max_ns = whole(round(l->max * NS_IN_MS)),
		.cls = (uint8_t)mxnet_category_of(l->category, len).cls,
	};

	return sink_row(s, &a.h);
}

static bool is_number(double v)
{
	return isfinite(v) && v >= 0 && v < 0x1p50;
}

static int put_line(struct sink *s, const struct line *l)
{
	static const char counted[] = "MXNet C API C"; /* "Calls" and "Concurrency" are made of the other rows */

	if (!is_number(l->count) || !is_number(l->total) || !is_number(l->min) || !is_number(l->max) || !l->count) {
		sink_lost(s, 1);
		return 0;
	}
	if (l->memory && sink_about(s)->nnotes >= NOTES_MAX)
		sink_lost(s, 1);
	else if (l->memory)
		return sink_note(s, "memory", "%.*s: between %.0f and %.0f kB, %.0f allocations and frees",
				 (int)l->name_len, l->name, l->min, l->max, l->count);
	if (l->memory)
		return 0;
	if (!strcmp(l->category, adapter_mxnet.class_title[MXBPF_CLASS_API]) && l->name_len > strlen(counted) &&
	    !memcmp(l->name, counted, strlen(counted)))
		return 0;
	return is_counter(l) ? put_counter(s, l) : put_calls(s, l);
}

/* ---- text */

/* Takes the number at the end of a text off it. Returns false if there is none. */
static bool last_number(char *text, double *v)
{
	char *at = text + strlen(text), *end;

	while (at > text && at[-1] == ' ')
		*--at = '\0';
	while (at > text && at[-1] != ' ')
		at--;
	*v = strtod(at, &end);
	if (at == text || end == at || *end)
		return false;
	*at = '\0';
	return true;
}

/* "dot     1      1.0560      1.0560      1.0560      1.0560" */
static bool parse_line(char *text, struct line *l)
{
	if (!last_number(text, &l->avg) || !last_number(text, &l->max) || !last_number(text, &l->min) ||
	    (!l->memory && !last_number(text, &l->total)) || !last_number(text, &l->count))
		return false;
	l->name = text;
	l->name_len = strlen(text);
	while (l->name_len && text[l->name_len - 1] == ' ')
		l->name_len--;
	return l->name_len;
}

/* A category is a title, a line of '=', two lines of heads, rows, and an empty line. */
static int read_text(struct sink *s, char *text)
{
	char *before = text, *line, *rest = text;
	struct line l = {.category = NULL};
	int err = 0;

	while (!err && (line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "====", 4))
			l = (struct line){.category = before};
		else if (l.category && !strncmp(line, "Name ", 5))
			l.memory = strstr(line, "Min Use");
		else if (!*line)
			l.category = NULL;
		else if (l.category && *line != '#' && strncmp(line, "---- ", 5)) {
			if (parse_line(line, &l))
				err = put_line(s, &l);
			else
				sink_lost(s, 1);
		}
		before = line;
	}
	return err;
}

/* ---- JSON */

static double number_of(const cJSON *row, const char *key)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(row, key);

	return cJSON_IsNumber(n) ? n->valuedouble : NAN;
}

static int read_category(struct sink *s, const cJSON *category, bool memory)
{
	const cJSON *row;
	int err = 0;

	cJSON_ArrayForEach(row, category)
	{
		const struct line l = {
			.category = category->string ? category->string : "",
			.name = row->string ? row->string : "",
			.name_len = row->string ? strlen(row->string) : 0,
			.memory = memory,
			.count = number_of(row, "Count"),
			.total = memory ? 0 : number_of(row, "Total"),
			.min = number_of(row, "Min"),
			.max = number_of(row, "Max"),
			.avg = number_of(row, "Avg"),
		};

		err = err ? err : put_line(s, &l);
	}
	return err;
}

static int read_kind(struct sink *s, const cJSON *kind, bool memory)
{
	const cJSON *category;
	int err = 0;

	cJSON_ArrayForEach(category, kind)
	{
		err = err ? err : read_category(s, category, memory);
	}
	return err;
}

static int read_json(struct sink *s, const char *text, size_t len, struct err *e)
{
	int bad, err;
	cJSON *root = json_read(text, len, &bad);

	if (!root)
		return err_set(e, ERR_RUNTIME, bad, "it is no complete JSON");
	err = read_kind(s, cJSON_GetObjectItemCaseSensitive(root, "Time"), false);
	err = err ? err : read_kind(s, cJSON_GetObjectItemCaseSensitive(root, "Memory"), true);
	cJSON_Delete(root);
	return err;
}

/* ---- the file */

static const char *first_word(const void *head, size_t n)
{
	const char *at = head, *end = at + n;

	while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	return at < end ? at : NULL;
}

static bool table_is(int fd, const void *head, size_t n)
{
	const char *at = first_word(head, n);
	const size_t left = at ? n - (size_t)(at - (const char *)head) : 0;

	if (left > strlen(TEXT_BEGIN) && !memcmp(at, TEXT_BEGIN, strlen(TEXT_BEGIN)))
		return true;
	return left && *at == '{' && memmem(at, left, "\"Time\"", 6) && memmem(at, left, "\"Count\"", 7) &&
	       memmem(at, left, "\"Avg\"", 5);
}

static int read_whole(int fd, struct buf *b)
{
	gzFile z = gzip_reader(fd);
	char *to;
	int n = 1;

	while (z && n > 0 && b->len < FILE_MAX && (to = buf_add(b, PIECE_BYTES))) {
		n = gzread(z, to, PIECE_BYTES);
		b->len -= PIECE_BYTES - (size_t)(n > 0 ? n : 0);
	}
	if (z)
		gzclose_r(z);
	if (b->len >= FILE_MAX)
		return -EFBIG;
	return n < 0 ? -EIO : n ? -ENOMEM : buf_put(b, "", 1);
}

static int table_read(struct sink *s, int fd, struct err *e)
{
	struct mdl_session *about = sink_about(s);
	struct buf b = {0};
	int err = read_whole(fd, &b);
	const char *word = err ? NULL : first_word(b.data, b.len);

	about->stats = true;
	about->comm = strdup("python");
	if (err)
		err_set(e, ERR_RUNTIME, err, "%s",
			err == -EFBIG ? "it is larger than tables of names are" : strerror(-err));
	else if (!about->comm)
		err = -ENOMEM;
	else if (word && *word == '{')
		err = read_json(s, b.data, b.len - 1, e);
	else
		err = read_text(s, b.data);
	buf_fini(&b);
	err = err ? err : sink_runtime(s, &adapter_mxnet);
	return err ? err
		   : sink_note(s, "trace",
			       "it is a table, without single calls: there are no percentiles, no timeline and no "
			       "iterations, and the time of nested calls is in several rows");
}

const struct import_format import_mxnet_table = {"table of MXNet's profiler", "mxnet.profiler", table_is, table_read};
