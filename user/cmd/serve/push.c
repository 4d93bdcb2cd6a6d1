// SPDX-License-Identifier: Apache-2.0
/* What `mxbpf serve` sends after each interval: metrics to a collector of OpenTelemetry, profiles of the jobs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "cmd/serve/otel.h"
#include "cmd/serve/push_profile.h"
#include "cmd/serve/serve.h"

#define GRACE_NS 2000000000ull /* until the last interval is sent */

/* In the thread of the sender, maybe after the session has ended. */
static void push_tell(void *ctx, const char *text, bool well)
{
	cmd_say(well ? CMD_INFO : CMD_WARNING, "%s", text);
}

/* A collector may take a part of the metrics only. */
static bool refused(const void *answer, size_t len, char why[PUSH_WHY_BYTES])
{
	const char *text;
	uint64_t rejected;
	size_t text_len;
	int n;

	if (!met_read_otlp(answer, len, &rejected, &text, &text_len) || (!rejected && !text_len))
		return false;
	n = snprintf(why, PUSH_WHY_BYTES, "%" PRIu64 " data points%s", rejected, text_len ? ", because " : "");
	fmt_safe(why + n, PUSH_WHY_BYTES - (size_t)n, text, text_len);
	return true;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/*
 * Replaces a sender by that of another URL, which it takes. The new one is there before the old one goes, so an error
 * changes nothing.
 */
static int replace(struct push **at, char **url, char *new_url, const struct push_opts *o, struct err *e)
{
	struct push *new = NULL;

	if (e->code || same(*url, new_url) || (new_url && push_open(&new, o, e))) {
		free(new_url);
		return e->code;
	}
	push_close(*at, 0);
	free(*url);
	*at = new;
	*url = new_url;
	return 0;
}

static int open_otlp(struct serve *s, const struct cmd_opts *o, struct err *e)
{
	struct push_opts po = {.what = "metrics", .refused = refused, .tell = push_tell};
	char *url = otel_url(o->otlp, e), **headers = NULL;

	if (url && !e->code) {
		po.url = url;
		po.timeout_ns = otel_timeout_ns(e);
		po.ca_file = otel_variable("CERTIFICATE");
		headers =
			otel_headers(getenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS") ? "OTEL_EXPORTER_OTLP_METRICS_HEADERS"
										  : "OTEL_EXPORTER_OTLP_HEADERS",
				     e);
		po.headers = (const char *const *)headers;
	}
	if (url && !e->code && !s->resource.len)
		otel_resource(&s->resource, e);
	replace(&s->otlp, &s->otlp_url, url, &po, e);
	otel_headers_free(headers);
	return e->code;
}

static int open_profiles(struct serve *s, const struct cmd_opts *o, struct err *e)
{
	struct push_opts po = {.what = "profiles", .url = o->push_profile, .tell = push_tell};
	char *url = o->push_profile ? strdup(o->push_profile) : NULL, **headers;

	if (o->push_profile && !url)
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	headers = url ? otel_headers("MXBPF_PROFILE_HEADERS", e) : NULL;
	po.headers = (const char *const *)headers;
	if (url)
		po.refused = push_profile_refused(push_profile_form(url));
	replace(&s->profiles, &s->profiles_url, url, &po, e);
	otel_headers_free(headers);
	return e->code;
}

int serve_push_open(struct serve *s, const struct cmd_opts *o, struct err *e)
{
	const struct push *otlp = s->otlp, *profiles = s->profiles;

	if (open_otlp(s, o, e) || open_profiles(s, o, e))
		return e->code;
	if (s->otlp && s->otlp != otlp && !o->quiet)
		cmd_say(CMD_INFO, "sending metrics to %s", push_place(s->otlp));
	if (s->profiles && s->profiles != profiles && !o->quiet)
		cmd_say(CMD_INFO, "sending profiles to %s", push_place(s->profiles));
	return 0;
}

static void push_metrics(struct serve *s)
{
	struct push_request q = {.type = "application/x-protobuf"};
	struct buf batch = {0};

	if (met_write_otlp(s->metrics, (const void *)s->resource.data, buf_count(&s->resource, struct met_attribute),
			   &q.body) ||
	    buf_put(&batch, &q, sizeof(q))) {
		buf_fini(&q.body);
		cmd_warn("metrics of an interval were not sent: out of memory");
		return;
	}
	push_send(s->otlp, &batch);
}

void serve_push(struct serve *s, const struct mdl_interval *in)
{
	struct buf batch = {0};

	if (s->otlp)
		push_metrics(s);
	if (!s->profiles)
		return;
	if (push_profile_make(s->metrics, in, push_profile_form(s->profiles_url), &batch))
		cmd_warn("profiles of an interval were not sent: out of memory");
	if (batch.len)
		push_send(s->profiles, &batch);
	push_batch_fini(&batch);
}

void serve_push_close(struct serve *s)
{
	push_close(s->otlp, GRACE_NS);
	push_close(s->profiles, GRACE_NS);
	free(s->otlp_url);
	free(s->profiles_url);
	otel_resource_fini(&s->resource);
}
