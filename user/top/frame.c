// SPDX-License-Identifier: Apache-2.0
/* The text of a screen. Lines are cut at the width; names of the target are written by fmt_safe(). */
#include "top/priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/steps/steps.h"

#define LINE_BYTES    1024
#define SENTENCE_ROWS 20 /* a screen with this many rows has two lines for a sentence */
#define COST_COLUMNS  72 /* a narrower screen has the short form of the cost */

/* ---- lines */

static void frame_put_line(struct top_lines *f, const char *text)
{
	const size_t len = (size_t)(fmt_head(text, f->width) - text);

	f->err = f->err ? f->err : buf_put(f->out, text, len);
	f->err = f->err ? f->err : buf_put(f->out, "\n", 1);
	f->lines++;
}

void top_line(struct top_lines *f, const char *fmt, ...)
{
	char raw[LINE_BYTES], safe[LINE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	fmt_safe(safe, sizeof(safe), raw, strlen(raw));
	frame_put_line(f, safe);
}

/* Writes a sentence, on two lines if it needs them and there is room. */
static void put_sentence(struct top_lines *f, const struct top_choice *c, const char *text)
{
	char safe[LINE_BYTES];
	const char *end;
	size_t len;

	fmt_safe(safe, sizeof(safe), text, strlen(text));
	end = fmt_head(safe, f->width);
	for (len = (size_t)(end - safe); *end && len && safe[len] != ' '; len--)
		;
	if (!*end || !len || c->height < SENTENCE_ROWS) {
		frame_put_line(f, safe);
		return;
	}
	safe[len] = '\0';
	frame_put_line(f, safe);
	frame_put_line(f, safe + len + 1);
}

/* ---- the job */

/* Writes a curve with one character for each second, the newest last. */
static void put_spark(const struct top *t, uint32_t job, char *text, size_t max, unsigned columns)
{
	static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char ascii[] = "_.:-=+*#";
	const bool utf8 = (unsigned char)*fmt_ellipsis() >= 0x80;
	const struct top_second *s = t->jobs[job];
	unsigned i, k = columns < TOP_SECONDS ? columns : TOP_SECONDS;
	uint64_t most = 1, n;
	size_t len = 0;

	k = t->at < k ? (unsigned)t->at : k;
	for (i = 1; i <= k; i++)
		most = s[(t->at - i) % TOP_SECONDS].iterations > most ? s[(t->at - i) % TOP_SECONDS].iterations : most;
	text[0] = '\0';
	for (i = k; i && len + 4 < max; i--) {
		n = s[(t->at - i) % TOP_SECONDS].iterations * 7 / most;
		len += utf8 ? (size_t)snprintf(text + len, max - len, "%s", blocks[n])
			    : (size_t)snprintf(text + len, max - len, "%c", ascii[n]);
	}
}

static void frame_put_parts(const struct top_second *s, bool python, char *text, size_t max)
{
	uint8_t order[MXBPF_STEP_PARTS];
	const unsigned n = s->known_ns ? steps_large_parts(s->part_ns, s->known_ns, order) : 0;
	size_t len = 0;
	unsigned i;

	text[0] = '\0';
	for (i = 0; i < n && len < max; i++)
		len += (size_t)snprintf(text + len, max - len, "%s%.0f%% %s", i ? ", " : "",
					100.0 * (double)s->part_ns[order[i]] / (double)s->known_ns,
					steps_part_words(order[i], python));
}

/* Writes the title, and the cost in the corner. The title is cut first. */
static void put_title(struct top_lines *f, const struct top *t)
{
	const double window = (double)top_second(t, 0)->window_ns;
	const double adds = window > 0 ? 100 * (double)t->added_ns / window : 0;
	const double own = window > 0 ? 100 * (double)t->own_ns / window : 0;
	const char *name = t->job ? top_row(t, TOP_JOBS, t->job - 1)->name : t->title;
	char title[300], safe[600], cost[80];
	size_t room, at;

	snprintf(title, sizeof(title), "%s%s", t->frozen ? "FROZEN " : "", name);
	fmt_safe(safe, sizeof(safe), title, strlen(title));
	snprintf(cost, sizeof(cost),
		 f->width < COST_COLUMNS ? "adds %.1f%%, own %.1f%%"
					 : "profiling adds %.1f%% of a CPU, mxbpf uses %.1f%%",
		 adds, own);
	room = f->width > strlen(cost) + 2 ? f->width - strlen(cost) - 2 : 0;
	at = (size_t)(fmt_head(safe, room) - safe);
	safe[at] = '\0';
	top_line(f, "%s%*s%s", safe, (int)(room - fmt_columns(safe)) + 2, "", cost);
}

static void put_rates(struct top_lines *f, const struct top *t, const struct top_row *sum)
{
	const struct top_second *s = top_second(t, t->job);
	char spark[4 * TOP_SECONDS + 8], parts[400], each[24] = "", ranks[64] = "";
	const double now = top_iterations(t, t->job, 1);
	unsigned loops = 0;
	size_t i;

	for (i = 0; i < top_rows(t, TOP_PROCESSES); i++)
		loops += top_row(t, TOP_PROCESSES, i)->minute.iterations > 0 &&
			 (!t->job || top_row(t, TOP_PROCESSES, i)->job == t->job);
	if (loops > 1)
		snprintf(ranks, sizeof(ranks), ", %.3g in each of %u loops", now / loops, loops);
	put_spark(t, t->job, spark, sizeof(spark), f->width > 40 ? f->width - 40 : 0);
	top_line(f, "%.3g iterations/s now%s, %.3g in the minute  %s", now, ranks,
		 top_iterations(t, t->job, TOP_SECONDS), spark);
	frame_put_parts(s, t->python, parts, sizeof(parts));
	if (s->iterations)
		top_line(f, "%s each%s%s", fmt_ns(s->iteration_ns / s->iterations, each), parts[0] ? ": " : "", parts);
	else
		top_line(f, "no iteration ended in this second");
	for (i = 0; i < t->nloops && !t->frozen; i++)
		if (!t->job || t->loops[i].job == t->job)
			top_line(f, "thread %u: %" PRIu64 " iterations in this second, %s each", t->loops[i].tid,
				 t->loops[i].iterations,
				 fmt_ns(t->loops[i].iteration_ns / t->loops[i].iterations, each));
}

/* Writes the use of CPU, memory and GPU. */
static void put_means(struct top_lines *f, const struct top *t, const struct top_row *sum)
{
	char resident[24], live[24], grown[64] = "", gpu[64] = "", processes[48] = "";

	if (sum->live_bytes > 0)
		snprintf(grown, sizeof(grown), ", %s more than at the start",
			 fmt_bytes((uint64_t)sum->live_bytes, live));
	if (t->gpus)
		snprintf(gpu, sizeof(gpu), ", GPU busy %.0f%%%s", 100 * t->gpu, t->gpus > 1 ? " on average" : "");
	if (sum->processes > 1)
		snprintf(processes, sizeof(processes), " of %u processes", sum->processes);
	if (sum->alive)
		top_line(f, "CPU %.0f%%%s%s, memory %s%s", 100 * sum->second.cpu, processes, gpu,
			 fmt_bytes(sum->resident_bytes, resident), grown);
}

static void put_job(struct top_lines *f, const struct top *t, const struct top_choice *c)
{
	const struct top_row sum = top_job_sum(t, t->job);

	put_title(f, t);
	put_rates(f, t, &sum);
	put_means(f, t, &sum);
	put_sentence(f, c, t->finding[0] ? t->finding : "mxbpf found no bottleneck");
	if (t->minute_lost || t->left_out || t->table.left_out)
		top_line(f,
			 "LOSS  %llu events dropped, %llu in the minute; %llu calls of too many names; %llu rows of "
			 "the table",
			 (unsigned long long)t->shown_lost, (unsigned long long)t->minute_lost,
			 (unsigned long long)t->left_out, (unsigned long long)t->table.left_out);
	if (t->partial)
		put_sentence(f, c,
			     "--max-overhead left out probes: calls of rows with * are missing, and iterations may be");
	if (c->said)
		put_sentence(f, c, c->said);
}

static void put_views(struct top_lines *f, const struct top *t, const struct top_choice *c)
{
	const char *by = top_columns[c->sort[c->view]].word;
	char views[240] = "", word[32], name[TOP_TABLE_NAME_BYTES];
	size_t len = 0;
	unsigned v, i;

	for (v = 0; v < TOP_VIEWS && len < sizeof(views); v++) {
		snprintf(word, sizeof(word), "%s", top_view_words[v]);
		for (i = 0; word[i] && v == c->view; i++)
			word[i] = (char)(word[i] >= 'a' && word[i] <= 'z' ? word[i] - 'a' + 'A' : word[i]);
		if (top_view_shows(t, v))
			len += (size_t)snprintf(views + len, sizeof(views) - len, "%s%s", len ? " " : "", word);
	}
	if (c->view == TOP_TABLE) {
		snprintf(views + len, sizeof(views) - len, " TABLE %s%s", top_table_name(t, name),
			 t->table.step ? ", the next second shows another" : "");
		by = t->table.columns.n ? t->table.columns.of[t->table.sort].head : "-";
		if (t->at && t->sliced[(t->at - 1) % TOP_SECONDS])
			put_sentence(
				f, c,
				"calls are recorded in slices: what this table counts of calls is of slices alone");
	}
	top_line(f, "%s by %s%s%s%s%s; ? lists the keys", views, by, c->ascending ? ", ascending" : "",
		 c->typing || c->filter[0] ? "; only names with " : "", c->filter, c->typing ? "_" : "");
}

/* ---- the table */

static bool frame_fits(const struct top *t, const struct top_choice *c, const struct top_row *r)
{
	const bool of_none = c->view == TOP_TABLE && !r->tgid; /* such a row belongs to all jobs */

	if ((t->job && r->job != t->job && c->view != TOP_JOBS && !of_none) ||
	    (c->filter[0] && !strcasestr(r->name, c->filter)))
		return false;
	return c->view == TOP_TABLE ? top_table_has(t, r) : r->alive || r->minute.calls > 0;
}

/* Selects rows that did something in the last minute and fit the filter. The caller frees them. NULL: no memory. */
static const struct top_row **pick(const struct top *t, const struct top_choice *c, size_t *n)
{
	const struct top_row **rows = calloc(top_rows(t, c->view) + 1, sizeof(*rows));
	size_t i;

	*n = 0;
	for (i = 0; rows && i < top_rows(t, c->view); i++)
		if (top_row(t, c->view, i)->name && frame_fits(t, c, top_row(t, c->view, i)))
			rows[(*n)++] = top_row(t, c->view, i);
	if (rows)
		top_sort(t, c, rows, *n);
	return rows;
}

static void put_head(struct top_lines *f, const struct top *t, const struct top_choice *c)
{
	const struct top_column *k;
	char text[LINE_BYTES] = " ";
	size_t len = 1;

	if (c->view == TOP_TABLE)
		top_table_line(t, NULL, text + len, sizeof(text) - len);
	for (k = top_columns; k->word && len < sizeof(text); k++)
		if (top_column_shows(t, c, k))
			len += (size_t)snprintf(text + len, sizeof(text) - len, k->value ? "%*s " : " %-*s",
						(int)k->width, k->head);
	top_line(f, "%s", text);
}

/* A text on the left, cut at the width of its column. */
static size_t frame_put_text(char *to, size_t max, const struct top_column *k, const char *text)
{
	char safe[LINE_BYTES];

	if (!k->width)
		return (size_t)snprintf(to, max, " %s", text);
	fmt_safe(safe, sizeof(safe), text, strlen(text));
	safe[fmt_head(safe, k->width) - safe] = '\0';
	return (size_t)snprintf(to, max, " %s%*s", safe, (int)(k->width - fmt_columns(safe)), "");
}

static void frame_put_row(struct top_lines *f, const struct top *t, const struct top_choice *c, const struct top_row *r)
{
	const bool chosen = c->marks && r->id == c->chosen_id;
	const struct top_column *k;
	char text[LINE_BYTES], cell[64];
	size_t len = (size_t)snprintf(text, sizeof(text), "%c", chosen ? '>' : ' ');

	if (c->view == TOP_TABLE)
		top_table_line(t, r, text + len, sizeof(text) - len);
	for (k = top_columns; k->word && len < sizeof(text); k++)
		if (!top_column_shows(t, c, k))
			continue;
		else if (k->value)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%*s ", (int)k->width,
						k->text(t, r, cell));
		else
			len += frame_put_text(text + len, sizeof(text) - len, k, k->text(t, r, cell));
	top_line(f, "%s%s", text, r->partial ? " *" : "");
}

/* ---- what is chosen */

static unsigned find_row(const struct top_row **rows, size_t n, uint64_t id)
{
	unsigned i = 0;

	while (i < n && rows[i]->id != id)
		i++;
	return i;
}

/* Moves the choice after rows have changed. An opened row stays chosen wherever it is; otherwise the place stays. */
static void frame_choose(struct top_choice *c, const struct top_row **rows, size_t n)
{
	unsigned at = c->opened && c->chosen_id == c->opened ? find_row(rows, n, c->opened) : (unsigned)n;

	c->chosen = at < n ? at : c->chosen < n ? c->chosen : n ? (unsigned)n - 1 : 0;
	c->chosen_id = n ? rows[c->chosen]->id : 0;
}

/* Moves the table so that the chosen row is on the screen, with its details below it. */
static void scroll(struct top_choice *c, size_t n, unsigned lines, unsigned details)
{
	const unsigned below = c->opened && c->opened == c->chosen_id ? details : 0;
	const unsigned room = lines > below + 1 ? lines - below : 1;

	c->first = c->first > c->chosen ? c->chosen : c->first;
	c->first = c->chosen >= c->first + room ? c->chosen - room + 1 : c->first;
	c->first = c->first + lines > n + below ? (n + below > lines ? (unsigned)(n + below) - lines : 0) : c->first;
}

static int frame_put_table(struct top_lines *f, const struct top *t, struct top_choice *c, struct top_page *page)
{
	const unsigned lines = c->height > f->lines + 1 ? c->height - f->lines - 1 : 0;
	const unsigned details = lines / 2;
	const struct top_row **rows;
	size_t n, i;

	page->head = f->lines;
	put_head(f, t, c);
	rows = pick(t, c, &n);
	if (!rows)
		return -ENOMEM;
	frame_choose(c, rows, n);
	scroll(c, n, lines, details);
	page->rows = (unsigned)n;
	page->fit = lines ? lines : 1;
	if (!n && c->view == TOP_TABLE)
		top_line(f, " no rows in the last minute");
	for (i = c->first; i < n && f->lines < c->height; i++) {
		if (c->marks && i == c->chosen)
			page->chosen = f->lines;
		frame_put_row(f, t, c, rows[i]);
		if (rows[i]->id == c->opened && c->view == TOP_TABLE)
			top_table_details(f, t, rows[i], details);
		else if (rows[i]->id == c->opened)
			top_details(f, t, c->view, rows[i], details);
	}
	free(rows);
	return f->err;
}

static void put_popup(struct top_lines *f, struct top_choice *c, struct top_page *page)
{
	const char *text = c->popup->data ? c->popup->data : "";
	const unsigned room = c->height > f->lines ? c->height - f->lines : 1;
	unsigned i, n = 0;
	const char *at, *end;

	for (at = text; *at; at++)
		n += *at == '\n';
	c->popup_first = c->popup_first + room <= n ? c->popup_first : n > room ? n - room : 0;
	page->rows = n;
	page->fit = room;
	for (i = 0, at = text; *at && i < c->popup_first + room; i++, at = *end ? end + 1 : end) {
		end = at + strcspn(at, "\n");
		if (i >= c->popup_first)
			top_line(f, "%.*s", (int)(end - at), at);
	}
}

int top_frame(const struct top *t, struct top_choice *c, struct top_page *page)
{
	struct top_lines f = {.out = &page->text, .width = c->width};

	page->text.len = 0;
	page->head = page->chosen = page->rows = page->fit = 0;
	if (!t->at) {
		top_line(&f, "%s", c->said ? c->said : "attaching ...");
		return f.err;
	}
	if (c->popup) {
		put_title(&f, t);
		put_popup(&f, c, page);
		return f.err;
	}
	if (!c->bare)
		put_job(&f, t, c);
	put_views(&f, t, c);
	return frame_put_table(&f, t, c, page);
}
