// SPDX-License-Identifier: Apache-2.0
/*
 * The terminal, by ncurses: it knows each kind of terminal, and sends only what changed. The text is that of frame.c.
 * The terminal's size is asked before each frame, so SIGWINCH needs no handler.
 */
#include "top/top.h"

#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SAID_BYTES 512
#define ESCAPE	   27
#define DELETE	   127

struct top_screen {
	SCREEN *terminal;
	struct top_choice c;
	unsigned head, rows; /* of the last frame */
	struct buf shown;    /* its text, which a frozen screen keeps */
	char said[SAID_BYTES];
	bool lasts; /* what was said is a warning, not a stage on the way to the first second */
};

int top_screen_open(struct top_screen **out, struct err *e)
{
	struct top_screen *s = calloc(1, sizeof(*s));

	*out = s;
	if (!s)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	setlocale(LC_CTYPE, "");
	s->terminal = newterm(NULL, stdout, stdin);
	if (!s->terminal)
		return err_set(e, ERR_RUNTIME, -ENOTSUP,
			       "the terminal '%.40s' is not known; set TERM, or add --batch for plain text",
			       getenv("TERM") ? getenv("TERM") : "");
	set_term(s->terminal);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	return 0;
}

static void follow_size(struct top_screen *s)
{
	struct winsize w;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_row && w.ws_col &&
	    (w.ws_row != getmaxy(stdscr) || w.ws_col != getmaxx(stdscr)))
		resizeterm(w.ws_row, w.ws_col);
	s->c.width = (unsigned)getmaxx(stdscr);
	s->c.height = (unsigned)getmaxy(stdscr);
}

static void show(struct top_screen *s)
{
	char *line, *save = NULL, *text = s->shown.len ? strndup(s->shown.data, s->shown.len) : NULL;
	int y = 0;

	erase();
	/* strtok_r() would skip empty lines. */
	for (line = text; line && *line && y < getmaxy(stdscr); line = save, y++) {
		save = strchr(line, '\n');
		if (save)
			*save++ = '\0';
		if (!y)
			attron(A_BOLD);
		if (s->head && (unsigned)y == s->head)
			attron(A_REVERSE);
		mvaddstr(y, 0, line);
		if (s->head && (unsigned)y == s->head)
			for (int x = getcurx(stdscr); x < getmaxx(stdscr); x++)
				addch(' ');
		attrset(A_NORMAL);
		if (!save)
			break;
	}
	free(text);
	refresh();
}

void top_screen_draw(struct top_screen *s, struct top *t)
{
	follow_size(s);
	if (!s->c.frozen || !s->shown.len || s->c.help) {
		s->c.said = s->said[0] && (s->lasts || !top_last(t)) ? s->said : NULL;
		s->shown.len = 0;
		top_frame(t, &s->c, &s->shown, &s->head, &s->rows);
	}
	show(s);
}

void top_screen_say(struct top_screen *s, struct top *t, bool warning, const char *text)
{
	if (s->lasts && !warning)
		return;
	snprintf(s->said, sizeof(s->said), "%s", text);
	s->lasts = warning;
	top_screen_draw(s, t);
}

/* ---- keys */

static void type(struct top_choice *c, int key)
{
	const size_t len = strlen(c->filter);

	if (key == '\n' || key == KEY_ENTER || key == '\r')
		c->typing = false;
	else if (key == ESCAPE)
		*c->filter = '\0', c->typing = false;
	else if ((key == KEY_BACKSPACE || key == DELETE || key == '\b') && len)
		c->filter[len - 1] = '\0';
	else if (key >= ' ' && key < DELETE && len + 1 < sizeof(c->filter))
		snprintf(c->filter + len, sizeof(c->filter) - len, "%c", key);
	c->first = 0;
}

static void move_by(struct top_screen *s, long by)
{
	const long last = s->rows ? (long)s->rows - 1 : 0, to = (long)s->c.first + by;

	s->c.first = (unsigned)(to < 0 ? 0 : to > last ? last : to);
}

static bool press(struct top_screen *s, int key)
{
	const long page = s->c.height > s->head + 1 ? (long)(s->c.height - s->head - 1) : 1;

	switch (key) {
	case 'q':
		return true;
	case 's':
		s->c.sort = (s->c.sort + 1) % TOP_SORTS;
		break;
	case 'S':
		s->c.sort = (s->c.sort + TOP_SORTS - 1) % TOP_SORTS;
		break;
	case 'r':
		s->c.ascending = !s->c.ascending;
		break;
	case '/':
		s->c.typing = true;
		s->c.help = false;
		break;
	case ' ':
		s->c.frozen = !s->c.frozen;
		s->shown.len = 0;
		break;
	case '?':
	case 'h':
		s->c.help = !s->c.help;
		break;
	case ESCAPE:
		s->c.help = false;
		s->c.filter[0] = '\0';
		break;
	case KEY_DOWN:
		move_by(s, 1);
		break;
	case KEY_UP:
		move_by(s, -1);
		break;
	case KEY_NPAGE:
		move_by(s, page);
		break;
	case KEY_PPAGE:
		move_by(s, -page);
		break;
	case KEY_HOME:
		s->c.first = 0;
		break;
	case KEY_END:
		move_by(s, (long)s->rows);
		break;
	}
	return false;
}

bool top_screen_keys(struct top_screen *s, struct top *t)
{
	bool leave = false, any = false;
	int key;

	while (!leave && (key = getch()) != ERR) {
		any = true;
		if (s->c.typing)
			type(&s->c, key);
		else
			leave = press(s, key);
	}
	if (any && s->c.frozen && !leave) /* what is chosen shows, of the same second */
		s->shown.len = 0;
	if (any && !leave)
		top_screen_draw(s, t);
	return leave;
}

void top_screen_close(struct top_screen *s)
{
	if (!s)
		return;
	if (s->terminal) {
		endwin();
		delscreen(s->terminal);
	}
	buf_fini(&s->shown);
	free(s);
}
