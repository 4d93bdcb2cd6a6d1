// SPDX-License-Identifier: Apache-2.0
/* Writes the account of the mock as JSON to $MXBPF_DOUBLE_ACCOUNT. `%p` in the path is the process id. */
#include "driver.h"

static const struct {
	int kind;
	const char *name;
} kinds[] = {
	{KIND_KERNEL, "kernel"},   {KIND_COPY, "copy"},	    {KIND_PEER, "peer"},     {KIND_SET, "set"},
	{KIND_RUNTIME, "runtime"}, {KIND_DRIVER, "driver"}, {KIND_SYNC, "sync"},     {KIND_OVERHEAD, "overhead"},
	{KIND_DEVICE, "device"},   {KIND_GRAPH, "graph"},   {KIND_MEMORY, "memory"},
};

static void write_kinds(FILE *f, const char *key, const uint64_t *counts)
{
	size_t i;

	fprintf(f, "\"%s\": {", key);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		fprintf(f, "%s\"%s\": %lu", i ? ", " : "", kinds[i].name, (unsigned long)counts[kinds[i].kind]);
	fprintf(f, "},\n ");
}

static FILE *open_account(void)
{
	const char *path = getenv("MXBPF_DOUBLE_ACCOUNT"), *pid;
	char full[4096];

	if (!path || !*path)
		return NULL;
	pid = strstr(path, "%p");
	if (!pid)
		return fopen(path, "we");
	snprintf(full, sizeof(full), "%.*s%d%s", (int)(pid - path), path, (int)getpid(), pid + 2);
	return fopen(full, "we");
}

void account_write(const struct double_account *a)
{
	const struct {
		const char *name;
		uint64_t n;
	} plain[] = {
		{"launched_ns", a->launched_ns},
		{"kernel_ns", a->kernel_ns},
		{"buffers_requested", a->buffers_requested},
		{"buffers_completed", a->buffers_completed},
		{"null_buffers", a->null_buffers},
		{"unreadable", a->unreadable},
		{"corrupted", a->corrupted},
		{"zero_times", a->zero_times},
		{"early", a->early},
		{"subscriptions", a->subscriptions},
		{"refused", a->refused},
		{"unsubscriptions", a->unsubscriptions},
		{"finalized", a->finalized},
		{"timestamp_registrations", a->timestamp_registrations},
		{"mixed_clocks", a->mixed_clocks},
		{"callback_registrations", a->callback_registrations},
		{"mixed_versions", a->mixed_versions},
		{"graph_level", a->graph_level},
		{"left_enabled", a->left_enabled},
		{"left_functions", a->left_functions},
		{"idle_callbacks", a->idle_callbacks},
		{"calls_runtime", a->calls_runtime},
		{"calls_driver", a->calls_driver},
		{"node_callbacks", a->node_callbacks},
		{"ranges", a->ranges},
		{"ranges_mixed", a->ranges_mixed},
		{"executed", a->executed},
	};
	FILE *f = open_account();
	size_t i;

	if (!f)
		return;
	fprintf(f, "{");
	write_kinds(f, "launched", a->launched);
	write_kinds(f, "made", a->made);
	write_kinds(f, "delivered", a->delivered);
	write_kinds(f, "dropped", a->dropped);
	write_kinds(f, "lost", a->lost);
	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		fprintf(f, "\"%s\": %lu, ", plain[i].name, (unsigned long)plain[i].n);
	fprintf(f, "\"pid\": %d}\n", (int)getpid());
	fclose(f);
}
