// SPDX-License-Identifier: Apache-2.0
/* The option --kernel-metrics. */
#include "cmd/option.h"
#include "feature/kernels/kernels.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCHES_MAX 1000

static int kernels_refuse(struct err *e, const struct cmd_option *opt, const char *text, const char *why)
{
	return err_set(e, ERR_USAGE, -EINVAL, "--%s: '%.60s' %s", opt->name, text, why);
}

/* Returns what is behind ":N", or NULL if it is wrong. */
static const char *read_launches(const char *at, unsigned *n)
{
	unsigned long value;
	char *end;

	if (at[0] != ':' || !isdigit((unsigned char)at[1]))
		return at;
	value = strtoul(at + 1, &end, 10);
	*n = (unsigned)value;
	return value && value <= LAUNCHES_MAX ? end : NULL;
}

static int kernels_set(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	struct ses_metrics m = {.each = 0};
	const size_t len = strcspn(text, ":");
	const char *at = text + len;

	if (!strncmp(at, "::", 2))
		return kernels_refuse(e, opt, text,
				      "has '::', which symbols of kernels do not; give a part between two '::'");
	if (!len || len >= sizeof(m.pattern))
		return kernels_refuse(e, opt, text, len ? "is too long" : "has no part of a kernel's name");
	memcpy(m.pattern, text, len);
	at = read_launches(at, &m.each);
	if (!at)
		return kernels_refuse(e, opt, text, "does not have a number of launches from 1 to 1000 behind ':'");
	m.replay = !strcmp(at, ":replay");
	if (*at && !m.replay)
		return kernels_refuse(e, opt, text, "is not NAME[,NAME...][:N][:replay], as in gemm:10");
	o->ses.metrics = m;
	return 0;
}

static bool lacks_gpu(const struct cmd_opts *o)
{
	return *o->ses.metrics.pattern && !o->ses.gpu;
}

static const struct cmd_conflict conflicts[] = {{lacks_gpu, "--kernel-metrics needs --gpu"}, {0}};

const struct cmd_option kernels_option = {
	.name = "kernel-metrics",
	.arg = "NAME[:N]",
	.group = "Measure",
	.commands = CMD_LIVE,
	AGENT_YES,
	.sees_gpu = true,
	.help = "With --gpu: hardware counters of N (5) launches of each kernel with NAME in its symbol",
	.set = kernels_set,
	.after = "raised",
	.sheet = &sheet_gpu_counters,
	.conflicts = conflicts,
};
