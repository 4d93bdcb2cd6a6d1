// SPDX-License-Identifier: Apache-2.0
/* Compares any two JSON results, in every form of the answer. A NUL stands between the two; without one both are equal.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compare/compare.h"
#include "compare/show.h"
#include "model/session.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The answers go to stdout and are not needed. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fd = open("/dev/null", O_WRONLY);

	return dup2(fd, STDOUT_FILENO) < 0;
}

static int take(struct cmp_run *run, struct mdl_session *s, char path[32], const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC), err;
	struct err e = {0};

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	run->path = path;
	err = cmp_json_take(run, s, size & 1, &e);
	if (err && !e.why[0])
		abort();
	close(fd);
	return err;
}

/* Limits of --fail-on of each kind, against what was compared. */
static void check_limits(const struct cmp_result *r)
{
	static const char *const limits[] = {"iteration > 5%", "memory.peak > 1%", "memory.iteration < 1%",
					     "data > 3%",      "operator(a) < 2%", "program > -5%"};
	struct cmp_limit l;
	bool known;
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		if (cmp_limit_parse(limits[i], &l, NULL) || (cmp_limit_broken(&l, r, &known) && !known))
			abort();
	}
}

static void answer(const struct cmp_sides *of)
{
	struct cmp_result r = {0};
	struct err e = {0};
	unsigned form;
	struct out *o;

	if (out_open("-", false, &o, &e))
		abort();
	if (!cmp_compare(of, &r) && !cmp_context(of, &r)) {
		check_limits(&r);
		for (form = 0; form < CMP_NFORMS; form++)
			cmp_forms[form].put(o, &r, of, 10, &e);
	}
	out_commit(o, &e);
	cmp_result_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
	const size_t first = end ? (size_t)(end - data) : size;
	struct cmp_run a = {.m = mdl_new()}, b = {.m = mdl_new()};
	const struct cmp_sides of = {{&a, &b}, {1, 1}};
	struct mdl_session sa = {0}, sb = {0};
	char pa[32], pb[32];

	if (!a.m || !b.m)
		abort();
	if (!take(&a, &sa, pa, data, first) & !take(&b, &sb, pb, end ? end + 1 : data, end ? size - first - 1 : size))
		answer(&of);
	cmp_run_fini(&a);
	cmp_run_fini(&b);
	mdl_session_fini(&sa);
	mdl_session_fini(&sb);
	mdl_free(a.m);
	mdl_free(b.m);
	return 0;
}
