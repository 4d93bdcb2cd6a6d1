// SPDX-License-Identifier: Apache-2.0
/*
 * Parses any bytes as the texts and tables of a hostile process: its mappings, groups, mounts, environment, states and
 * system calls, the tables of lines of its Python code, the description of a session in a recording, datagrams to the
 * daemon of Kineto, and answers of receivers of metrics and profiles. The first byte of the input selects the parser.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/feature/neighbours/read.c"
#include "../../user/target/doing.c"
#include "base/fmt.h"
#include "cmd/serve/push_profile.h"
#include "feature/machine/read_priv.h"
#include "kineto/priv.h"
#include "metrics/metrics.h"
#include "python/priv.h"
#include "record/record.h"
#include "target/labels.h"
#include "target/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_maps(char *text)
{
	struct tgt *t = NULL;
	size_t i;

	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	t->pidfd = t->procfd = t->mapsfd = t->memfd = -1;
	tgt_maps_libs(t, text);
	for (i = 0; i < tgt_nlibs(t); i++)
		if (!strrchr(tgt_lib(t, i)->path, '/')) /* what names a library relies on it */
			abort();
	tgt_find_lib(t, "*.so");
	tgt_lib_at(t, 0x1000);
	tgt_close(t);
}

static void try_match(char *text)
{
	struct tgt_file files[2];

	tgt_maps_match(text, (const char *const[]){"libmxnet.so", "libtorch_cpu*", NULL}, files);
}

static void try_status(char *text)
{
	char id[TGT_CONTAINER_BYTES];

	tgt_status_field(text, "Seccomp");
	tgt_cgroup_container(text, id);
}

static void try_groups(char *text)
{
	static const char *const controllers[] = {NULL, "cpu", "memory"};
	char path[MACH_PATH_BYTES], dir[MACH_PATH_BYTES];
	size_t i, len;

	for (i = 0; i < 3; i++) {
		if (mach_group_path(text, controllers[i], path))
			strcpy(path, "/a/b");
		if (!mach_group_dir(text, controllers[i], path, dir, &len) && len > strlen(dir))
			abort();
	}
}

static void try_machine(char *text)
{
	uint64_t busy, all, value;
	unsigned cpu, i, k;
	size_t pos = 0;

	while (mach_next_cpu(text, &pos, &cpu, &busy, &all))
		;
	mach_cpuinfo_khz(text, 1, &value);
	for (i = 1; i < MXBPF_GAUGE_IDS; i++)
		for (k = 0; k < 2; k++) {
			const struct machine_source *from = &machine_gauges[i].from[k];

			if (from->file && from->form != MACHINE_FORM_KHZ && from->form != MACHINE_FORM_KHZ_MAX)
				mach_parse(from, text, &value);
		}
}

/* A merge writes what it has read. */
static void try_session(char *text)
{
	struct mdl_session s, again;
	char *written;

	if (!rec_meta_read(text, strlen(text), &s, NULL)) {
		written = rec_meta_write(&s);
		if (!written || rec_meta_read(written, strlen(written), &again, NULL))
			abort();
		free(written);
		mdl_session_fini(&again);
	}
	mdl_session_fini(&s);
}

/* The environment ends where the text does; /proc/PID/cgroup is taken from the same bytes. */
static void try_environ(char *text, size_t bytes)
{
	struct tgt_labels l;
	char *env = malloc(bytes + 1);

	if (!env)
		return;
	memcpy(env, text, bytes + 1);
	for (size_t i = 0; i < bytes; i++)
		env[i] = env[i] == '\n' ? '\0' : env[i];
	tgt_labels_parse(env, bytes, text, &l);
	if (strnlen(l.job, sizeof(l.job)) == sizeof(l.job) || strnlen(l.role, sizeof(l.role)) == sizeof(l.role))
		abort();
	free(env);
}

static void try_doing(char *text)
{
	struct tgt_doing d;
	struct process p;

	parse_syscall(text, &d);
	number_of(text, "\nvoluntary_ctxt_switches:");
	if (parse_stat(text, &p) && strnlen(p.comm, sizeof(p.comm)) == sizeof(p.comm))
		abort();
}

static void try_answer(const void *data, size_t size)
{
	char why[PUSH_WHY_BYTES];
	uint64_t rejected;
	const char *text;
	size_t len;
	int i;

	if (met_read_otlp(data, size, &rejected, &text, &len) && len)
		fmt_safe(why, sizeof(why), text, len); /* all of it is there */
	i = push_profile_form("http://a/b.ProfileStoreService/WriteRaw");
	if (push_profile_refused(i)(data, size, why) && strnlen(why, sizeof(why)) == sizeof(why))
		abort();
}

static void (*const texts[])(char *text) = {try_maps,	 try_match,   try_status, try_groups,
					    try_machine, try_session, try_doing};
static const py_line_fn lines[] = {py_line_lnotab, py_line_ranges, py_line_location};
#define NTEXTS (sizeof(texts) / sizeof(texts[0]))
#define NLINES (sizeof(lines) / sizeof(lines[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned which = size ? *data % (NTEXTS + NLINES + 3) : 0;
	char *copy = size ? malloc(size) : NULL; /* its end is the end of the memory */

	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	copy[size - 1] = '\0';
	if (which < NTEXTS)
		texts[which](copy);
	else if (which == NTEXTS + NLINES)
		kin_parse(data + 1, size - 1);
	else if (which == NTEXTS + NLINES + 1)
		try_environ(copy, size - 1);
	else if (which == NTEXTS + NLINES + 2)
		try_answer(data + 1, size - 1);
	else
		lines[which - NTEXTS](data + 1, size - 1, 1, size > 2 ? data[1] * 256u + data[2] : 0);
	free(copy);
	return 0;
}
