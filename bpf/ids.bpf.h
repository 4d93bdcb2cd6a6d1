/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Who runs, in the numbers that user space knows. */
#ifndef IDS_BPF_H
#define IDS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The pid namespace whose numbers user space knows; 0, 0: the first one of the machine. */
const volatile __u64 cfg_pidns_dev, cfg_pidns_ino;

/* The running thread as user space numbers it; zeros if it is in no namespace that is looked at. */
static __always_inline struct bpf_pidns_info thread_ids(void)
{
	struct bpf_pidns_info ids = {};
	__u64 id;

	if (cfg_pidns_ino) {
		bpf_get_ns_current_pid_tgid(cfg_pidns_dev, cfg_pidns_ino, &ids, sizeof(ids));
	} else {
		id = bpf_get_current_pid_tgid();
		ids.tgid = id >> 32;
		ids.pid = id;
	}
	return ids;
}

/* The number of a thread, of a process that of its first one, likewise; 0: it has none. */
static __always_inline __u32 task_number(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = cfg_pidns_ino ? BPF_CORE_READ(pid, level) : 0;
	struct upid id;

	if (bpf_core_read(&id, sizeof(id), &pid->numbers[level]) ||
	    (cfg_pidns_ino && BPF_CORE_READ(id.ns, ns.inum) != cfg_pidns_ino))
		return 0;
	return id.nr;
}

#endif
