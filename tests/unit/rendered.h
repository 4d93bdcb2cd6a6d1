/* SPDX-License-Identifier: Apache-2.0 */
/* A session and rows, and what a view prints of them. */
#ifndef RENDERED_H
#define RENDERED_H

#include "base/buf.h"
#include "model/model.h"
#include "printed.h"

#define API MXBPF_CLASS_API
#define OP  MXBPF_CLASS_OPERATOR

/* Returns what a view prints. The caller frees it. */
static inline char *render(const char *format, const struct mdl_session *s, struct mdl *m, const struct view_opts *opts)
{
	const struct view_input in = {.session = s, .model = m};

	return printed(view_find(format), &in, opts);
}

static inline struct mdl_session session_new(void)
{
	struct mdl_session s = {
		.pid = 1234,
		.comm = strdup("python"),
		.cmdline = strdup("python train.py"),
		.mem_title = strdup("Device Storage"),
		.start_unix_ns = 1763616000123456789,
		.duration_ns = 10200000000,
		.ndevices = 2,
		.devices = calloc(2, sizeof(struct mdl_device)),
		.loss = {.attempted = 1204118, .stored = 1204118},
	};

	s.class_title[API] = strdup("MXNET_C_API");
	s.class_title[OP] = strdup("operator");
	s.devices[0] = (struct mdl_device){1, true, strdup("cpu")};
	s.devices[1] = (struct mdl_device){3, false, strdup("cpu pinned")};
	return s;
}

static inline uint64_t id_of(const char *name, size_t len)
{
	uint64_t id = 14695981039346656037ull;

	while (len--)
		id = (id ^ (unsigned char)*name++) * 1099511628211ull;
	return id;
}

static inline uint64_t feed_name(struct mdl *m, const char *name, size_t len)
{
	FREED(buf_fini) struct buf b = {0};
	struct mxbpf_name *n = buf_add(&b, sizeof(*n) + (len + 7) / 8 * 8);
	uint64_t id = id_of(name, len);

	memset(b.data, 0, b.len);
	n->h = (struct mxbpf_rec){MXBPF_NAME, (uint16_t)b.len, 0, 0};
	n->id = id;
	n->len = (uint32_t)len;
	memcpy(n->text, name, len);
	CHECK(!mdl_feed(m, b.data, b.len));
	return id;
}

/* All calls of the row are in the bucket of the longest. */
static inline void feed_agg(struct mdl *m, unsigned cls, uint32_t device, const char *name, const uint64_t v[5])
{
	const uint64_t id = name ? feed_name(m, name, strlen(name)) : 0;
	struct {
		struct mxbpf_agg a;
		struct mxbpf_bucket bucket;
	} row = {
		.a = {.h = {MXBPF_AGG, sizeof(row), 1234, 0},
		      .name_id = id,
		      .count = v[0],
		      .total_ns = v[1],
		      .self_ns = v[2],
		      .min_ns = v[3],
		      .max_ns = v[4],
		      .device = device,
		      .cls = (uint8_t)cls,
		      .nbuckets = 1},
		.bucket = {.index = mxbpf_bucket(v[4]), .count = v[0]},
	};

	CHECK(!mdl_feed(m, &row, sizeof(row)));
}

#endif
