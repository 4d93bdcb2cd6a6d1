// SPDX-License-Identifier: Apache-2.0
/* Calls that were open when the window ended. */
#include "view/priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/syscall.h"
#include "view/text/grid.h"

/* What people are told: calls of a healthy job are open as well when its window ends. */
#define LONG_NS	  1000000000ull
#define LONG_PART 2 /* or so much of the window */
#define SHOWN_MAX 20

static const struct {
	char letter;
	const char *word;
} states[] = {
	{'R', "running"}, {'S', "sleeping"}, {'D', "disk sleep"}, {'T', "stopped"}, {'t', "traced"},
	{'X', "ended"},	  {'Z', "ended"},    {'I', "idle"},	  {0, ""},
};

const char *view_open_state(const struct mxbpf_open *o)
{
	size_t i;

	if (o->flags & MXBPF_SPAN_ASYNC && o->state != 'X')
		return "async";
	for (i = 0; states[i].letter && states[i].letter != (char)o->state; i++)
		;
	return states[i].word;
}

const char *view_open_waits(const struct mdl *m, const struct mxbpf_open *o, char buf[VIEW_WAITS_BYTES])
{
	const char *call = syscall_name(o->syscall);
	const char *wchan = mdl_text(m, MXBPF_NAME_WCHAN, o->wchan_id, NULL);

	snprintf(buf, VIEW_WAITS_BYTES, "%s%s%s", call ? call : "", call && wchan ? ": " : "", wchan ? wchan : "");
	return buf;
}

static uint64_t long_ns(const struct mdl_session *ss)
{
	uint64_t part = ss->duration_ns / LONG_PART;

	return part && part < LONG_NS ? part : LONG_NS;
}

static int add_cells(struct view *s, struct view_grid *g, const struct mxbpf_open *o)
{
	const char *name, *thread = mdl_thread_name(s->in->model, o->h.tgid, o->tid);
	char ns[24], who[64], waits[VIEW_WAITS_BYTES];
	const char *cells[4] = {ns, who, NULL, waits};
	size_t len, i;
	int err;

	fmt_tight_ns(o->open_ns, ns);
	snprintf(who, sizeof(who), "%" PRIu32 "%s%s", o->tid, thread ? " " : "", thread ? thread : "");
	cells[2] = view_open_state(o);
	view_open_waits(s->in->model, o, waits);
	name = mdl_name(s->in->model, o->name_id, &len);
	err = view_grid_add(g, name, len);
	for (i = 0; !err && i < 4; i++)
		err = view_grid_add(g, cells[i], strlen(cells[i]));
	if (!err && view_shows_stack(s)) {
		name = view_stack(s->in->model, s->opts, o->stack_id, &len);
		err = len ? view_grid_note(g, name, len) : 0;
	}
	return err;
}

int view_put_opens(struct view *s, const struct mxbpf_open *rows, size_t n)
{
	struct view_grid g = {.cols = {{"name", .left = true},
				       {"open"},
				       {"thread", .left = true},
				       {"state", .left = true, .name_min = 12},
				       {"waits in", .left = true, .name_min = 10}},
			      .ncols = 5};
	size_t all = 0, shown, i;
	int err = 0;

	while (all < n && rows[all].open_ns >= long_ns(s->in->session))
		all++;
	if (!all)
		return 0;
	shown = s->opts->top ? s->opts->top : SHOWN_MAX;
	shown = all < shown ? all : shown;
	out_printf(s->out, "still open when the window ended: %zu call%s", all, all == 1 ? "" : "s");
	if (shown < all)
		out_printf(s->out, ", of which %zu are shown", shown);
	out_puts(s->out, "\n");
	for (i = 0; !err && i < shown; i++)
		err = add_cells(s, &g, &rows[i]);
	if (!err)
		view_grid_print(&g, s->opts->width ? s->opts->width : VIEW_WIDTH, s->out);
	out_puts(s->out, "\n");
	view_grid_fini(&g);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
