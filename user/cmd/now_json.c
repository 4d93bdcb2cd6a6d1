// SPDX-License-Identifier: Apache-2.0
/* JSON of `mxbpf now`: every thread and every frame. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/syscall.h"
#include "cmd/now.h"

/* The target chooses the bytes of this text, so it may not be UTF-8. */
static void put_text(cJSON *o, const char *key, const char *text, size_t len)
{
	size_t n = fmt_json_exact(NULL, 0, text, len);
	char *inner = malloc(n + 3);

	if (!inner)
		return;
	inner[0] = '"';
	fmt_json_exact(inner + 1, n + 1, text, len);
	inner[n + 1] = '"';
	inner[n + 2] = '\0';
	if (key)
		cJSON_AddRawToObject(o, key, inner);
	else
		cJSON_AddItemToArray(o, cJSON_CreateRaw(inner));
	free(inner);
}

static void put_name(cJSON *o, const char *key, const char *text)
{
	if (text && *text)
		put_text(o, key, text, strlen(text));
}

/* Writes all digits; numbers of cJSON are doubles. */
static void put_number(cJSON *o, const char *key, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	cJSON_AddRawToObject(o, key, text);
}

static cJSON *add_item(cJSON *array)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddItemToArray(array, o);
	return o;
}

static void put_opens(cJSON *thread, const struct now_view *v, const struct now_thread *t)
{
	cJSON *array = cJSON_AddArrayToObject(thread, "open"), *o;
	const struct mxbpf_open *open;
	const char *name;
	size_t n, i, len;

	open = now_opens(v, t->tid, &n);
	for (i = 0; i < n; i++) {
		o = add_item(array);
		name = mdl_name(ses_model(v->ses), open[i].name_id, &len);
		put_text(o, "name", name, len);
		put_name(o, "class", mdl_category(open[i].cls));
		put_number(o, "open_ns", open[i].open_ns);
		if (open[i].flags & MXBPF_SPAN_ASYNC)
			cJSON_AddTrueToObject(o, "async");
	}
}

static void put_last(cJSON *thread, const struct now_view *v, const struct now_thread *t)
{
	const struct mxbpf_span *s = now_last(v, t->tid);
	const char *name;
	size_t len;
	cJSON *o;

	if (!s)
		return;
	o = cJSON_AddObjectToObject(thread, "last");
	name = mdl_name(ses_model(v->ses), s->name_id, &len);
	put_text(o, "name", name, len);
	put_name(o, "class", mdl_category(s->cls));
	put_number(o, "total_ns", s->dur_ns);
}

static void put_stack(cJSON *thread, const struct now_thread *t)
{
	cJSON *array = cJSON_AddArrayToObject(thread, "stack"), *o;
	size_t i;

	for (i = 0; i < buf_count(&t->frames, struct now_frame); i++) {
		const struct now_frame *f = buf_at(&t->frames, struct now_frame, i);

		o = add_item(array);
		put_name(o, "function", f->name);
		put_name(o, "library", f->lib ? f->lib->path : NULL);
		put_number(o, "address", f->va);
		if (!f->call)
			continue;
		put_name(o, "call", f->call);
		put_name(o, "class", mdl_category(f->cls));
	}
	cJSON_AddBoolToObject(thread, "cut", t->cut);
}

static void put_python(cJSON *thread, const struct now_thread *t)
{
	const char *line = t->python ? t->python : "", *end;
	cJSON *array = cJSON_AddArrayToObject(thread, "python");

	for (; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		put_text(array, NULL, line, (size_t)(end - line));
	}
}

static void put_thread(cJSON *o, const struct now_view *v, const struct now_thread *t)
{
	const char state[] = {t->doing.state, '\0'};

	put_number(o, "tid", (uint64_t)t->tid);
	put_text(o, "name", t->comm, strlen(t->comm));
	put_name(o, "state", state);
	put_name(o, "syscall", syscall_name(t->doing.syscall));
	put_name(o, "wchan", t->doing.wchan);
	if (t->holder)
		put_number(o, "lock_held_by", (uint64_t)t->holder);
	cJSON_AddBoolToObject(o, "still", t->still);
	put_opens(o, v, t);
	put_last(o, v, t);
	if (!t->still)
		return;
	put_stack(o, t);
	put_python(o, t);
}

int now_print_json(const struct now_view *v)
{
	const struct mdl_session *s = ses_about(v->ses);
	const struct now_thread *t;
	cJSON *all = cJSON_CreateObject(), *array;
	char *text;
	size_t i;

	cJSON_AddNumberToObject(all, "schema_version", 1);
	put_number(all, "pid", s->pid);
	put_text(all, "comm", s->comm, strlen(s->comm));
	put_text(all, "cmdline", s->cmdline, strlen(s->cmdline));
	put_name(all, "runtime", s->libs[0].runtime);
	put_name(all, "python", now_python(v->now));
	put_number(all, "duration_ns", s->duration_ns);
	array = cJSON_AddArrayToObject(all, "threads");
	for (i = 0; (t = now_thread_at(v->now, i)); i++)
		put_thread(add_item(array), v, t);
	text = cJSON_Print(all);
	cJSON_Delete(all);
	if (!text)
		return -ENOMEM;
	puts(text);
	cJSON_free(text);
	return 0;
}
