// SPDX-License-Identifier: Apache-2.0
/* JSON of `mxbpf now`: every thread and every frame. */
#include <string.h>

#include "base/json.h"
#include "base/syscall.h"
#include "cmd/now/now.h"

/* Writes no member for NULL and for "". */
static void json_put_name(struct json *j, const char *key, const char *text)
{
	if (text && *text)
		json_string(j, key, text);
}

/* Writes the members "name" and "class" of a call. */
static void put_call(struct json *j, const struct now_view *v, uint64_t name_id, uint32_t cls)
{
	size_t len;
	const char *name = mdl_name(ses_model(v->ses), name_id, &len);

	json_text(j, "name", name, len);
	json_put_name(j, "class", mdl_category(cls));
}

static void put_opens(struct json *j, const struct now_view *v, const struct now_thread *t)
{
	const struct mxbpf_open *open;
	size_t n, i;

	json_array(j, "open");
	open = now_opens(v, t->tid, &n);
	for (i = 0; i < n; i++) {
		json_object(j, NULL);
		put_call(j, v, open[i].name_id, open[i].cls);
		json_u64(j, "open_ns", open[i].open_ns);
		if (open[i].flags & MXBPF_SPAN_ASYNC)
			json_bool(j, "async", true);
		json_end(j);
	}
	json_end(j);
}

static void put_last(struct json *j, const struct now_view *v, const struct now_thread *t)
{
	const struct mxbpf_span *s = now_last(v, t->tid);

	if (!s)
		return;
	json_object(j, "last");
	put_call(j, v, s->name_id, s->cls);
	json_u64(j, "total_ns", s->dur_ns);
	json_end(j);
}

static void put_stack(struct json *j, const struct now_thread *t)
{
	const struct now_frame *f;
	size_t i;

	json_array(j, "stack");
	for (i = 0; i < buf_count(&t->frames, struct now_frame); i++) {
		f = buf_at(&t->frames, struct now_frame, i);
		json_line(j, 6);
		json_object(j, NULL);
		json_put_name(j, "function", f->name);
		json_put_name(j, "library", f->lib ? f->lib->path : NULL);
		json_u64(j, "address", f->va);
		if (f->call) {
			json_put_name(j, "call", f->call);
			json_put_name(j, "class", mdl_category(f->cls));
		}
		json_end(j);
	}
	json_end(j);
	json_bool(j, "cut", t->cut);
}

static void put_python(struct json *j, const struct now_thread *t)
{
	const char *line = t->python ? t->python : "", *end;

	json_array(j, "python");
	for (; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		json_line(j, 6);
		json_text(j, NULL, line, (size_t)(end - line));
	}
	json_end(j);
}

static void put_thread(struct json *j, const struct now_view *v, const struct now_thread *t)
{
	const char state[] = {t->doing.state, '\0'};

	json_line(j, 4);
	json_object(j, NULL);
	json_u64(j, "tid", (uint64_t)t->tid);
	json_string(j, "name", t->comm);
	json_put_name(j, "state", state);
	json_put_name(j, "syscall", syscall_name(t->doing.syscall));
	json_put_name(j, "wchan", t->doing.wchan);
	if (t->holder)
		json_u64(j, "lock_held_by", (uint64_t)t->holder);
	json_bool(j, "still", t->still);
	put_opens(j, v, t);
	put_last(j, v, t);
	if (t->still) {
		put_stack(j, t);
		put_python(j, t);
	}
	json_end(j);
}

static void put_collective(struct json *j, const struct now_view *v)
{
	const struct now_view *other;
	size_t i;

	json_object(j, "collective");
	json_string(j, "name", v->in.name);
	if (v->in.numbered)
		json_u64(j, "number", v->in.number);
	if (*v->in.group)
		json_string(j, "group_name", v->in.group);
	if (v->in.ranks) {
		json_u64(j, "group_rank", v->in.rank);
		json_u64(j, "group_size", v->in.ranks);
	}
	json_u64(j, "tid", (uint64_t)v->in.tid);
	json_array(j, "waits_for");
	for (i = 0; (other = now_view_at(v->job, i)); i++)
		if (now_behind(v, other))
			json_u64(j, NULL, (uint64_t)tgt_pid(other->tgt));
	json_end(j);
	json_array(j, "differs_from");
	for (i = 0; (other = now_view_at(v->job, i)); i++)
		if (now_differ(v, other))
			json_u64(j, NULL, (uint64_t)tgt_pid(other->tgt));
	json_end(j);
	json_end(j);
}

static void put_deadlock(struct json *j, const struct now_view *v)
{
	struct now_deadlock d = {.n = 0};
	unsigned i;

	now_deadlock(v->now, &d);
	if (d.n)
		json_array(j, "deadlock");
	for (i = 0; i < d.n; i++) {
		json_object(j, NULL);
		json_u64(j, "tid", (uint64_t)d.waits[i].thread->tid);
		json_string(j, "thread", d.waits[i].thread->locks->thread);
		json_string(j, "lock", d.waits[i].lock);
		json_text(j, "line", d.waits[i].line, d.waits[i].line_len);
		json_u64(j, "held_by", (uint64_t)d.waits[i].holder->tid);
		if (d.waits[i].held_line)
			json_string(j, "held_line", d.waits[i].held_line);
		json_bool(j, "guessed", d.waits[i].guessed);
		json_end(j);
	}
	if (d.n)
		json_end(j);
	now_deadlock_fini(&d);
}

static void put_process(struct json *j, const struct now_view *v)
{
	const struct now_thread *t;
	const char *line;
	size_t i, len;

	json_line(j, 2);
	json_u64(j, "pid", (uint64_t)tgt_pid(v->tgt));
	if (v->rank != MDL_NO_NUMBER)
		json_u64(j, "rank", v->rank);
	json_string(j, "comm", tgt_comm(v->tgt));
	json_string(j, "cmdline", tgt_cmdline(v->tgt));
	json_put_name(j, "runtime", mdl_runtime_of(ses_about(v->ses), (uint32_t)tgt_pid(v->tgt)));
	json_put_name(j, "python", now_python(v->now));
	line = now_line(v, &len);
	if (len)
		json_text(j, "line", line, len);
	if (v->waits)
		put_collective(j, v);
	put_deadlock(j, v);
	json_u64(j, "duration_ns", ses_about(v->ses)->duration_ns);
	json_line(j, 2);
	json_array(j, "threads");
	for (i = 0; (t = now_thread_at(v->now, i)); i++)
		put_thread(j, v, t);
	json_end(j);
}

/* The document describes one process, or has a list if there are several. */
int now_print_json(const struct now_job *job, struct err *e)
{
	const bool several = now_view_at(job, 1);
	struct json j = {.exact = true};
	int err = out_open("-", false, &j.out, e);
	size_t i;

	if (err)
		return err;
	json_object(&j, NULL);
	json_line(&j, 2);
	json_u64(&j, "schema_version", 1);
	if (several)
		json_array(&j, "processes");
	for (i = 0; now_view_at(job, i); i++) {
		if (several)
			json_object(&j, NULL);
		put_process(&j, now_view_at(job, i));
		if (several)
			json_end(&j);
	}
	if (several)
		json_end(&j);
	json_line(&j, 0);
	json_end(&j);
	out_puts(j.out, "\n");
	return out_commit(j.out, e);
}
