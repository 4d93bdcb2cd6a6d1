// SPDX-License-Identifier: Apache-2.0
/* The datagrams between Kineto and its daemon. Any process of the machine can send one, so nothing in them is believed.
 */
#include <errno.h>
#include <string.h>

#include "kineto/priv.h"

#define NS_PER_MS 1000000

/* Kineto takes PROFILE_PROFILE_MEMORY, _WITH_FLOPS and _WITH_MODULES, too, but PyTorch 2.13 writes nothing of them. */
static const struct {
	const char *word, *help, *key;
} with[] = {
	{"shapes", "shapes and types of tensors", "PROFILE_REPORT_INPUT_SHAPES"},
	{"stacks", "Python stacks", "PROFILE_WITH_STACK"},
};
#define NWITH (sizeof(with) / sizeof(with[0]))

const char *kin_with_word(unsigned i)
{
	return i < NWITH ? with[i].word : NULL;
}

const char *kin_with_help(unsigned i)
{
	return i < NWITH ? with[i].help : NULL;
}

enum kin_kind kin_parse(const void *data, size_t bytes)
{
	struct kin_request r;
	struct kin_head h;

	if (bytes < sizeof(h))
		return KIN_MALFORMED;
	memcpy(&h, data, sizeof(h)); /* a datagram may lie at any address */
	bytes -= sizeof(h);
	if (h.size != bytes || !memchr(h.type, '\0', sizeof(h.type)))
		return KIN_MALFORMED;
	if (!strcmp(h.type, "ctxt"))
		return bytes == sizeof(struct kin_context) ? KIN_CONTEXT : KIN_MALFORMED;
	if (strcmp(h.type, "req") || bytes < sizeof(r))
		return KIN_MALFORMED;
	memcpy(&r, (const char *)data + sizeof(h), sizeof(r));
	if (r.n < 0 || r.n > KIN_PIDS_MAX || bytes != sizeof(r) + (size_t)r.n * sizeof(int32_t))
		return KIN_MALFORMED;
	return r.type & KIN_ACTIVITIES ? KIN_REQUEST : KIN_BUSY;
}

int kin_answer(struct buf *b, const char *type, const void *data, size_t bytes)
{
	struct kin_head h = {.size = bytes};

	memcpy(h.type, type, strnlen(type, sizeof(h.type) - 1));
	if (buf_put(b, &h, sizeof(h)))
		return -ENOMEM;
	return bytes ? buf_put(b, data, bytes) : 0;
}

/*
 * The warm-up is for CUPTI, which takes seconds to start. Without a GPU there is nothing to wait for. The duration
 * stands beside a number of steps, because Kineto takes it if the program counts none.
 */
int kin_config(struct buf *b, const struct kin_opts *o, const char *path, bool gpu)
{
	int err = buf_printf(b, "ACTIVITIES_LOG_FILE=%s\nACTIVITIES_DURATION_MSECS=%llu\n", path,
			     (unsigned long long)(o->duration_ns / NS_PER_MS));
	unsigned i;

	if (!err && !gpu)
		err = buf_printf(b, "ACTIVITIES_WARMUP_PERIOD_SECS=0\n");
	if (!err && o->steps)
		err = buf_printf(b,
				 "PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\n"
				 "ACTIVITIES_WARMUP_ITERATIONS=1\nACTIVITIES_ITERATIONS=%u\n",
				 o->steps);
	for (i = 0; i < NWITH && !err; i++)
		if (o->with >> i & 1)
			err = buf_printf(b, "%s=true\n", with[i].key);
	return err;
}

/* Kineto cuts comments and blanks off, and refuses "..". */
bool kin_path_fits(const char *path)
{
	const char *p;

	for (p = path; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == '#' || *p == 0x7f)
			return false;
	return *path == '/' && !strstr(path, "..");
}
