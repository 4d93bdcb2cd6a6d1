// SPDX-License-Identifier: Apache-2.0
/* What the running kernel can do, found by trying. */
#include "attach/attach.h"

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool try_multi(char *detail, size_t cap)
{
	struct err e = {0};
	bool ok = !att_backends[0]->supported(&e);

	snprintf(detail, cap, "%s", ok ? "attaches all probes" : e.why);
	return ok;
}

static bool try_filter(char *detail, size_t cap)
{
	snprintf(detail, cap,
		 "keeps probes out of other processes on the same library; without it they are slowed too");
	return att_backends[0]->filters();
}

static bool try_ring(char *detail, size_t cap)
{
	snprintf(detail, cap, "carries the events; Linux 5.8 and later");
	return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) > 0;
}

static bool try_task_storage(char *detail, size_t cap)
{
	snprintf(detail, cap, "keeps each thread's open spans; Linux 5.11 and later");
	return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL) > 0;
}

static bool try_cookie(char *detail, size_t cap)
{
	snprintf(detail, cap, "tells probes apart; Linux 5.15 and later");
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) > 0;
}

static bool try_raw_tp(char *detail, size_t cap)
{
	snprintf(detail, cap, "gives back the slots of ended threads; without it at most 1023 threads in a session");
	return libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL) > 0;
}

static bool try_btf(char *detail, size_t cap)
{
	snprintf(detail, cap, "/sys/kernel/btf/vmlinux; the kernel needs CONFIG_DEBUG_INFO_BTF");
	return !access("/sys/kernel/btf/vmlinux", R_OK);
}

static const struct {
	const char *name;
	bool required;
	bool (*try_it)(char *detail, size_t cap);
} features[] = {
	{"uprobe_multi", true, try_multi},	    {"ring buffer", true, try_ring},
	{"task storage", true, try_task_storage},   {"attach cookies", true, try_cookie},
	{"kernel type information", true, try_btf}, {"raw tracepoints", false, try_raw_tp},
	{"process filter", false, try_filter},
};

static int silent(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

unsigned att_features(struct att_feature *rows, unsigned max)
{
	unsigned i;

	libbpf_set_print(silent);
	for (i = 0; i < sizeof(features) / sizeof(features[0]) && i < max; i++) {
		rows[i] = (struct att_feature){.name = features[i].name, .required = features[i].required};
		rows[i].ok = features[i].try_it(rows[i].detail, sizeof(rows[i].detail));
	}
	return i;
}
