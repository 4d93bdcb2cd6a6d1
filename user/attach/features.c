// SPDX-License-Identifier: Apache-2.0
/* Finds out by trial what the running kernel supports. */
#include "attach/attach.h"
#include "attach/backend.h"
#include "feature/counters/events.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_capability(int cap)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {0};

	return !syscall(SYS_capget, &hdr, caps) && caps[cap / 32].effective & 1u << cap % 32;
}

static bool try_capabilities(void)
{
	return has_capability(CAP_SYS_ADMIN) || (has_capability(CAP_BPF) && has_capability(CAP_PERFMON));
}

static bool try_ptrace(void)
{
	return has_capability(CAP_SYS_PTRACE);
}

bool att_maps_readable(void)
{
	union bpf_attr attr = {.map_fd = UINT32_MAX};

	return syscall(SYS_bpf, BPF_MAP_GET_NEXT_KEY, &attr, sizeof(attr)) < 0 && errno != EPERM;
}

static bool try_filter(void)
{
	const struct att_backend *b = att_pick(NULL, NULL);

	return b && b->filters();
}

static bool try_ring(void)
{
	return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) > 0;
}

static bool try_task_storage(void)
{
	return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL) > 0;
}

static bool try_cookie(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) > 0;
}

static bool try_raw_tp(void)
{
	return libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL) > 0;
}

/* libbpf looks for it in /boot and /lib/modules, too. */
static bool try_btf(void)
{
	struct btf *types = access("/sys/kernel/btf/vmlinux", R_OK) ? btf__load_vmlinux_btf() : NULL;

	btf__free(types);
	return types || !access("/sys/kernel/btf/vmlinux", R_OK);
}

static bool try_kernel_reads(void)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 10},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = -8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 0},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_kernel},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "mxbpf_try", "GPL", insns,
			       sizeof(insns) / sizeof(insns[0]), NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool try_jit(void)
{
	struct bpf_prog_info info = {0};
	__u32 bytes = sizeof(info);
	struct err e = {0};
	int fd = backend_trial_prog(0, &e), err;

	if (fd < 0)
		return false;
	err = bpf_obj_get_info_by_fd(fd, &info, &bytes);
	close(fd);
	return err || info.jited_prog_len;
}

static bool try_hardware(void)
{
	unsigned mask = 1; /* cycles */

	return !ctr_keep_countable(&mask, NULL);
}

#define SUDO "run mxbpf with sudo"

static const struct {
	const char *name;
	bool required;
	bool (*works)(void);
	const char *use;    /* the purpose of the feature */
	const char *remedy; /* advice if it does not work */
	bool privileged;    /* without privileges it fails on every kernel, so a failure says nothing about this one */
} features[] = {
	{"CAP_BPF, CAP_PERFMON", true, try_capabilities, "load and attach the BPF programs", SUDO, false},
	{"CAP_SYS_PTRACE", true, try_ptrace, "inspect processes of other users", SUDO, false},
	{"ring buffer", true, try_ring, "carries the events", "Linux 5.8 or later has it", true},
	{"task storage", true, try_task_storage, "keeps each thread's open spans", "Linux 5.11 or later has it", true},
	{"attach cookies", true, try_cookie, "tell probes apart", "Linux 5.15 or later has them", true},
	{"kernel type information", true, try_btf, "/sys/kernel/btf/vmlinux",
	 "/sys/kernel/btf/vmlinux is not there: mount /sys, or use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as "
	 "distributions do",
	 false},
	{"JIT compiler of BPF", true, try_jit, "compiles the BPF programs",
	 "sysctl net.core.bpf_jit_enable=1 switches it on", true},
	{"reads of kernel memory", true, try_kernel_reads, "find the data of threads",
	 "lockdown=confidentiality forbids them to BPF programs; boot with lockdown=integrity or without lockdown",
	 true},
	{"raw tracepoints", false, try_raw_tp, "give back the slots of ended threads",
	 "without them a session has room for 1023 threads", true},
	{"hardware counters", false, try_hardware, "--counters cycles,instructions,...",
	 "this machine has none, like most virtual machines; --counters task-clock,page-faults,... works", true},
	{"process filter", false, try_filter, "keeps probes out of other processes on the same library",
	 "without it, probes also slow other processes on the library; Linux 6.10 or later has it", true},
};

/* Later rows came with later kernels, so the last one tells which kernel is needed. */
const char *features_missing(void)
{
	static _Thread_local char text[256];
	size_t i = sizeof(features) / sizeof(features[0]);

	while (i--) {
		if (!features[i].required || !strcmp(features[i].remedy, SUDO) || features[i].works())
			continue;
		snprintf(text, sizeof(text), "%s: %s", features[i].name, features[i].remedy);
		return text;
	}
	return NULL;
}

/* Adds one row per backend. One backend must work, so the last one is required if all others fail. */
static unsigned backend_rows(struct att_feature *rows, unsigned max)
{
	bool any = false;
	unsigned i;

	for (i = 0; i < max && att_backends[i]; i++) {
		struct err e = {0};
		bool ok = !att_backends[i]->supported(&e);

		any |= ok;
		rows[i] = (struct att_feature){
			.name = att_backends[i]->name, .ok = ok, .required = !att_backends[i + 1] && !any};
		snprintf(rows[i].detail, sizeof(rows[i].detail), "%s", ok ? att_backends[i]->use : e.why);
	}
	return i;
}

unsigned att_features(struct att_feature *rows, unsigned max)
{
	unsigned i, n;

	backend_quiet();
	n = backend_rows(rows, max);
	for (i = 0; i < sizeof(features) / sizeof(features[0]) && n < max; i++, n++) {
		bool ok = features[i].works(), known = !features[i].privileged || try_capabilities();

		rows[n] = (struct att_feature){.name = features[i].name, .ok = ok, .required = features[i].required};
		snprintf(rows[n].detail, sizeof(rows[n].detail), "%s",
			 ok	 ? features[i].use
			 : known ? features[i].remedy
				 : "not known, because trying it is not permitted; " SUDO);
	}
	return n;
}
