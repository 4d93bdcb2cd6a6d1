// SPDX-License-Identifier: Apache-2.0
#include "cmd/serve/push_profile.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "base/gzip.h"
#include "base/proto.h"
#include "feature/lines/lines.h"
#include "view/profile/profile.h"

#define NS_PER_S   1000000000ull
#define PATH_BYTES 2048
#define BOUNDARY   "mxbpf-98b1d4c6e3f7450aa2d0" /* of the parts of a form; gzip's bytes do not have it */

/* ---- Pyroscope: a form, whose URL has the labels in the name of the application */

/* Characters that end a label there, or a parameter of the URL. */
static int put_encoded(struct buf *to, const char *text)
{
	int err = 0;

	for (; *text && !err; text++) {
		if (strchr("{},=\"", *text))
			err = buf_put(to, "_", 1);
		else if ((*text | 32) >= 'a' && (*text | 32) <= 'z')
			err = buf_put(to, text, 1);
		else
			err = strchr("0123456789-._~", *text) ? buf_put(to, text, 1)
							      : buf_printf(to, "%%%02X", (unsigned char)*text);
	}
	return err;
}

static int put_query_label(void *ctx, const char *name, const char *value)
{
	struct buf *to = ctx;

	return buf_printf(to, "%%2C%s%%3D", name) || put_encoded(to, value) ? -ENOMEM : 0;
}

static int make_ingest(const struct mdl_session *s, const char *host, const char *labels, const struct buf *profile,
		       struct push_request *q)
{
	static const char types[] = "{\"samples\":{\"units\":\"samples\",\"aggregation\":\"sum\"},"
				    "\"wall\":{\"units\":\"nanoseconds\",\"aggregation\":\"sum\"}}";
	const uint64_t from = s->start_unix_ns / NS_PER_S,
		       until = (s->start_unix_ns + s->duration_ns + NS_PER_S - 1) / NS_PER_S;
	struct buf query = {0};
	int err =
		buf_printf(&query, "name=mxbpf%%7Bhost%%3D") || put_encoded(&query, host) ||
		met_each_label(labels, put_query_label, &query) ||
		buf_printf(&query, "%%7D&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof&spyName=mxbpf", from, until) ||
		buf_put(&query, "", 1);

	q->query = query.data;
	q->type = "multipart/form-data; boundary=" BOUNDARY;
	err = err ||
	      buf_printf(&q->body, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"profile\"; "
				   "filename=\"profile.pprof\"\r\nContent-Type: application/octet-stream\r\n\r\n") ||
	      buf_put(&q->body, profile->data, profile->len) ||
	      buf_printf(&q->body,
			 "\r\n--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"sample_type_config\"; "
			 "filename=\"sample_type_config.json\"\r\nContent-Type: application/json\r\n\r\n%s"
			 "\r\n--" BOUNDARY "--\r\n",
			 types);
	return err ? -ENOMEM : 0;
}

/* ---- Parca: WriteRawRequest of its profilestore as JSON */

static int put_base64(struct buf *to, const struct buf *from)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const void *)from->data;
	char four[4];
	size_t i, left;
	uint32_t v;
	int err = 0;

	for (i = 0; i < from->len && !err; i += 3) {
		left = from->len - i;
		v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0u);
		four[0] = digits[v >> 18];
		four[1] = digits[v >> 12 & 63];
		four[2] = left > 1 ? digits[v >> 6 & 63] : '=';
		four[3] = left > 2 ? digits[v & 63] : '=';
		err = buf_put(to, four, sizeof(four));
	}
	return err;
}

static int put_json_label(void *ctx, const char *name, const char *value)
{
	char safe[PATH_BYTES];

	fmt_json(safe, sizeof(safe), value, strlen(value));
	return buf_printf(ctx, ",{\"name\":\"%s\",\"value\":\"%s\"}", name, safe);
}

static int make_writeraw(const struct mdl_session *s, const char *host, const char *labels, const struct buf *profile,
			 struct push_request *q)
{
	const int err = buf_printf(&q->body, "{\"series\":[{\"labels\":{\"labels\":["
					     "{\"name\":\"__name__\",\"value\":\"mxbpf\"}") ||
			put_json_label(&q->body, "host", host) || met_each_label(labels, put_json_label, &q->body) ||
			buf_printf(&q->body, "]},\"samples\":[{\"rawProfile\":\"") || put_base64(&q->body, profile) ||
			buf_printf(&q->body, "\"}]}]}");

	q->type = "application/json";
	return err ? -ENOMEM : 0;
}

/* ---- the same request by gRPC-Web, which Parca's server takes, too: a frame of protobuf, and of trailers in the
 * answer */

enum { REQUEST_SERIES = 2 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES };
enum { LABELS_LABELS = 1 };
enum { LABEL_NAME = 1, LABEL_VALUE };
enum { SAMPLE_PROFILE = 1 };

#define FRAME_BYTES   5 /* of its head: flags, and the length with the highest byte first */
#define FRAME_TRAILER 0x80

static int put_proto_label(void *ctx, const char *name, const char *value)
{
	struct proto *p = ctx;
	const size_t label = proto_begin(p, LABELS_LABELS);

	proto_bytes(p, LABEL_NAME, name, strlen(name));
	proto_bytes(p, LABEL_VALUE, value, strlen(value));
	proto_end(p, label);
	return 0;
}

static int make_grpc(const struct mdl_session *s, const char *host, const char *labels, const struct buf *profile,
		     struct push_request *q)
{
	struct proto p = {.failed = false};
	const size_t series = proto_begin(&p, REQUEST_SERIES);
	size_t part = proto_begin(&p, SERIES_LABELS);
	char head[FRAME_BYTES] = {0};
	int err, i;

	put_proto_label(&p, "__name__", "mxbpf");
	put_proto_label(&p, "host", host);
	met_each_label(labels, put_proto_label, &p);
	proto_end(&p, part);
	part = proto_begin(&p, SERIES_SAMPLES);
	proto_bytes(&p, SAMPLE_PROFILE, profile->data, profile->len);
	proto_end(&p, part);
	proto_end(&p, series);
	for (i = 0; i < 4; i++)
		head[1 + i] = (char)(p.b.len >> (24 - 8 * i));
	err = p.failed || buf_put(&q->body, head, sizeof(head)) || buf_put(&q->body, p.b.data, p.b.len);
	proto_fini(&p);
	q->type = "application/grpc-web+proto";
	return err ? -ENOMEM : 0;
}

/* "grpc-status:7\r\ngrpc-message:no" */
static bool is_status_ok(const char *trailers, size_t len)
{
	static const char name[] = "grpc-status:";
	const char *end = trailers + len, *at = memmem(trailers, len, name, strlen(name));

	for (at = at ? at + strlen(name) : end; at < end && *at == ' '; at++)
		;
	return at < end && *at == '0' && (at + 1 == end || at[1] == '\r');
}

static bool grpc_refuses(const void *answer, size_t len, char why[PUSH_WHY_BYTES])
{
	const unsigned char *p = answer, *end = p + len;
	size_t n;

	for (; end - p >= FRAME_BYTES; p += FRAME_BYTES + n) {
		n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
		if (n > (size_t)(end - p) - FRAME_BYTES)
			break;
		if (!(p[0] & FRAME_TRAILER))
			continue;
		fmt_safe(why, PUSH_WHY_BYTES, (const char *)p + FRAME_BYTES, n);
		return !is_status_ok((const char *)p + FRAME_BYTES, n);
	}
	snprintf(why, PUSH_WHY_BYTES, "the answer is none of gRPC-Web, or an error without a text");
	return true;
}

static const struct {
	const char *end; /* of the path */
	int (*make)(const struct mdl_session *s, const char *host, const char *labels, const struct buf *profile,
		    struct push_request *q);
	bool (*refuses)(const void *answer, size_t len, char why[PUSH_WHY_BYTES]); /* NULL: the status says it */
} forms[] = {
	{"/ingest", make_ingest, NULL},
	{"/profiles/writeraw", make_writeraw, NULL},
	{".ProfileStoreService/WriteRaw", make_grpc, grpc_refuses},
};

push_refused_fn push_profile_refused(int form)
{
	return forms[form].refuses;
}

int push_profile_form(const char *url)
{
	const size_t len = strcspn(url, "?#");
	char path[PATH_BYTES];
	int i;

	snprintf(path, sizeof(path), "%.*s", (int)(len < sizeof(path) ? len : 0), url);
	for (i = 0; i < (int)(sizeof(forms) / sizeof(forms[0])); i++)
		if (fmt_ends_with(path, forms[i].end))
			return i;
	return -1;
}

/* ---- */

struct of_labels {
	const struct met *metrics;
	const char *labels;
};

static bool has_labels(void *ctx, uint32_t tgid)
{
	const struct of_labels *of = ctx;
	const char *labels = met_labels_of(of->metrics, tgid);

	return labels && !strcmp(labels, of->labels);
}

static int add_profile(const struct met *metrics, const struct mdl_interval *in, int form, const char *labels,
		       struct buf *batch)
{
	const struct view_input vi = {.session = in->session, .model = in->model};
	struct push_request q = {.type = ""};
	struct profile p = {.depth = 0};
	char host[HOST_NAME_MAX + 1] = "";
	uint64_t looks;
	int err = profile_looks(&p, &vi, has_labels, &(struct of_labels){metrics, labels}, &looks);

	gethostname(host, sizeof(host) - 1);
	if (!err && looks)
		err = gzip_buf(&p.profile) || forms[form].make(in->session, host, labels, &p.profile, &q) ||
				      buf_put(batch, &q, sizeof(q))
			      ? -ENOMEM
			      : 0;
	profile_fini(&p);
	if (err) {
		free(q.query);
		buf_fini(&q.body);
	}
	return err;
}

/* Whether an earlier row is of a process with the same labels. */
static bool came_before(const struct met *metrics, const struct mxbpf_agg_line *rows, size_t at, const char *labels)
{
	struct of_labels of = {metrics, labels};
	size_t i = 0;

	while (i < at && !has_labels(&of, rows[i].h.tgid))
		i++;
	return i < at;
}

int push_profile_make(const struct met *metrics, const struct mdl_interval *in, int form, struct buf *batch)
{
	size_t n, i;
	const struct mxbpf_agg_line *rows = lines_rows(in->model, &n);
	const char *labels;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		labels = met_labels_of(metrics, rows[i].h.tgid);
		if (labels && !came_before(metrics, rows, i, labels))
			err = add_profile(metrics, in, form, labels, batch);
	}
	return err;
}
