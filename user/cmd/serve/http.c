// SPDX-License-Identifier: Apache-2.0
/* Answers clients of `mxbpf serve`: metrics, whether it works, the last interval, and a recording on request. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/serve/serve.h"

#define SILENT_NS    30000000000ull
#define TRACE_NS     5000000000ull /* without ?duration= */
#define TRACE_NS_MAX 50000000000ull
#define PAGE_CSP     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'" /* the rest is in the page */
#define JSON	     "application/json"

enum { METRICS, HEALTHZ, REPORT, PAGE, TRACE };
static const struct srv_route routes[] = {
	[METRICS] = {"/metrics", false}, [HEALTHZ] = {"/healthz", false}, [REPORT] = {"/report.json", false},
	[PAGE] = {"/", false},		 [TRACE] = {"/trace", true},	  {NULL, false},
};

static void http_refuse(struct srv_reply *a, unsigned status, const char *why)
{
	a->status = status;
	buf_printf(&a->body, "%s\n", why);
}

/* ---- metrics and health */

static void put_metrics(struct serve *s, const struct srv_request *q, struct srv_reply *a)
{
	const enum met_form form = strstr(q->accept, "application/openmetrics-text") ? MET_OPENMETRICS : MET_PROMETHEUS;

	a->type = met_content_types[form];
	if (!s->nintervals) /* an empty answer could be of anything */
		met_take_self(s->metrics, MXBPF_VERSION);
	if (met_write(s->metrics, form, &a->body))
		http_refuse(a, 503, "out of memory");
}

static void put_health(const struct serve *s, struct srv_reply *a)
{
	buf_printf(&a->body, "ok: %s\n", s->nintervals ? "processes are watched" : "waiting for the first process");
}

/* ---- the last interval, at whose end these are answered */

static void put_tables(struct serve *s, enum cmd_format format, struct srv_reply *a)
{
	const int err = serve_tables(s, format, false, &a->body);

	if (err)
		http_refuse(a, err == -ENOMEM ? 503 : 500,
			    err == -ENOMEM ? "out of memory" : "the tables could not be made");
	a->type = format == CMD_JSON ? JSON : "text/html; charset=utf-8";
	a->csp = format == CMD_HTML ? PAGE_CSP : NULL;
}

static bool put_interval(struct serve *s, enum cmd_format format, struct srv_reply *a)
{
	if (s->model)
		put_tables(s, format, a);
	else if (!s->nintervals && !s->started)
		http_refuse(a, 503, "no process is watched yet");
	else
		return false;
	return true;
}

/* ---- a recording on request */

static void arm(struct serve *s, uint64_t ns)
{
	const struct itimerspec after = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};

	timerfd_settime(s->due, 0, &after, NULL);
}

static const struct serve_dump asked = {.word = "request", .why = "a client asked for it", .asked = true};

/*
 * With --flight-record, events are kept anyway, and are written when the time is over. Otherwise the session makes a
 * recording of that time.
 */
static void begin_trace(struct serve *s, const struct srv_request *q, struct srv_reply *a)
{
	const char *duration = srv_query(q, "duration");
	uint64_t ns = TRACE_NS;

	if (duration && (fmt_parse_duration(duration, &ns) || !ns || ns > TRACE_NS_MAX))
		http_refuse(a, 400, "duration is a time of at most 50 s, such as 5s");
	else if (!s->started)
		http_refuse(a, 503, "no process is watched yet");
	else if (!s->run.o->flight_ns && !serve_record(s, &asked, ns))
		http_refuse(a, 409, "a recording is being made; try again");
	if (a->status)
		return;
	s->asked = SERVE_RECORDING;
	s->asked_for = q;
	s->asked_ns = ns;
	if (s->run.o->flight_ns) /* else the session ends it itself */
		arm(s, ns);
}

/* The first request starts the recording, and gets the name of the file when it is written. */
static bool put_trace(struct serve *s, const struct srv_request *q, struct srv_reply *a)
{
	char file[6 * sizeof(s->file)];

	if (s->asked == SERVE_IDLE)
		begin_trace(s, q, a);
	else if (s->asked_for != q)
		http_refuse(a, 409, "a recording is being made; try again");
	if (a->status || s->asked != SERVE_WRITTEN)
		return a->status;
	s->asked = SERVE_IDLE;
	s->asked_for = NULL;
	if (!*s->file) {
		http_refuse(a, 500, "the recording could not be written; the log of mxbpf says why");
		return true;
	}
	a->type = JSON;
	fmt_json(file, sizeof(file), s->file, strlen(s->file));
	buf_printf(&a->body, "{\"file\": \"%s\"}\n", file);
	return true;
}

/* ---- answers */

static bool answer(void *ctx, const struct srv_request *q, struct srv_reply *a)
{
	struct serve *s = ctx;

	switch (q->route - routes) {
	case METRICS:
		put_metrics(s, q, a);
		return true;
	case HEALTHZ:
		put_health(s, a);
		return true;
	case REPORT:
		return put_interval(s, CMD_JSON, a);
	case PAGE:
		return put_interval(s, CMD_HTML, a);
	default:
		return put_trace(s, q, a);
	}
}

void serve_answer(struct serve *s)
{
	struct err e = {0};
	uint64_t n;

	if (!s->http)
		return;
	if (s->due >= 0 && read(s->due, &n, sizeof(n)) == sizeof(n) && s->asked == SERVE_RECORDING)
		serve_write_last(s, &asked, s->asked_ns);
	if (s->written >= 0 && read(s->written, &n, sizeof(n)) == sizeof(n) && s->asked == SERVE_RECORDING)
		s->asked = SERVE_WRITTEN;
	srv_answer(s->http, answer, s);
	if (s->asked == SERVE_WRITTEN) /* who asked for it has gone */
		s->asked = SERVE_IDLE;
	if (srv_trouble(s->http, &e))
		cmd_warn("%s", e.why);
}

int serve_listen(struct serve *s, const struct cmd_opts *o, struct err *e)
{
	struct srv_opts so = {.routes = routes, .silent_ns = SILENT_NS};
	struct epoll_event ev = {.events = EPOLLIN};

	if (o->listen && !strcmp(o->listen, "none"))
		return 0;
	so.listen = s->listen = o->listen ? strdup(o->listen) : NULL;
	so.token_file = s->token_file = o->trigger ? strdup(o->trigger) : NULL;
	if ((o->listen && !s->listen) || (o->trigger && !s->token_file))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	s->due = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->written = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->due < 0 || s->written < 0)
		return err_set(e, ERR_RUNTIME, -errno, "cannot wait for events: %s", strerror(errno));
	if (srv_open(&s->http, &so, e))
		return e->code;
	if (epoll_ctl(s->wake, EPOLL_CTL_ADD, srv_fd(s->http), &ev) || epoll_ctl(s->wake, EPOLL_CTL_ADD, s->due, &ev) ||
	    epoll_ctl(s->wake, EPOLL_CTL_ADD, s->written, &ev))
		return err_set(e, ERR_RUNTIME, -errno, "cannot wait for events (epoll): %s", strerror(errno));
	if (!o->quiet)
		cmd_say(CMD_INFO, "listening on %s%s", strncmp(srv_address(s->http), "unix:", 5) ? "http://" : "",
			srv_address(s->http));
	return 0;
}

void serve_close(struct serve *s)
{
	srv_close(s->http);
	free(s->listen);
	free(s->token_file);
	if (s->due >= 0)
		close(s->due);
	if (s->written >= 0)
		close(s->written);
}
