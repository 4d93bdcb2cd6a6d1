/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Process and thread ids as user space numbers them. */
#ifndef IDS_BPF_H
#define IDS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Device and inode of user space's pid namespace; 0, 0: the initial pid namespace. */
const volatile __u64 cfg_pidns_dev, cfg_pidns_ino;

/* Returns the ids of the running thread, or zeros if it is outside user space's pid namespace. */
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

/*
 * Returns the id of a task in user space's pid namespace, or 0 if it has none there. For a process, pass its first
 * thread.
 */
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
