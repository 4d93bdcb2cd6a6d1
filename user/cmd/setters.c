// SPDX-License-Identifier: Apache-2.0
/* Setters of options, one for each type of value. */
#include "cmd/opts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/near.h"
#include "compare/compare.h"
#include "compare/tables.h"
#include "feature/life/life.h"
#include "feature/sample/sample.h"
#include "trigger/trigger.h"
#include "plan/plan.h"
#include "view/sheet.h"

#define PID_LIMIT (1 << 22) /* the kernel's PID_MAX_LIMIT */

const char *cmd_join_words(const char *(*word)(unsigned), char buf[200])
{
	size_t len = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; word(i) && len < 200; i++)
		len += snprintf(buf + len, 200 - len, "%s%s", i ? ", " : "", word(i));
	return buf;
}

int cmd_find_word(const struct cmd_option *opt, const char *text, struct err *e)
{
	struct near n = {0};
	char hint[NEAR_HINT_BYTES], all[200];
	unsigned i;

	for (i = 0; opt->word(i); i++) {
		if (!strcmp(opt->word(i), text))
			return i;
		near_try(&n, text, opt->word(i));
	}
	return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is not one of %s%s", opt->name, text,
		       cmd_join_words(opt->word, all), near_hint(&n, "", hint));
}

static void *field(const struct cmd_option *opt, struct cmd_opts *o)
{
	return (char *)o + opt->field;
}

int cmd_set_flag(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	*(bool *)field(opt, o) = true;
	return 0;
}

int cmd_set_number(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	unsigned long long n;

	errno = 0;
	n = strtoull(text, NULL, 10);
	if (!text[0] || text[strspn(text, "0123456789")] || errno || n < opt->min || n > opt->max)
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is not a number from %llu to %llu", opt->name,
			       text, (unsigned long long)opt->min, (unsigned long long)opt->max);
	*(unsigned *)field(opt, o) = n;
	return 0;
}

/* Takes up to opt->max numbers. They may be joined by commas, and the option may be given several times. */
int cmd_set_pids(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	struct job_choice *c = &o->ses.choice;
	long pid;
	char *end;

	for (;; text = end + 1) {
		end = (char *)text;
		pid = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : 0;
		if (pid < 1 || pid > PID_LIMIT || (*end && *end != ','))
			return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is not a number from 1 to %d", opt->name,
				       text, PID_LIMIT);
		if (c->npids == opt->max)
			return err_set(e, ERR_USAGE, -E2BIG,
				       opt->max == 1 ? "--%s: only one process can be given"
						     : "--%s: too many processes are given",
				       opt->name);
		c->pids[c->npids++] = (pid_t)pid;
		if (!*end)
			return 0;
	}
}

/* Stores permille: min to max of them. */
int cmd_set_percent(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	char *end;
	double percent = strtod(text, &end);

	if (!strcmp(text, "none")) {
		*(unsigned *)field(opt, o) = SES_NO_LIMIT;
		return 0;
	}
	if (end == text || end[*end == '%'] || !(percent * 10 >= (double)opt->min && percent * 10 <= (double)opt->max))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--%s: '%.60s' is neither none nor a percentage from %g%% to %g%%", opt->name, text,
			       (double)opt->min / 10, (double)opt->max / 10);
	*(unsigned *)field(opt, o) = (unsigned)(percent * 10 + 0.5);
	return 0;
}

int cmd_set_duration(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	uint64_t ns;
	int err = fmt_parse_duration(text, &ns);

	if (err == -ERANGE || (!err && ns > opt->max))
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is too long", opt->name, text);
	if (!err && ns < opt->min)
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is too short", opt->name, text);
	if (err)
		return err_set(
			e, ERR_USAGE, -EINVAL,
			"--%s: '%.60s' is not a duration, such as 10s, 500ms, 2m, 1.5h; a bare number is seconds",
			opt->name, text);
	*(uint64_t *)field(opt, o) = ns;
	return 0;
}

int cmd_set_bytes(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	char lo[24], hi[24];
	uint64_t bytes;
	int err = fmt_parse_bytes(text, &bytes);

	if (err == -ERANGE || (!err && (bytes < opt->min || bytes > opt->max)))
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is not from %s to %s", opt->name, text,
			       fmt_bytes(opt->min, lo), fmt_bytes(opt->max, hi));
	if (err)
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is not a size, such as 64M, 2GiB, 4194304 (bytes)",
			       opt->name, text);
	*(uint64_t *)field(opt, o) = bytes;
	return 0;
}

/* The size of a BPF ring buffer must be a power of two. */
int cmd_set_ring(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	int err = cmd_set_bytes(opt, o, text, e);

	if (err)
		return err;
	if (o->ses.ring_bytes & (o->ses.ring_bytes - 1))
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is not a power of two, such as 1M, 8M, 64M",
			       opt->name, text);
	return 0;
}

int cmd_set_text(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	if (!text[0])
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: the text is empty", opt->name);
	*(const char **)field(opt, o) = text;
	return 0;
}

int cmd_set_path(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	if (!text[0])
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: the file name is empty", opt->name);
	if (opt->max && strlen(text) > opt->max)
		return err_set(
			e, ERR_USAGE, -ENAMETOOLONG,
			"--%s: the path has %zu bytes, and the agent takes at most %llu; use a shorter one, such as "
			"a symbolic link",
			opt->name, strlen(text), (unsigned long long)opt->max);
	*(const char **)field(opt, o) = text;
	return 0;
}

int cmd_set_file(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	if (!strcmp(text, "-"))
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: '-' (standard output) is not supported; name a file",
			       opt->name);
	return cmd_set_path(opt, o, text, e);
}

int cmd_set_word(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	int i = cmd_find_word(opt, text, e);

	if (i < 0)
		return i;
	*(const char **)field(opt, o) = opt->word(i);
	return 0;
}

int cmd_set_index(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	int i = cmd_find_word(opt, text, e);

	if (i < 0)
		return i;
	*(int *)field(opt, o) = i;
	return 0;
}

int cmd_set_follow(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	o->ses.no_follow = false;
	return text ? cmd_set_index(opt, o, text, e) : 0;
}

int cmd_set_sort(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	o->sort = view_sort_find(text);
	o->sorted = true;
	return o->sort < 0 ? cmd_set_index(opt, o, text, e) : 0;
}

/* Returns whether top can show a table: it has columns for people, and is of no option that top lacks. */
static bool table_is_of_top(const struct view_sheet *sh)
{
	const struct cmd_option *opt = cmd_options;
	const struct tbl_column *c = sh->columns;

	while (c->bytes && !c->head)
		c++;
	while (opt->name && (opt->sheet != sh || opt->commands & CMD_BIT_TOP))
		opt++;
	return !opt->name && c->bytes && sh != &sheet_sample && sh != &sheet_life_waits; /* of options without it */
}

int cmd_set_table(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	bool (*fits)(const struct view_sheet *) = opt->commands & CMD_BIT_DIFF ? cmp_has_table : table_is_of_top;
	char all[sizeof(e->why)];

	o->table = view_sheet_find(text, strlen(text));
	if (o->table && fits(o->table))
		return 0;
	view_sheet_list(fits, all, sizeof(all));
	return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.20s' is not one of %s", opt->name, text, all);
}

/* 0 asks for all rows. */
int cmd_set_top(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	int err = cmd_set_number(opt, o, text, e);

	o->all |= !err && !o->top;
	return err;
}

/* "operator" is another name of the first word. */
int cmd_set_by(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	int err = cmd_set_index(opt, o, text, e);

	if (!err && o->by == VIEW_BY_NWORDS)
		o->by = VIEW_BY_NAME;
	return err;
}

int cmd_set_mask(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	unsigned mask = 0;
	char part[64];
	size_t len;
	int i;

	for (;; text += len + 1) {
		len = strcspn(text, ",");
		snprintf(part, sizeof(part), "%.*s", (int)(len < sizeof(part) ? len : sizeof(part)), text);
		i = cmd_find_word(opt, part, e);
		if (i < 0)
			return i;
		mask |= 1u << i;
		if (!text[len])
			break;
	}
	*(unsigned *)field(opt, o) = mask;
	return 0;
}

int cmd_set_patterns(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	const char *p = text;
	size_t len;

	do {
		len = strcspn(p, ",");
		if (!len || len >= PLAN_PATTERN_BYTES_MAX)
			return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' has a pattern that is %s", opt->name, text,
				       len ? "too long" : "empty");
		p += len;
	} while (*p++);
	*(const char **)field(opt, o) = text;
	return 0;
}

int cmd_set_detail(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	o->ses.details |= (unsigned)opt->min;
	return 0;
}

int cmd_set_feature(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	o->ses.features |= (uint32_t)opt->min;
	return 0;
}

int cmd_set_help(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	o->instead = cmd_print_help;
	return 0;
}

int cmd_set_version(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	o->instead = cmd_print_version;
	return 0;
}

int cmd_set_base(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	if (o->nbase == CMD_BASE_MAX)
		return err_set(e, ERR_USAGE, -E2BIG, "--%s: at most %d recordings", opt->name, CMD_BASE_MAX);
	o->base[o->nbase++] = text;
	return 0;
}

int cmd_set_condition(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	struct trg *t = NULL;
	int err = trg_parse(text, &t, e);

	trg_free(t);
	if (!err && o->non == CMD_ON_MAX)
		return err_set(e, ERR_USAGE, -E2BIG, "--%s: at most %d conditions", opt->name, CMD_ON_MAX);
	if (!err)
		o->on[o->non++] = text;
	return err;
}

int cmd_set_job_name(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	const char *is = strchr(text, '=');

	if (!is || is == text || !is[1] || o->njob_names == CMD_ON_MAX)
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' is not GLOB=NAME, or is one too many", opt->name,
			       text);
	o->job_names[o->njob_names++] = text;
	return 0;
}

int cmd_set_limit(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	struct cmp_limit limit;
	int err = cmp_limit_parse(text, &limit, e);

	if (!err && o->nfail_on == CMD_FAIL_MAX)
		return err_set(e, ERR_USAGE, -E2BIG, "--%s: at most %d limits", opt->name, CMD_FAIL_MAX);
	if (!err)
		o->fail_on[o->nfail_on++] = text;
	return err;
}
