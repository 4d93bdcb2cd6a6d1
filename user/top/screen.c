// SPDX-License-Identifier: Apache-2.0
/*
 * The terminal, by ncurses: it knows each kind of terminal, and sends only what changed. A thread of its own reads keys
 * and writes, because a terminal that takes no output, as one behind a slow connection does, blocks who writes to it.
 * The session must not wait for that. The terminal's size is asked before each frame, so SIGWINCH needs no handler.
 */
#include "top/top.h"

#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/thread.h"

#define SAID_BYTES 512
#define CLOSE_S	   1 /* seconds that a blocked thread gets to end */

struct top_screen {
	SCREEN *terminal;
	struct termios mode; /* of the terminal before mxbpf took it over */
	pthread_t thread;
	int wake, told;	      /* eventfds that wake the thread, and the session */
	pthread_mutex_t lock; /* guards the members below, and *t */
	struct top *t;
	struct top_choice c;
	struct top_page page;
	struct buf popup;
	const struct top_action *actions, *asked;
	uint32_t asked_pid;
	char said[SAID_BYTES];
	bool lasts; /* the message is a warning, which stays after the first second */
	bool leave, ends;
};

static void poke(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		return; /* the counter is full: nobody has read it for 2^64 times */
}

static void drain(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		return;
}

/* ---- in the thread */

static void follow_size(struct top_screen *s)
{
	struct winsize w;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_row && w.ws_col &&
	    (w.ws_row != getmaxy(stdscr) || w.ws_col != getmaxx(stdscr)))
		resizeterm(w.ws_row, w.ws_col);
	s->c.width = (unsigned)getmaxx(stdscr);
	s->c.height = (unsigned)getmaxy(stdscr);
}

static void screen_put(const struct top_page *page, unsigned y, const char *line)
{
	const attr_t how = !y				       ? A_BOLD
			   : page->head && y == page->head     ? A_REVERSE
			   : page->chosen && y == page->chosen ? A_BOLD
							       : A_NORMAL;

	attron(how);
	mvaddstr((int)y, 0, line);
	while (how == A_REVERSE && getcury(stdscr) == (int)y && getcurx(stdscr) < getmaxx(stdscr) - 1)
		addch(' ');
	attrset(A_NORMAL);
}

/* Shows a page. `text` is a copy, because the terminal may take long, and the session goes on meanwhile. */
static void screen_show(const struct top_page *page, char *text)
{
	char *line, *end;
	int y;

	erase();
	for (line = text, y = 0; line && *line && y < getmaxy(stdscr); line = end + 1, y++) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		screen_put(page, (unsigned)y, line);
		if (!end)
			break;
	}
	refresh();
}

static void draw(struct top_screen *s)
{
	struct top_page page;
	char *text;

	pthread_mutex_lock(&s->lock);
	follow_size(s);
	s->c.said = s->said[0] && (s->lasts || !s->t->at) ? s->said : NULL;
	top_frame(s->t, &s->c, &s->page);
	page = s->page;
	text = s->page.text.len ? strndup(s->page.text.data, s->page.text.len) : NULL;
	pthread_mutex_unlock(&s->lock);
	screen_show(&page, text);
	free(text);
}

static uint32_t chosen_pid(const struct top_screen *s)
{
	const struct top_row *row;
	size_t i;

	for (i = 0; i < top_rows(s->t, s->c.view); i++) {
		row = top_row(s->t, s->c.view, i);
		if (row->id == s->c.chosen_id)
			return row->tgid;
	}
	return 0;
}

static void press(struct top_screen *s, int key)
{
	struct top_keys k = {.t = s->t, .c = &s->c, .page = &s->page, .actions = s->actions, .popup = &s->popup};

	pthread_mutex_lock(&s->lock);
	top_press(&k, key);
	top_frame(s->t, &s->c, &s->page); /* the next key means what this one has made of the rows */
	s->leave |= k.leave;
	if (k.asked) {
		s->asked = k.asked;
		s->asked_pid = chosen_pid(s);
	}
	pthread_mutex_unlock(&s->lock);
	if (k.leave || k.asked)
		poke(s->told);
}

static void *screen_run(void *arg)
{
	struct top_screen *s = arg;
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
	int key;

	while (!__atomic_load_n(&s->ends, __ATOMIC_ACQUIRE)) {
		draw(s);
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			drain(s->wake);
		while (!__atomic_load_n(&s->ends, __ATOMIC_ACQUIRE) && (key = getch()) != ERR)
			press(s, key);
		if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) { /* the terminal has gone */
			press(s, 'q');
			fds[0].fd = -1;
		}
	}
	return NULL;
}

/* ---- for the session */

static int screen_fail(struct top_screen *s, int err, struct err *e)
{
	if (s && s->terminal) {
		endwin();
		delscreen(s->terminal);
		s->terminal = NULL;
	}
	return err_set(e, ERR_RUNTIME, err, "cannot start a thread for the screen: %s", strerror(-err));
}

int top_screen_open(struct top_screen **out, struct top *t, const struct top_action *actions, struct err *e)
{
	struct top_screen *s = calloc(1, sizeof(*s));
	int err;

	*out = NULL;
	if (!s)
		return screen_fail(s, -ENOMEM, e);
	s->t = t;
	s->actions = actions;
	s->c.marks = true;
	top_choice_init(&s->c);
	s->c.view = t->table.shown ? TOP_TABLE : TOP_OPERATORS;
	pthread_mutex_init(&s->lock, NULL);
	tcgetattr(STDIN_FILENO, &s->mode);
	setlocale(LC_CTYPE, "");
	s->terminal = newterm(NULL, stdout, stdin);
	if (!s->terminal) {
		free(s);
		return err_set(e, ERR_RUNTIME, -ENOTSUP,
			       "the terminal '%.40s' is not known; set TERM, or add --batch for plain text",
			       getenv("TERM") ? getenv("TERM") : "");
	}
	set_term(s->terminal);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->wake < 0 || s->told < 0 ? -errno : thread_start(&s->thread, screen_run, s);
	if (err)
		return screen_fail(s, err, e);
	*out = s;
	return 0;
}

int top_screen_fd(const struct top_screen *s)
{
	return s->told;
}

bool top_screen_serve(struct top_screen *s, void *ctx)
{
	const struct top_action *asked;
	struct buf text = {0};
	uint32_t pid;
	bool leave;

	drain(s->told);
	pthread_mutex_lock(&s->lock);
	asked = s->asked;
	pid = s->asked_pid;
	leave = s->leave;
	s->asked = NULL;
	pthread_mutex_unlock(&s->lock);
	if (!asked || leave)
		return leave;
	asked->run(ctx, pid, &text);
	if (!text.len)
		return false;
	buf_put(&text, "", 1);
	top_screen_lock(s);
	buf_fini(&s->popup);
	s->popup = text;
	s->c.popup = &s->popup;
	s->c.popup_first = 0;
	top_screen_unlock(s);
	return false;
}

void top_screen_lock(struct top_screen *s)
{
	pthread_mutex_lock(&s->lock);
}

void top_screen_unlock(struct top_screen *s)
{
	pthread_mutex_unlock(&s->lock);
	poke(s->wake);
}

void top_screen_say(struct top_screen *s, bool warning, const char *text)
{
	top_screen_lock(s);
	if (!s->lasts || warning) {
		snprintf(s->said, sizeof(s->said), "%s", text);
		s->lasts = warning;
	}
	top_screen_unlock(s);
}

static bool ended(struct top_screen *s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_S;
	return !pthread_timedjoin_np(s->thread, NULL, &until);
}

/*
 * Gives the terminal back. What was written is dropped, so that a thread which its terminal blocks goes on. If it does
 * not, it ends with mxbpf.
 */
void top_screen_close(struct top_screen *s)
{
	if (!s)
		return;
	__atomic_store_n(&s->ends, true, __ATOMIC_RELEASE);
	poke(s->wake);
	if (!ended(s)) {
		tcflush(STDOUT_FILENO, TCOFLUSH);
		if (!ended(s)) {
			tcsetattr(STDIN_FILENO, TCSANOW, &s->mode);
			return;
		}
	}
	endwin();
	delscreen(s->terminal);
	close(s->wake);
	close(s->told);
	buf_fini(&s->page.text);
	buf_fini(&s->popup);
	free(s);
}
