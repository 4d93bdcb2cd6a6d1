// SPDX-License-Identifier: Apache-2.0
/*
 * Why GPUs ran nothing, in a timeline. PyTorch's tools do not know the category, and the slices have no stream, so they
 * do not count them.
 */
#include "view/timeline/gpu_idle.h"

#include <errno.h>

#include "feature/idle/idle.h"
#include "feature/lines/lines.h"

#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))

static int gpu_idle_by_time(const void *va, const void *vb)
{
	const struct mxbpf_gpu_idle *a = va, *b = vb;
	int order = ORDER(a->h.tgid, b->h.tgid);

	order = order ? order : ORDER(a->device, b->device);
	return order ? order : ORDER(a->h.ts_ns, b->h.ts_ns);
}

static int gpu_idle_by_thread(const void *va, const void *vb)
{
	const struct mxbpf_look *a = va, *b = vb;
	int order = ORDER(a->h.tgid, b->h.tgid);

	order = order ? order : ORDER(a->tid, b->tid);
	return order ? order : ORDER(a->h.ts_ns, b->h.ts_ns);
}

int idle_trace_plan(struct idle_trace *i, const struct view_trace *t)
{
	struct idle_results all = {0};
	const struct mxbpf_look *looks;
	size_t n;
	int err;

	if (!t->form->thread)
		return 0;
	err = idle_results(t->s.in->model, &all);
	i->pieces = all.pieces;
	all.pieces = (struct buf){0};
	idle_results_fini(&all);
	looks = lines_looks(t->s.in->model, &n);
	if (err || !i->pieces.len)
		return err;
	buf_sort(&i->pieces, sizeof(struct mxbpf_gpu_idle), gpu_idle_by_time);
	if (n && buf_put(&i->looks, looks, n * sizeof(*looks)))
		return -ENOMEM;
	buf_sort(&i->looks, sizeof(*looks), gpu_idle_by_thread);
	return 0;
}

static size_t first_piece(const struct idle_trace *i, const struct idle_trace_gpu *gpu)
{
	const struct mxbpf_gpu_idle like = {.h.tgid = gpu->tgid, .device = gpu->device};

	return buf_first(&i->pieces, sizeof(like), &like, gpu_idle_by_time);
}

static bool is_of(const struct idle_trace *i, size_t at, const struct idle_trace_gpu *gpu)
{
	const struct mxbpf_gpu_idle *p = buf_at(&i->pieces, struct mxbpf_gpu_idle, at);

	return at < buf_count(&i->pieces, *p) && p->h.tgid == gpu->tgid && p->device == gpu->device;
}

bool idle_trace_track(const struct idle_trace *i, struct view_trace *t, const struct idle_trace_gpu *gpu, size_t place)
{
	if (!is_of(i, first_piece(i, gpu), gpu))
		return false;
	view_trace_name_track(t, gpu->pid, VIEW_IDLE_TID, "idle", (int64_t)place);
	return true;
}

static int text_line(struct view_trace *t, uint64_t id, struct buf *b)
{
	size_t len;
	const char *text = lines_of_program(t->s.in->model, id, &len);

	return text ? view_text_escape(b, text, len) : 0;
}

/* The stack of the call, else the one on which a look found the main thread meanwhile. */
static uint64_t stack_of(const struct idle_trace *i, const struct mxbpf_gpu_idle *p)
{
	const struct mxbpf_look like = {.h = {.tgid = p->h.tgid, .ts_ns = p->h.ts_ns}, .tid = p->h.tgid & MDL_PID_MASK};
	const size_t at = p->stack_id ? 0 : buf_first(&i->looks, sizeof(like), &like, gpu_idle_by_thread);
	const struct mxbpf_look *l = buf_at(&i->looks, struct mxbpf_look, at);

	if (p->stack_id || at >= buf_count(&i->looks, *l) || l->h.tgid != p->h.tgid || l->tid != like.tid ||
	    l->h.ts_ns - p->h.ts_ns >= p->dur_ns)
		return p->stack_id;
	return l->stack_id;
}

static void gpu_idle_put_text(struct view_trace *t, const char *key, struct view_text text)
{
	if (!text.len)
		return;
	out_printf(t->s.out, ",\"%s\":\"", key);
	out_write(t->s.out, text.data, text.len);
	out_puts(t->s.out, "\"");
}

static void write_piece(const struct idle_trace *i, struct view_trace *t, const struct mxbpf_gpu_idle *p, uint32_t pid)
{
	const uint64_t stack_id = stack_of(i, p);
	const struct view_event e = {.letter = 'X',
				     .pid = pid,
				     .tid = VIEW_IDLE_TID,
				     .ts_ns = p->h.ts_ns,
				     .dur_ns = p->dur_ns,
				     .category = "gpu_idle",
				     .name = view_text_of(idle_cause_words[p->cause])};

	view_event_begin(t, &e);
	out_printf(t->s.out, "\"device\":%u", p->device);
	if (p->name_id)
		gpu_idle_put_text(t, "operator", view_trace_text(t, p->name_id, view_text_name));
	if (stack_id)
		gpu_idle_put_text(t, "line", view_trace_text(t, stack_id, text_line));
	view_event_end(t, &e);
}

void idle_trace_slices(const struct idle_trace *i, struct view_trace *t, const struct idle_trace_gpu *gpu)
{
	const struct mxbpf_gpu_idle *p;
	size_t at;

	for (at = first_piece(i, gpu); is_of(i, at, gpu); at++) {
		p = buf_at(&i->pieces, struct mxbpf_gpu_idle, at);
		if (p->h.ts_ns >= t->base_ns) /* newer records have overwritten the activities of that time */
			write_piece(i, t, p, gpu->pid);
	}
}

void idle_trace_fini(struct idle_trace *i)
{
	buf_fini(&i->pieces);
	buf_fini(&i->looks);
}
